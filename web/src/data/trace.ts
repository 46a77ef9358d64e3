// A trace of the page: its index, its names, and its tracks as typed arrays.

import { checkedIndex, checkItems } from "./checked_index";
import { decodeAll } from "./decode_workers";
import type { Blocks, Launch, MethodTable, ThreadInfo, TraceIndex, TraceRole, TrackInfo, TrackRole } from "./format";
import { ScreenVideo } from "./screen_video";
import type { CounterColumns, SpanColumns, StateColumns, TrackColumns } from "./track_columns";

/** A track. Its columns are there when `Trace.open` is done. */
export interface Track extends TrackInfo, TrackColumns {
  id: number;
}

export type SpanTrack = Track & { spans: SpanColumns };
export type StateTrack = Track & { states: StateColumns };
export type CounterTrack = Track & { counter: CounterColumns };

export const hasSpans = (track: Track): track is SpanTrack => track.spans !== undefined;
export const hasStates = (track: Track): track is StateTrack => track.states !== undefined;
/** Whether tracks of this role hold frames, which overlap on lanes and do not nest. */
export const isFrames = (role: TrackRole): boolean => /^((expected|actual)_)?frames$/.test(role);
export const hasCounter = (track: Track): track is CounterTrack => track.counter !== undefined;

export class Trace {
  private constructor(
    /** Changes where another page is opened beside this one. */
    public role: TraceRole,
    readonly index: TraceIndex,
    readonly strings: string[],
    readonly methods: MethodTable | null,
    readonly tracks: Track[],
    readonly videos: ScreenVideo[],
    /** Whether the trace came out of another page. */
    readonly isDropped: boolean,
  ) {}

  /** Reads what a trace of the page holds. That of another page is checked. */
  static async readIndex(blocks: Blocks, indexBlock: number): Promise<TraceIndex> {
    const read = await blocks.json<TraceIndex>(indexBlock);
    return blocks.limit === null ? read : checkedIndex(read);
  }

  /** Decodes a trace of the page. `progress` is told how many tracks are done. */
  static async open(
    blocks: Blocks,
    role: TraceRole,
    index: TraceIndex,
    progress: (done: number, total: number) => void,
  ): Promise<Trace> {
    const isDropped = blocks.limit !== null;
    const tracks = index.tracks.map((info, id) => ({ ...info, id }));
    const [strings, methods, videos] = await Promise.all([
      blocks.json<string[]>(index.strings),
      index.methods === null ? null : blocks.json<MethodTable>(index.methods),
      Promise.all(index.videos.map((entry) => ScreenVideo.open(blocks, entry))),
      decodeTracks(tracks, blocks, progress),
    ]);
    if (isDropped) checkItems(index, strings, methods, tracks);
    return new Trace(role, index, strings, methods, tracks, videos, isDropped);
  }

  get duration(): number {
    return this.index.duration_ns;
  }

  get threads(): ThreadInfo[] {
    return this.index.threads;
  }

  /** The launch of the app that the page shows first. */
  get launched(): Launch | null {
    return this.index.launches.find(({ cut, thread }) => cut === null && thread !== null) ?? null;
  }

  /** A track by its number, which may come from another trace or from a link. */
  track(id: number): Track | undefined {
    return this.tracks[id];
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
  spanName({ kind, spans }: SpanTrack, at: number): string {
    const label = spans.label[at];
    return kind === "calls" ? this.methodName(label) : this.strings[label];
  }
}

async function decodeTracks(
  tracks: Track[],
  blocks: Blocks,
  progress: (done: number, total: number) => void,
): Promise<void> {
  const byBlock = new Map<number, Track[]>();
  for (const track of tracks) {
    const others = byBlock.get(track.block);
    if (others) others.push(track);
    else byBlock.set(track.block, [track]);
  }
  const jobs = [...byBlock].map(([block, tracks]) => ({ text: () => blocks.text(block), tracks }));
  let done = 0;
  await decodeAll(jobs, blocks.limit, (decoded, columns) => {
    decoded.forEach((track, n) => Object.assign(track, columns[n]));
    progress((done += decoded.length), tracks.length);
  });
}
