// The settings of the profile panel, which no other panel needs.

import type { Trace } from "../data/trace";
import type { State } from "../store";
import { hasCpu } from "./columns";
import type { GroupBy } from "./grouping";
import type { SpanKind } from "./span_source";

/** The time that the flame graph's widths stand for; `off`: the time without a CPU. */
export type ProfileClock = "wall" | "cpu" | "off";
export type ProfileView = "table" | "tree" | "bottom-up" | "flame";

export interface ProfileOptions {
  view: ProfileView;
  kind: SpanKind;
  by: GroupBy;
  filter: string;
  /** A thread, a process, or all: `t3`, `p1`, `all`. */
  threads: string;
  sort: { id: string; down: boolean };
  clock: ProfileClock;
  /** Trees and the flame graph show the calls of the selected row alone. */
  onlySelected: boolean;
  /** Methods in which threads wait for work are left out. */
  foldIdle: boolean;
}

/** The settings for a trace: method calls where it has some, else slices; of the main thread, in its CPU time. */
export function firstOptions({ trace }: State): ProfileOptions {
  const has = (kind: string) => trace.tracks.some((t) => t.kind === kind && t.thread !== null && t.count > 0);
  const kind = has("calls") || !has("slices") ? "calls" : "slices";
  return {
    view: "table",
    kind,
    by: "method",
    filter: "",
    threads: mainThread(trace, kind),
    sort: { id: hasCpu(trace, kind) ? "cpuInclusive" : "inclusive", down: true },
    clock: hasCpu(trace, kind) ? "cpu" : "wall",
    onlySelected: false,
    foldIdle: true,
  };
}

/** The main thread of the app that was launched or traced, as the settings name it; all threads where none is known. */
function mainThread(trace: Trace, kind: "calls" | "slices"): string {
  const has = (thread: number) => trace.tracks.some((t) => t.kind === kind && t.thread === thread && t.count > 0);
  const launched = trace.launched?.thread ?? null;
  if (launched !== null && has(launched)) return `t${launched}`;
  // Threads are ordered by how busy they and their processes are.
  const main = trace.threads.findIndex(({ main }, thread) => main && has(thread));
  return main < 0 ? "all" : `t${main}`;
}

/** What a thread's profile counts: of what it counted before, as far as the thread has it. */
export function kindOf(trace: Trace, thread: number, before: SpanKind): SpanKind {
  const has = (kind: string) => trace.tracks.some((t) => t.kind === kind && t.thread === thread && t.count > 0);
  if (before === "both" && has("calls") && has("slices")) return before;
  if (before === "slices" && has("slices")) return before;
  return has("calls") ? "calls" : "slices";
}

/** Whether a thread belongs to the threads that were chosen. */
export function threadChosen({ trace }: State, threads: string): (thread: number) => boolean {
  const number = Number(threads.slice(1));
  if (threads.startsWith("t")) return (thread) => thread === number;
  if (threads.startsWith("p")) return (thread) => trace.threads[thread].process === number;
  return () => true;
}
