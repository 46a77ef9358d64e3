// The data of a report page as docs/report-format.md defines it: its JSON objects, its blocks, and its
// columns.

export interface Directory {
  format: string;
  version: number;
  generator: string;
  traces: { role: TraceRole; index: number }[];
  comparison: number | null;
}

export type TraceRole = "trace" | "new" | "old";

export interface TraceIndex {
  title: string;
  clock: string;
  start_ns: string;
  duration_ns: number;
  wall_start_ns: string | null;
  machine: string | null;
  device: string | null;
  cpus: number | null;
  times: "wall" | "cpu" | "ticks";
  has_cpu_time: boolean;
  window: { from_ns: number; to_ns: number } | null;
  strings: number;
  methods: number | null;
  processes: { pid: number; name: string }[];
  threads: ThreadInfo[];
  tracks: TrackInfo[];
  summary: Summary;
  launch: Launch | null;
}

export interface ThreadInfo {
  tid: number | null;
  process: number | null;
  name: string;
  main: boolean;
  busy_ns: number;
  doubt: string | null;
}

export type TrackKind = "slices" | "calls" | "states" | "instants" | "counter" | "losses" | "arrows";

export type TrackRole =
  | "atrace" | "async" | "own" | "methods" | "running" | "irq" | "states" | "markers" | "events" | "counter"
  | "frequency" | "idle" | "vsync" | "losses" | "wakeup" | "binder" | "flow";

export interface TrackInfo {
  kind: TrackKind;
  role: TrackRole;
  name: string;
  thread: number | null;
  process: number | null;
  cpu: number | null;
  unit: string;
  depth: number;
  count: number;
  block: number;
  offset: number;
  columns: [name: string, encoding: Encoding, factor?: number][];
}

export type Encoding = "varint" | "zigzag" | "delta" | "zigzag-delta" | "f64";

/** The four arrays of a method table; each number is a string id. */
export interface MethodTable {
  class: number[];
  name: number[];
  signature: number[];
  file: number[];
}

/** What `merge --json` says; members that the page does not know are ignored. */
export interface Summary {
  inputs?: Record<string, unknown>[];
  report?: Record<string, unknown>;
  not_written?: unknown;
  problems?: Record<string, unknown>;
  markers?: number;
  methods?: number;
}

export interface Launch {
  package: string;
  stages: { name: string; start_ns: number; end_ns: number; thread: number | null }[];
}

export interface Comparison {
  old: { title: string; runs: number };
  new: { title: string; runs: number };
  total: ComparisonRow;
  stages: ComparisonRow[];
  states: ComparisonRow[];
  methods: ComparisonRow[];
  slices: ComparisonRow[];
}

export interface ComparisonRow {
  name: string;
  kind: string;
  old_ns: number | null;
  new_ns: number | null;
  delta_ns: number;
  old_count: number;
  new_count: number;
  p: number | null;
  noise: boolean | null;
  old_at_ns: number | null;
  new_at_ns: number | null;
}

const DIRECTORY_ID = "tracebridge-directory";
const BLOCK_CLASS = "tracebridge-block";
const CUT = "The file may have been cut while it was copied.";

/** The page's directory. Throws an Error with a sentence for people where the page holds none that fits. */
export function readDirectory(page: Document): Directory {
  const text = page.getElementById(DIRECTORY_ID)?.textContent;
  if (!text) throw new Error(`This page holds no trace data. ${CUT}`);
  const directory = JSON.parse(text) as Directory;
  if (directory.format !== "tracebridge-report" || directory.version !== 1) {
    throw new Error(`This page's data has version ${directory.version}, and its program reads version 1.`);
  }
  return directory;
}

/** The page's blocks. A block is unpacked when it is asked for, and only once. */
export class Blocks {
  private readonly unpacked = new Map<number, Promise<Uint8Array>>();
  private readonly elements: Element[];

  constructor(page: Document) {
    this.elements = [...page.getElementsByClassName(BLOCK_CLASS)];
  }

  bytes(block: number): Promise<Uint8Array> {
    let bytes = this.unpacked.get(block);
    if (!bytes) {
      bytes = this.unpack(block);
      this.unpacked.set(block, bytes);
    }
    return bytes;
  }

  /** Drops a block's bytes, so that the browser can free them. */
  forget(block: number): void {
    this.unpacked.delete(block);
  }

  async json<T>(block: number): Promise<T> {
    const bytes = await this.bytes(block);
    this.forget(block);
    return JSON.parse(new TextDecoder().decode(bytes)) as T;
  }

  private async unpack(block: number): Promise<Uint8Array> {
    const text = this.elements[block]?.textContent;
    if (text === undefined || text === null) {
      throw new Error(`Block ${block} of the trace data is missing. ${CUT}`);
    }
    const packed = fromBase64(text.trim());
    const unpacker = new DecompressionStream("deflate-raw");
    const stream = new Blob([packed as BlobPart]).stream().pipeThrough(unpacker);
    return new Uint8Array(await new Response(stream).arrayBuffer());
  }
}

/** Decodes base64; in pieces where the browser has no decoder of its own,
  so that no string becomes too long. */
export function fromBase64(text: string): Uint8Array {
  const native = (Uint8Array as unknown as { fromBase64?: (text: string) => Uint8Array }).fromBase64;
  if (native) return native.call(Uint8Array, text);
  const PIECE = 1 << 20;
  const padding = text.endsWith("==") ? 2 : text.endsWith("=") ? 1 : 0;
  const bytes = new Uint8Array((text.length / 4) * 3 - padding);
  let at = 0;
  for (let start = 0; start < text.length; start += PIECE) {
    const piece = atob(text.slice(start, start + PIECE));
    for (let i = 0; i < piece.length; i++) bytes[at++] = piece.charCodeAt(i);
  }
  return bytes;
}

/** The arrays that a column can be read into. A value that does not fit is cut as the array cuts it. */
export type Column = Float64Array | Uint32Array | Uint16Array | Uint8Array;

/** Reads columns one after another from a block's bytes. */
export class ColumnReader {
  constructor(private readonly bytes: Uint8Array, private at: number) {}

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
      this.numbers(out, encoding.startsWith("zigzag"), encoding.endsWith("delta"), factor);
    } else throw new Error(`A column of the trace data has the encoding "${encoding}", which is not known.`);
    if (this.at > this.bytes.length) throw new Error(TOO_SHORT);
    return out;
  }

  private numbers(out: Column, signed: boolean, delta: boolean, factor: number): void {
    const { bytes } = this;
    let { at } = this;
    let before = 0;
    for (let i = 0; i < out.length; i++) {
      let value = bytes[at++];
      if (value > 0x7f) {
        const second = bytes[at++];
        value = (value & 0x7f) + ((second & 0x7f) << 7);
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
