// Reads the columns of a block as docs/report-format.md encodes them.

import type { Encoding } from "./format";

/** The arrays that a column can be read into. A value that does not fit is cut as the array cuts it. */
export type Column = Float64Array | Uint32Array | Uint16Array | Uint8Array;

/** Reads columns one after another from a block's bytes. */
export class ColumnReader {
  constructor(
    private readonly bytes: Uint8Array,
    private at: number,
  ) {}

  /**
   * Reads a column into `out`, one value for each of its places. Times and values are exact up to 2^53. Stored
   * numbers are multiplied by `factor`, but for the first one of a `delta` column.
   */
  into<T extends Column>(encoding: Encoding, out: T, factor = 1): T {
    if (encoding === "f64") {
      const view = new DataView(this.bytes.buffer, this.bytes.byteOffset, this.bytes.byteLength);
      if (this.at + out.length * 8 > this.bytes.length) throw new Error(TOO_SHORT);
      for (let i = 0; i < out.length; i++, this.at += 8) out[i] = view.getFloat64(this.at, true);
    } else if (/^(varint|delta|zigzag|zigzag-delta)$/.test(encoding)) {
      const floats = out instanceof Float64Array ? out : scratch(out.length);
      this.numbers(floats, encoding.startsWith("zigzag"), encoding.endsWith("delta"), factor);
      if (floats !== out) out.set(floats);
    } else throw new Error(`A column of the trace data has the encoding "${encoding}", which is not known.`);
    if (this.at > this.bytes.length) throw new Error(TOO_SHORT);
    return out;
  }

  /** Reads into one kind of array alone: a loop that writes arrays of several kinds takes three times as long. */
  private numbers(out: Float64Array, signed: boolean, delta: boolean, factor: number): void {
    const { bytes } = this;
    let { at } = this;
    let before = 0;
    for (let i = 0; i < out.length; i++) {
      let value = bytes[at++];
      if (value > 0x7f) {
        const second = bytes[at++];
        value = (value & 0x7f) | ((second & 0x7f) << 7);
        if (second > 0x7f) {
          this.at = at;
          value += this.rest();
          at = this.at;
        }
      }
      if (signed) value = value % 2 === 0 ? value / 2 : -(value + 1) / 2;
      if (delta) value = before += i === 0 ? value : value * factor;
      else value *= factor;
      out[i] = value;
    }
    this.at = at;
  }

  /** The value of a number's third byte and those after it. */
  private rest(): number {
    let scale = 1 << 14;
    let value = 0;
    let byte;
    do {
      byte = this.bytes[this.at++];
      value += (byte & 0x7f) * scale;
      scale *= 128;
    } while (byte > 0x7f);
    return value;
  }
}

const TOO_SHORT = "A column of the trace data ends too early: the file is damaged.";

let room = new Float64Array(0);

/** An array for `count` numbers, which the next call gives out again. */
function scratch(count: number): Float64Array {
  if (room.length < count) room = new Float64Array(count);
  return room.subarray(0, count);
}
