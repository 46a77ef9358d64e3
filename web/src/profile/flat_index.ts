// Quick flat profiles of any window: the profiles of the trace's parts are kept, and a window adds up those parts that
// lie in it, so that only the calls at its two edges are gone through.

import { firstWhere, lowerBound } from "../data/search_sorted";
import { type FlatProfile, flatProfile, flatProfileSteps } from "./flat";
import type { Grouping } from "./grouping";
import type { SpanSource, Window } from "./span_source";

const PARTS = 32;
/** Fewer calls are profiled at once. */
const FEW_CALLS = 10_000;
/** The figures of more rows would take more memory for each part than the calls themselves. */
const MAX_ROWS = 100_000;
/** A trace of fewer calls is profiled in one go. */
const QUICK_CALLS = 100_000;

interface Part {
  window: Window;
  flat: FlatProfile;
}

export class FlatIndex {
  private whole: FlatProfile | null = null;
  private parts: Part[] | null = null;
  private readonly makingWhole: Generator<void>;
  private readonly makingParts: Generator<void>;
  private readonly calls: number;

  constructor(
    private readonly sources: SpanSource[],
    private readonly rows: Grouping,
  ) {
    this.calls = this.before(Infinity);
    this.makingWhole = this.makeWhole();
    this.makingParts = this.makeParts();
  }

  /** Whether the profile of a window takes milliseconds. */
  ready(window: Window): boolean {
    if (this.calls < QUICK_CALLS) return true;
    if (isWhole(window)) return this.whole !== null;
    return this.parts !== null || this.needsNoParts(window);
  }

  /** Works some milliseconds on what a window lacks, and then on what others will need; false: nothing is left. */
  prepare(window: Window): boolean {
    if (this.calls < QUICK_CALLS) return false;
    const lacksParts = !this.parts && this.rows.count <= MAX_ROWS;
    const making =
      !this.whole && (isWhole(window) || !lacksParts) ? this.makingWhole : lacksParts ? this.makingParts : null;
    making?.next();
    return making !== null;
  }

  of(window: Window): FlatProfile {
    const { sources, rows } = this;
    if (isWhole(window)) {
      while (!this.whole) this.makingWhole.next();
      return this.whole;
    }
    if (this.needsNoParts(window)) return flatProfile(sources, rows, window);
    while (!this.parts) this.makingParts.next();
    const inside = this.parts.filter((part) => part.window.from >= window.from && part.window.to <= window.to);
    if (inside.length === 0) return flatProfile(sources, rows, window);
    const flat = flatProfile(sources, rows, { from: window.from, to: inside[0].window.from });
    for (const part of inside) flat.add(part.flat);
    const rest = { from: inside[inside.length - 1].window.to, to: window.to };
    if (rest.from < rest.to) flat.add(flatProfile(sources, rows, rest, false));
    return flat;
  }

  private needsNoParts(window: Window): boolean {
    return this.rows.count > MAX_ROWS || this.before(window.to) - this.before(window.from) < FEW_CALLS;
  }

  private *makeWhole(): Generator<void> {
    this.whole = yield* flatProfileSteps(this.sources, this.rows, { from: 0, to: Infinity });
  }

  /** Makes the profiles of parts with as many calls each. */
  private *makeParts(): Generator<void> {
    const last = this.sources.reduce((most, { start }) => Math.max(most, start[start.length - 1] ?? 0), 0);
    const edges = [0];
    for (let part = 1; part < PARTS; part++) {
      const edge = firstWhere(0, Math.ceil(last), (time) => this.before(time) >= (this.calls * part) / PARTS);
      if (edge > edges[edges.length - 1]) edges.push(edge);
    }
    const parts: Part[] = [];
    for (const [n, from] of edges.entries()) {
      const window = { from, to: edges[n + 1] ?? Infinity };
      parts.push({ window, flat: yield* flatProfileSteps(this.sources, this.rows, window, false) });
    }
    this.parts = parts;
  }

  /** How many spans begin before a moment. */
  private before(time: number): number {
    let calls = 0;
    for (const { start } of this.sources) calls += time === Infinity ? start.length : lowerBound(start, time);
    return calls;
  }
}

function isWhole({ from, to }: Window): boolean {
  return from <= 0 && to === Infinity;
}
