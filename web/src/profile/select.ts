// Rows of the profile and the store's selection: a click in one panel selects in the other.

import type { Trace } from "../data/trace";
import type { Selection, Store } from "../store";
import type { Grouping } from "./grouping";
import { methodCount, spanSources, type Window, windowOf } from "./span_source";
import { SpanWalk } from "./span_walk";

const stringIds = new WeakMap<Trace, Map<string, number>>();

function stringId(trace: Trace, text: string): number {
  let ids = stringIds.get(trace);
  if (!ids) stringIds.set(trace, (ids = new Map<string, number>()));
  let id = ids.get(text);
  if (id === undefined) ids.set(text, (id = trace.strings.indexOf(text)));
  return id;
}

/** The row of what is selected; -1 where it has none. */
export function selectedRow(trace: Trace, rows: Grouping, selection: Selection | null): number {
  if (!selection) return -1;
  if (rows.by === "thread") {
    if (selection.kind === "thread") return selection.thread;
    return selection.kind === "span" ? (trace.tracks[selection.track].thread ?? -1) : -1;
  }
  const key = selectedKey(trace, selection);
  return key < 0 || (rows.keyOf(rows.rowOf[key]) === -1 && rows.by === "method") ? -1 : rows.rowOf[key];
}

function selectedKey(trace: Trace, selection: Selection): number {
  if (selection.kind === "method") return selection.method;
  if (selection.kind === "name") {
    const id = stringId(trace, selection.name);
    return id < 0 ? -1 : methodCount(trace) + id;
  }
  if (selection.kind !== "span") return -1;
  const track = trace.track(selection.track);
  if (!track?.spans || track.thread === null || track.role === "running") return -1;
  const label = track.spans.label[selection.item];
  return track.kind === "calls" ? label : methodCount(trace) + label;
}

/** The selection after a click on a row. */
export function selectionOf(trace: Trace, rows: Grouping, row: number): Selection | null {
  if (rows.by === "thread") return { kind: "thread", thread: row };
  const key = rows.keyOf(row);
  if (key < 0) return null;
  const methods = methodCount(trace);
  if (key < methods) return { kind: "method", method: key };
  return { kind: "name", name: trace.strings[key - methods] };
}

/** Selects the longest call of a key in the window, and has the timeline show it. */
export function showLongest(store: Store, key: number, window: Window): void {
  const { trace } = store.state;
  const methods = methodCount(trace);
  let longest: { track: number; item: number; from: number; to: number } | null = null;
  for (const source of spanSources(trace, key < methods ? "calls" : "slices")) {
    const walk = new SpanWalk(source, windowOf(trace, window));
    while (walk.next()) {
      const { item } = walk;
      if (source.base + source.label[item] !== key) continue;
      const from = source.start[item];
      const to = source.end[item];
      if (!longest || to - from > longest.to - longest.from) longest = { track: source.track, item, from, to };
    }
  }
  if (!longest) return;
  const { track, item, from, to } = longest;
  store.set({ selection: { kind: "span", track, item }, view: around(trace, from, to) });
}

/** A view of a period with a margin on both sides. */
export function around(trace: Trace, from: number, to: number): Window {
  const margin = Math.max((to - from) * 0.1, 500);
  return { from: Math.max(0, from - margin), to: Math.min(Math.max(trace.duration, 1), to + margin) };
}
