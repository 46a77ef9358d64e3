// Quick flat profiles of any window: the profiles of the trace's parts are kept, and a window adds up those parts that
// lie in it, so that only the calls at its two edges are gone through.

import { firstWhere, lowerBound } from "../data/search_sorted";
import { FlatProfile, flatProfile } from "./flat";
import type { Grouping } from "./grouping";
import type { SpanSource, Window } from "./spans";

const PARTS = 16;
/** Fewer calls are profiled at once. */
const FEW_CALLS = 10_000;
const MOST_ROWS = 100_000;

export class FlatIndex {
  private whole: FlatProfile | null = null;
  private parts: { window: Window; flat: FlatProfile }[] | null = null;

  constructor(private readonly sources: SpanSource[], private readonly rows: Grouping) {}

  of(window: Window): FlatProfile {
    const { sources, rows } = this;
    if (window.from <= 0 && window.to === Infinity) return (this.whole ??= flatProfile(sources, rows, window));
    const calls = this.before(window.to) - this.before(window.from);
    if (calls < FEW_CALLS || rows.count > MOST_ROWS) return flatProfile(sources, rows, window);
    this.parts ??= this.split();
    const inside = this.parts.filter((part) => part.window.from >= window.from && part.window.to <= window.to);
    if (inside.length === 0) return flatProfile(sources, rows, window);
    const flat = flatProfile(sources, rows, { from: window.from, to: inside[0].window.from });
    for (const part of inside) flat.add(part.flat);
    const rest = { from: inside[inside.length - 1].window.to, to: window.to };
    if (rest.from < rest.to) flat.add(flatProfile(sources, rows, rest, false));
    return flat;
  }

  /** The profiles of parts with as many calls each. */
  private split(): { window: Window; flat: FlatProfile }[] {
    const all = this.before(Infinity);
    const last = this.sources.reduce((most, { start }) => Math.max(most, start[start.length - 1] ?? 0), 0);
    const edges = [0];
    for (let part = 1; part < PARTS; part++) {
      const edge = firstWhere(0, Math.ceil(last), (time) => this.before(time) >= (all * part) / PARTS);
      if (edge > edges[edges.length - 1]) edges.push(edge);
    }
    return edges.map((from, n) => {
      const window = { from, to: edges[n + 1] ?? Infinity };
      return { window, flat: flatProfile(this.sources, this.rows, window, false) };
    });
  }

  /** How many spans begin before a moment. */
  private before(time: number): number {
    let calls = 0;
    for (const { start } of this.sources) calls += time === Infinity ? start.length : lowerBound(start, time);
    return calls;
  }
}
