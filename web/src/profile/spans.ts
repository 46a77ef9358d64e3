// The spans of each thread that a profile counts, and the walk over those of a time window.

import { byTime, enclosing } from "../data/joined_spans";
import { lowerBound } from "../data/search_sorted";
import type { Trace, Track } from "../data/trace";
import { cutCpuTimes } from "./cut_cpu";

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
export interface Window { from: number; to: number }

/** The number of keys below those of slices. */
export function methodCount(trace: Trace): number {
  return trace.methods?.name.length ?? 0;
}

const DEEPEST = 65_535;
const parentsOf = new WeakMap<Float64Array, Int32Array>();

/** The item that encloses each item of a track; -1 is none. */
export function parents(track: Track): Int32Array {
  const { start, end, depth } = track.spans!;
  let parent = parentsOf.get(start);
  if (parent) return parent;
  parent = new Int32Array(start.length);
  let open = new Int32Array(1024);
  let height = 0;
  for (let i = 0; i < parent.length; i++) {
    let level = depth[i];
    // Deeper levels are not recorded, so that there the times must tell.
    if (level === DEEPEST) {
      level = height;
      while (level > DEEPEST && end[open[level - 1]] <= start[i]) level--;
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

/** The sources of a kind; tracks that are not decoded yet are left out. */
export function spanSources(trace: Trace, kind: SpanKind): SpanSource[] {
  const slices = trace.tracks.filter((t) => t.kind === "slices" && t.spans && t.thread !== null
    && (t.role === "atrace" || t.role === "own"));
  const calls = trace.tracks.filter((t) => t.kind === "calls" && t.spans && t.thread !== null);
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

function ofTrack(trace: Trace, track: Track): SpanSource {
  const { start, end, label, cpu } = track.spans!;
  const base = track.kind === "calls" ? 0 : methodCount(trace);
  return { thread: track.thread!, track: track.id, start, end, parent: parents(track), label, base, cpu };
}

const mergedOf = new WeakMap<Float64Array, SpanSource>();

/** A thread's slices and calls as one tree. */
function merged(trace: Trace, slices: Track, calls: Track): SpanSource {
  const a = slices.spans!;
  const b = calls.spans!;
  const cached = mergedOf.get(b.start);
  if (cached) return cached;
  const order = byTime([a, b]);
  const base = methodCount(trace);
  const source: SpanSource = {
    thread: calls.thread!, track: -1, start: new Float64Array(order.length), end: new Float64Array(order.length),
    parent: enclosing([a, b], order), label: new Uint32Array(order.length), base: 0,
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

/**
 * Goes through the spans of a window in preorder, with the wall and CPU time of each span's part inside of the window.
 * The CPU time of a span that the window cuts is shared out evenly over the span's own time, because the trace does
 * not tell when in it the CPU ran. A class with fields and not a function with a visitor: numbers as arguments of a
 * visitor would each be allocated, for millions of spans.
 */
export class SpanWalk {
  item = -1;
  /** The number of open ancestors. */
  depth = -1;
  wall = 0;
  /** The part of `wall` that lies in the enclosing span: all of it, but for slices and calls merged. */
  wallInParent = 0;
  cpu = 0;
  private open = new Int32Array(1024);
  private readonly outside: number[];
  private readonly cut: Map<number, number> | null;
  private at: number;
  private readonly last: number;
  private readonly merged: boolean;
  private nth = 0;

  constructor(private readonly source: SpanSource, private readonly window: Window) {
    const { start, cpu } = source;
    const { from, to } = window;
    this.outside = openAt(source, from);
    this.merged = source.track < 0;
    this.cut = cpu ? cutCpuTimes(source, cpu, window) : null;
    this.at = lowerBound(start, from);
    this.last = to === Infinity ? start.length : lowerBound(start, to, this.at);
  }

  /** Goes to the next span; false behind the last one. */
  next(): boolean {
    const { start, end, parent, cpu } = this.source;
    const { from, to } = this.window;
    const fromOutside = this.nth < this.outside.length;
    if (!fromOutside && this.at >= this.last) return false;
    const item = fromOutside ? this.outside[this.nth++] : this.at++;
    const enclosing = parent[item];
    let depth = this.depth + 1;
    while (depth > 0 && this.open[depth - 1] !== enclosing) depth--;
    const begin = start[item];
    const stop = end[item];
    this.wall = (stop < to ? stop : to) - (begin > from ? begin : from);
    this.wallInParent = this.wall;
    if (this.merged && depth > 0 && end[enclosing] < stop) {
      this.wallInParent = Math.max(0, Math.min(end[enclosing], to) - Math.max(begin, from));
    }
    if (cpu) this.cpu = begin >= from && stop <= to ? cpu[item] : this.cut!.get(item) ?? 0;
    if (depth === this.open.length) this.open = grown(this.open);
    this.open[depth] = item;
    this.item = item;
    this.depth = depth;
    return true;
  }
}

/** A copy with room for twice as many. */
export function grown(old: Int32Array<ArrayBuffer>): Int32Array<ArrayBuffer> {
  const array = new Int32Array(old.length * 2);
  array.set(old);
  return array;
}

/** The window as the walk takes it: one that reaches the trace's end has all that begins there. */
export function windowOf(trace: Trace, { from, to }: Window): Window {
  return { from: from <= 0 ? 0 : from, to: to >= trace.duration ? Infinity : to };
}
