// The items of a track at one depth: they do not overlap, and are kept in blocks, of which the oldest are dropped.

import { firstWhere } from "../data/search_sorted";

/** A block counts the begins of its items in steps of so many ns, which no picture shows. */
const TICK_NS = 64;
/** A block holds no longer a time than this, so that what is old leaves soon. */
const MAX_TICKS = 4e9 / TICK_NS;
/** Words of an item: its begin in ticks, its length in ns (or a counter's value) as a float, its key. */
const WORDS = 3;
/** Items before the last one that may come once more. */
const MAX_BACK = 3;
const FIRST_ITEMS = 16;
const MAX_ITEMS = 2048;

interface Block {
  base: number;
  words: Uint32Array;
  /** The same memory. */
  floats: Float32Array;
  count: number;
  /** When the last one of its items ends. */
  end: number;
}

export class Lane {
  private readonly blocks: Block[] = [];
  count = 0;
  /** Whether the last item is not over yet. */
  isOpen = false;
  /** What was drawn behind this moment has changed. */
  changed = Infinity;

  /** The last item's end. */
  get end(): number {
    return this.blocks.at(-1)?.end ?? -Infinity;
  }

  /** Adds an item; one that begins where the last one does is the last one, which has grown. */
  push(start: number, end: number, key: number, isOpen: boolean): void {
    const last = this.blocks.at(-1);
    const at = last ? (last.count - 1) * WORDS : 0;
    if (last && this.isOpen && last.words[at] === Math.round((start - last.base) / TICK_NS)) {
      const isSame = last.words[at + 2] === key && isOpen;
      // An item that is over gets its text and its edge anew.
      this.changed = Math.min(this.changed, isSame ? last.end : start);
      last.floats[at + 1] = end - start;
      last.words[at + 2] = key;
      last.end = Math.max(end, start);
      this.isOpen = isOpen;
      return;
    }
    if (last && this.again(last, start, end, key)) return;
    // What was not over when it came last was over before this one.
    if (last && this.isOpen && last.end > start && last.base + last.words[at] * TICK_NS <= start) {
      last.floats[at + 1] = Math.max(0, start - (last.base + last.words[at] * TICK_NS));
      last.end = start;
    }
    this.append(start, key, end)[1] = end - start;
    this.isOpen = isOpen;
  }

  /** An item before the last one, whose kind was not known yet, may come once more; true where it has. */
  private again({ base, words, floats, count }: Block, start: number, end: number, key: number): boolean {
    const ticks = Math.round((start - base) / TICK_NS);
    for (let item = count - 2; item >= Math.max(0, count - 1 - MAX_BACK); item--) {
      const at = item * WORDS;
      if (words[at] !== ticks || words[at + WORDS] <= ticks) continue;
      if (words[at + 2] !== key || floats[at + 1] !== Math.fround(end - start)) {
        this.changed = Math.min(this.changed, start);
      }
      floats[at + 1] = end - start;
      words[at + 2] = key;
      return true;
    }
    return false;
  }

  /** Adds the value that a counter has from this time on. */
  pushValue(time: number, value: number): void {
    this.append(time, 0, time)[1] = value;
  }

  /** Adds an item; its words as floats are answered, of which the second is to be set. */
  private append(start: number, key: number, end: number): Float32Array {
    let block = this.blocks.at(-1);
    let ticks = block ? Math.round((start - block.base) / TICK_NS) : -1;
    const isFull = block?.count === (block?.words.length ?? 0) / WORDS;
    if (!block || isFull || ticks < 0 || ticks > MAX_TICKS) {
      // As large as the last one had to be.
      const wanted = block ? block.count * (isFull ? 2 : 1) : 0;
      const words = new Uint32Array(Math.min(MAX_ITEMS, Math.max(FIRST_ITEMS, wanted)) * WORDS);
      block = { base: start, words, floats: new Float32Array(words.buffer), count: 0, end: -Infinity };
      this.blocks.push(block);
      ticks = 0;
    }
    const at = block.count * WORDS;
    block.words[at] = ticks;
    block.words[at + 2] = key;
    block.count++;
    block.end = Math.max(block.end, end);
    this.count++;
    this.changed = Math.min(this.changed, start);
    return block.floats.subarray(at, at + WORDS);
  }

  /** Has the last item, which is not over, last until `end`; answers its key, or -1 where there is none. */
  grow(end: number): number {
    const last = this.blocks.at(-1);
    if (!last || !this.isOpen) return -1;
    const at = (last.count - 1) * WORDS;
    this.changed = Math.min(this.changed, last.end);
    last.floats[at + 1] = end - (last.base + last.words[at] * TICK_NS);
    last.end = end;
    return last.words[at + 2];
  }

  /** Calls `visit` for each item that overlaps a period, in order of time. */
  between(from: number, to: number, visit: (start: number, end: number, key: number, isOpen: boolean) => void): void {
    const { blocks } = this;
    for (let n = firstWhere(0, blocks.length, (at) => blocks[at].end >= from); n < blocks.length; n++) {
      const { base, words, floats, count } = blocks[n];
      const start = (at: number) => base + words[at * WORDS] * TICK_NS;
      const isLast = n === blocks.length - 1;
      for (let i = firstWhere(0, count, (at) => start(at) + floats[at * WORDS + 1] >= from); i < count; i++) {
        const begin = start(i);
        if (begin > to) return;
        visit(begin, begin + floats[i * WORDS + 1], words[i * WORDS + 2], isLast && i === count - 1 && this.isOpen);
      }
    }
  }

  /** Calls `visit` for each value of a counter that holds in a period; the last one holds until `to`. */
  valuesBetween(from: number, to: number, visit: (start: number, end: number, value: number) => void): void {
    const { blocks } = this;
    let begin = NaN;
    let value = 0;
    // The block before holds the value that a period begins with.
    const first = firstWhere(0, blocks.length, (at) => blocks[at].end >= from);
    for (let n = Math.max(0, first - 1); n < blocks.length; n++) {
      const { base, words, floats, count } = blocks[n];
      for (let i = 0; i < count; i++) {
        const time = base + words[i * WORDS] * TICK_NS;
        if (time > from && !Number.isNaN(begin)) visit(begin, Math.min(time, to), value);
        begin = time;
        value = floats[i * WORDS + 1];
        if (begin > to) return;
      }
    }
    if (!Number.isNaN(begin)) visit(begin, to, value);
  }

  /** Drops blocks that end before a time, but for the last value of a counter. */
  prune(before: number, isCounter: boolean): void {
    let old = 0;
    while (old < this.blocks.length - (isCounter ? 1 : 0) && this.blocks[old].end < before) {
      this.count -= this.blocks[old].count;
      old++;
    }
    if (old > 0) this.blocks.splice(0, old);
    if (this.blocks.length === 0) this.isOpen = false;
  }
}
