// A trace of the page: its index, its names, and its tracks as typed arrays.

import { type Blocks, type Column, ColumnReader, type MethodTable, type ThreadInfo, type TraceIndex,
  type TraceRole,
  type TrackInfo } from "./format";

/** Slices and calls: in preorder, so that the children of item i follow it and lie one level deeper. */
export interface SpanColumns {
  start: Float64Array;
  end: Float64Array;
  depth: Uint16Array;
  /** The string id of a slice's name, or the method id of a call. */
  label: Uint32Array;
  /** Thread CPU time of a call with its callees, ns. */
  cpu?: Float64Array;
  flags?: Uint8Array;
  /** String id + 1 of a slice's arguments; 0 is none. */
  args?: Uint32Array;
  /** Thread index + 1 of a `running` slice; 0 is unknown. */
  thread?: Uint32Array;
}

export interface StateColumns {
  start: Float64Array;
  end: Float64Array;
  /** String id. */
  state: Uint32Array;
  /** CPU number + 1; 0 is none. */
  cpu: Uint16Array;
  /** Thread index + 1; 0 is none. */
  waker?: Uint32Array;
}

export interface InstantColumns { time: Float64Array; label: Uint32Array; args?: Uint32Array }
export interface CounterColumns { time: Float64Array; value: Float64Array }
export interface LossColumns { start: Float64Array; end: Float64Array; count: Float64Array }
export interface ArrowColumns {
  from: Float64Array; to: Float64Array; fromTrack: Uint32Array; toTrack: Uint32Array;
}

export const FLAG_NO_BEGIN = 1;
export const FLAG_NO_END = 2;

/** A track. Its columns are decoded when `Trace.load` has been awaited. */
export interface Track extends TrackInfo {
  id: number;
  spans?: SpanColumns;
  states?: StateColumns;
  instants?: InstantColumns;
  counter?: CounterColumns;
  losses?: LossColumns;
  arrows?: ArrowColumns;
}

export class Trace {
  readonly tracks: Track[];
  private readonly loading = new Map<number, Promise<Track>>();

  private constructor(
    readonly role: TraceRole,
    readonly index: TraceIndex,
    readonly strings: string[],
    readonly methods: MethodTable | null,
    private readonly blocks: Blocks,
  ) {
    this.tracks = index.tracks.map((info, id) => ({ ...info, id }));
  }

  static async open(blocks: Blocks, role: TraceRole, indexBlock: number): Promise<Trace> {
    const index = await blocks.json<TraceIndex>(indexBlock);
    const [strings, methods] = await Promise.all([
      blocks.json<string[]>(index.strings),
      index.methods === null ? null : blocks.json<MethodTable>(index.methods),
    ]);
    return new Trace(role, index, strings, methods, blocks);
  }

  get duration(): number {
    return this.index.duration_ns;
  }

  get threads(): ThreadInfo[] {
    return this.index.threads;
  }

  /** Class and method, as in `java.lang.String.valueOf`. */
  methodName(method: number): string {
    const { methods, strings } = this;
    if (!methods) return "";
    const owner = strings[methods.class[method]];
    const name = strings[methods.name[method]];
    return owner ? `${owner}.${name}` : name;
  }

  /** A thread's name and number, as far as it has them. */
  threadName(thread: number): string {
    const { name, tid } = this.threads[thread];
    if (tid === null) return name || "unnamed thread";
    return name ? `${name} (${tid})` : `thread ${tid}`;
  }

  /** The name of a slice or call. */
  spanName(track: Track, at: number): string {
    const label = track.spans!.label[at];
    return track.kind === "calls" ? this.methodName(label) : this.strings[label];
  }

  /** Decodes every track. */
  async loadAll(progress?: (done: number, total: number) => void): Promise<void> {
    let done = 0;
    for (const track of this.tracks) {
      await this.load(track);
      progress?.(++done, this.tracks.length);
    }
    for (const track of this.tracks) this.blocks.forget(track.block);
  }

  /** Decodes a track's columns, once. */
  load(track: Track): Promise<Track> {
    let loading = this.loading.get(track.id);
    if (!loading) {
      loading = this.blocks.bytes(track.block).then((bytes) => decode(track, bytes));
      this.loading.set(track.id, loading);
    }
    return loading;
  }
}

/** Reads the columns in the order in which they lie in the block,
  each into the array that its values need. */
function decode(track: Track, bytes: Uint8Array): Track {
  const reader = new ColumnReader(bytes, track.offset);
  // A value has at least one byte, so that a damaged count cannot ask for more memory than the page has
  // bytes.
  if (track.count > bytes.length) throw new Error(`The track "${track.name}" ends too early: damaged data.`);
  const columns = new Map<string, Column>();
  for (const [name, encoding, factor] of track.columns) {
    const Array = ARRAYS[name] ?? Float64Array;
    columns.set(name, reader.into(encoding, new Array(track.count), factor));
  }
  const optional = <T extends Column>(name: string) => columns.get(name) as T | undefined;
  const column = <T extends Column>(name: string): T => {
    const found = optional<T>(name);
    if (!found) throw new Error(`The track "${track.name}" has no column ${name}: damaged data.`);
    return found;
  };
  const ends = () => {
    const start = column<Float64Array>("start");
    const end = column<Float64Array>("duration");
    for (let i = 0; i < end.length; i++) end[i] += start[i];
    return { start, end };
  };
  switch (track.kind) {
    case "slices":
    case "calls":
      track.spans = { ...ends(), depth: column("depth"), label: column(track.kind === "calls"
        ? "method" : "name"),
        cpu: optional("cpu"), flags: optional("flags"), args: optional("args"), thread: optional("thread") };
      break;
    case "states":
      track.states = { ...ends(), state: column("state"), cpu: Uint16Array.from(column("cpu")),
        waker: optional("waker") };
      break;
    case "instants":
      track.instants = { time: column("time"), label: column("name"), args: optional("args") };
      break;
    case "counter":
      track.counter = { time: column("time"), value: column("value") };
      break;
    case "losses":
      track.losses = { ...ends(), count: column("count") };
      break;
    case "arrows": {
      const from = column<Float64Array>("from");
      const to = column<Float64Array>("to");
      for (let i = 0; i < to.length; i++) to[i] += from[i];
      track.arrows = { from, to, fromTrack: column("from_track"), toTrack: column("to_track") };
      break;
    }
  }
  return track;
}

/** The arrays of columns that hold no times and values. */
const ARRAYS: Record<string, { new (count: number): Column }> = {
  depth: Uint16Array, flags: Uint8Array, name: Uint32Array, method: Uint32Array, args: Uint32Array,
  thread: Uint32Array, state: Uint32Array, waker: Uint32Array, from_track: Uint32Array, to_track: Uint32Array,
};
