// The rows of the profile: each stands for a method or slice, or for a group of them.

import type { Trace } from "../data/trace";
import { methodCount } from "./span_source";

export type GroupBy = "method" | "class" | "package" | "thread";

/** The rows of a table, and the row of each span key. */
export interface Grouping {
  by: GroupBy;
  /** The number of rows. */
  count: number;
  /** By key (a method id, or the number of methods + a string id) the row. Empty where rows are threads. */
  rowOf: Uint32Array;
  name(row: number): string;
  /** Further text of the name, less important: a method's signature. */
  detail(row: number): string;
  /** The key that the row stands for; -1 where it stands for a group. */
  keyOf(row: number): number;
}

const SLICES_GROUP = "(slices)";

const groupings = new WeakMap<Trace, Map<GroupBy, Grouping>>();

export function grouping(trace: Trace, by: GroupBy): Grouping {
  let made = groupings.get(trace);
  if (!made) groupings.set(trace, (made = new Map<GroupBy, Grouping>()));
  let found = made.get(by);
  if (!found) made.set(by, (found = make(trace, by)));
  return found;
}

function make(trace: Trace, by: GroupBy): Grouping {
  if (by === "method") return byMethod(trace);
  if (by === "thread") {
    const name = (thread: number) => trace.threadName(thread);
    return { by, count: trace.threads.length, rowOf: new Uint32Array(0), name, detail: () => "", keyOf: () => -1 };
  }
  return byClass(trace, by);
}

/** Only slice names get rows, and not every string of the trace: the arguments of events may be millions. */
function byMethod(trace: Trace): Grouping {
  const methods = methodCount(trace);
  const rowOf = new Uint32Array(methods + trace.strings.length);
  const keys: number[] = [];
  for (let method = 0; method < methods; method++) {
    rowOf[method] = method;
    keys.push(method);
  }
  for (const id of sliceNames(trace)) {
    rowOf[methods + id] = keys.length;
    keys.push(methods + id);
  }
  return {
    by: "method",
    count: keys.length,
    rowOf,
    name: (row) => keyName(trace, keys[row]),
    detail: (row) => (trace.methods && keys[row] < methods ? trace.strings[trace.methods.signature[keys[row]]] : ""),
    keyOf: (row) => keys[row],
  };
}

function byClass(trace: Trace, by: "class" | "package"): Grouping {
  const methods = methodCount(trace);
  const rowOf = new Uint32Array(methods + trace.strings.length);
  const names: string[] = [];
  const rows = new Map<string, number>();
  const row = (name: string) => {
    let at = rows.get(name);
    if (at === undefined) {
      rows.set(name, (at = names.length));
      names.push(name);
    }
    return at;
  };
  trace.methods?.class.forEach((id, method) => {
    const owner = trace.strings[id];
    rowOf[method] = row(by === "class" ? owner || "(unknown)" : packageOf(owner));
  });
  const slices = row(SLICES_GROUP);
  rowOf.fill(slices, methods);
  return { by, count: names.length, rowOf, name: (at) => names[at], detail: () => "", keyOf: () => -1 };
}

function packageOf(owner: string): string {
  const dot = owner.lastIndexOf(".");
  return dot > 0 ? owner.slice(0, dot) : "(default)";
}

function sliceNames(trace: Trace): Set<number> {
  const ids = new Set<number>();
  for (const track of trace.tracks) {
    if (track.kind !== "slices" || track.thread === null || !track.spans) continue;
    const { label } = track.spans;
    for (let i = 0; i < label.length; i++) ids.add(label[i]);
  }
  return ids;
}

/** The name of a span key. */
export function keyName(trace: Trace, key: number): string {
  const methods = methodCount(trace);
  if (key < methods) return trace.methodName(key) || "(no name)";
  return trace.strings[key - methods] || "(no name)";
}
