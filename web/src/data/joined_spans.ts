// The slices and the calls of one thread as one tree: for the timeline, and for profiles.

import type { SpanColumns } from "./track_columns";

/** The items of several tracks by start, an outer one before its inner ones; counted through all tracks. */
export function byTime(tracks: SpanColumns[]): Uint32Array {
  const merged = new Uint32Array(tracks.reduce((count, { start }) => count + start.length, 0));
  const next = tracks.map(() => 0);
  const base = tracks.map((_, n) => tracks.slice(0, n).reduce((count, { start }) => count + start.length, 0));
  for (let at = 0; at < merged.length; at++) {
    let best = -1;
    for (let n = 0; n < tracks.length; n++) {
      const { start, end } = tracks[n];
      if (next[n] === start.length) continue;
      const first = best < 0 ? Infinity : tracks[best].start[next[best]];
      const at = next[n];
      const outer = start[at] === first && end[at] > tracks[best].end[next[best]];
      if (start[at] < first || outer) best = n;
    }
    merged[at] = base[best] + next[best]++;
  }
  return merged;
}

/**
 * The level that each item of `order` is drawn at: how many items are open when it begins. The times alone
 * count, so that nothing overlaps on a level, whatever the residual of the clocks.
 */
export function drawnLevels(start: Float64Array, end: Float64Array, order: Uint32Array): Uint16Array {
  const level = new Uint16Array(order.length);
  const open: number[] = [];
  for (const item of order) {
    while (open.length > 0 && end[open[open.length - 1]] <= start[item]) open.pop();
    level[item] = open.length;
    open.push(item);
  }
  return level;
}

/**
 * The item that encloses each item of `order`, both by their places in it; -1 is none. Each is a child of the
 * innermost one that is open when it begins, though the clocks' residual may let it end a little later: of the
 * own track the depth tells which items have ended, of the other track the time.
 */
export function enclosing([a, b]: [SpanColumns, SpanColumns], order: Uint32Array): Int32Array {
  const parent = new Int32Array(order.length);
  const open: { place: number; from: SpanColumns; depth: number; start: number; end: number }[] = [];
  for (let place = 0; place < order.length; place++) {
    const from = order[place] < a.start.length ? a : b;
    const at = from === a ? order[place] : order[place] - a.start.length;
    const [start, end, depth] = [from.start[at], from.end[at], from.depth[at]];
    let kept = open.length;
    for (let n = open.length - 1; n >= 0; n--) {
      if (open[n].from !== from) continue;
      if (open[n].depth < depth) break;
      kept = n;
    }
    open.length = kept;
    for (; open.length > 0; open.pop()) {
      const top = open[open.length - 1];
      if (top.from === from || top.end > start || top.start === start) break;
    }
    parent[place] = open.length > 0 ? open[open.length - 1].place : -1;
    open.push({ place, from, depth, start, end });
  }
  return parent;
}
