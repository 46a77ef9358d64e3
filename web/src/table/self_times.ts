// The times of slices and calls in a period without what is nested in them, and how long their threads had a CPU.

import { upperBound } from "../data/search_sorted";
import { hasStates, type SpanTrack, type Trace } from "../data/trace";
import { parents } from "../profile/span_source";
import type { Period } from "./items";

let last: { of: Float64Array; from: number; to: number; self: Float64Array } | null = null;

/** For each item of a track the part of it in the period, without what is nested in it on its track. */
export function selfTimes(track: SpanTrack, { from, to }: Period): Float64Array {
  const { start, end } = track.spans;
  if (last?.of === start && last.from === from && last.to === to) return last.self;
  const parent = parents(track);
  const self = new Float64Array(start.length);
  for (let i = 0; i < self.length; i++) {
    const inside = Math.max(0, Math.min(end[i], to) - Math.max(start[i], from));
    self[i] += inside;
    if (parent[i] >= 0) self[parent[i]] -= inside;
  }
  last = { of: start, from, to, self };
  return self;
}

const runningOf = new WeakMap<Trace, Map<number, (time: number) => number>>();

/** How long a thread had a CPU until a time; null where the trace does not say. */
export function runningUntil(trace: Trace, thread: number): ((time: number) => number) | null {
  let made = runningOf.get(trace);
  if (!made) runningOf.set(trace, (made = new Map<number, (time: number) => number>()));
  let until = made.get(thread);
  if (until) return until;
  const track = trace.tracks.find((track) => track.thread === thread && hasStates(track));
  if (!track || !hasStates(track)) return null;
  const { start, end, cpu } = track.states;
  const sums = new Float64Array(start.length + 1);
  for (let i = 0; i < start.length; i++) sums[i + 1] = sums[i] + (cpu[i] ? end[i] - start[i] : 0);
  until = (time) => {
    const at = upperBound(start, time);
    if (at === 0) return 0;
    const tail = cpu[at - 1] ? Math.max(0, end[at - 1] - Math.max(time, start[at - 1])) : 0;
    return sums[at] - tail;
  };
  made.set(thread, until);
  return until;
}
