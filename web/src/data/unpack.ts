// Unpacks blocks: base64 of a DEFLATE stream.

/** The bytes of a block; throws where they are more than `limit`, which a few packed bytes may claim to be. */
export async function unpack(base64: string, limit: number | null = null): Promise<Uint8Array> {
  const packed = fromBase64(base64);
  const stream = new Blob([packed as BlobPart]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  if (limit === null) return new Uint8Array(await new Response(stream).arrayBuffer());
  const pieces: Uint8Array[] = [];
  let length = 0;
  const reader = stream.getReader();
  for (let piece = await reader.read(); !piece.done; piece = await reader.read()) {
    pieces.push(piece.value);
    length += piece.value.length;
    if (length > limit) {
      await reader.cancel();
      throw new Error(`A block of the trace data has more than ${limit} bytes unpacked.`);
    }
  }
  const bytes = new Uint8Array(length);
  let at = 0;
  for (const piece of pieces) {
    bytes.set(piece, at);
    at += piece.length;
  }
  return bytes;
}

/** Decodes base64; in pieces where the browser has no decoder of its own, so that no string becomes long. */
export function fromBase64(text: string): Uint8Array {
  const native = (Uint8Array as unknown as { fromBase64?: (text: string) => Uint8Array }).fromBase64;
  if (native) return native.call(Uint8Array, text);
  const PIECE_CHARS = 1 << 20;
  const padding = text.endsWith("==") ? 2 : text.endsWith("=") ? 1 : 0;
  const bytes = new Uint8Array((text.length / 4) * 3 - padding);
  let at = 0;
  for (let start = 0; start < text.length; start += PIECE_CHARS) {
    const piece = atob(text.slice(start, start + PIECE_CHARS));
    for (let i = 0; i < piece.length; i++) bytes[at++] = piece.charCodeAt(i);
  }
  return bytes;
}
