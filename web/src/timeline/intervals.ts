// The intervals of one row, and their levels of detail: what a row costs to draw depends on the pixels it
// covers, not on the number of intervals.

import { firstWhere, upperBound } from "../data/search_sorted";

/**
 * Runs of neighbouring intervals that together are shorter than `quantum` ns. A run has its times beside it:
 * they are read in order, while the items of a row lie far from each other in memory.
 */
interface Level {
  quantum: number;
  start: Float64Array;
  end: Float64Array;
  /** The longest interval of the run, and how long it is. */
  item: Uint32Array;
  length: Float32Array;
  /** 1 where the run is that interval alone. */
  single: Uint8Array;
}

/** Rows shorter than this are drawn as they are. */
const MIN_INTERVALS_TO_MERGE = 512;
const SAMPLES = 1024;
/** A level must have at most this part of the runs of the finer one. */
const MAX_LEVEL_PART = 0.6;

/** Intervals that do not overlap, in order of time: a selection of the items of some columns. */
export class Intervals {
  readonly count: number;
  private levels: Level[] | null = null;
  /** The level of the first picture, until there are all. */
  private first: Level | null = null;
  private spaced = 0;

  /** `order` holds the items of this row; null: all of them. */
  constructor(
    readonly start: Float64Array,
    readonly end: Float64Array,
    readonly order: Uint32Array | null = null,
  ) {
    this.count = order ? order.length : start.length;
  }

  item(position: number): number {
    return this.order ? this.order[position] : position;
  }

  /** The first position whose interval ends after `time`. */
  after(time: number): number {
    return firstWhere(0, this.count, (at) => this.end[this.item(at)] > time);
  }

  /** The position of an item of this row. */
  position(item: number): number {
    const { order, start } = this;
    if (!order) return item;
    let at = firstWhere(0, this.count, (position) => start[order[position]] >= start[item]);
    while (at < this.count - 1 && order[at] !== item) at++;
    return at;
  }

  /**
   * The item drawn at `time` where a pixel is `quantum` ns wide: of those that share the pixel the longest.
   * Where there is none, the nearest at most `slack` ns away; or -1.
   */
  at(time: number, quantum: number, slack: number): number {
    const level = this.level(quantum);
    const count = level ? level.start.length : this.count;
    let best = -1;
    let longest = -1;
    let distance = Math.max(slack, quantum / 2);
    const reach = distance;
    for (let i = level ? upperBound(level.end, time - reach) : this.after(time - reach); i < count; i++) {
      const item = level ? level.item[i] : this.item(i);
      const start = level ? level.start[i] : this.start[item];
      const end = level ? level.end[i] : this.end[item];
      if (start > time + reach) break;
      const away = Math.max(start - time, time - end, 0);
      const shares = away <= quantum / 2;
      const length = this.end[item] - this.start[item];
      if (shares ? length <= longest : longest >= 0 || away > distance) continue;
      best = item;
      distance = away;
      if (shares) longest = length;
    }
    return best;
  }

  /**
   * Paints the intervals into `line`,
     whose pixel 0 begins at `from` and whose pixels are `quantum` ns wide. Calls
   * `wide` for each single interval of at least `wideFrom` pixels. Where several share a pixel,
     the longest shows.
   */
  paint(
    line: Uint32Array,
    from: number,
    quantum: number,
    key: Uint32Array,
    palette: Uint32Array,
    wideFrom: number,
    wide: (item: number, x0: number, x1: number) => void,
  ): void {
    const level = this.level(quantum);
    const width = line.length;
    let taken = -1;
    let takenFor = 0;
    const put = (item: number, start: number, end: number, length: number, single: boolean): boolean => {
      let x0 = Math.floor((start - from) / quantum);
      if (x0 >= width) return false;
      let x1 = Math.floor((end - from) / quantum);
      // A run of several holds its last pixel too, where its last interval may begin.
      if (x1 <= x0 || !single) x1++;
      if (x0 < 0) x0 = 0;
      if (x1 > width) x1 = width;
      if (x0 <= taken && length < takenFor) x0 = taken + 1;
      if (x0 >= x1) return true;
      taken = x1 - 1;
      takenFor = single && x1 - x0 > 1 ? 0 : length;
      const color = palette[key[item]];
      // The last pixel of a wide interval stays free, so that neighbours of one colour can be told apart.
      const stop = x1 - x0 > 3 && x1 < width ? x1 - 1 : x1;
      if (stop - x0 > 24) line.fill(color, x0, stop);
      else for (let x = x0; x < stop; x++) line[x] = color;
      if (single && x1 - x0 >= wideFrom) wide(item, x0, x1);
      return true;
    };
    if (level) {
      const { start, end, item, length, single } = level;
      for (let i = upperBound(end, from); i < start.length; i++) {
        if (!put(item[i], start[i], end[i], length[i], single[i] === 1)) return;
      }
      return;
    }
    const { start, end, order, count } = this;
    for (let i = this.after(from); i < count; i++) {
      const item = order ? order[i] : i;
      if (!put(item, start[item], end[item], end[item] - start[item], true)) return;
    }
  }

  /** Computes the levels of detail, which otherwise happens when the row is first drawn. */
  prepare(): void {
    this.level(Infinity);
  }

  /** The coarsest level whose runs are no longer than `quantum`; null: draw each interval. */
  private level(quantum: number): Level | null {
    if (this.count < MIN_INTERVALS_TO_MERGE) return null;
    if (!this.levels && quantum !== Infinity) {
      // The first picture needs one level alone, which is quicker than all of them.
      this.spaced ||= this.spacing();
      const steps = Math.floor(Math.log2(quantum / this.spaced));
      if (steps < 1) return null;
      this.first ??= this.coarser(null, this.spaced * 2 ** steps);
      if (this.first.quantum <= quantum && quantum < this.first.quantum * 2) return this.first;
    }
    this.levels ??= this.merge();
    this.first = null;
    let best: Level | null = null;
    for (const level of this.levels) {
      if (level.quantum > quantum) break;
      best = level;
    }
    return best;
  }

  private merge(): Level[] {
    const levels: Level[] = [];
    const span = this.end[this.item(this.count - 1)] - this.start[this.item(0)];
    let from: Level | null = null;
    for (let quantum = (this.spaced ||= this.spacing()) * 2; quantum < span; quantum *= 2) {
      const made = this.coarser(from, quantum);
      const before: number = from ? from.start.length : this.count;
      if (made.start.length > before * MAX_LEVEL_PART) continue;
      levels.push(made);
      from = made;
      if (made.start.length < MIN_INTERVALS_TO_MERGE) break;
    }
    return levels;
  }

  /** A distance from start to start that four of five neighbours exceed, ns. */
  private spacing(): number {
    const step = Math.max(1, Math.floor(this.count / SAMPLES));
    const found: number[] = [];
    for (let i = step; i < this.count; i += step) {
      found.push(this.start[this.item(i)] - this.start[this.item(i - 1)]);
    }
    found.sort((a, b) => a - b);
    return Math.max(1, found[Math.floor(found.length / 5)]);
  }

  private coarser(from: Level | null, quantum: number): Level {
    const count = from ? from.start.length : this.count;
    const made = {
      start: new Float64Array(count),
      end: new Float64Array(count),
      item: new Uint32Array(count),
      length: new Float32Array(count),
      single: new Uint8Array(count),
    };
    let at = -1;
    for (let i = 0; i < count; i++) {
      const item = from ? from.item[i] : this.item(i);
      const start = from ? from.start[i] : this.start[item];
      const end = from ? from.end[i] : this.end[item];
      const length = from ? from.length[i] : end - start;
      if (at >= 0 && end - made.start[at] <= quantum) {
        made.end[at] = end;
        made.single[at] = 0;
        if (length > made.length[at]) {
          made.length[at] = length;
          made.item[at] = item;
        }
        continue;
      }
      at++;
      made.start[at] = start;
      made.end[at] = end;
      made.item[at] = item;
      made.length[at] = length;
      made.single[at] = from ? from.single[i] : 1;
    }
    const used = at + 1;
    return {
      quantum,
      start: made.start.slice(0, used),
      end: made.end.slice(0, used),
      item: made.item.slice(0, used),
      length: made.length.slice(0, used),
      single: made.single.slice(0, used),
    };
  }
}
