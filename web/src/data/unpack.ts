// Unpacks blocks: base64 of a DEFLATE stream.

/** The bytes of a block. */
export async function unpack(base64: string): Promise<Uint8Array> {
  const packed = fromBase64(base64);
  const stream = new Blob([packed as BlobPart]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
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
