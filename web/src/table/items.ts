// The items of a table: where they come from, when they are, and their columns.

import type { Selection } from "../store";

/** Items of one origin, most often of one track. */
export interface ItemSource {
  /** The number of its first item, counted through all sources of the table. */
  base: number;
  start: Float64Array;
  end: Float64Array;
  /** The thread and the process of all its items, where they have one. */
  thread: number | null;
  process: number | null;
}

/** A period, ns from the trace's start; `to` is Infinity where it reaches the trace's end. */
export interface Period {
  from: number;
  to: number;
}

/** A column of texts. An item has a number for its text: equal texts of a column may have different numbers. */
export interface TextColumn<S extends ItemSource = ItemSource> {
  kind: "text";
  id: string;
  title: string;
  meaning: string;
  /** How many numbers there are; each is less. */
  size: number;
  text: (key: number) => string;
  of: (source: S) => (item: number) => number;
}

/** A column of numbers; NaN where an item has none. */
export interface FigureColumn<S extends ItemSource = ItemSource> {
  kind: "figure";
  id: string;
  title: string;
  meaning: string;
  /** Times are ns; moments are shown as places of the timeline; others are shown as they are. */
  unit: "time" | "moment" | "number";
  /** Of items that a period cuts: the figure of the part inside, where it is a time. */
  of: (source: S, period: Period) => (item: number) => number;
}

/** When an item begins. */
export const begin: FigureColumn = {
  kind: "figure",
  id: "start",
  title: "Begins at",
  meaning: "Since the trace's begin",
  unit: "moment",
  of:
    ({ start }) =>
    (item) =>
      start[item],
};

export type ItemColumn = TextColumn | FigureColumn;

/** A table: its items and columns. */
export interface Items {
  sources: ItemSource[];
  count: number;
  texts: TextColumn[];
  /** The first one is what groups add up, unless another one is chosen. */
  figures: FigureColumn[];
  /** The thread and the process of items whose source has none; null: they have none either. */
  threadOf: ((source: ItemSource) => (item: number) => number | null) | null;
  select: (source: ItemSource, item: number) => Selection | null;
}

/** Whether an item lies in a period: it overlaps it, or begins in it. */
export function within(start: number, end: number, { from, to }: Period): boolean {
  return start < to && (end > from || start >= from);
}

/** The source of an item by its number. */
export function sourceOf(sources: ItemSource[], number: number): ItemSource {
  let low = 0;
  let high = sources.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (sources[middle].base <= number) low = middle;
    else high = middle - 1;
  }
  return sources[low];
}
