// Where one can go from what is selected: what encloses it, others of its name, and the other ends of arrows.

import { upperBound } from "../data/search_sorted";
import { hasSpans, type Track } from "../data/trace";
import type { Range, Selection } from "../store";
import { itemTimes } from "../timeline/layout";
import type { Model } from "../timeline/model";
import type { Stack } from "../timeline/stack";

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

/** The neighbours with the same name, and the other ends of the nearest arrows. */
export function links(model: Model, selection: Selection): Link[] {
  const found: Link[] = [];
  const place = placeOf(model, selection);
  for (const [by, relation] of [
    [-1, "the one before"],
    [1, "the next one"],
  ] as const) {
    const item = place ? place.stack.sameName(place.item, by) : -1;
    if (place && item >= 0) found.push(linkTo(model, place.stack, item, relation));
  }
  return [...found, ...arrowLinks(model, selection)];
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

function add(found: Link[], model: Model, relation: string, track: Track | undefined, at: number): void {
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
