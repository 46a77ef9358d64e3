// The critical path of a span: what its thread did, and for each wait what the thread did that ended it, through any
// number of threads. The page holds what each thread did and whose time it waited for; the path is found here.

import { upperBound } from "../data/search_sorted";
import { hasSpans, type SpanTrack, type Trace } from "../data/trace";
import type { CauseColumns, SpanColumns } from "../data/track_columns";
import { CodeTree, type OwnFrame } from "./own_frames";

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
  /** What the events say about a wait that leads to the next hop: the marker around it. */
  about: string;
}

export interface PathCause {
  /** From the span's own thread outwards; the last is the cause. */
  hops: Hop[];
  ns: number;
  /** How often. */
  count: number;
  /** Largest first; of running code the innermost frames. */
  subjects: { name: string; ns: number }[];
  /** The app's own code that ran. */
  own: OwnFrame | null;
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
            node: this.node(node, name, thread, subject[i] ? this.trace.strings[subject[i] - 1] : ""),
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
    if (from < to) this.found.push({ thread, from, to, subject, cause: this.node(node, cause, thread, "") });
  }

  /** The number of the path that leads one hop further. */
  private node(before: number, cause: string, thread: number, about: string): number {
    const key = `${before} ${cause} ${thread} ${about}`;
    let number = this.numbers.get(key);
    if (number === undefined) {
      this.numbers.set(key, (number = this.nodes.length));
      this.nodes.push({ before, hop: { cause, thread, about } });
    }
    return number;
  }

  private hops(node: number): Hop[] {
    const hops: Hop[] = [];
    for (let at = this.nodes[node]; at.hop; at = this.nodes[at.before]) hops.unshift(at.hop);
    return hops;
  }

  /** Adds up the steps of each path, those of running code by the app's own frames. */
  private summed(): CriticalPath {
    const code = new RunningCode(this.trace);
    const isRunning = ({ cause }: Step) => this.nodes[cause].hop?.cause === "running";
    let ns = 0;
    for (const step of this.found) {
      ns += step.to - step.from;
      if (isRunning(step)) code.parts(step, (node, from, to) => code.tree.add(node, to - from));
    }
    const own = code.tree.ownFrames(ns, (path) => this.processOf(path));
    const sums = new Map<string, Sum>();
    const steps: Step[] = [];
    const add = (step: Step, from: number, to: number, name: string, frame: OwnFrame | null) => {
      const key = `${step.cause} ${frame?.name ?? ""}`;
      let sum = sums.get(key);
      if (!sum) sums.set(key, (sum = new Sum(sums.size, step.cause, frame !== null)));
      sum.add(from, to, name, frame);
      const last = steps.at(-1);
      if (last?.cause === sum.number && last.to === from && last.thread === step.thread) last.to = to;
      else steps.push({ ...step, from, to, cause: sum.number });
    };
    for (const step of this.found)
      if (isRunning(step)) code.parts(step, (node, from, to) => add(step, from, to, code.tree.name(node), own[node]));
      else add(step, step.from, step.to, step.subject, null);
    const order = [...sums.values()].sort((a, b) => b.ns - a.ns);
    const place = new Map(order.map(({ number }, at) => [number, at]));
    for (const step of steps) step.cause = place.get(step.cause) ?? 0;
    return { causes: order.map((sum) => ({ hops: this.hops(sum.node), ...sum.figures() })), steps, ns };
  }

  /** The name of the process whose thread is the last one of a path. */
  private processOf(node: number): string {
    const { hop } = this.nodes[node];
    const process = hop ? this.trace.threads[hop.thread].process : null;
    return process === null ? "" : this.trace.index.processes[process].name;
  }
}

/** The time of one cause. */
class Sum {
  ns = 0;
  private count = 0;
  private last = -1;
  private readonly subjects = new Map<string, number>();
  private readonly own: { frame: OwnFrame | null; callers: Map<string, number>; callees: Map<string, number> } | null;

  constructor(
    readonly number: number,
    readonly node: number,
    isOwn: boolean,
  ) {
    this.own = isOwn ? { frame: null, callers: new Map(), callees: new Map() } : null;
  }

  add(from: number, to: number, subject: string, frame: OwnFrame | null): void {
    const ns = to - from;
    const count = (names: Map<string, number>, name: string) => names.set(name, (names.get(name) ?? 0) + ns);
    this.ns += ns;
    if (this.last !== from) this.count++;
    this.last = to;
    count(this.subjects, subject);
    if (!this.own || !frame) return;
    this.own.frame = frame;
    count(this.own.callers, frame.caller);
    count(this.own.callees, frame.callee);
  }

  figures(): Omit<PathCause, "hops"> {
    const { ns, count, own } = this;
    const subjects = largest(this.subjects);
    const most = (names: Map<string, number>) => largest(names).find(({ name }) => name !== "")?.name ?? "";
    const frame = own?.frame ? { ...own.frame, caller: most(own.callers), callee: most(own.callees) } : null;
    return { ns, count, subjects, own: frame };
  }
}

const largest = (names: Map<string, number>) =>
  [...names].map(([name, ns]) => ({ name, ns })).sort((a, b) => b.ns - a.ns);

/** The methods, else the slices, in which threads ran. */
class RunningCode {
  readonly tree = new CodeTree();
  private readonly byThread = new Map<number, Innermost | null>();
  /** By path: the node outside of every frame, and the node of each item. */
  private readonly nodes = new Map<number, { root: number; byItem: Map<number, number> }>();

  constructor(private readonly trace: Trace) {}

  /** Hands out the parts of a step, each with the node of its innermost frame. */
  parts({ thread, from, to, cause }: Step, part: (node: number, from: number, to: number) => void): void {
    let path = this.nodes.get(cause);
    if (!path) this.nodes.set(cause, (path = { root: this.tree.root(cause), byItem: new Map() }));
    const { root, byItem } = path;
    const innermost = this.innermost(thread);
    if (!innermost) part(root, from, to);
    else
      innermost.parts(from, to, (item, begin, end) => {
        part(this.nodeOf(innermost, item, root, byItem), begin, end);
      });
  }

  private nodeOf(innermost: Innermost, item: number, root: number, byItem: Map<number, number>): number {
    const open: number[] = [];
    let at = item;
    while (at >= 0 && !byItem.has(at)) {
      open.push(at);
      at = innermost.parent[at];
    }
    let node = byItem.get(at) ?? root;
    for (const inner of open.reverse()) {
      node = innermost.node(this.tree, node, inner);
      byItem.set(inner, node);
    }
    return node;
  }

  private innermost(thread: number): Innermost | null {
    let innermost = this.byThread.get(thread);
    if (innermost === undefined) {
      const tracks = this.trace.tracks.filter((track) => track.thread === thread && track.count > 0).filter(hasSpans);
      const track = tracks.find(({ role }) => role === "methods") ?? tracks.find(({ role }) => role === "atrace");
      this.byThread.set(thread, (innermost = track ? new Innermost(this.trace, track) : null));
    }
    return innermost;
  }
}

class Innermost {
  /** From each time on the item that is the innermost; -1 is none. */
  private readonly time: Float64Array;
  private readonly item: Int32Array;
  /** By item: the item around it; -1 is none. */
  readonly parent: Int32Array;

  constructor(
    private readonly trace: Trace,
    private readonly track: SpanTrack,
  ) {
    [this.time, this.item, this.parent] = changes(track.spans);
  }

  /** The node of an item whose surrounding item has the node `outer`. */
  node(tree: CodeTree, outer: number, item: number): number {
    const { trace, track } = this;
    const kind = track.kind === "calls" ? "method" : "slice";
    return tree.child(outer, track.spans.label[item], kind, () => trace.spanName(track, item));
  }

  /** Hands out each item in a stretch of time while it is the innermost; -1 is none. */
  parts(from: number, to: number, add: (item: number, from: number, to: number) => void): void {
    const { time, item } = this;
    for (let at = Math.max(0, upperBound(time, from) - 1); at < time.length && time[at] < to; at++) {
      const begin = Math.max(time[at], from);
      const end = Math.min(at + 1 < time.length ? time[at + 1] : to, to);
      if (begin < end) add(item[at], begin, end);
    }
  }
}

/** When another item becomes the innermost, and the item around each one. */
function changes({ start, end, depth }: SpanColumns): [Float64Array, Int32Array, Int32Array] {
  const time = new Float64Array(2 * start.length + 1);
  const item = new Int32Array(2 * start.length + 1);
  const parent = new Int32Array(start.length);
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
    parent[i] = open.at(-1) ?? -1;
    open.push(i);
  }
  close(Infinity, 0);
  return [time.slice(0, count), item.slice(0, count), parent];
}
