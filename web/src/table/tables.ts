// The tables that a trace has, each made when it is first shown.

import { FLAG_LATE, FLAG_NO_DEADLINE } from "../data/track_columns";
import { hasCounter, hasSpans, hasStates, isFrames, type SpanTrack, type Trace, type Track } from "../data/trace";
import { cutCpuTimes } from "../profile/cut_cpu";
import { methodCount, parents } from "../profile/span_source";
import { upperBound } from "../data/search_sorted";
import type { Selection } from "../store";
import type { TableKind } from "./choice";
import { launchItems, readyItems } from "./derived";
import { begin, type FigureColumn, type Items, type ItemSource, type Period, type TextColumn } from "./items";
import { runningUntil, selfTimes } from "./self_times";

interface TrackSource extends ItemSource {
  track: Track;
}

const TITLES: [TableKind, string][] = [
  ["slices", "slices"],
  ["calls", "method calls"],
  ["samples", "samples"],
  ["states", "thread states"],
  ["causes", "what threads waited for"],
  ["running", "who ran on the CPUs"],
  ["ready", "who ran while a thread was ready"],
  ["interrupts", "interrupts"],
  ["frames", "frames"],
  ["counters", "counter values"],
  ["events", "events and instants"],
  ["arrows", "wake-ups, binder, flows"],
  ["launches", "launches"],
];

/** Which tracks are the rows of a table. */
const TRACKS: Partial<Record<TableKind, (track: Track) => boolean>> = {
  slices: ({ kind, role }) => kind === "slices" && (role === "atrace" || role === "async" || role === "own"),
  calls: ({ kind, role }) => kind === "calls" && role !== "samples",
  samples: ({ role }) => role === "samples",
  states: ({ kind }) => kind === "states",
  causes: ({ kind }) => kind === "causes",
  running: ({ role }) => role === "running",
  interrupts: ({ role }) => role === "irq",
  frames: ({ kind, role }) => kind === "slices" && isFrames(role),
  counters: ({ kind }) => kind === "counter",
  events: ({ kind }) => kind === "instants",
  arrows: ({ kind }) => kind === "arrows",
};

/** The tables that a trace has items for, with their names. */
export function tableKinds(trace: Trace): [TableKind, string][] {
  const has = (kind: TableKind): boolean => {
    if (kind === "launches") return trace.index.launches.length > 0;
    if (kind === "ready") return has("running") && has("states");
    return trace.tracks.some((track) => track.count > 0 && TRACKS[kind]?.(track) === true);
  };
  return TITLES.filter(([kind]) => has(kind));
}

const made = new WeakMap<Trace, Map<string, Items>>();

/** The items of a table. `ready` is about one thread, the others about all. */
export function itemsOf(trace: Trace, kind: TableKind, thread: number): Items {
  const key = kind === "ready" ? `${kind} ${thread}` : kind;
  let all = made.get(trace);
  if (!all) made.set(trace, (all = new Map<string, Items>()));
  let items = all.get(key);
  if (!items) all.set(key, (items = make(trace, kind, thread)));
  return items;
}

function make(trace: Trace, kind: TableKind, thread: number): Items {
  if (kind === "launches") return launchItems(trace);
  if (kind === "ready") return readyItems(trace, thread);
  const wanted = TRACKS[kind];
  const sources: TrackSource[] = [];
  let base = 0;
  for (const track of trace.tracks) {
    if (track.count === 0 || !wanted?.(track)) continue;
    const { thread, process } = track;
    const times = timesOf(track, trace.duration);
    if (!times) continue;
    const owner = process ?? (thread === null ? null : trace.threads[thread].process);
    sources.push({ track, base, thread, process: owner, ...times });
    base += track.count;
  }
  const isRunning = kind === "running";
  return {
    sources,
    count: base,
    texts: textColumns(trace, kind) as TextColumn[],
    figures: figureColumns(trace, kind, sources) as FigureColumn[],
    threadOf: isRunning ? (source) => runner(source as TrackSource) : null,
    select: (source, item) => selectionOf(trace, (source as TrackSource).track, item),
  };
}

/** When the items of a track are. A counter has its value until the next one. */
function timesOf(track: Track, duration: number): { start: Float64Array; end: Float64Array } | null {
  const { spans, states, instants, counter, arrows, causes } = track;
  if (causes) return { start: causes.start, end: causes.end };
  if (spans) return { start: spans.start, end: spans.end };
  if (states) return { start: states.start, end: states.end };
  if (instants) return { start: instants.time, end: instants.time };
  if (arrows) return { start: arrows.from, end: arrows.to.map((to, i) => Math.max(to, arrows.from[i])) };
  if (!counter) return null;
  const { time } = counter;
  const end = Float64Array.from(time, (from, i) => (i + 1 < time.length ? time[i + 1] : Math.max(duration, from)));
  return { start: time, end };
}

/** What a track has at a time: the item that has begun last. */
function itemAt(track: Track | undefined, time: number): Selection | null {
  const times = track?.states?.start ?? track?.spans?.start ?? track?.instants?.time;
  if (!track || !times) return null;
  const item = upperBound(times, time) - 1;
  const kind = track.states ? "state" : track.spans ? "span" : "instant";
  return item < 0 ? null : { kind, track: track.id, item };
}

/** Where an item of a track is in the timeline. */
function selectionOf(trace: Trace, track: Track, item: number): Selection | null {
  const { arrows, causes, spans, states, instants } = track;
  if (arrows) return itemAt(trace.tracks.at(arrows.toTrack[item]), arrows.to[item]);
  if (causes) {
    const states = trace.tracks.find((other) => other.thread === track.thread && hasStates(other));
    return itemAt(states, causes.start[item]);
  }
  return { kind: spans ? "span" : states ? "state" : instants ? "instant" : "counter", track: track.id, item };
}

/** The thread of an item of a CPU's row. */
function runner({ track }: TrackSource): (item: number) => number | null {
  const threads = track.spans?.thread;
  return (item) => (threads?.[item] ? threads[item] - 1 : null);
}

type Text = TextColumn<TrackSource>;
type Figure = FigureColumn<TrackSource>;

function textColumns(trace: Trace, kind: TableKind): Text[] {
  const { strings, threads, tracks } = trace;
  const { processes } = trace.index;
  const text = (key: number) => strings[key];
  const optional = (key: number) => (key ? strings[key - 1] : "");
  const none = () => 0;
  /** Threads by number + 1; 0 is none. */
  const threadText = (key: number) => (key ? trace.threadName(key - 1) : "");
  const processText = (key: number) => (key ? `${processes[key - 1].name} (${processes[key - 1].pid})` : "");
  const column = (
    id: string,
    title: string,
    meaning: string,
    size: number,
    text: Text["text"],
    of: Text["of"],
  ): Text => ({
    kind: "text",
    id,
    title,
    meaning,
    size,
    text,
    of,
  });
  const ofThread = (source: TrackSource) => {
    const key = source.thread === null ? 0 : source.thread + 1;
    return () => key;
  };
  const ofProcess = (source: TrackSource) => {
    const key = source.process === null ? 0 : source.process + 1;
    return () => key;
  };
  const thread = column("thread", "Thread", "The thread that it belongs to", threads.length + 1, threadText, ofThread);
  const process = column("process", "Process", "The process", processes.length + 1, processText, ofProcess);
  const cpuText = (key: number) => (key ? `CPU ${key - 1}` : "");
  /** The CPU of the track. */
  const itsCpu = () =>
    column(
      "cpu",
      "CPU",
      "The CPU",
      cpus + 1,
      cpuText,
      ({ track }) =>
        () =>
          (track.cpu ?? -1) + 1,
    );
  const cpus = 1 + tracks.reduce((most, { cpu }) => Math.max(most, cpu ?? 0), 0);
  const ofTrack = ({ track }: TrackSource) => {
    return () => track.id;
  };
  const args = column("args", "Arguments", "What else is known of it", strings.length + 1, optional, ({ track }) => {
    const column = track.spans?.args ?? track.instants?.args;
    return column ? (item) => column[item] : none;
  });
  const labels = column("name", "Name", "The name", strings.length, text, ({ track }) => {
    const label = track.spans?.label ?? track.instants?.label;
    return label ? (item) => label[item] : none;
  });
  const methods = methodCount(trace);
  switch (kind) {
    case "calls":
    case "samples": {
      // The calls of methods come first, then slices.
      const size = methods + strings.length;
      const name = (key: number) => (key < methods ? trace.methodName(key) : strings[key - methods]);
      const keyOf: Text["of"] = ({ track }) => {
        const label = track.spans?.label;
        const base = track.kind === "calls" ? 0 : methods;
        return label ? (item) => base + label[item] : none;
      };
      const classOf = (key: number) => {
        if (key >= methods || !trace.methods) return "";
        return strings[trace.methods.class[key]];
      };
      return [
        column("name", "Method", "Class and method", size, name, keyOf),
        column("class", "Class", "The class of the method", size, classOf, keyOf),
        thread,
        process,
      ];
    }
    case "states": {
      const state = column("name", "State", "What the thread did or waited for", strings.length, text, ({ track }) => {
        const states = track.states;
        return states ? (item) => states.state[item] : none;
      });
      const onCpu = column("cpu", "CPU", "Where it ran", 65_537, cpuText, ({ track }) => {
        const states = track.states;
        return states ? (item) => states.cpu[item] : none;
      });
      const wakerTitle = "Ended by the wake-up of this thread";
      const waker = column("waker", "Woken by", wakerTitle, threads.length + 1, threadText, ({ track }) => {
        const wakers = track.states?.waker;
        return wakers ? (item) => wakers[item] : none;
      });
      return [state, thread, process, onCpu, waker];
    }
    case "causes": {
      const cause = column("name", "Cause", "What the thread did or waited for", strings.length, text, ({ track }) => {
        const causes = track.causes;
        return causes ? (item) => causes.cause[item] : none;
      });
      const about = column("args", "About", "What the cause is about", strings.length + 1, optional, ({ track }) => {
        const causes = track.causes;
        return causes ? (item) => causes.subject[item] : none;
      });
      const whom = "The thread whose time it waited for";
      const follow = column("follow", "Waited for", whom, threads.length + 1, threadText, ({ track }) => {
        const causes = track.causes;
        return causes ? (item) => causes.follow[item] : none;
      });
      return [cause, about, thread, process, follow];
    }
    case "running": {
      const ran = column("name", "Thread", "Who ran", threads.length + 1, threadText, ({ track }) => {
        const threads = track.spans?.thread;
        return threads ? (item) => threads[item] : none;
      });
      const whose = column(
        "process",
        "Process",
        "The process of the thread",
        processes.length + 1,
        processText,
        ({ track }) => {
          const of = track.spans?.thread;
          return of ? (item) => (of[item] ? (threads[of[item] - 1].process ?? -1) + 1 : 0) : none;
        },
      );
      return [ran, whose, itsCpu()];
    }
    case "interrupts":
      return [labels, itsCpu()];
    case "frames": {
      const role = (key: number) => ROLES[tracks[key].role] ?? tracks[key].role;
      const late = column(
        "late",
        "Late",
        "Whether it ended after its deadline",
        3,
        (key) => ["no", "yes", "not known"][key],
        ({ track }) => {
          const flags = track.spans?.flags;
          return (item) => (flags && flags[item] & FLAG_LATE ? 1 : flags && flags[item] & FLAG_NO_DEADLINE ? 2 : 0);
        },
      );
      return [
        { ...labels, title: "Frame", meaning: "Its number, and SurfaceFlinger's word for a reason" },
        { ...process, title: "App" },
        column("layer", "Layer", "The surface", tracks.length, (key) => tracks[key].name, ofTrack),
        column("role", "Row", "Whose account it is", tracks.length, role, ofTrack),
        late,
        args,
      ];
    }
    case "counters": {
      const name = (key: number) => tracks[key].name || tracks[key].role;
      return [
        column("name", "Counter", "Its name", tracks.length, name, ofTrack),
        column("cpu", "CPU", "The CPU", tracks.length, (key) => cpuText((tracks[key].cpu ?? -1) + 1), ofTrack),
        thread,
        process,
        column("unit", "Unit", "The unit of the value", tracks.length, (key) => tracks[key].unit, ofTrack),
      ];
    }
    case "arrows": {
      const role = (key: number) => ROLES[tracks[key].role] ?? tracks[key].role;
      const end = (id: string, title: string, meaning: string, which: "fromTrack" | "toTrack") => {
        const name = (key: number) => {
          const at = tracks.at(key);
          return !at ? "" : at.thread === null ? at.name : trace.threadName(at.thread);
        };
        return column(id, title, meaning, tracks.length, name, ({ track }) => {
          const ends = track.arrows?.[which];
          return ends ? (item) => Math.min(ends[item], tracks.length - 1) : none;
        });
      };
      return [
        column("name", "What", "Wake-up, binder transaction or flow", tracks.length, role, ofTrack),
        end("from", "From", "Who woke, called or began", "fromTrack"),
        end("to", "To", "Who was woken or called", "toTrack"),
      ];
    }
    default:
      return [labels, thread, process, args];
  }
}

const ROLES: Partial<Record<string, string>> = {
  frames: "app",
  expected_frames: "expected",
  actual_frames: "actual",
  wakeup: "wake-up",
  binder: "binder transaction",
};

/** Roles whose items lie in each other; others overlap on lanes. */
const NESTED = new Set(["atrace", "own", "methods", "samples"]);

function figureColumns(trace: Trace, kind: TableKind, sources: TrackSource[]): Figure[] {
  const time = (id: string, title: string, meaning: string, of: Figure["of"]): Figure => ({
    kind: "figure",
    id,
    title,
    meaning,
    unit: "time",
    of,
  });
  const unknown = () => NaN;
  const duration = time(
    "duration",
    "Duration",
    "From its begin to its end, as far as it lies in the period",
    (source, period) => {
      const { start, end } = source;
      const { from, to } = period;
      return (item) => {
        const until = end[item];
        const since = start[item];
        return (until < to ? until : to) - (since > from ? since : from);
      };
    },
  );
  if (kind === "events") return [begin];
  if (kind === "counters") {
    const value: Figure = {
      kind: "figure",
      id: "value",
      title: "Value",
      meaning: "The counter's value",
      unit: "number",
      of: ({ track }) => {
        const values = hasCounter(track) ? track.counter.value : null;
        return values ? (item) => values[item] : unknown;
      },
    };
    return [value, { ...duration, title: "For", meaning: "How long it had this value" }, begin];
  }
  if (kind === "arrows") return [{ ...duration, title: "Took", meaning: "From its begin to its end" }, begin];
  const spans = kind === "slices" || kind === "calls" || kind === "samples";
  const self = time("self", "Self", "Without what is nested in it", ({ track }, period) => {
    if (!hasSpans(track) || !NESTED.has(track.role)) return unknown;
    const times = selfTimes(track, period);
    return (item) => times[item];
  });
  const has = (wanted: (track: SpanTrack) => unknown) => sources.some(({ track }) => hasSpans(track) && wanted(track));
  const cpu = time("cpu", "CPU time", "The CPU time that the trace gives for it", ({ track }, period) => {
    const times = track.spans?.cpu;
    if (!times || !hasSpans(track)) return unknown;
    const cut = track.kind === "calls" ? cutCalls(track, times, period) : null;
    return cut ? (item) => cut.get(item) ?? times[item] : (item) => times[item];
  });
  const onCpu = time(
    "running",
    "On a CPU",
    "How long its thread had a CPU, as the scheduler tells",
    ({ thread, start, end }, { from, to }) => {
      const until = thread === null ? null : runningUntil(trace, thread);
      if (!until) return unknown;
      return (item) => until(Math.min(end[item], to)) - until(Math.max(start[item], from));
    },
  );
  const overrun = time("overrun", "Overrun", "By how much it ended after its deadline", ({ track }) => {
    const late = track.spans?.overrun;
    const flags = track.spans?.flags;
    return late ? (item) => (flags && flags[item] & FLAG_NO_DEADLINE ? NaN : late[item]) : unknown;
  });
  const found: Figure[] = [duration];
  if (spans) found.push(self);
  if (has(({ spans }) => spans.cpu)) found.push(cpu);
  if (spans && trace.tracks.some((track) => hasStates(track) && track.count > 0)) found.push(onCpu);
  if (kind === "frames" && has(({ spans }) => spans.overrun)) found.push(overrun);
  return [...found, begin];
}

/** The CPU times in a period of the calls that it cuts, as the profile has them; null where it cuts none. */
function cutCalls(track: SpanTrack, cpu: Float64Array, period: Period): Map<number, number> | null {
  const { start, end, label } = track.spans;
  const source = {
    thread: track.thread ?? 0,
    track: track.id,
    start,
    end,
    parent: parents(track),
    label,
    base: 0,
    cpu,
  };
  const cut = cutCpuTimes(source, cpu, period);
  return cut.size > 0 ? cut : null;
}

/** A period as the walk over items takes it: one that reaches the trace's end has all that begins there. */
export function periodOf(trace: Trace, period: { from: number; to: number } | null): Period {
  if (!period) return { from: 0, to: Infinity };
  return { from: period.from <= 0 ? 0 : period.from, to: period.to >= trace.duration ? Infinity : period.to };
}
