// Measures a trace, and compares two: by the definitions of `tracebridge report --against`, of one run a side.

import type { Comparison, ComparisonRow } from "../data/format";
import { hasSpans, hasStates, type SpanTrack, type Trace } from "../data/trace";
import type { Range } from "../store";

/** The time that something took, all times together. */
interface Measure {
  ns: number;
  count: number;
  /** Length and begin of the longest time. */
  longest: number;
  at: number;
}

type Measures = Map<string, Measure>;
type Part = "stages" | "states" | "methods" | "slices";

interface Measured {
  part: Range;
  /** What that part is, in words. */
  what: string;
  of: Record<Part, Measures>;
}

const KINDS: Record<Part, string> = { stages: "stage", states: "state", methods: "method", slices: "slice" };
/** The most rows of a table: those that changed most. */
const MAX_ROWS = 1000;
const WHOLE = "the whole recording";
/** The verdict of one run against one, in the program's words. */
const TOO_FEW_RUNS = "too few runs to tell (at least 5 a side)";

function add(measures: Measures, name: string, ns: number, length: number, at: number): void {
  const measure = measures.get(name);
  if (!measure) {
    measures.set(name, { ns, count: 1, longest: length, at });
    return;
  }
  measure.ns += ns;
  measure.count++;
  if (length > measure.longest || (length === measure.longest && at > measure.at)) {
    measure.longest = length;
    measure.at = at;
  }
}

/** Calls `each` with every item of a track that lies in a period, cut to it: with its length and its own part of that. */
function within(
  { spans }: SpanTrack,
  { from, to }: Range,
  each: (item: number, start: number, length: number, own: number, isOutermost: boolean) => void,
): void {
  const { start, end, depth } = spans;
  /** The items that enclose the current one, outermost first, with the time of what lies in each. */
  const open: { item: number; start: number; length: number; inside: number; depth: number }[] = [];
  const close = () => {
    const done = open.pop();
    if (!done) return;
    const outer = open.at(-1);
    if (outer) outer.inside += done.length;
    each(done.item, done.start, done.length, Math.max(done.length - done.inside, 0), !outer);
  };
  for (let item = 0; item < start.length && start[item] <= to; item++) {
    while (open.length > 0 && open[open.length - 1].depth >= depth[item]) close();
    const begin = Math.max(start[item], from);
    const length = Math.min(end[item], to) - begin;
    // What only touches the period is not in it.
    if (length < 0 || (length === 0 && start[item] < end[item])) continue;
    open.push({ item, start: begin, length, inside: 0, depth: depth[item] });
  }
  while (open.length > 0) close();
}

const whole = (trace: Trace): Range => ({ from: 0, to: trace.duration });

/** The markers of threads, and how long the outermost of each thread took. */
function stagesOf(trace: Trace): Map<number, { ns: number; extent: Range }> {
  const found = new Map<number, { ns: number; extent: Range }>();
  for (const track of trace.tracks) {
    if (track.role !== "atrace" || !hasSpans(track) || track.thread === null || track.count === 0) continue;
    const { thread } = track;
    within(track, whole(trace), (_, start, length, __, isOutermost) => {
      if (!isOutermost) return;
      const stage = found.get(thread) ?? { ns: 0, extent: { from: Infinity, to: 0 } };
      stage.ns += length;
      stage.extent = { from: Math.min(stage.extent.from, start), to: Math.max(stage.extent.to, start + length) };
      found.set(thread, stage);
    });
  }
  return found;
}

/** The main thread of the program: of the launched one, else of the method trace, else that with the longest stages. */
function mainThread(trace: Trace, stages: ReturnType<typeof stagesOf>): number | null {
  const launched = launchOf(trace)?.thread ?? null;
  if (launched !== null) return launched;
  const traced = new Map<number, number>();
  for (const track of trace.tracks) {
    if (track.role !== "methods" || !hasSpans(track) || track.thread === null) continue;
    const { thread } = track;
    if (trace.threads[thread].name !== "main") continue;
    within(track, whole(trace), (_, __, length, ___, isOutermost) => {
      if (isOutermost) traced.set(thread, (traced.get(thread) ?? 0) + length);
    });
  }
  const most = (times: [number, number][]) => times.sort((a, b) => b[1] - a[1]).at(0)?.[0] ?? null;
  const staged = [...stages].map(([thread, { ns }]): [number, number] => [thread, ns]);
  return most([...traced]) ?? most(staged.filter(([thread]) => trace.threads[thread].main)) ?? most(staged);
}

const launchOf = (trace: Trace) => trace.index.launches.find(({ cut }) => cut === null) ?? null;

/** The name under which a state is measured: the states that people tell apart, and the rest by its own name. */
function stateName(state: string): string {
  const names: Record<string, string> = {
    Runnable: "runnable",
    "Runnable (Preempted)": "runnable",
    Running: "running",
    "Uninterruptible Sleep (IO)": "I/O",
    "Uninterruptible Sleep": "uninterruptible sleep",
    Sleeping: "sleeping",
  };
  return Object.hasOwn(names, state) ? names[state] : state;
}

/** Measures the launch, where there is one; else the main thread's slices from first to last; else all. */
function measure(trace: Trace): Measured {
  const stages = stagesOf(trace);
  const main = mainThread(trace, stages);
  const launch = launchOf(trace);
  const extent = main === null ? undefined : stages.get(main)?.extent;
  const isLaunch = launch !== null && launch.begin_ns < launch.end_ns;
  const isStaged = extent !== undefined && extent.from < extent.to;
  const part = isLaunch ? { from: launch.begin_ns, to: launch.end_ns } : isStaged ? extent : whole(trace);
  const what = isLaunch ? "the launch" : isStaged ? "the main thread's slices, from first to last" : WHOLE;
  const of: Measured["of"] = { stages: new Map(), states: new Map(), methods: new Map(), slices: new Map() };
  for (const track of trace.tracks) {
    if (track.role === "states" && hasStates(track) && track.thread === main) {
      const { start, end, state } = track.states;
      for (let i = 0; i < start.length; i++) {
        const begin = Math.max(start[i], part.from);
        const length = Math.min(end[i], part.to) - begin;
        if (length > 0) add(of.states, stateName(trace.strings[state[i]]), length, length, begin);
      }
    }
    if (!hasSpans(track)) continue;
    if (track.role === "atrace" || track.role === "methods") {
      const measures = track.role === "atrace" ? of.slices : of.methods;
      within(track, part, (item, start, length, own, isOutermost) => {
        const name = trace.spanName(track, item);
        add(measures, name, own, length, start);
        if (isOutermost && track.role === "atrace" && track.thread === main) {
          add(of.stages, name, length, length, start);
        }
      });
    } else if (track.role === "own") {
      within(track, part, (item, start, length) => add(of.slices, trace.spanName(track, item), length, length, start));
    }
  }
  return { part, what, of };
}

function row(name: string, kind: string, old: Measure | undefined, now: Measure | undefined): ComparisonRow {
  return {
    name,
    kind,
    old_ns: old?.ns ?? null,
    new_ns: now?.ns ?? null,
    delta_ns: (now?.ns ?? 0) - (old?.ns ?? 0),
    old_count: old?.count ?? 0,
    new_count: now?.count ?? 0,
    p: null,
    p_adjusted: null,
    verdict: "too few runs",
    verdict_text: TOO_FEW_RUNS,
    old_at_ns: old?.at ?? null,
    new_at_ns: now?.at ?? null,
  };
}

/** What changed from one trace to another. */
export function compareTraces(old: Trace, now: Trace): Comparison {
  const [before, after] = [measure(old), measure(now)];
  const total = ({ part }: Measured): Measure => {
    const ns = part.to - part.from;
    return { ns, count: 1, longest: ns, at: part.from };
  };
  const rows = (of: Part): ComparisonRow[] => {
    const names = new Set([...before.of[of].keys(), ...after.of[of].keys()]);
    const all = [...names].map((name) => row(name, KINDS[of], before.of[of].get(name), after.of[of].get(name)));
    const byName = (a: ComparisonRow, b: ComparisonRow) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0);
    return all.sort((a, b) => Math.abs(b.delta_ns) - Math.abs(a.delta_ns) || byName(a, b)).slice(0, MAX_ROWS);
  };
  const name = before.what === after.what ? before.what : "the part that is measured of each run";
  const side = (trace: Trace, { part }: Measured) => ({
    title: trace.index.title,
    runs: 1,
    from_ns: part.from,
    to_ns: part.to,
  });
  return {
    old: side(old, before),
    new: side(now, after),
    total: row(name, "time of", total(before), total(after)),
    stages: rows("stages"),
    states: rows("states"),
    methods: rows("methods"),
    slices: rows("slices"),
    metrics: [],
    rows_left_out: 0,
  };
}
