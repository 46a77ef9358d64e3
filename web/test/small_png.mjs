// Makes PNG pictures of the browser small: at most 256 colours, those that most of the picture has.

import { deflateSync, inflateSync } from "node:zlib";

const SIGNATURE = Buffer.from("89504e470d0a1a0a", "hex");
const MAX_COLOURS = 256;
/** Colours that differ in fewer bits of each part count as one where the palette is chosen. */
const KEPT_BITS = 5;

/** A PNG of 8 bits a part, with or without alpha, as one with a palette. */
export function smallPng(png) {
  const { width, height, pixels } = decode(png);
  const palette = paletteOf(pixels);
  const indices = Buffer.alloc((width + 1) * height);
  const known = new Map();
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) {
      const colour = pixels[y * width + x];
      let index = known.get(colour);
      if (index === undefined) known.set(colour, (index = nearest(palette, colour)));
      indices[y * (width + 1) + x + 1] = index;
    }
  }
  const head = Buffer.alloc(13);
  head.writeUInt32BE(width, 0);
  head.writeUInt32BE(height, 4);
  head.set([8, 3, 0, 0, 0], 8);
  const colours = Buffer.from(palette.flatMap((colour) => parts(colour)));
  return Buffer.concat([
    SIGNATURE,
    chunk("IHDR", head),
    chunk("PLTE", colours),
    chunk("IDAT", deflateSync(indices, { level: 9, memLevel: 9 })),
    chunk("IEND", Buffer.alloc(0)),
  ]);
}

const parts = (colour) => [colour >> 16, (colour >> 8) & 255, colour & 255];

function decode(png) {
  const data = [];
  let [width, height, type] = [0, 0, 0];
  for (let at = SIGNATURE.length; at < png.length;) {
    const length = png.readUInt32BE(at);
    const name = png.toString("latin1", at + 4, at + 8);
    const body = png.subarray(at + 8, at + 8 + length);
    if (name === "IHDR") [width, height, type] = [body.readUInt32BE(0), body.readUInt32BE(4), body[9]];
    if (name === "IHDR" && (body[8] !== 8 || body[12] !== 0 || (type !== 2 && type !== 6)))
      throw new Error("another PNG");
    if (name === "IDAT") data.push(body);
    at += length + 12;
  }
  const bytes = type === 6 ? 4 : 3;
  const raw = inflateSync(Buffer.concat(data));
  const line = width * bytes;
  const pixels = new Uint32Array(width * height);
  let above = Buffer.alloc(line);
  for (let y = 0; y < height; y++) {
    const filter = raw[y * (line + 1)];
    const row = raw.subarray(y * (line + 1) + 1, (y + 1) * (line + 1));
    for (let i = 0; i < line; i++) {
      const left = i >= bytes ? row[i - bytes] : 0;
      const corner = i >= bytes ? above[i - bytes] : 0;
      row[i] += [0, left, above[i], (left + above[i]) >> 1, paeth(left, above[i], corner)][filter];
    }
    for (let x = 0; x < width; x++) {
      const at = x * bytes;
      pixels[y * width + x] = (row[at] << 16) | (row[at + 1] << 8) | row[at + 2];
    }
    above = row;
  }
  return { width, height, pixels };
}

function paeth(left, above, corner) {
  const guess = left + above - corner;
  const [a, b, c] = [Math.abs(guess - left), Math.abs(guess - above), Math.abs(guess - corner)];
  return a <= b && a <= c ? left : b <= c ? above : corner;
}

/** The most frequent colours, of similar ones only the most frequent; the rest goes to the nearest. */
function paletteOf(pixels) {
  const counts = new Map();
  for (const colour of pixels) counts.set(colour, (counts.get(colour) ?? 0) + 1);
  const all = [...counts].sort((a, b) => b[1] - a[1]);
  if (all.length <= MAX_COLOURS) return all.map(([colour]) => colour);
  const shift = 8 - KEPT_BITS;
  const similar = new Set();
  const chosen = [];
  for (const [colour] of all) {
    const key = parts(colour)
      .map((part) => part >> shift)
      .join();
    // The areas of the picture keep their own colours, however similar they are.
    if (similar.has(key) && chosen.length >= MAX_COLOURS / 4) continue;
    similar.add(key);
    chosen.push(colour);
    if (chosen.length === MAX_COLOURS) break;
  }
  return chosen;
}

function nearest(palette, colour) {
  const [r, g, b] = parts(colour);
  let best = 0;
  let least = Infinity;
  palette.forEach((other, n) => {
    const [x, y, z] = parts(other);
    const away = 3 * (r - x) ** 2 + 6 * (g - y) ** 2 + (b - z) ** 2;
    if (away < least) [least, best] = [away, n];
  });
  return best;
}

function chunk(name, body) {
  const out = Buffer.alloc(body.length + 12);
  out.writeUInt32BE(body.length, 0);
  out.write(name, 4, "latin1");
  out.set(body, 8);
  out.writeUInt32BE(crc(out.subarray(4, body.length + 8)), body.length + 8);
  return out;
}

function crc(bytes) {
  let value = -1;
  for (const byte of bytes) {
    value ^= byte;
    for (let bit = 0; bit < 8; bit++) value = (value >>> 1) ^ (value & 1 ? 0xedb88320 : 0);
  }
  return (value ^ -1) >>> 0;
}
