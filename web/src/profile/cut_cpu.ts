// The CPU times of the calls that a time window cuts.

import { lowerBound } from "../data/search_sorted";
import { openAt, type SpanSource, type Window } from "./span_source";

/**
 * The CPU time that each span cut by the window has inside of it: its own CPU time in proportion to its own wall
 * time inside of the window, and the CPU times of its callees there.
 */
export function cutCpuTimes(source: SpanSource, cpu: Float64Array, window: Window): Map<number, number> {
  const atFrom = openAt(source, window.from);
  const atTo = window.to === Infinity ? [] : openAt(source, window.to);
  const cut = new Set([...atFrom, ...atTo.filter((item) => source.start[item] < window.to)]);
  const result = new Map<number, number>();
  if (cut.size === 0) return result;
  const items = [...cut].sort((a, b) => a - b);
  const sums = childSums(source, cpu, window, items);
  const { start, end, parent } = source;
  const slot = new Map(items.map((item, n) => [item, n]));
  // Callees come behind their callers, and are to be known first.
  for (let n = items.length - 1; n >= 0; n--) {
    const item = items[n];
    const part = Math.min(end[item], window.to) - Math.max(start[item], window.from);
    const ownWall = end[item] - start[item] - sums.wall[n];
    const ownCpu = Math.max(0, cpu[item] - sums.cpu[n]);
    const inside = Math.max(0, part - sums.wallInside[n]);
    const spent = sums.cpuInside[n] + (ownWall > 0 ? ownCpu * Math.min(1, inside / ownWall) : 0);
    result.set(item, Math.round(spent));
    const caller = slot.get(parent[item]);
    if (caller !== undefined) {
      sums.wallInside[caller] += part;
      sums.cpuInside[caller] += Math.round(spent);
    }
  }
  return result;
}

/** For each of `items` the times of its direct callees: of all, and of those that lie wholly in the window. */
function childSums(source: SpanSource, cpu: Float64Array, { from, to }: Window, items: number[]) {
  const { start, end, parent } = source;
  const sums = {
    wall: new Float64Array(items.length),
    cpu: new Float64Array(items.length),
    wallInside: new Float64Array(items.length),
    cpuInside: new Float64Array(items.length),
  };
  const first = items[0];
  let last = first;
  for (const item of items) last = Math.max(last, lowerBound(start, end[item], item + 1));
  // A table by item is several times faster than a map that is asked once for each call.
  const slots = new Int32Array(last - first + 1);
  items.forEach((item, n) => (slots[item - first] = n + 1));
  for (let i = first + 1; i < start.length && (i <= last || parent[i] >= first); i++) {
    const above = parent[i] - first;
    const n = above >= 0 && above < slots.length ? slots[above] - 1 : -1;
    if (n < 0) continue;
    const wall = end[i] - start[i];
    sums.wall[n] += wall;
    sums.cpu[n] += cpu[i];
    if (start[i] >= from && end[i] <= to) {
      sums.wallInside[n] += wall;
      sums.cpuInside[n] += cpu[i];
    }
  }
  return sums;
}
