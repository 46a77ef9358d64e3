// The data of a report page as docs/report-format.md defines it: its JSON objects, and its blocks.

import { unpack } from "./unpack";

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
  launches: Launch[];
  frames: FrameSummary[];
  videos: VideoEntry[];
}

/** A video of the screen. */
export interface VideoEntry {
  name: string;
  /** The track of its frames; null where none of them is in the trace's part. */
  track: number | null;
  length_ns: number;
  /** The block of its frames' times. */
  frames: number;
  /** Where its file lies, from the page on. */
  url?: string;
  /** The blocks of its file. */
  blocks?: number[];
}

/** The frames' times: in the trace, and from the video's begin on; ns. */
export interface VideoFrames {
  at: number[];
  video: number[];
}

export interface ThreadInfo {
  tid: number | null;
  process: number | null;
  name: string;
  main: boolean;
  busy_ns: number;
  doubt: string | null;
}

export type TrackKind = "slices" | "calls" | "states" | "instants" | "counter" | "losses" | "causes" | "arrows";

export type TrackRole =
  | "atrace"
  | "async"
  | "own"
  | "methods"
  | "samples"
  | "running"
  | "irq"
  | "states"
  | "markers"
  | "events"
  | "counter"
  | "frequency"
  | "idle"
  | "vsync"
  | "expected_frames"
  | "actual_frames"
  | "frames"
  | "losses"
  | "causes"
  | "wakeup"
  | "binder"
  | "flow";

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

/** The arrays of a method table: string ids, and the inclusive time over all threads in ns. */
export interface MethodTable {
  class: number[];
  name: number[];
  signature: number[];
  file: number[];
  inclusive: number[];
}

/** The output of `merge --json`; members that the page does not know are ignored. */
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
  type: "cold" | "warm" | "hot" | null;
  /** By which markers it was found, in words. */
  rule: string;
  process: number | null;
  thread: number | null;
  render_thread: number | null;
  begin_ns: number;
  end_ns: number;
  /** The end that the recording does not hold: such a launch is not measured. */
  cut: "begin" | "end" | null;
  /** Times to initial and to full display, from the begin on. */
  ttid_ns: number | null;
  ttfd_ns: number | null;
  overlapped: boolean;
  /** Slices of the main thread. */
  stages: { name: string; start_ns: number; end_ns: number }[];
}

export type Percentiles = Record<"p50" | "p90" | "p95" | "p99", number>;

/** The frames of an app and a layer in numbers. */
export interface FrameSummary {
  package: string;
  layer: string | null;
  count: number;
  with_deadline: number;
  /** Where deadlines come from. */
  deadline: "frame-timeline" | "vsync" | null;
  janky: number;
  janky_share: number | null;
  slow: number;
  big_jank: number;
  huge_jank: number;
  duration_cpu_ns: Percentiles | null;
  overrun_ns: Percentiles | null;
}

export interface Comparison {
  old: ComparedSet;
  new: ComparedSet;
  total: ComparisonRow;
  stages: ComparisonRow[];
  states: ComparisonRow[];
  methods: ComparisonRow[];
  slices: ComparisonRow[];
  /** The times that a benchmark has measured itself. */
  metrics: ComparisonRow[];
  /** Rows that changed less than those that are kept. */
  rows_left_out: number;
}

export interface ComparedSet {
  title: string;
  runs: number;
  /** The part of the run on the page that is measured; pages of older programs lack it. */
  from_ns?: number | null;
  to_ns?: number | null;
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
  /** The same, corrected for the other rows: that of the total as it is. */
  p_adjusted: number | null;
  verdict: "slower" | "faster" | "no change" | "too few runs";
  /** The verdict for people. */
  verdict_text: string;
  old_at_ns: number | null;
  new_at_ns: number | null;
}

export const DIRECTORY_ID = "tracebridge-directory";
/** Put together while it runs: a page's own script must not have it. */
export const COMMENT_BEGIN = ["<", "!--"].join("");
export const BLOCK_PREFIX = "tracebridge-block:";
const VERSION = 7;
const CUT = "The file may have been cut while it was copied.";

/** The page's directory. Throws an Error with a sentence for people where the page holds none that fits. */
export function readDirectory(page: Document): Directory {
  const text = page.getElementById(DIRECTORY_ID)?.textContent;
  if (!text) throw new Error(`This page holds no trace data. ${CUT}`);
  return parseDirectory(text);
}

/** The directory that a text tells. */
export function parseDirectory(text: string): Directory {
  const directory = JSON.parse(text) as Directory;
  if (directory.format !== "tracebridge-report" || directory.version !== VERSION) {
    throw new Error(`This page's data has version ${directory.version}, and its program reads version ${VERSION}.`);
  }
  return directory;
}

/** The blocks of a page, packed as the page holds them. */
export class Blocks {
  /** `limit`: no block of a page that somebody else may have written gets larger, bytes. */
  constructor(
    private readonly packed: readonly (() => string)[],
    readonly limit: number | null = null,
  ) {}

  /** Those of the page that is open. */
  static of(page: Document): Blocks {
    const comments = [...page.body.childNodes].filter((node) => node instanceof Comment);
    const blocks = comments.filter(({ data }) => data.startsWith(BLOCK_PREFIX));
    return new Blocks(blocks.map((comment) => () => comment.data.slice(BLOCK_PREFIX.length)));
  }

  /** A block in base64. */
  text(block: number): string {
    const packed = this.packed[block] as (() => string) | undefined;
    if (!packed) throw new Error(`Block ${block} of the trace data is missing. ${CUT}`);
    return packed();
  }

  /** The bytes of a block. */
  bytes(block: number): Promise<Uint8Array> {
    return unpack(this.text(block), this.limit);
  }

  async json<T>(block: number): Promise<T> {
    return JSON.parse(new TextDecoder().decode(await this.bytes(block))) as T;
  }
}
