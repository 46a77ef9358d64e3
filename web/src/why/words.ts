// Causes in the words of `tracebridge why`, which the program writes to cause_words.json, and their colours.

import type { Trace } from "../data/trace";
import { visibleName } from "../ui/text";
import CAUSE_WORDS from "./cause_words.json";
import type { Hop } from "./critical_path";

/** The words for a cause, and for a wait that another thread ended, whose name follows. */
const WORDS: Partial<Record<string, string[]>> = CAUSE_WORDS;

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
