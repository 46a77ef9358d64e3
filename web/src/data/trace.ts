// A trace of the page: its index, its names, and its tracks as typed arrays.

import { decodeAll } from "./decode_workers";
import type { Blocks, MethodTable, ThreadInfo, TraceIndex, TraceRole, TrackInfo } from "./format";

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

/** The columns of a track, by its kind. */
export interface TrackColumns {
  spans?: SpanColumns;
  states?: StateColumns;
  instants?: InstantColumns;
  counter?: CounterColumns;
  losses?: LossColumns;
  arrows?: ArrowColumns;
}

/** A track. Its columns are there when `Trace.open` is done. */
export interface Track extends TrackInfo, TrackColumns {
  id: number;
}

export class Trace {
  private constructor(
    readonly role: TraceRole,
    readonly index: TraceIndex,
    readonly strings: string[],
    readonly methods: MethodTable | null,
    readonly tracks: Track[],
  ) {}

  /** Decodes a trace of the page. `progress` is told how many tracks are done. */
  static async open(
    blocks: Blocks, role: TraceRole, indexBlock: number, progress: (done: number, total: number) => void,
  ): Promise<Trace> {
    const index = await blocks.json<TraceIndex>(indexBlock);
    const tracks = index.tracks.map((info, id) => ({ ...info, id }));
    const [strings, methods] = await Promise.all([
      blocks.json<string[]>(index.strings),
      index.methods === null ? null : blocks.json<MethodTable>(index.methods),
      decodeTracks(tracks, blocks, progress),
    ]);
    return new Trace(role, index, strings, methods, tracks);
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
}

async function decodeTracks(
  tracks: Track[], blocks: Blocks, progress: (done: number, total: number) => void,
): Promise<void> {
  const byBlock = new Map<number, Track[]>();
  for (const track of tracks) {
    const others = byBlock.get(track.block);
    if (others) others.push(track);
    else byBlock.set(track.block, [track]);
  }
  const jobs = [...byBlock].map(([block, tracks]) => ({ text: () => blocks.text(block), tracks }));
  let done = 0;
  await decodeAll(jobs, (decoded, columns) => {
    decoded.forEach((track, n) => Object.assign(track, columns[n]));
    progress(done += decoded.length, tracks.length);
  });
}
