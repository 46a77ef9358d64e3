// The text about an item: under the pointer, and to screen readers.

import { upperBound } from "../data/search_sorted";
import { hasSpans, hasStates, isFrames, type StateTrack } from "../data/trace";
import {
  FLAG_LATE,
  FLAG_NO_BEGIN,
  FLAG_NO_DEADLINE,
  FLAG_NO_END,
  FLAG_NO_WORK,
  type SpanColumns,
} from "../data/track_columns";
import type { Selection } from "../store";
import { visibleName } from "../ui/text";
import { itemTimes } from "./layout";
import type { Model } from "./model";
import { formatClock, formatDuration, formatMoment, formatValue, formatWall } from "./time";

export interface Details {
  title: string;
  lines: [string, string][];
}

/** A longer text is cut in the tooltip. */
const MAX_TEXT_CHARS = 600;
const cut = (text: string, most = MAX_TEXT_CHARS) => visibleName(text.length > most ? `${text.slice(0, most)}…` : text);

/** A thread's name with that of its process, where the two differ. */
function threadOfProcess({ trace }: Model, thread: number): string {
  const { name, process } = trace.threads[thread];
  const owner = process === null ? null : trace.index.processes[process];
  return cut(trace.threadName(thread)) + (owner && owner.name !== name ? ` of ${cut(owner.name)}` : "");
}

/** The time of a slice or call without what is nested in it on its own track. */
export function selfTime(spans: SpanColumns, item: number): number {
  const { start, end, depth } = spans;
  let self = end[item] - start[item];
  for (let i = item + 1; i < start.length && depth[i] > depth[item]; i++) {
    if (depth[i] === depth[item] + 1) self -= end[i] - start[i];
  }
  return self;
}

/** How long a thread had a CPU within a period, or null where the trace does not say. */
export function runningTime(model: Model, thread: number, from: number, to: number): number | null {
  const track = model.byThread[thread].find(hasStates);
  if (!track) return null;
  const { start, end, cpu } = track.states;
  let sum = 0;
  for (let i = model.strip(track).after(from); i < start.length && start[i] < to; i++) {
    if (cpu[i]) sum += Math.min(end[i], to) - Math.max(start[i], from);
  }
  return sum;
}

function stateAt(model: Model, thread: number, time: number): [string, string][] {
  const track = model.byThread[thread].find(hasStates);
  if (!track) return [];
  const item = upperBound(track.states.start, time) - 1;
  if (item < 0 || track.states.end[item] < time) return [];
  return stateLines(model, track, item);
}

function stateLines(model: Model, track: StateTrack, item: number): [string, string][] {
  const { state, cpu, waker, start, end } = track.states;
  const on = cpu[item] ? ` on CPU ${cpu[item] - 1}` : "";
  const lines: [string, string][] = [
    ["State", `${model.trace.strings[state[item]]}${on}, ${formatDuration(end[item] - start[item])}`],
  ];
  const by = (at: number) => threadOfProcess(model, at - 1);
  // The wake-up that led to a state ended the state before it.
  if (waker?.[item]) lines.push(["Ended by", by(waker[item])]);
  else if (item > 0 && waker?.[item - 1]) lines.push(["Woken by", by(waker[item - 1])]);
  return lines;
}

/** The facts about a launch. */
function launchDetails({ trace }: Model, at: number): Details | null {
  const launch = trace.index.launches.at(at);
  if (!launch) return null;
  const since = (ns: number | null): string => (ns === null ? "not recorded" : formatDuration(ns));
  const total = launch.cut
    ? `not measured: the recording cuts its ${launch.cut}`
    : since(launch.end_ns - launch.begin_ns);
  const lines: [string, string][] = [
    ["Start", formatMoment(launch.begin_ns)],
    ["Total", total],
    ["TTID", since(launch.ttid_ns)],
    ["TTFD", since(launch.ttfd_ns)],
    ["Found", launch.rule],
  ];
  if (launch.overlapped) lines.push(["Note", "another launch went on at the same time"]);
  return { title: `${launch.type ?? "Launch"}${launch.type ? " launch" : ""} of ${cut(launch.package)}`, lines };
}

/** The measures of a frame. */
function frameLines({ cpu, overrun, flags }: SpanColumns, item: number): [string, string][] {
  const lines: [string, string][] = [];
  if (cpu && !((flags?.[item] ?? 0) & FLAG_NO_WORK)) lines.push(["CPU time", formatDuration(cpu[item])]);
  const isKnown = overrun && !((flags?.[item] ?? 0) & FLAG_NO_DEADLINE);
  if (isKnown) lines.push(["Overrun", formatDuration(overrun[item])]);
  return lines;
}

/** A thread's process, its number, and how busy it was. */
function threadDetails(model: Model, thread: number): Details {
  const { trace } = model;
  const { tid, process, busy_ns, main, doubt } = trace.threads[thread];
  const lines: [string, string][] = [];
  if (tid !== null) lines.push(["Thread", `${tid}${main ? ", the main thread" : ""}`]);
  lines.push(...processLine(model, process));
  const isTimed = model.byThread[thread].some(hasStates);
  if (busy_ns > 0) lines.push([isTimed ? "On a CPU" : "In calls and slices", formatDuration(busy_ns)]);
  if (doubt) lines.push(["Doubt", cut(doubt)]);
  return { title: threadOfProcess(model, thread), lines };
}

function processLine({ trace }: Model, process: number | null): [string, string][] {
  if (process === null) return [];
  const { name, pid } = trace.index.processes[process];
  return [["Process", `${cut(name) || "unnamed"} (${pid})`]];
}

/** How often a method or a name occurs, and how long it took. */
function sumDetails(
  { trace }: Model,
  title: string,
  kind: "calls" | "slices",
  wanted: (label: number) => boolean,
): Details {
  let count = 0;
  let sum = 0;
  let longest = 0;
  for (const { kind: of, role, spans } of trace.tracks) {
    if (of !== kind || !spans || role === "running") continue;
    const { start, end, label } = spans;
    for (let i = 0; i < label.length; i++) {
      if (!wanted(label[i])) continue;
      const took = end[i] - start[i];
      count++;
      sum += took;
      if (took > longest) longest = took;
    }
  }
  const lines: [string, string][] = [["Count", count.toLocaleString("en-US")]];
  if (count > 0) {
    lines.push(["Sum", `${formatDuration(sum)}; recursive calls count again`]);
    lines.push(["Mean", formatDuration(sum / count)], ["Longest", formatDuration(longest)]);
  }
  return { title: cut(title), lines };
}

/** The text about a selection; texts of more than `most` characters are cut. */
export function details(
  model: Model,
  selection: Selection,
  pointer: number | null,
  most = MAX_TEXT_CHARS,
): Details | null {
  const { trace } = model;
  const { index, strings } = trace;
  if (selection.kind === "thread") return threadDetails(model, selection.thread);
  if (selection.kind === "method") {
    const { method } = selection;
    return sumDetails(model, trace.methodName(method), "calls", (label) => label === method);
  }
  if (selection.kind === "name") {
    const { name } = selection;
    return sumDetails(model, name, "slices", (label) => strings[label] === name);
  }
  if (selection.kind === "launch") return launchDetails(model, selection.launch);
  const track = trace.track(selection.track);
  if (!track || selection.item >= track.count) return null;
  const { item } = selection;
  const [start, end] = itemTimes(track, item);
  const lines: [string, string][] = [
    ["Start", formatMoment(start)],
    ["Clock", `${formatClock(index, start)} (${index.clock})`],
  ];
  const wall = formatWall(index, start);
  if (wall) lines.push(["Wall time", wall]);
  let title = track.name;
  if (hasSpans(track)) {
    const { cpu, depth, flags, args, thread } = track.spans;
    title = trace.spanName(track, item);
    lines.push(["Duration", formatDuration(end - start)]);
    if (track.role === "running" && thread?.[item]) {
      title = threadOfProcess(model, thread[item] - 1);
    } else if (track.role === "frames") {
      title = `Frame ${title}`;
      lines.push(...frameLines(track.spans, item));
    } else if (!isFrames(track.role)) {
      lines.push(["Self", formatDuration(selfTime(track.spans, item))]);
      const running = track.thread === null ? null : runningTime(model, track.thread, start, end);
      if (cpu) lines.push(["CPU time", formatDuration(cpu[item])]);
      if (running !== null) {
        const part = (100 * running) / Math.max(1, end - start);
        lines.push(["On a CPU", `${formatDuration(running)} (${part.toFixed(0)} %)`]);
      }
      lines.push(["Depth", String(depth[item])]);
    }
    if (args?.[item]) lines.push([isFrames(track.role) ? "Frame" : "Arguments", cut(strings[args[item] - 1], most)]);
    const flag = flags?.[item] ?? 0;
    if (flag & FLAG_NO_BEGIN) lines.push(["Note", "its begin was not recorded"]);
    if (flag & FLAG_NO_END) lines.push(["Note", "its end was not recorded"]);
    if (flag & FLAG_LATE) lines.push(["Note", "the frame was late"]);
    if (track.kind === "calls" && trace.methods) {
      const method = track.spans.label[item];
      lines.push(["Signature", cut(strings[trace.methods.signature[method]])]);
    }
  } else if (hasStates(track)) {
    title = strings[track.states.state[item]];
    lines.push(
      ["Duration", formatDuration(end - start)],
      ...stateLines(model, track, item).slice(track.states.cpu[item] ? 0 : 1),
    );
  } else if (track.counter) {
    const unit = track.unit;
    title = `${track.name || track.role}: ${formatValue(track.counter.value[item], unit)}`;
    if (end > start) lines.push(["For", formatDuration(end - start)]);
  } else if (track.instants) {
    title = strings[track.instants.label[item]];
    const args = track.instants.args?.[item];
    if (args) lines.push(["Arguments", cut(strings[args - 1], most)]);
  } else if (track.losses) {
    const count = track.losses.count[item];
    title = count ? `${count} events lost` : "Events lost, how many is not known";
  }
  const runner = track.role === "running" ? (track.spans?.thread?.[item] ?? 0) - 1 : -1;
  if (track.cpu !== null) lines.push(["CPU", String(track.cpu)]);
  if (runner >= 0) lines.push(...processLine(model, trace.threads[runner].process));
  else if (track.thread === null) lines.push(...processLine(model, track.process));
  if (track.thread !== null) {
    lines.push(["Thread", cut(trace.threadName(track.thread))]);
    lines.push(...processLine(model, trace.threads[track.thread].process));
    if (!track.states) lines.push(...stateAt(model, track.thread, pointer ?? start));
    const { doubt } = trace.threads[track.thread];
    if (doubt) lines.push(["Doubt", cut(doubt)]);
  }
  return { title: cut(title, most), lines };
}

/** One sentence for screen readers. */
export function announcement(model: Model, selection: Selection): string {
  const found = details(model, selection, null);
  if (!found) return "";
  const wanted = ["Duration", "Total", "TTID", "Self", "Start", "Thread", "Woken by"];
  const parts = found.lines.filter(([name]) => wanted.includes(name)).map(([name, value]) => `${name} ${value}`);
  return `Selected ${[found.title, ...parts].join(", ")}`;
}
