// What the profile panel shows: its own settings, which no other panel needs.

import type { State } from "../store";
import type { GroupBy } from "./grouping";
import type { SpanKind } from "./span_source";

export type ProfileView = "table" | "tree" | "bottom-up" | "flame";

export interface ProfileOptions {
  view: ProfileView;
  kind: SpanKind;
  by: GroupBy;
  filter: string;
  /** A thread, a process, or all: `t3`, `p1`, `all`. */
  threads: string;
  sort: { id: string; down: boolean };
  /** Trees and the flame graph show the calls of the selected row alone. */
  onlySelected: boolean;
}

/** The settings for a trace: method calls where it has some, else slices. */
export function firstOptions({ trace }: State): ProfileOptions {
  const has = (kind: string) => trace.tracks.some((t) => t.kind === kind && t.thread !== null && t.count > 0);
  const kind = has("calls") || !has("slices") ? "calls" : "slices";
  return {
    view: "table",
    kind,
    by: "method",
    filter: "",
    threads: "all",
    sort: { id: "inclusive", down: true },
    onlySelected: false,
  };
}

/** Whether a thread belongs to the threads that were chosen. */
export function threadChosen({ trace }: State, threads: string): (thread: number) => boolean {
  const number = Number(threads.slice(1));
  if (threads.startsWith("t")) return (thread) => thread === number;
  if (threads.startsWith("p")) return (thread) => trace.threads[thread].process === number;
  return () => true;
}
