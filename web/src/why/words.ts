// Causes in words, as `tracebridge why` prints them, and their colours.

import type { Trace } from "../data/trace";
import { visibleName } from "../ui/text";
import type { Hop } from "./critical_path";

/** Words for a cause, and where they differ for a wait that another thread ended, whose name follows. */
const WORDS: Partial<Record<string, [words: string, waited?: string]>> = {
  running: ["ran its own code"],
  runnable: ["was ready, but others ran on its CPU"],
  throttled: ["was ready, but its group had used up its share of the CPU"],
  slow_cpu: ["ran slowly, below the speed of the fastest CPU"],
  disk: ["waited for the disk"],
  page_fault: ["waited for a page of memory"],
  reclaim: ["waited while the kernel looked for free memory"],
  lock: ["waited for a lock", "waited for a lock or a result of"],
  binder: ["waited for a binder call", "waited for the answer to a binder call to"],
  ipc: ["waited for another process or the network", "waited for a message from"],
  other_thread: ["waited for another thread"],
  gc: ["collected garbage", "waited for the garbage collection of"],
  jit: ["compiled methods"],
  class_loading: ["loaded classes and libraries"],
  gpu: ["waited for a buffer or the graphics processor", "waited for a buffer or the graphics processor, for"],
  sleep: ["slept, as the program had asked", "slept until it was woken by"],
  idle: ["had nothing to do", "had nothing to do until a message came from"],
  vsync: ["waited for the time of the next frame"],
  interrupt: ["was interrupted"],
  kernel: ["waited for the kernel"],
  tracing: ["wrote the trace"],
  start: ["was not there yet", "was not there yet, and was started by"],
  unexplained: ["unexplained"],
  not_recorded: ["not recorded"],
};

/** A sentence about a cause: the waits that lead to it, and the cause. */
export function sentence(trace: Trace, hops: Hop[]): string {
  const waits = hops.slice(0, -1).map(({ cause }, at) => {
    const next = visibleName(trace.threadName(hops[at + 1].thread));
    return `${WORDS[cause]?.[1] ?? "waited for"} ${next}`;
  });
  const last = hops.at(-1)?.cause ?? "unexplained";
  return [...waits, WORDS[last]?.[0] ?? last].join(", which ");
}

/** Fills that dark text can be read on: those of Paul Tol's "light" scheme. */
const FILLS: Partial<Record<string, string>> = {
  running: "#44bb99",
  runnable: "#99ddff",
  throttled: "#99ddff",
  slow_cpu: "#bbcc33",
  disk: "#ee8866",
  page_fault: "#ee8866",
  reclaim: "#ee8866",
  lock: "#eedd88",
  binder: "#ffaabb",
  ipc: "#ffaabb",
  other_thread: "#eedd88",
  gc: "#cc99cc",
  jit: "#cc99cc",
  class_loading: "#cc99cc",
  gpu: "#77aadd",
  sleep: "#c8ccd0",
  idle: "#c8ccd0",
  vsync: "#c8ccd0",
  interrupt: "#aaaa00",
  kernel: "#aaaa00",
  tracing: "#aaaa00",
  start: "#77aadd",
};

/** The colour of a cause for a style sheet. */
export const causeColor = (cause: string): string => FILLS[cause] ?? "#dddddd";
