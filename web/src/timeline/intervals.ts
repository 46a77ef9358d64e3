// The intervals of one row, and their levels of detail: what a row costs to draw depends on the pixels it covers, not
// on the number of intervals.

/** Runs of neighbouring intervals that together are shorter than `quantum` ns, each with its longest interval. */
interface Level {
  quantum: number;
  /** Positions in the row. */
  first: Uint32Array;
  last: Uint32Array;
  longest: Uint32Array;
}

/** Rows shorter than this are drawn as they are. */
const LEAST_TO_MERGE = 512;
const SAMPLES = 1024;

/** Intervals that do not overlap, in order of time: a selection of the items of some columns. */
export class Intervals {
  readonly count: number;
  private levels: Level[] | null = null;

  /** `order` holds the items of this row; null: all of them. */
  constructor(readonly start: Float64Array, readonly end: Float64Array, readonly order: Uint32Array | null = null) {
    this.count = order ? order.length : start.length;
  }

  item(position: number): number {
    return this.order ? this.order[position] : position;
  }

  /** The first position whose interval ends after `time`. */
  after(time: number): number {
    let low = 0;
    let high = this.count;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.end[this.item(middle)] > time) high = middle;
      else low = middle + 1;
    }
    return low;
  }

  /** The position of an item of this row. */
  position(item: number): number {
    if (!this.order) return item;
    let low = 0;
    let high = this.count;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.start[this.order[middle]] < this.start[item]) low = middle + 1;
      else high = middle;
    }
    while (low < this.count - 1 && this.order[low] !== item) low++;
    return low;
  }

  /** The item drawn at `time` where a pixel is `quantum` ns wide, or the nearest at most `slack` ns away; or -1. */
  at(time: number, quantum: number, slack: number): number {
    const level = this.level(quantum);
    const count = level ? level.first.length : this.count;
    let best = -1;
    let distance = slack;
    for (let i = this.firstBlock(level, time - slack); i < count; i++) {
      const start = this.start[this.item(level ? level.first[i] : i)];
      const end = this.end[this.item(level ? level.last[i] : i)];
      if (start > time + slack) break;
      const away = start > time ? start - time : end < time ? time - end : -1;
      if (away < distance || best < 0) {
        best = this.item(level ? level.longest[i] : i);
        distance = away;
      }
      if (away < 0) break;
    }
    return best;
  }

  /**
   * Paints the intervals into `line`, whose pixel 0 begins at `from` and whose pixels are `quantum` ns wide. Calls
   * `wide` for each single interval of at least `wideFrom` pixels. Where several share a pixel, the longest shows.
   */
  paint(line: Uint32Array, from: number, quantum: number, key: Uint32Array, palette: Uint32Array, wideFrom: number,
    wide: (item: number, x0: number, x1: number) => void): void {
    const level = this.level(quantum);
    const count = level ? level.first.length : this.count;
    const width = line.length;
    const { start, end, order } = this;
    let taken = -1;
    let takenFor = 0;
    for (let i = this.firstBlock(level, from); i < count; i++) {
      const first = level ? level.first[i] : i;
      const last = level ? level.last[i] : i;
      const longest = level ? level.longest[i] : i;
      const item = order ? order[longest] : longest;
      const begin = first === longest ? item : order ? order[first] : first;
      const finish = last === longest ? item : order ? order[last] : last;
      let x0 = Math.floor((start[begin] - from) / quantum);
      if (x0 >= width) break;
      let x1 = Math.floor((end[finish] - from) / quantum);
      if (x1 <= x0) x1 = x0 + 1;
      const length = end[item] - start[item];
      if (x0 < 0) x0 = 0;
      if (x1 > width) x1 = width;
      if (x0 <= taken && length < takenFor) x0 = taken + 1;
      if (x0 >= x1) continue;
      taken = x1 - 1;
      takenFor = x1 - x0 > 1 ? 0 : length;
      const color = palette[key[item]];
      // The last pixel of a wide interval stays free, so that neighbours of one colour can be told apart.
      const stop = x1 - x0 > 3 && x1 < width ? x1 - 1 : x1;
      if (stop - x0 > 24) line.fill(color, x0, stop);
      else for (let x = x0; x < stop; x++) line[x] = color;
      if (first === last && x1 - x0 >= wideFrom) wide(item, x0, x1);
    }
  }

  private firstBlock(level: Level | null, time: number): number {
    const position = this.after(time);
    if (!level) return position;
    let low = 0;
    let high = level.last.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (level.last[middle] >= position) high = middle;
      else low = middle + 1;
    }
    return low;
  }

  /** The coarsest level whose runs are no longer than `quantum`; null: draw each interval. */
  private level(quantum: number): Level | null {
    if (this.count < LEAST_TO_MERGE) return null;
    this.levels ??= this.merge();
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
    for (let quantum = this.spacing() * 4; quantum < span; quantum *= 2) {
      const made = this.coarser(from, quantum);
      const before: number = from ? from.first.length : this.count;
      if (made.first.length > before * 0.8) continue;
      levels.push(made);
      from = made;
      if (made.first.length < LEAST_TO_MERGE) break;
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
    const count = from ? from.first.length : this.count;
    const { start, end } = this;
    const first = new Uint32Array(count);
    const last = new Uint32Array(count);
    const longest = new Uint32Array(count);
    let made = -1;
    let madeStart = 0;
    let best = 0;
    for (let i = 0; i < count; i++) {
      const a = from ? from.first[i] : i;
      const b = from ? from.last[i] : i;
      const most = from ? from.longest[i] : i;
      const item = this.item(most);
      const length = end[item] - start[item];
      if (made >= 0 && end[this.item(b)] - madeStart <= quantum) {
        last[made] = b;
        if (length > best) {
          best = length;
          longest[made] = most;
        }
        continue;
      }
      made++;
      first[made] = a;
      last[made] = b;
      longest[made] = most;
      madeStart = start[this.item(a)];
      best = length;
    }
    const cut = (array: Uint32Array) => array.slice(0, made + 1);
    return { quantum, first: cut(first), last: cut(last), longest: cut(longest) };
  }
}
