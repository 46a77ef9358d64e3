// The walk over the spans of a time window.

import { lowerBound } from "../data/search_sorted";
import { cutCpuTimes } from "./cut_cpu";
import { grown, openAt, type SpanSource, type Window } from "./span_source";

/**
 * Goes through the spans of a window in preorder, with the wall and CPU time of each span's part inside of the window.
 * The CPU time of a span that the window cuts is shared out evenly over the span's own time, because the trace does
 * not tell when in it the CPU ran. A class with fields and not a function with a visitor: numbers as arguments of a
 * visitor would each be allocated, for millions of spans.
 */
export class SpanWalk {
  item = -1;
  /** The number of open ancestors. */
  depth = -1;
  wall = 0;
  /** The part of `wall` that lies in the enclosing span: all of it, but for slices and calls merged. */
  wallInParent = 0;
  cpu = 0;
  private open = new Int32Array(1024);
  private readonly outside: number[];
  private readonly cut: Map<number, number> | null;
  private at: number;
  private readonly last: number;
  private readonly merged: boolean;
  private nth = 0;

  constructor(
    private readonly source: SpanSource,
    private readonly window: Window,
  ) {
    const { start, cpu } = source;
    const { from, to } = window;
    this.outside = openAt(source, from);
    this.merged = source.track < 0;
    this.cut = cpu ? cutCpuTimes(source, cpu, window) : null;
    this.at = lowerBound(start, from);
    this.last = to === Infinity ? start.length : lowerBound(start, to, this.at);
  }

  /** Goes to the next span; false behind the last one. */
  next(): boolean {
    const { start, end, parent, cpu } = this.source;
    const { from, to } = this.window;
    const fromOutside = this.nth < this.outside.length;
    if (!fromOutside && this.at >= this.last) return false;
    const item = fromOutside ? this.outside[this.nth++] : this.at++;
    const enclosing = parent[item];
    let depth = this.depth + 1;
    while (depth > 0 && this.open[depth - 1] !== enclosing) depth--;
    const begin = start[item];
    const stop = end[item];
    this.wall = (stop < to ? stop : to) - (begin > from ? begin : from);
    this.wallInParent = this.wall;
    if (this.merged && depth > 0 && end[enclosing] < stop) {
      this.wallInParent = Math.max(0, Math.min(end[enclosing], to) - Math.max(begin, from));
    }
    if (cpu) this.cpu = begin >= from && stop <= to ? cpu[item] : (this.cut?.get(item) ?? 0);
    if (depth === this.open.length) this.open = grown(this.open);
    this.open[depth] = item;
    this.item = item;
    this.depth = depth;
    return true;
  }
}
