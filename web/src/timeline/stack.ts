// The nested rows of a thread or of a track. A thread's slices and method calls become one stack, in which
// each call lies under the marker that encloses it, and each marker under the call that wrote it.

import { byTime, drawnLevels } from "../data/joined_spans";
import { isFrames, type SpanTrack } from "../data/trace";
import { FLAG_LATE } from "../data/track_columns";
import { Intervals } from "./intervals";

/** Where a stack's items take their names and colours from. `joint`: names first, then methods. */
export type KeySpace = "names" | "methods" | "joint" | "threads";

export class Stack {
  readonly start: Float64Array;
  readonly end: Float64Array;
  /** The nesting level that an item is drawn at. */
  readonly level: Uint16Array;
  /** Names, methods or threads, by `space`. */
  readonly key: Uint32Array;
  readonly space: KeySpace;
  readonly levels: number;
  private readonly base: number[] = [];
  /** The items of several tracks by time, until they are sorted by level. */
  private byTime: Uint32Array | null = null;
  /** The items sorted by level, and where each level begins. */
  private byLevel: { order: Uint32Array; offsets: Uint32Array } | null = null;
  private readonly rows: (Intervals | undefined)[] = [];
  private lateLevels: (Intervals | null)[] | null = null;

  /** `names`: how many names there are, which is where the methods begin in a joint key space. */
  constructor(
    readonly tracks: SpanTrack[],
    names: number,
  ) {
    let count = 0;
    for (const track of tracks) {
      this.base.push(count);
      count += track.count;
    }
    const first = tracks[0].spans;
    if (tracks.length === 1) {
      this.start = first.start;
      this.end = first.end;
      this.level = first.depth;
      const threads = tracks[0].role === "running" ? first.thread : undefined;
      this.space = threads ? "threads" : tracks[0].kind === "calls" ? "methods" : "names";
      this.key = threads ?? first.label;
    } else {
      this.start = new Float64Array(count);
      this.end = new Float64Array(count);
      this.key = new Uint32Array(count);
      this.space = "joint";
      tracks.forEach(({ spans, kind }, i) => {
        this.start.set(spans.start, this.base[i]);
        this.end.set(spans.end, this.base[i]);
        this.key.set(spans.label, this.base[i]);
        const end = this.base[i] + spans.label.length;
        if (kind === "calls") for (let at = this.base[i]; at < end; at++) this.key[at] += names;
      });
      this.byTime = byTime(tracks.map(({ spans }) => spans));
      this.level = drawnLevels(this.start, this.end, this.byTime);
    }
    let deepest = 0;
    for (let i = 0; i < this.level.length; i++) if (this.level[i] > deepest) deepest = this.level[i];
    this.levels = deepest + 1;
  }

  get count(): number {
    return this.start.length;
  }

  /** The item of this stack that is `item` of `track`; -1 where the stack does not hold that track. */
  find(track: number, item: number): number {
    const at = this.tracks.findIndex(({ id }) => id === track);
    return at < 0 ? -1 : this.base[at] + item;
  }

  /** The track that an item of this stack comes from, and its number there. */
  source(item: number): { track: SpanTrack; item: number } {
    let at = this.tracks.length - 1;
    while (this.base[at] > item) at--;
    return { track: this.tracks[at], item: item - this.base[at] };
  }

  row(level: number): Intervals {
    if (this.levels === 1 && this.tracks.length === 1) return (this.rows[0] ??= new Intervals(this.start, this.end));
    return (this.rows[level] ??= new Intervals(this.start, this.end, this.items(level)));
  }

  /** For each level the items whose key `wanted` has marked; null for a level without any. */
  marked(wanted: Uint8Array): (Intervals | null)[] {
    return this.chosen((item) => wanted[this.key[item]] === 1);
  }

  /** Whether the stack holds frames, which have no colours of their own. */
  get isFrames(): boolean {
    return isFrames(this.tracks[0].role);
  }

  /** For each level the frames that were late; null where no track is of frames. */
  get late(): (Intervals | null)[] | null {
    const [{ role, spans }] = this.tracks;
    if (role !== "actual_frames" && role !== "frames") return null;
    return (this.lateLevels ??= this.chosen((item) => ((spans.flags?.[item] ?? 0) & FLAG_LATE) !== 0));
  }

  /** For each level the items that `wanted` wants; null for a level without any. */
  private chosen(wanted: (item: number) => boolean): (Intervals | null)[] {
    return Array.from({ length: this.levels }, (_, level) => {
      const found = this.items(level).filter(wanted);
      return found.length === 0 ? null : new Intervals(this.start, this.end, found);
    });
  }

  /** The item one level higher (`by` -1) or the first one level deeper (1) that overlaps `item`; or -1. */
  vertical(item: number, by: -1 | 1): number {
    const level = this.level[item] + by;
    if (level < 0 || level >= this.levels) return -1;
    const row = this.row(level);
    // A parent encloses its child; a child begins within its parent.
    const position = row.after(this.start[item]);
    if (position >= row.count) return -1;
    const found = row.item(position);
    const fits = by < 0 ? this.start[found] <= this.start[item] : this.start[found] < this.end[item];
    return fits ? found : -1;
  }

  /** The next (1) or previous (-1) item of the same level; or -1. */
  beside(item: number, by: -1 | 1): number {
    const row = this.row(this.level[item]);
    const position = row.position(item) + by;
    return position < 0 || position >= row.count ? -1 : row.item(position);
  }

  /** The next (1) or previous (-1) item with the same name, in order of time; or -1. */
  sameName(item: number, by: -1 | 1): number {
    const source = this.source(item);
    const base = item - source.item;
    const end = by > 0 ? base + source.track.count : base - 1;
    for (let i = item + by; i !== end; i += by) if (this.key[i] === this.key[item]) return i;
    return -1;
  }

  /** The items of a level, in order of time. */
  private items(level: number): Uint32Array {
    const { order, offsets } = (this.byLevel ??= this.sorted());
    return order.subarray(offsets[level], offsets[level + 1]);
  }

  /** Sorts the items by level; within a level they stay in order of time. */
  private sorted(): { order: Uint32Array; offsets: Uint32Array } {
    const offsets = new Uint32Array(this.levels + 1);
    for (let i = 0; i < this.count; i++) offsets[this.level[i] + 1]++;
    for (let level = 0; level < this.levels; level++) offsets[level + 1] += offsets[level];
    const next = offsets.slice();
    const order = new Uint32Array(this.count);
    for (let i = 0; i < this.count; i++) {
      const item = this.byTime ? this.byTime[i] : i;
      order[next[this.level[item]]++] = item;
    }
    this.byTime = null;
    return { order, offsets };
  }
}
