// Whose time a selection is: the threads, one after the other, that the path of it begins at.

import { lowerBound } from "../data/search_sorted";
import { hasSpans, isFrames, type Trace } from "../data/trace";
import type { State } from "../store";
import { periodOf } from "../timeline/layout";
import { formatDuration } from "../timeline/time";
import { visibleName } from "../ui/text";
import type { ThreadTime } from "./critical_path";

/** What is explained: its name, and whose time it is. */
export interface Explained {
  name: string;
  times: ThreadTime[];
}

const UI_FRAME = "Choreographer#doFrame";

/** What the selection, or the chosen period, asks about; null where it is nothing that takes time. */
export function explained({ trace, selection, range }: State): Explained | null {
  const period = periodOf(trace, selection);
  if (range && (!period || period.to <= range.from || period.from >= range.to || selection?.kind === "thread")) {
    const thread = threadOf(trace, selection) ?? firstThread(trace);
    return thread === null ? null : stretch(trace, thread, range.from, range.to);
  }
  if (!selection) return firstLaunch(trace);
  if (selection.kind === "launch") return launchAt(trace, selection.launch);
  if (selection.kind === "thread") return stretch(trace, selection.thread, 0, trace.duration);
  if (!period || period.to <= period.from || !("track" in selection)) return null;
  const track = trace.track(selection.track);
  if (!track) return null;
  const { from, to } = period;
  if (hasSpans(track) && isFrames(track.role)) return frameOf(trace, track.process, from, to);
  const running = track.spans?.thread?.[selection.item];
  const thread = running ? running - 1 : track.thread;
  if (thread === null) return null;
  if (!hasSpans(track) || running) return stretch(trace, thread, from, to);
  const name = `${visibleName(trace.spanName(track, selection.item))} on ${visibleName(trace.threadName(thread))}`;
  return { name, times: [{ thread, from, to }] };
}

function stretch(trace: Trace, thread: number, from: number, to: number): Explained {
  const name = `${formatDuration(to - from)} of ${visibleName(trace.threadName(thread))}`;
  return { name, times: [{ thread, from, to }] };
}

function launchAt(trace: Trace, at: number): Explained | null {
  const launch = trace.index.launches.at(at);
  const thread = launch?.thread ?? null;
  if (!launch || thread === null) return null;
  const { begin_ns: from, end_ns: to } = launch;
  const kind = launch.type ? `, ${launch.type}` : "";
  return { name: `launch of ${visibleName(launch.package)}${kind}`, times: [{ thread, from, to }] };
}

function firstLaunch(trace: Trace): Explained | null {
  const { launched } = trace;
  return launched && launchAt(trace, trace.index.launches.indexOf(launched));
}

/** A frame's time is its UI thread's as long as that works on it, and then its RenderThread's. */
function frameOf(trace: Trace, process: number | null, from: number, to: number): Explained | null {
  const of = (wanted: (thread: number) => boolean) =>
    trace.threads.findIndex((thread, at) => thread.process === process && process !== null && wanted(at));
  const main = of((at) => trace.threads[at].main);
  const render = of((at) => trace.threads[at].name === "RenderThread");
  if (main < 0) return null;
  const end = Math.min(uiEnd(trace, main, from, to) ?? to, to);
  const times = [{ thread: main, from, to: end }];
  if (end < to) times.push({ thread: render < 0 ? main : render, from: end, to });
  return { name: `frame of ${visibleName(trace.index.processes[process ?? 0].name)}`, times };
}

/** When the UI thread's part of a frame ends. */
function uiEnd(trace: Trace, main: number, from: number, to: number): number | null {
  for (const track of trace.tracks) {
    if (track.thread !== main || track.role !== "atrace" || !hasSpans(track)) continue;
    const { start, end } = track.spans;
    for (let item = lowerBound(start, from); item < start.length && start[item] < to; item++) {
      if (trace.spanName(track, item).startsWith(UI_FRAME)) return end[item];
    }
  }
  return null;
}

function threadOf(trace: Trace, selection: State["selection"]): number | null {
  if (selection?.kind === "thread") return selection.thread;
  if (selection?.kind === "launch") return trace.index.launches.at(selection.launch)?.thread ?? null;
  return selection && "track" in selection ? (trace.track(selection.track)?.thread ?? null) : null;
}

/** The launched app's main thread, else the busiest main thread. */
function firstThread(trace: Trace): number | null {
  if (trace.launched) return trace.launched.thread;
  const main = trace.threads.findIndex((thread) => thread.main);
  return main >= 0 ? main : trace.threads.length > 0 ? 0 : null;
}
