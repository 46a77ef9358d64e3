// Groups of a table's items by a column, with the figures of each group.

import { percentile, PERCENTILES } from "../data/percentile";
import { order } from "./sorted";

/** The figures of groups, in the order of the columns. */
export const GROUP_FIGURES = ["count", "sum", "share", "min", "mean", "p50", "p90", "p95", "p99", "max"] as const;
export type GroupFigure = (typeof GROUP_FIGURES)[number];

const STEP_ITEMS = 100_000;

/** One row for each text of a column. */
export class Groups {
  /** The figures of each group. Those but the count are NaN where no item of the group has the figure. */
  readonly figures: Record<GroupFigure, Float64Array>;
  /** The places of all items by groups, in each group by the figure; those without it last. */
  private readonly places: Uint32Array;
  /** Where each group begins. */
  private readonly from: Uint32Array;
  /** The groups in the order that is shown. */
  order: Uint32Array = new Uint32Array(0);

  private constructor(
    readonly names: string[],
    places: Uint32Array,
    from: Uint32Array,
  ) {
    this.places = places;
    this.from = from;
    const columns = GROUP_FIGURES.map((id) => [id, new Float64Array(names.length)]);
    this.figures = Object.fromEntries(columns) as Record<GroupFigure, Float64Array>;
  }

  /** Groups items by `groupOf`, an index into `names` for each, and sums up their `values`. */
  static *of(names: string[], groupOf: Uint32Array, values: Float64Array): Generator<void, Groups> {
    const from = new Uint32Array(names.length + 1);
    for (let i = 0; i < groupOf.length; i++) from[groupOf[i] + 1]++;
    for (let n = 1; n < from.length; n++) from[n] += from[n - 1];
    yield;
    const sorted = yield* order(values, false);
    const places = new Uint32Array(groupOf.length);
    const next = from.slice();
    for (let i = 0; i < sorted.length; i++) {
      const place = sorted[i];
      places[next[groupOf[place]]++] = place;
      if (i % STEP_ITEMS === STEP_ITEMS - 1) yield;
    }
    const groups = new Groups(names, places, from);
    yield* groups.measure(values);
    return groups;
  }

  private *measure(values: Float64Array): Generator<void> {
    const { figures, places, from } = this;
    let total = 0;
    let done = 0;
    for (let n = 0; n < this.names.length; n++) {
      let sum = 0;
      let known = 0;
      for (let i = from[n]; i < from[n + 1]; i++) {
        const value = values[places[i]];
        if (!Number.isNaN(value)) {
          sum += value;
          known++;
        }
        if (++done % STEP_ITEMS === 0) yield;
      }
      const at = (rank: number) => values[places[from[n] + rank]];
      figures.count[n] = from[n + 1] - from[n];
      figures.sum[n] = known > 0 ? sum : NaN;
      figures.mean[n] = known > 0 ? sum / known : NaN;
      figures.min[n] = known > 0 ? at(0) : NaN;
      figures.max[n] = known > 0 ? at(known - 1) : NaN;
      for (const percent of PERCENTILES) figures[`p${percent}`][n] = percentile(known, at, percent) ?? NaN;
      total += sum;
    }
    for (let n = 0; n < this.names.length; n++) figures.share[n] = total > 0 ? figures.sum[n] / total : NaN;
  }

  /** Sorts the groups: by a figure, or by their names. */
  sort({ id, down }: { id: string; down: boolean }): void {
    const direction = down ? -1 : 1;
    const values = (this.figures as Partial<Record<string, Float64Array>>)[id];
    const all = Uint32Array.from(this.names, (_, n) => n);
    const byName = (a: number, b: number) => compare(this.names[a], this.names[b]) || a - b;
    this.order = all.sort((a, b) => {
      if (!values) return direction * byName(a, b);
      const [x, y] = [values[a], values[b]];
      if (Number.isNaN(x) || Number.isNaN(y)) return Number(Number.isNaN(x)) - Number(Number.isNaN(y)) || byName(a, b);
      return direction * (x - y) || byName(a, b);
    });
  }

  count(group: number): number {
    return this.from[group + 1] - this.from[group];
  }

  /** The place of an item of a group: the largest first, those without the figure last. */
  place(group: number, rank: number, values: Float64Array): number {
    const { places, from } = this;
    const end = from[group + 1];
    let known = end;
    // Items without the figure lie at the end, and are few or all.
    if (end > from[group] && Number.isNaN(values[places[end - 1]])) {
      let low = from[group];
      while (low < known) {
        const middle = (low + known) >> 1;
        if (Number.isNaN(values[places[middle]])) known = middle;
        else low = middle + 1;
      }
    }
    return rank < known - from[group] ? places[known - 1 - rank] : places[from[group] + rank];
  }
}

export function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
