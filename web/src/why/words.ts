// Causes in the words of `tracebridge why`, which the program writes to cause_words.json, and their colours.

import type { Trace } from "../data/trace";
import { visibleName } from "../ui/text";
import CAUSE_WORDS from "./cause_words.json";
import type { Hop, PathCause } from "./critical_path";
import { lockSentence } from "./lock_marker";
import { shortMethod } from "./own_frames";

/** The words for a cause, and for a wait that another thread ended, whose name follows. */
const WORDS: Partial<Record<string, string[]>> = CAUSE_WORDS;

/** A sentence about a cause: the waits that lead to it, and the cause. */
export function sentence(trace: Trace, hops: Hop[]): string {
  const waits = hops.slice(0, -1).map(({ cause, about }, at) => {
    const lock = lockSentence(about);
    if (lock !== null) return visibleName(lock);
    const next = visibleName(trace.threadName(hops[at + 1].thread));
    return `${WORDS[cause]?.[1] ?? "waited for"} ${next}`;
  });
  const last = hops.at(-1)?.cause ?? "unexplained";
  return [...waits, WORDS[last]?.[0] ?? last].join(", which ");
}

/** What a cause is about, behind its sentence: the app's own code, else the largest subjects. */
export function about({ own, subjects, ns }: PathCause): string {
  const named = subjects.filter(({ name }) => name !== "");
  if (!own)
    return named.length > 0
      ? `: ${named
          .slice(0, 3)
          .map(({ name }) => visibleName(name))
          .join(", ")}`
      : "";
  const short = (name: string) => visibleName(own.kind === "method" ? shortMethod(name) : name);
  const caller = own.caller ? ` (${own.kind === "slice" ? "within" : "called by"} ${short(own.caller)})` : "";
  const callee = own.callee ? `, there ${short(own.callee)}` : "";
  const inner = named.filter(({ name }) => name !== own.name && name !== own.callee);
  const most = inner.at(0) && inner[0].ns > ns / 2 ? `; most of it in ${short(inner[0].name)}` : "";
  return ` in ${short(own.name)}${caller}${callee}${most}`;
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
