// Which items of a table lie in a period and hold a text.

import { folded } from "../ui/text";
import { type Items, type ItemSource, type Period, within } from "./items";

export interface Filter {
  period: Period;
  /** Part of a text; empty: all items. */
  text: string;
  /** The id of the column that is looked into; empty: all columns of texts. */
  where: string;
  /** Which threads and processes; null: all. */
  owner: ((thread: number | null, process: number | null) => boolean) | null;
  /** The process of a thread. */
  processOf: (thread: number) => number | null;
}

/** Items that are gone through in one step. */
const STEP_ITEMS = 50_000;
const UNKNOWN = 0;
const HOLDS = 1;
const HOLDS_NOT = 2;

/** Calls `take` for each item that the filter lets through, in order. */
export function* matching(
  items: Items,
  filter: Filter,
  take: (source: ItemSource) => (item: number) => void,
): Generator<void> {
  const holds = textFilter(items, filter);
  let left = STEP_ITEMS;
  for (const source of items.sources) {
    const { start, end } = source;
    const threadOf = items.threadOf?.(source) ?? null;
    const { owner } = filter;
    if (owner && !threadOf && !owner(source.thread, source.process)) continue;
    const owned =
      owner && threadOf
        ? (item: number) => {
            const thread = threadOf(item);
            return owner(thread, thread === null ? null : filter.processOf(thread));
          }
        : null;
    const matches = holds?.(source) ?? null;
    const put = take(source);
    for (let item = 0; item < start.length; item++) {
      if (left-- === 0) {
        left = STEP_ITEMS;
        yield;
      }
      if (!within(start[item], end[item], filter.period)) continue;
      if (owned && !owned(item)) continue;
      if (matches && !matches(item)) continue;
      put(item);
    }
  }
}

/** Whether items hold the filter's text; each text is looked into once. Null where none is asked for. */
function textFilter(items: Items, { text, where }: Filter): ((source: ItemSource) => (item: number) => boolean) | null {
  const wanted = folded(text.trim());
  if (wanted === "") return null;
  const columns = items.texts.filter(({ id }) => where === "" || id === where);
  const known = columns.map(({ size }) => new Uint8Array(size));
  return (source) => {
    const keys = columns.map((column) => column.of(source));
    return (item) => {
      for (let n = 0; n < keys.length; n++) {
        const key = keys[n](item);
        const flags = known[n];
        if (flags[key] === UNKNOWN) flags[key] = folded(columns[n].text(key)).includes(wanted) ? HOLDS : HOLDS_NOT;
        if (flags[key] === HOLDS) return true;
      }
      return false;
    };
  };
}
