// The model of a trace, which the timeline computes once: stacks, colours, frames, the VSYNC period, and the overall
// activity.

import { hasSpans, isFrames, type SpanTrack, type Trace, type Track } from "../data/trace";
import { FLAG_LATE, type LossColumns } from "../data/track_columns";
import {
  colorOfName,
  faded,
  LATE_FRAME,
  OTHER_FRAME,
  mix,
  readTheme,
  stateColor,
  threadColors,
  type Theme,
  unpack,
} from "./colors";
import { Intervals } from "./intervals";
import type { Range, ShownPath } from "../store";
import { type KeySpace, Stack } from "./stack";

/** The budget of a frame where the trace has no VSYNC counter: 60 frames a second. */
const DEFAULT_FRAME_NS = 1e9 / 60;
/** The UI thread's part of a frame. */
const UI_FRAME = /^Choreographer#doFrame( \d+|$)/;
const ACTIVITY_BUCKETS = 1024;
const NO_TIMES = new Float64Array(0);

/** Slices of frames on main threads that were late. */
export interface LateFrames {
  start: Float64Array;
  end: Float64Array;
  /** Where each one is: its track, and its number there. */
  track: Uint32Array;
  item: Uint32Array;
}

/** The measured period of a comparison, and what it is in words. */
export interface Measured extends Range {
  text: string;
}

const models = new WeakMap<Trace, Model>();

/** The model of a trace, which is made once. */
export function modelOf(trace: Trace): Model {
  let model = models.get(trace);
  if (!model) models.set(trace, (model = new Model(trace)));
  return model;
}

/** The colour, for a style sheet, of a slice's name (a string id) or of a method. */
export function spanColor(trace: Trace, kind: "calls" | "slices", label: number): string {
  return unpack(modelOf(trace).dealt[kind === "calls" ? "methods" : "names"][label]);
}

export class Model {
  readonly byThread: Track[][];
  readonly byProcess: Track[][];
  readonly byCpu = new Map<number, Track[]>();
  readonly machine: Track[] = [];
  readonly vsync: Float64Array;
  /** The time that a frame may take, ns. */
  readonly frameNs: number;
  /** How busy the machine was, 0 to 1, in equal parts of the trace. */
  readonly activity: Float32Array;
  /** What the row of the critical path shows; null: there is no such row. */
  path: ShownPath | null = null;
  /** What a comparison measures, for the ruler; null: there is no comparison. */
  measured: Measured | null = null;
  private readonly stacks = new Map<string, Stack>();
  private readonly strips = new Map<number, Intervals>();
  /** The periods in which any CPU lost events, or null where none did. */
  readonly losses: Intervals | null;
  private readonly lateFrames = new Map<number, LateFrames | null>();
  private colors: {
    theme: Theme;
    palettes: Record<KeySpace, Uint32Array>;
    dim: Partial<Record<KeySpace, Uint32Array>>;
    states: Uint32Array;
  } | null = null;
  /** The colours of names, methods and threads, in any theme. */
  readonly dealt: Record<KeySpace, Uint32Array>;

  constructor(readonly trace: Trace) {
    this.byThread = trace.threads.map(() => []);
    this.byProcess = trace.index.processes.map(() => []);
    for (const track of trace.tracks) {
      if (track.kind === "arrows" || track.kind === "causes" || (track.count === 0 && track.kind !== "losses"))
        continue;
      if (track.thread !== null) this.byThread[track.thread]?.push(track);
      else if (track.cpu !== null) this.byCpu.set(track.cpu, [...(this.byCpu.get(track.cpu) ?? []), track]);
      else if (track.process !== null) this.byProcess[track.process]?.push(track);
      else this.machine.push(track);
    }
    const names = Uint32Array.from(trace.strings, colorOfName);
    const methods = Uint32Array.from(trace.methods?.name ?? [], (_, method) => colorOfName(trace.methodName(method)));
    const joint = new Uint32Array(names.length + methods.length);
    joint.set(names);
    joint.set(methods, names.length);
    this.dealt = { names, methods, joint, threads: threadColors(trace.threads) };
    this.vsync = this.findVsync();
    const steps = this.vsync
      .slice(1)
      .map((time, i) => time - this.vsync[i])
      .sort();
    const period = steps[steps.length >> 1];
    this.frameNs = period > 2e6 && period < 50e6 ? period : DEFAULT_FRAME_NS;
    this.activity = this.findActivity();
    this.losses = this.lossesOf(trace.tracks);
  }

  /** The stack of nested tracks, which is made once. */
  stack(tracks: SpanTrack[]): Stack {
    const id = tracks.map((track) => track.id).join();
    let stack = this.stacks.get(id);
    if (!stack) this.stacks.set(id, (stack = new Stack(tracks, this.trace.strings.length)));
    return stack;
  }

  /** The slices and calls of a thread that nest in each other. */
  nested(thread: number): SpanTrack[] {
    return this.byThread[thread].filter(hasSpans).filter(({ role }) => role === "atrace" || role === "methods");
  }

  /** A track's items as one row: states, losses, and instants. */
  strip(track: Track): Intervals {
    let strip = this.strips.get(track.id);
    if (!strip) {
      const { states, losses, instants } = track;
      const { start, end } = states ?? losses ?? { start: NO_TIMES, end: NO_TIMES };
      strip = instants ? new Intervals(instants.time, instants.time) : new Intervals(start, end);
      this.strips.set(track.id, strip);
    }
    return strip;
  }

  /** The periods in which one of the tracks lost events, or null where there are none. */
  lossesOf(tracks: Track[]): Intervals | null {
    const lossy = tracks.flatMap(({ losses, count }) => (losses && count > 0 ? [losses] : []));
    return lossy.length === 0 ? null : united(lossy);
  }

  setTheme(element: Element): Theme {
    const theme = readTheme(element);
    this.colors = {
      theme,
      palettes: this.dealt,
      dim: {},
      states: new Uint32Array(this.trace.strings.length).fill(mix(theme.bg, theme.muted, 0.22)),
    };
    const used = new Set<number>();
    for (const { states } of this.trace.tracks) if (states) for (const id of states.state) used.add(id);
    for (const id of used) this.colors.states[id] = stateColor(this.trace.strings[id], theme);
    return theme;
  }

  /** The name that a key of a stack stands for. */
  name(space: KeySpace, key: number): string {
    const { strings, threads } = this.trace;
    if (space === "names") return strings[key];
    if (space === "threads") return key ? threads[key - 1].name : "unknown thread";
    if (space === "joint" && key < strings.length) return strings[key];
    return this.trace.methodName(space === "joint" ? key - strings.length : key);
  }

  palette(space: KeySpace | "states", dim = false): Uint32Array {
    const { colors } = this;
    if (!colors) throw new Error("a palette was asked for before a theme was set");
    if (space === "states") return colors.states;
    if (!dim) return colors.palettes[space];
    return (colors.dim[space] ??= faded(colors.palettes[space], colors.theme));
  }

  /** The palettes of frames, one colour each: of those that were late, and of all others. */
  readonly framePalettes = {
    late: () => (this.lateFrame ??= new Uint32Array(this.dealt.names.length).fill(LATE_FRAME)),
    other: () => (this.otherFrame ??= new Uint32Array(this.dealt.names.length).fill(OTHER_FRAME)),
  };
  private lateFrame: Uint32Array | null = null;
  private otherFrame: Uint32Array | null = null;

  /** The slices of a process's main thread that are the UI part of late frames, or null where there are none. */
  lateFramesOf(process: number): LateFrames | null {
    let late = this.lateFrames.get(process);
    if (late === undefined) this.lateFrames.set(process, (late = this.findLate(process)));
    return late;
  }

  private findLate(process: number): LateFrames | null {
    const { strings, threads } = this.trace;
    // Frames by their numbers, and those without one by their begins.
    const numbers = new Set<string>();
    const begins = new Set<number>();
    for (const { role, spans } of this.byProcess[process]) {
      if (role !== "frames" || !spans?.flags) continue;
      spans.flags.forEach((flag, item) => {
        if (!(flag & FLAG_LATE)) return;
        const [number] = strings[spans.label[item]].split(" ");
        if (/^\d+$/.test(number)) numbers.add(number);
        else begins.add(spans.start[item]);
      });
    }
    if (numbers.size + begins.size === 0) return null;
    const wanted = strings.map((name) => (UI_FRAME.test(name) ? (name.split(" ")[1] ?? "") : null));
    const found: { start: number; end: number; track: number; item: number }[] = [];
    for (const [thread, tracks] of this.byThread.entries()) {
      if (threads[thread].process !== process || !threads[thread].main) continue;
      for (const { id, role, spans } of tracks) {
        if (role !== "atrace" || !spans) continue;
        for (let item = 0; item < spans.label.length; item++) {
          const number = wanted[spans.label[item]];
          if (number === null) continue;
          const [start, end] = [spans.start[item], spans.end[item]];
          if (numbers.has(number) || begins.has(start)) found.push({ start, end, track: id, item });
        }
      }
    }
    if (found.length === 0) return null;
    return {
      start: Float64Array.from(found, (frame) => frame.start),
      end: Float64Array.from(found, (frame) => frame.end),
      track: Uint32Array.from(found, (frame) => frame.track),
      item: Uint32Array.from(found, (frame) => frame.item),
    };
  }

  private findVsync(): Float64Array {
    const tracks = this.trace.tracks.filter(({ role, count }) => role === "vsync" && count > 0);
    const best = tracks.find(({ name }) => /app/i.test(name)) ?? tracks.at(0);
    return best?.counter?.time ?? best?.instants?.time ?? NO_TIMES;
  }

  private findActivity(): Float32Array {
    const { tracks, duration } = this.trace;
    const activity = new Float32Array(ACTIVITY_BUCKETS);
    const bucket = Math.max(duration, 1) / ACTIVITY_BUCKETS;
    const spanTracks = tracks.filter(hasSpans);
    const running = spanTracks.filter(({ role }) => role === "running");
    // What was expected of frames is no activity, and frames wait most of their time.
    const active = running.length > 0 ? running : spanTracks.filter(({ role }) => !isFrames(role));
    for (const { spans } of active) {
      for (let i = 0; i < spans.start.length; i++) {
        if (spans.depth[i] > 0) continue;
        const end = Math.min(spans.end[i], duration);
        for (let time = Math.max(0, spans.start[i]); time < end;) {
          const at = Math.min(ACTIVITY_BUCKETS - 1, Math.floor(time / bucket));
          const stop = Math.min(end, Math.max((at + 1) * bucket, time + 1));
          activity[at] += stop - time;
          time = stop;
        }
      }
    }
    const most = activity.reduce((a, b) => Math.max(a, b), 1);
    return activity.map((busy) => busy / most);
  }
}

/** Periods that overlap become one. */
function united(columns: LossColumns[]): Intervals {
  const all = columns.flatMap(({ start, end }) => Array.from(start, (from, i) => ({ from, to: end[i] })));
  const apart: { from: number; to: number }[] = [];
  for (const { from, to } of all.sort((a, b) => a.from - b.from)) {
    const last = apart.at(-1);
    if (last && from <= last.to) last.to = Math.max(last.to, to);
    else apart.push({ from, to });
  }
  return new Intervals(
    Float64Array.from(apart, ({ from }) => from),
    Float64Array.from(apart, ({ to }) => to),
  );
}
