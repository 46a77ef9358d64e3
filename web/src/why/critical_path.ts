// The critical path of a span: what its thread did, and for each wait what the thread did that ended it, through any
// number of threads. The page holds what each thread did and whose time it waited for; the path is found here.

import { upperBound } from "../data/search_sorted";
import { hasSpans, type SpanTrack, type Trace } from "../data/trace";
import type { CauseColumns, SpanColumns } from "../data/track_columns";

/** The time of a thread from `from` to `to`, ns from the trace's start. */
export interface ThreadTime {
  thread: number;
  from: number;
  to: number;
}

/** A stretch of the path: what one thread did, or waited for. */
export interface Step extends ThreadTime {
  /** The number of its cause in `CriticalPath.causes`. */
  cause: number;
  /** What the cause is about; empty where that is not known. */
  subject: string;
}

/** A thread on the way to a cause, and what it did or waited for. */
export interface Hop {
  cause: string;
  thread: number;
}

export interface PathCause {
  /** From the span's own thread outwards; the last is the cause. */
  hops: Hop[];
  ns: number;
  /** How often. */
  count: number;
  /** Largest first. */
  subjects: { name: string; ns: number }[];
}

export interface CriticalPath {
  /** Largest first. */
  causes: PathCause[];
  /** In the order of time, without gaps. */
  steps: Step[];
  ns: number;
}

/** How many threads a path may lead over, as in the program. */
const MAX_HOPS = 32;
const NOT_RECORDED = "not_recorded";

/** Whether the page knows what threads waited for. */
export const hasCauses = (trace: Trace): boolean => trace.tracks.some(({ causes }) => causes !== undefined);

/** The path of a span whose time belongs to these threads, one after the other. */
export function criticalPath(trace: Trace, times: ThreadTime[]): CriticalPath {
  return new PathFinder(trace).find(times);
}

interface Todo extends ThreadTime {
  /** The number of the path's node. */
  node: number;
  depth: number;
}

class PathFinder {
  private readonly byThread = new Map<number, CauseColumns>();
  /** The nodes of all paths: what is before a node, and its hop. Node 0 is the empty path. */
  private readonly nodes: { before: number; hop: Hop | null }[] = [{ before: 0, hop: null }];
  private readonly numbers = new Map<string, number>();
  /** The steps, whose `cause` is the number of a node as yet. */
  private readonly found: Step[] = [];

  constructor(private readonly trace: Trace) {
    for (const { thread, causes } of trace.tracks) if (thread !== null && causes) this.byThread.set(thread, causes);
  }

  find(times: ThreadTime[]): CriticalPath {
    const todo: Todo[] = times.map((time) => ({ ...time, node: 0, depth: 0 }));
    for (let next = todo.pop(); next; next = todo.pop()) this.walk(next, todo);
    this.found.sort((a, b) => a.from - b.from);
    return this.summed();
  }

  private walk(at: Todo, todo: Todo[]): void {
    const { thread, to, node, depth } = at;
    const columns = this.byThread.get(thread);
    let { from } = at;
    if (columns) {
      const { start, end, cause, subject, follow } = columns;
      for (let i = upperBound(end, from); i < start.length && start[i] < to; i++) {
        const begin = Math.max(start[i], from);
        const stop = Math.min(end[i], to);
        this.leaf(node, NOT_RECORDED, thread, from, begin, "");
        const name = this.causeAt(this.trace.strings[cause[i]], depth, thread, follow[i] - 1);
        if (!follow[i])
          this.leaf(node, name, thread, begin, stop, subject[i] ? this.trace.strings[subject[i] - 1] : "");
        else if (depth >= MAX_HOPS) this.leaf(node, "unexplained", thread, begin, stop, "a longer chain of threads");
        else
          todo.push({
            thread: follow[i] - 1,
            from: begin,
            to: stop,
            node: this.node(node, name, thread),
            depth: depth + 1,
          });
        from = stop;
      }
    }
    this.leaf(node, NOT_RECORDED, thread, from, to, columns ? "" : "scheduling of the thread");
  }

  /** A main thread is idle in a span of its own alone: where another thread waits for it, it waits or sleeps. */
  private causeAt(cause: string, depth: number, thread: number, follow: number): string {
    if (depth === 0 || cause !== "idle") return cause;
    if (follow < 0) return "sleep";
    const { threads } = this.trace;
    return threads[thread].process === threads[follow].process ? "lock" : "ipc";
  }

  private leaf(node: number, cause: string, thread: number, from: number, to: number, subject: string): void {
    if (from < to) this.found.push({ thread, from, to, subject, cause: this.node(node, cause, thread) });
  }

  /** The number of the path that leads one hop further. */
  private node(before: number, cause: string, thread: number): number {
    const key = `${before} ${cause} ${thread}`;
    let number = this.numbers.get(key);
    if (number === undefined) {
      this.numbers.set(key, (number = this.nodes.length));
      this.nodes.push({ before, hop: { cause, thread } });
    }
    return number;
  }

  private hops(node: number): Hop[] {
    const hops: Hop[] = [];
    for (let at = this.nodes[node]; at.hop; at = this.nodes[at.before]) hops.unshift(at.hop);
    return hops;
  }

  /** Adds up the steps of each path. */
  private summed(): CriticalPath {
    const running = new RunningNames(this.trace);
    const sums = new Map<number, { ns: number; count: number; subjects: Map<string, number>; last: number }>();
    let ns = 0;
    for (const { cause, from, to, thread, subject } of this.found) {
      let sum = sums.get(cause);
      if (!sum) sums.set(cause, (sum = { ns: 0, count: 0, subjects: new Map(), last: -1 }));
      sum.ns += to - from;
      if (sum.last !== from) sum.count++;
      sum.last = to;
      ns += to - from;
      const { subjects } = sum;
      const add = (name: string, part: number) => subjects.set(name, (subjects.get(name) ?? 0) + part);
      if (this.nodes[cause].hop?.cause === "running") running.parts(thread, from, to, add);
      else add(subject, to - from);
    }
    const order = [...sums].sort(([, a], [, b]) => b.ns - a.ns);
    const place = new Map(order.map(([node], at) => [node, at]));
    const steps = this.found.map((step) => ({ ...step, cause: place.get(step.cause) ?? 0 }));
    const causes = order.map(([node, { ns, count, subjects }]) => ({
      hops: this.hops(node),
      ns,
      count,
      subjects: [...subjects].map(([name, ns]) => ({ name, ns })).sort((a, b) => b.ns - a.ns),
    }));
    return { causes, steps, ns };
  }
}

/** The innermost method, else the innermost slice, of a thread at each moment. */
class RunningNames {
  private readonly byThread = new Map<number, Innermost | null>();

  constructor(private readonly trace: Trace) {}

  /** Hands out each name in a stretch of a thread's time, and how long it was the innermost. */
  parts(thread: number, from: number, to: number, add: (name: string, ns: number) => void): void {
    let innermost = this.byThread.get(thread);
    if (innermost === undefined) {
      const tracks = this.trace.tracks.filter((track) => track.thread === thread && track.count > 0).filter(hasSpans);
      const track = tracks.find(({ role }) => role === "methods") ?? tracks.find(({ role }) => role === "atrace");
      this.byThread.set(thread, (innermost = track ? new Innermost(this.trace, track) : null));
    }
    if (innermost) innermost.parts(from, to, add);
    else add("", to - from);
  }
}

class Innermost {
  /** From each time on the item that is the innermost; -1 is none. */
  private readonly time: Float64Array;
  private readonly item: Int32Array;

  constructor(
    private readonly trace: Trace,
    private readonly track: SpanTrack,
  ) {
    [this.time, this.item] = changes(track.spans);
  }

  parts(from: number, to: number, add: (name: string, ns: number) => void): void {
    const { time, item, trace, track } = this;
    for (let at = Math.max(0, upperBound(time, from) - 1); at < time.length && time[at] < to; at++) {
      const begin = Math.max(time[at], from);
      const end = Math.min(at + 1 < time.length ? time[at + 1] : to, to);
      if (begin < end) add(item[at] < 0 ? "" : trace.spanName(track, item[at]), end - begin);
    }
  }
}

/** When another item becomes the innermost. */
function changes({ start, end, depth }: SpanColumns): [Float64Array, Int32Array] {
  const time = new Float64Array(2 * start.length + 1);
  const item = new Int32Array(2 * start.length + 1);
  const open: number[] = [];
  let count = 0;
  const put = (at: number, inner: number) => {
    if (count > 0 && time[count - 1] >= at) {
      item[count - 1] = inner;
      return;
    }
    time[count] = at;
    item[count++] = inner;
  };
  put(0, -1);
  const close = (until: number, level: number) => {
    while (open.length > 0) {
      const last = open[open.length - 1];
      if (depth[last] < level && end[last] > until) return;
      open.pop();
      put(Math.min(end[last], until), open.length > 0 ? open[open.length - 1] : -1);
    }
  };
  for (let i = 0; i < start.length; i++) {
    close(start[i], depth[i]);
    put(start[i], i);
    open.push(i);
  }
  close(Infinity, 0);
  return [time.slice(0, count), item.slice(0, count)];
}
