// A recording that runs, made up: an app that draws a frame each 16 ms, and what else a phone does.

import { encodeBatch } from "./live_server.mjs";

export const MS = 1e6;
export const APP = "com.example.app";
/** The session's start on the recording's clock. */
export const START_NS = 5_000_000_000;
const FRAME_NS = 16 * MS;
const FRAME_WORK_NS = 10 * MS;
/** Every tenth frame takes this long, and is late. */
const LATE_WORK_NS = 15 * MS;
const LATE_EVERY = 10;
const LATE = 4;

export const HELLO = {
  kind: "hello",
  title: "a phone",
  serial: "SERIAL",
  app: APP,
  keep_s: 60,
  clock: "boot",
  categories: [
    { name: "gfx", description: "Graphics", on: true },
    { name: "sched", description: "CPU scheduling", on: true },
    { name: "view", description: "View system", on: false },
  ],
  can: ["mark", "save", "categories"],
};
export const NUMBERS = {
  kind: "numbers",
  at_ns: 0,
  window_s: 10,
  events_per_s: 2345,
  lost: 0,
  frames: 625,
  janky: 62,
  p95_ms: 14.5,
  app_cpu_percent: 61.5,
  runnable_percent: null,
};

export const KEYS = { running: 1, states: 2, slices: 3, frames: 4, render: 5, counter: 6, other: 7, frequency: 8 };

/** Collects the columns of a track's items. */
class Items {
  constructor() {
    this.rows = [];
  }

  /** Adds an item, or what of it a batch until `to` has; `open` ones come last, the outermost first. */
  add(item, to) {
    const { start, duration } = item;
    if (start >= to) return;
    const open = start + duration > to;
    this.rows.push({ ...item, duration: Math.min(duration, to - start), open });
  }

  track(names) {
    const end = ({ start, duration }) => start + duration;
    const over = this.rows.filter(({ open }) => !open).sort((a, b) => end(a) - end(b) || b.depth - a.depth);
    const open = this.rows.filter(({ open }) => open).sort((a, b) => a.start - b.start);
    const all = [...over, ...open];
    return {
      open: open.length,
      depth: Math.max(1, ...all.map(({ depth }) => (depth ?? 0) + 1)),
      values: Object.fromEntries(names.map((name) => [name, all.map((one) => one[name])])),
    };
  }
}

const STRINGS = [
  "",
  "doFrame",
  "measure",
  "Running",
  "S",
  "main",
  "idle",
  "drawFrame",
  "R",
  "7 App Deadline Missed",
  "7",
];
const id = (text) => STRINGS.indexOf(text);

/** Batch `number` of `length` ns each: the session's time from (number - 1) * length on. `extra` is added to it. */
export function batchOf(number, length = 100 * MS, extra = {}) {
  const from = (number - 1) * length;
  const to = number * length;
  const [slices, states, running, frames, render] = Array.from({ length: 5 }, () => new Items());
  for (let nth = Math.floor(from / FRAME_NS) - 1; nth * FRAME_NS < to; nth++) {
    if (nth < 0) continue;
    const start = nth * FRAME_NS;
    const work = nth % LATE_EVERY === LATE_EVERY - 1 ? LATE_WORK_NS : FRAME_WORK_NS;
    const late = work === LATE_WORK_NS;
    const isNew = (ns) => start + ns > from;
    if (isNew(work)) {
      slices.add({ start, duration: work, depth: 0, name: id("doFrame") }, to);
      states.add({ start, duration: work, state: id("Running"), cpu: 1 }, to);
      running.add({ start, duration: work, depth: 0, name: id("main"), thread: 1 }, to);
    }
    if (isNew(4 * MS)) slices.add({ start: start + MS, duration: 3 * MS, depth: 1, name: id("measure") }, to);
    if (isNew(FRAME_NS)) states.add({ start: start + work, duration: FRAME_NS - work, state: id("S"), cpu: 0 }, to);
    if (isNew(work) && start + work <= to) {
      const name = id(late ? "7 App Deadline Missed" : "7");
      const [flags, overrun] = late ? [LATE, work - 12 * MS] : [0, work - 12 * MS];
      frames.add({ start, duration: work, depth: 0, name, flags, overrun }, to);
    }
    if (isNew(work - MS))
      render.add({ start: start + 5 * MS, duration: work - 6 * MS, depth: 0, name: id("drawFrame") }, to);
  }
  const SPAN = ["start", "duration", "depth", "name"];
  return encodeBatch({
    batch: number,
    from_ns: from,
    to_ns: to,
    start_ns: String(START_NS),
    strings: STRINGS,
    processes: [
      { pid: 100, name: APP },
      { pid: 200, name: "system_server" },
    ],
    threads: [
      { tid: 100, pid: 100, name: "main", main: true },
      { tid: 101, pid: 100, name: "RenderThread", main: false },
      { tid: 200, pid: 200, name: "system_server", main: true },
    ],
    ...extra,
    tracks: [
      { key: KEYS.running, kind: "slices", role: "running", cpu: 0, ...running.track([...SPAN, "thread"]) },
      {
        key: KEYS.states,
        kind: "states",
        role: "states",
        thread: 0,
        ...states.track(["start", "duration", "state", "cpu"]),
      },
      { key: KEYS.slices, kind: "slices", role: "atrace", thread: 0, ...slices.track(SPAN) },
      { key: KEYS.render, kind: "slices", role: "atrace", thread: 1, ...render.track(SPAN) },
      {
        key: KEYS.frames,
        kind: "slices",
        role: "frames",
        name: "layer",
        process: 0,
        ...frames.track([...SPAN, "flags", "overrun"]),
      },
      {
        key: KEYS.counter,
        kind: "counter",
        role: "counter",
        name: "memory",
        process: 0,
        values: { time: [from], value: [number % 10] },
      },
      {
        key: KEYS.other,
        kind: "slices",
        role: "atrace",
        thread: 2,
        values: { start: [from + MS], duration: [50 * MS], depth: [0], name: [id("measure")] },
      },
      ...(extra.tracks ?? []),
    ],
  });
}
