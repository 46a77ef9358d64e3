// Where one can go from what is selected: what encloses it, others of its name, and the other ends of arrows.

import { upperBound } from "../data/search_sorted";
import { hasSpans, type SpanTrack, type Trace, type Track } from "../data/trace";
import type { Range, Selection } from "../store";
import { itemTimes } from "../timeline/layout";
import type { Model } from "../timeline/model";
import type { Stack } from "../timeline/stack";
import { formatMoment, formatValue } from "../timeline/time";

export interface Link {
  /** The relation of the other end to the selection. */
  relation: string;
  name: string;
  /** When it begins. */
  at: number;
  selection: Selection;
}

/** How many arrows are listed. */
const MAX_ARROWS = 20;
/** The relation of the two ends of an arrow: the end's word for the begin, and the begin's for the end. */
const RELATIONS: Record<string, [string, string]> = {
  wakeup: ["woken by", "wakes"],
  binder: ["binder call from", "binder call to"],
  flow: ["flow from", "flow to"],
};

/** The stack that draws a slice or a call, and its number there; null for anything else. */
function placeOf(model: Model, selection: Selection): { stack: Stack; item: number } | null {
  if (selection.kind !== "span") return null;
  const track = model.trace.track(selection.track);
  if (!track || !hasSpans(track) || selection.item >= track.count) return null;
  const nested = track.thread === null ? [] : model.nested(track.thread);
  const stack = model.stack(nested.includes(track) ? nested : [track]);
  return { stack, item: stack.find(track.id, selection.item) };
}

function linkTo(model: Model, stack: Stack, item: number, relation: string): Link {
  const { track, item: at } = stack.source(item);
  const selection: Selection = { kind: "span", track: track.id, item: at };
  return { relation, name: model.trace.spanName(track, at), at: stack.start[item], selection };
}

/** The slices and calls around a selection, the outermost first. */
export function parents(model: Model, selection: Selection): Link[] {
  const place = placeOf(model, selection);
  const found: Link[] = [];
  if (!place || place.stack.isFrames) return found;
  for (let item = place.stack.vertical(place.item, -1); item >= 0; item = place.stack.vertical(item, -1)) {
    found.unshift(linkTo(model, place.stack, item, "in"));
  }
  return found;
}

/** The neighbours with the same name, the threads that it belongs to, and the other ends of the nearest arrows. */
export function links(model: Model, selection: Selection): Link[] {
  if (selection.kind === "method" || selection.kind === "name") return extremes(model, selection);
  if (selection.kind === "launch") return ofLaunch(model, selection.launch);
  const found: Link[] = [...neighbours(model, selection)];
  const place = placeOf(model, selection);
  for (const [by, relation] of [
    [-1, "the one before"],
    [1, "the next one"],
  ] as const) {
    const item = place ? place.stack.sameName(place.item, by) : -1;
    if (place && item >= 0) found.push(linkTo(model, place.stack, item, relation));
  }
  found.push(...threadLinks(model, selection));
  const arrows = arrowLinks(model, selection);
  // Where the trace has arrows of wake-ups they say the same.
  const isTold = arrows.some(({ relation }) => relation === "woken by");
  return [...found, ...(isTold ? [] : wakerLinks(model, selection)), ...arrows];
}

/** Of states, instants and counters: the ones before and behind, of the same state or name. */
function neighbours(model: Model, selection: Selection): Link[] {
  if (selection.kind === "span" || !("track" in selection)) return [];
  const track = model.trace.track(selection.track);
  if (!track || selection.item >= track.count) return [];
  const label = track.states?.state ?? track.instants?.label;
  const times = track.states?.start ?? track.instants?.time ?? track.counter?.time;
  if (!times) return [];
  const found: Link[] = [];
  for (const [by, relation] of [
    [-1, "the one before"],
    [1, "the next one"],
  ] as const) {
    let item = selection.item + by;
    while (label && item >= 0 && item < track.count && label[item] !== label[selection.item]) item += by;
    if (item < 0 || item >= track.count) continue;
    const name = label ? model.trace.strings[label[item]] : formatValue(track.counter?.value[item] ?? 0, track.unit);
    found.push({ relation, name, at: times[item], selection: { kind: selection.kind, track: track.id, item } });
  }
  return found;
}

/** The thread that an item belongs to, or that ran. */
function threadLinks({ trace }: Model, selection: Selection): Link[] {
  if (!("track" in selection)) return [];
  const track = trace.track(selection.track);
  if (!track || selection.item >= track.count) return [];
  const runner = track.role === "running" ? (track.spans?.thread?.[selection.item] ?? 0) : 0;
  const thread = runner ? runner - 1 : track.thread;
  if (thread === null) return [];
  const [at] = itemTimes(track, selection.item);
  const name = trace.threadName(thread);
  const found: Link[] = [{ relation: "on thread", name, at, selection: { kind: "thread", thread } }];
  if (runner) add(found, { trace }, "its state", statesOf(trace, thread), at);
  return found;
}

/** Who ended a state by a wake-up, or the one before it. */
function wakerLinks({ trace }: Model, selection: Selection): Link[] {
  if (selection.kind !== "state") return [];
  const states = trace.track(selection.track)?.states;
  if (!states?.waker || selection.item >= states.start.length) return [];
  const found: Link[] = [];
  const put = (relation: string, item: number, at: number) => {
    const waker = states.waker?.[item] ?? 0;
    if (waker) add(found, { trace }, relation, statesOf(trace, waker - 1), at);
  };
  put("woken by", selection.item, states.end[selection.item]);
  if (selection.item > 0) put("woken before by", selection.item - 1, states.start[selection.item]);
  return found;
}

function statesOf(trace: Trace, thread: number): Track | undefined {
  return trace.tracks.find((track) => track.thread === thread && track.states !== undefined);
}

/** The first and the longest call of a method, or slice of a name. */
function extremes({ trace }: Model, selection: Selection & { kind: "method" | "name" }): Link[] {
  const { strings } = trace;
  const kind = selection.kind === "method" ? "calls" : "slices";
  let first: { track: SpanTrack; item: number } | null = null;
  let longest: { track: SpanTrack; item: number } | null = null;
  for (const track of trace.tracks) {
    if (track.kind !== kind || !hasSpans(track) || track.role === "running") continue;
    const { start, end, label } = track.spans;
    for (let item = 0; item < label.length; item++) {
      if (selection.kind === "method" ? label[item] !== selection.method : strings[label[item]] !== selection.name)
        continue;
      if (!first || start[item] < first.track.spans.start[first.item]) first = { track, item };
      const most = longest && longest.track.spans.end[longest.item] - longest.track.spans.start[longest.item];
      if (most === null || end[item] - start[item] > most) longest = { track, item };
    }
  }
  const link = (relation: string, { track, item }: { track: SpanTrack; item: number }): Link => {
    const at = track.spans.start[item];
    const name = track.thread === null ? track.name : trace.threadName(track.thread);
    return { relation, name: `${name}, ${formatMoment(at)}`, at, selection: { kind: "span", track: track.id, item } };
  };
  return [
    ...(longest ? [link("the longest one, on", longest)] : []),
    ...(first ? [link("the first one, on", first)] : []),
  ];
}

/** The main thread and the RenderThread of a launch. */
function ofLaunch({ trace }: Model, at: number): Link[] {
  const launch = trace.index.launches.at(at);
  if (!launch) return [];
  const link = (relation: string, thread: number | null): Link[] =>
    thread === null
      ? []
      : [{ relation, name: trace.threadName(thread), at: launch.begin_ns, selection: { kind: "thread", thread } }];
  return [...link("main thread", launch.thread), ...link("RenderThread", launch.render_thread)];
}

/** The other ends of the arrows that begin or end at the selection's thread within its time. */
function arrowLinks(model: Model, selection: Selection): Link[] {
  if (!("track" in selection)) return [];
  const { trace, byThread } = model;
  const track = trace.track(selection.track);
  if (!track || selection.item >= track.count) return [];
  const [from, to] = itemTimes(track, selection.item);
  const mine = new Set((track.thread === null ? [track] : byThread[track.thread]).map(({ id }) => id));
  const found: Link[] = [];
  for (const { role, arrows } of trace.tracks) {
    if (!arrows) continue;
    const [toBegin, toEnd] = RELATIONS[role] ?? ["from", "to"];
    const within = (time: number) => time >= from && time <= to;
    for (let i = 0; i < arrows.from.length; i++) {
      if (mine.has(arrows.toTrack[i]) && within(arrows.to[i]))
        add(found, model, toBegin, trace.track(arrows.fromTrack[i]), arrows.from[i]);
      else if (mine.has(arrows.fromTrack[i]) && within(arrows.from[i]))
        add(found, model, toEnd, trace.track(arrows.toTrack[i]), arrows.to[i]);
      if (found.length >= MAX_ARROWS) return found;
    }
  }
  return found;
}

function add(found: Link[], model: { trace: Trace }, relation: string, track: Track | undefined, at: number): void {
  if (!track) return;
  const times = track.spans?.start ?? track.states?.start ?? track.instants?.time;
  const item = times ? upperBound(times, at) - 1 : -1;
  if (item < 0) return;
  const kind = track.spans ? "span" : track.states ? "state" : "instant";
  const name = track.thread === null ? track.name : model.trace.threadName(track.thread);
  found.push({ relation, name, at, selection: { kind, track: track.id, item } });
}

/** How long a thread was in each state within a period, the longest first; empty where the trace has no states. */
export function statesWithin(model: Model, thread: number, { from, to }: Range): [state: string, ns: number][] {
  const sums = new Map<number, number>();
  for (const track of model.byThread[thread]) {
    if (!track.states) continue;
    const { start, end, state } = track.states;
    for (let i = model.strip(track).after(from); i < start.length && start[i] < to; i++) {
      const ns = Math.min(end[i], to) - Math.max(start[i], from);
      if (ns > 0) sums.set(state[i], (sums.get(state[i]) ?? 0) + ns);
    }
  }
  const named = [...sums].map(([state, ns]): [string, number] => [model.trace.strings[state], ns]);
  return named.sort((a, b) => b[1] - a[1]);
}
