// The flat profile: calls, inclusive and exclusive times of each row. The rules are those of `tracebridge profile`:
// of a recursion only the outermost call counts for the inclusive time, and a call is recursive while another call
// of the same row is open in its thread.

import type { Grouping } from "./grouping";
import { grown, type SpanSource, type Window } from "./span_source";
import { SpanWalk } from "./span_walk";

/** Figures of the rows; times in ns. */
export class FlatProfile {
  /** The figures of a row stand side by side, because a call changes most of them. */
  readonly figures: Float64Array;
  /** The sums of the exclusive times. */
  wallTotal = 0;
  cpuTotal = 0;

  constructor(readonly rows: number) {
    this.figures = new Float64Array(rows * FIGURES);
  }

  calls(row: number): number {
    return this.figures[row * FIGURES];
  }

  recursive(row: number): number {
    return this.figures[row * FIGURES + RECURSIVE];
  }

  inclusive(row: number): number {
    return this.figures[row * FIGURES + INCLUSIVE];
  }

  exclusive(row: number): number {
    return this.figures[row * FIGURES + EXCLUSIVE];
  }

  cpuInclusive(row: number): number {
    return this.figures[row * FIGURES + CPU_INCLUSIVE];
  }

  cpuExclusive(row: number): number {
    return this.figures[row * FIGURES + CPU_EXCLUSIVE];
  }

  /** Adds the figures of another window of the same rows. */
  add(other: FlatProfile): void {
    const { figures } = this;
    for (let n = 0; n < figures.length; n++) figures[n] += other.figures[n];
    this.wallTotal += other.wallTotal;
    this.cpuTotal += other.cpuTotal;
  }

  /** Calls of all rows, recursive ones included. */
  get allCalls(): number {
    let sum = 0;
    for (let row = 0; row < this.rows; row++) sum += this.calls(row) + this.recursive(row);
    return sum;
  }
}

const RECURSIVE = 1;
const INCLUSIVE = 2;
const EXCLUSIVE = 3;
const CPU_INCLUSIVE = 4;
const CPU_EXCLUSIVE = 5;
const FIGURES = 6;

/** Spans that are gone through in one step. */
const STEP_SPANS = 50_000;

/**
 * The flat profile of a window. Without `countOpen` the calls that are open when the window begins count with their
 * times and not as calls: then the profiles of adjoining windows add up.
 */
export function flatProfile(sources: SpanSource[], rows: Grouping, window: Window, countOpen = true): FlatProfile {
  const steps = flatProfileSteps(sources, rows, window, countOpen);
  for (;;) {
    const { done, value } = steps.next();
    if (done) return value;
  }
}

/** The same, computed in steps of some milliseconds, so that the page can answer in between. */
export function* flatProfileSteps(
  sources: SpanSource[],
  rows: Grouping,
  window: Window,
  countOpen = true,
): Generator<void, FlatProfile> {
  const flat = new FlatProfile(rows.count);
  const openOfRow = new Int32Array(rows.count);
  for (const source of sources) {
    yield* addSource(flat, openOfRow, source, rows, window, countOpen ? 1 : 0);
    yield;
  }
  return flat;
}

/** Adds the spans of one thread. */
function* addSource(
  flat: FlatProfile,
  openOfRow: Int32Array,
  source: SpanSource,
  rows: Grouping,
  window: Window,
  ofOpen: number,
): Generator<void> {
  const { label, base, start } = source;
  const { figures } = flat;
  const { rowOf } = rows;
  const thread = rows.by === "thread" ? source.thread : -1;
  const walk = new SpanWalk(source, window);
  let open = new Int32Array(1024);
  let top = 0;
  let wallTotal = 0;
  let cpuTotal = 0;
  let rest = STEP_SPANS;
  while (walk.next()) {
    if (--rest === 0) {
      rest = STEP_SPANS;
      yield;
    }
    const { item, depth, wall, wallInParent, cpu } = walk;
    while (top > depth) openOfRow[open[--top]]--;
    const row = thread >= 0 ? thread : rowOf[base + label[item]];
    const place = row * FIGURES;
    const call = start[item] < window.from ? ofOpen : 1;
    figures[place + EXCLUSIVE] += wall;
    figures[place + CPU_EXCLUSIVE] += cpu;
    if (openOfRow[row]++ === 0) {
      figures[place] += call;
      figures[place + INCLUSIVE] += wall;
      figures[place + CPU_INCLUSIVE] += cpu;
    } else {
      figures[place + RECURSIVE] += call;
    }
    if (depth > 0) {
      const caller = open[depth - 1] * FIGURES;
      figures[caller + EXCLUSIVE] -= wallInParent;
      figures[caller + CPU_EXCLUSIVE] -= cpu;
    } else {
      wallTotal += wall;
      cpuTotal += cpu;
    }
    if (top === open.length) open = grown(open);
    open[top++] = row;
  }
  while (top > 0) openOfRow[open[--top]]--;
  flat.wallTotal += wallTotal;
  flat.cpuTotal += cpuTotal;
}
