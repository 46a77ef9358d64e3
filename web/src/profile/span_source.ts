// The spans of each thread that a profile counts, as arrays in preorder.

import { byTime, enclosing } from "../data/joined_spans";
import { lowerBound } from "../data/search_sorted";
import { hasSpans, type SpanTrack, type Trace, type Track } from "../data/trace";

/** Which spans a profile counts. */
export type SpanKind = "calls" | "slices" | "both";

/** The spans of one thread in preorder: the children of a span follow it. */
export interface SpanSource {
  /** Thread index. */
  thread: number;
  /** The number of the track; -1 for two tracks merged. */
  track: number;
  start: Float64Array;
  end: Float64Array;
  /** The item that encloses each; -1 is none. */
  parent: Int32Array;
  /** The key of item i is `base + label[i]`: a method id, or the number of methods + a string id. */
  label: Uint32Array;
  base: number;
  cpu?: Float64Array;
}

/** A time window, ns from the trace's start. Spans that begin at `to` or later are outside. */
export interface Window {
  from: number;
  to: number;
}

/** The number of keys below those of slices. */
export function methodCount(trace: Trace): number {
  return trace.methods?.name.length ?? 0;
}

const MAX_RECORDED_DEPTH = 65_535;
const parentsOf = new WeakMap<Float64Array, Int32Array>();

/** The item that encloses each item of a track; -1 is none. */
export function parents({ spans: { start, end, depth } }: SpanTrack): Int32Array {
  let parent = parentsOf.get(start);
  if (parent) return parent;
  parent = new Int32Array(start.length);
  let open = new Int32Array(1024);
  let height = 0;
  for (let i = 0; i < parent.length; i++) {
    let level = depth[i];
    // Deeper levels are not recorded, so that there the times must tell.
    if (level === MAX_RECORDED_DEPTH) {
      level = height;
      while (level > MAX_RECORDED_DEPTH && end[open[level - 1]] <= start[i]) level--;
    }
    if (level > height) level = height;
    parent[i] = level > 0 ? open[level - 1] : -1;
    if (level === open.length) open = grown(open);
    open[level] = i;
    height = level + 1;
  }
  parentsOf.set(start, parent);
  return parent;
}

/** A track of a thread's spans. */
type ThreadTrack = SpanTrack & { thread: number };
const isThreadTrack = (track: Track): track is ThreadTrack => hasSpans(track) && track.thread !== null;

/** The sources of a kind; tracks that are not decoded yet are left out. */
export function spanSources(trace: Trace, kind: SpanKind): SpanSource[] {
  const tracks = trace.tracks.filter(isThreadTrack);
  const slices = tracks.filter((t) => t.kind === "slices" && (t.role === "atrace" || t.role === "own"));
  const calls = tracks.filter((t) => t.kind === "calls");
  if (kind === "calls") return calls.map((track) => ofTrack(trace, track));
  if (kind === "slices") return slices.map((track) => ofTrack(trace, track));
  const sources: SpanSource[] = [];
  const markers = new Map(slices.filter((t) => t.role === "atrace").map((t) => [t.thread, t]));
  for (const track of calls) {
    const enclosing = markers.get(track.thread);
    sources.push(enclosing ? merged(trace, enclosing, track) : ofTrack(trace, track));
    markers.delete(track.thread);
  }
  const rest = slices.filter((t) => t.role !== "atrace" || markers.get(t.thread) === t);
  return [...sources, ...rest.map((track) => ofTrack(trace, track))];
}

function ofTrack(trace: Trace, track: ThreadTrack): SpanSource {
  const { start, end, label, cpu } = track.spans;
  const base = track.kind === "calls" ? 0 : methodCount(trace);
  return { thread: track.thread, track: track.id, start, end, parent: parents(track), label, base, cpu };
}

const mergedOf = new WeakMap<Float64Array, SpanSource>();

/** A thread's slices and calls as one tree. */
function merged(trace: Trace, slices: SpanTrack, calls: ThreadTrack): SpanSource {
  const a = slices.spans;
  const b = calls.spans;
  const cached = mergedOf.get(b.start);
  if (cached) return cached;
  const order = byTime([a, b]);
  const base = methodCount(trace);
  const source: SpanSource = {
    thread: calls.thread,
    track: -1,
    start: new Float64Array(order.length),
    end: new Float64Array(order.length),
    parent: enclosing([a, b], order),
    label: new Uint32Array(order.length),
    base: 0,
  };
  for (let i = 0; i < order.length; i++) {
    const slice = order[i] < a.start.length;
    const at = slice ? order[i] : order[i] - a.start.length;
    const from = slice ? a : b;
    source.start[i] = from.start[at];
    source.end[i] = from.end[at];
    source.label[i] = slice ? base + from.label[at] : from.label[at];
  }
  mergedOf.set(b.start, source);
  return source;
}

/** The spans that are open at `time`, the outermost first: begun before it and ended after it. */
export function openAt(source: SpanSource, time: number): number[] {
  const chain: number[] = [];
  let item = lowerBound(source.start, time) - 1;
  for (; item >= 0; item = source.parent[item]) if (source.end[item] > time) chain.push(item);
  return chain.reverse();
}

/** The window as the walk takes it: one that reaches the trace's end has all that begins there. */
export function windowOf(trace: Trace, { from, to }: Window): Window {
  return { from: from <= 0 ? 0 : from, to: to >= trace.duration ? Infinity : to };
}

/** A copy with room for twice as many. */
export function grown(old: Int32Array<ArrayBuffer>): Int32Array<ArrayBuffer> {
  const array = new Int32Array(old.length * 2);
  array.set(old);
  return array;
}
