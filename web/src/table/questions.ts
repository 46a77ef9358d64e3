// Questions that are asked often, each answered by a table with one click.

import type { Trace } from "../data/trace";
import { FIRST_TABLE, type TableChoice, type TableKind } from "./choice";

export interface Question {
  title: string;
  choice: TableChoice;
}

/** The main thread that questions are about: that of the launched app, else the busiest one. */
export function mainThread(trace: Trace): number {
  const launched = trace.launched?.thread ?? null;
  if (launched !== null) return launched;
  return Math.max(
    0,
    trace.threads.findIndex(({ main }) => main),
  );
}

/** The questions that a trace's tables can answer. */
export function questions(trace: Trace, kinds: TableKind[]): Question[] {
  const found: Question[] = [];
  const ask = (title: string, kind: TableKind, choice: Partial<TableChoice>) => {
    if (kinds.includes(kind)) found.push({ title, choice: { ...FIRST_TABLE, kind, ...choice } });
  };
  const main = `t${mainThread(trace)}`;
  const longest = { by: "", sort: { id: "duration", down: true } };
  const hasCause = (cause: string) => {
    const id = trace.strings.indexOf(cause);
    return id >= 0 && trace.tracks.some(({ causes }) => causes?.cause.includes(id));
  };
  const hasSlice = (part: string) =>
    trace.tracks.some(
      (track) =>
        track.kind === "slices"
        && track.role === "atrace"
        && named(trace, part).some((id) => track.spans?.label.includes(id)),
    );
  const hasSubject = (part: string) => {
    const names = named(trace, part);
    return trace.tracks.some(({ causes }) => causes && names.some((id) => causes.subject.includes(id + 1)));
  };
  /** What threads waited for says more than the name of a slice. */
  const waits = (title: string, cause: string, slice: string) => {
    if (hasCause(cause)) ask(title, "causes", { ...longest, filter: cause, where: "name" });
    else if (hasSlice(slice)) ask(title, "slices", { ...longest, filter: slice, where: "name" });
  };
  ask("CPU by process", "running", { by: "process" });
  ask("CPU by thread", "running", {});
  ask("Slices by name", "slices", {});
  ask("Slowest frames", "frames", longest);
  ask("Longest waits of the main thread", "states", { ...longest, threads: main, filter: "sleep", where: "name" });
  ask("Who woke the main thread", "states", { by: "waker", threads: main, filter: "sleep", where: "name" });
  ask("Who ran while it was ready", "ready", { threads: main });
  ask("Time ready, by thread", "states", { by: "thread", filter: "runnable", where: "name" });
  waits("Longest binder calls", "binder", "binder");
  // A wait that another thread of the process ended may be that of a worker without work: a marker of the runtime says
  // that somebody held the lock.
  if (hasSubject("contention")) ask("Contended locks", "causes", { ...longest, filter: "contention", where: "args" });
  else if (hasSlice("contention"))
    ask("Contended locks", "slices", { ...longest, filter: "contention", where: "name" });
  else if (hasCause("lock"))
    ask("Longest waits for locks and workers", "causes", { ...longest, filter: "lock", where: "name" });
  ask("Causes of waits", "causes", { threads: main });
  ask("Methods by class", "calls", { by: "class", figure: "self" });
  return found;
}

const MAX_NAMES = 50;
/** Longer names are not looked at, characters. ART's markers of monitors have two signatures. */
const MAX_LENGTH = 2000;

/** Names with a part, the first ones. */
function named({ strings }: Trace, part: string): number[] {
  const found: number[] = [];
  strings.forEach((name, id) => {
    if (found.length < MAX_NAMES && name.length < MAX_LENGTH && name.toLowerCase().includes(part)) found.push(id);
  });
  return found;
}
