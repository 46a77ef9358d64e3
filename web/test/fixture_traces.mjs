// The synthetic traces of test/fixture.mjs, as plain objects in the terms of docs/report-format.md: each
// track has its columns as arrays of the values that the document names.

const MS = 1e6;
const START_NS = 81234567890123n;

/** A repeatable random number generator (mulberry32). */
function random(seed) {
  let state = seed;
  const next = () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
  return {
    next,
    below: (n) => Math.floor(next() * n),
    /** A duration with the given mean, in whole ns. */
    time: (mean) => 1 + Math.floor(-Math.log(1 - next()) * mean),
    /** An index below `n`; small ones are likelier. */
    skewed: (n) => Math.floor(n * next() ** 3),
  };
}

class Strings {
  constructor() {
    this.all = [""];
    this.ids = new Map([["", 0]]);
  }

  id(text) {
    let id = this.ids.get(text);
    if (id === undefined) this.ids.set(text, (id = this.all.push(text) - 1));
    return id;
  }
}

const columns = (...names) => Object.fromEntries(names.map((name) => [name, []]));
const push = (into, row) => {
  for (const [name, value] of Object.entries(row)) into[name].push(value);
};

function methodTable(strings, count, rng) {
  const packages = ["com.example.app", "com.example.app.ui", "android.view", "android.os", "java.util", "kotlinx.io"];
  const words = ["Layout", "Cache", "Parser", "Activity", "Buffer", "Loader", "Session", "Store", "Adapter", "Binder"];
  const verbs = ["measure", "draw", "parse", "get", "load", "put", "inflate", "onCreate", "run", "dispatch", "bind"];
  const table = { class: [], name: [], signature: [], file: [], inclusive: [] };
  for (let i = 0; i < count; i++) {
    const owner = words[rng.below(words.length)] + words[Math.floor(i / 7) % words.length];
    table.class.push(strings.id(`${packages[Math.floor(i / 13) % packages.length]}.${owner}`));
    table.name.push(strings.id(`${verbs[i % verbs.length]}${i}`));
    table.signature.push(strings.id(i % 2 ? "(I)V" : "(Ljava/lang/String;)Z"));
    table.file.push(strings.id(`${owner}.java`));
    table.inclusive.push((count - i) * 1000);
  }
  return table;
}

/** `count` calls from `from` on, nested up to `depth` levels, each step taking some `step` ns. */
function calls({ rng, count, methods, from, step, depth, withCpu }) {
  const start = new Float64Array(count);
  const duration = new Float64Array(count);
  const level = new Uint16Array(count);
  const method = new Uint32Array(count);
  const cpu = withCpu ? new Float64Array(count) : undefined;
  const stack = [];
  let at = 0;
  let time = from;
  let deepest = 0;
  const leave = () => {
    const call = stack.pop();
    duration[call] = time - start[call];
    if (cpu) cpu[call] = Math.floor(duration[call] * 0.8);
  };
  while (at < count) {
    time += rng.time(step);
    if (stack.length > 0 && (stack.length >= depth || rng.next() < 0.35 + 0.28 * (stack.length / depth))) {
      leave();
      continue;
    }
    start[at] = time;
    level[at] = stack.length;
    method[at] = rng.skewed(methods);
    deepest = Math.max(deepest, stack.length + 1);
    stack.push(at++);
  }
  while (stack.length > 0) {
    time += rng.time(step);
    leave();
  }
  return { depth: deepest, end: time, columns: { start, duration, depth: level, method, ...(cpu && { cpu }) } };
}

/** Nested slices within [from, to): a preorder walk that splits each slice by chance. */
function nest({ rng, into, names, from, to, level, levels, size }) {
  let at = from;
  let deepest = level;
  while (at < to) {
    const end = Math.min(to, at + rng.time(size));
    push(into, { start: at, duration: end - at, depth: level, name: names[rng.below(names.length)], args: 0 });
    if (level + 1 < levels && end - at > size / 8) {
      const room = Math.floor((end - at) / 10);
      deepest = Math.max(
        deepest,
        nest({ rng, into, names, from: at + room, to: end - room, level: level + 1, levels, size: size / 4 }),
      );
    }
    at = end + rng.time(size);
  }
  return deepest;
}

/**
 * Who had which CPU when, and from that each thread's states, wake-ups, and the running slices of each CPU.
 */
function schedule({ rng, strings, threads, cpus, duration, run, sleep }) {
  const running = Array.from({ length: cpus }, () => columns("start", "duration", "depth", "name", "thread"));
  const states = threads.map(() => columns("start", "duration", "state", "cpu", "waker"));
  const arrows = [];
  const text = Object.fromEntries(
    ["Running", "Runnable", "Runnable (Preempted)", "Sleeping", "Uninterruptible Sleep (IO)"].map((name) => [
      name,
      strings.id(name),
    ]),
  );
  const blocked = threads.map(() => ({ since: 0, state: text.Sleeping, until: rng.time(sleep) }));
  const free = new Array(cpus).fill(0);
  const last = new Array(cpus).fill(0);
  const weight = threads.map(() => 0.1 + rng.next() ** 4 * 8);
  for (;;) {
    let cpu = 0;
    for (let i = 1; i < cpus; i++) if (free[i] < free[cpu]) cpu = i;
    let thread = 0;
    for (let i = 1; i < threads.length; i++) if (blocked[i].until < blocked[thread].until) thread = i;
    const from = Math.max(free[cpu], blocked[thread].until);
    if (from >= duration) break;
    const to = Math.min(duration, from + rng.time(run));
    const { since, state, until } = blocked[thread];
    const waker = last[rng.below(cpus)];
    const mine = states[thread];
    const preempted = state === text["Runnable (Preempted)"];
    if (until > since) {
      push(mine, { start: since, duration: until - since, state, cpu: 0, waker: preempted ? 0 : waker + 1 });
      if (!preempted) arrows.push({ from: until, waker, thread, to: from });
    }
    if (from > until) {
      push(mine, { start: until, duration: from - until, cpu: 0, waker: 0, state: preempted ? state : text.Runnable });
    }
    push(mine, { start: from, duration: to - from, state: text.Running, cpu: cpu + 1, waker: 0 });
    push(running[cpu], {
      start: from,
      duration: to - from,
      depth: 0,
      name: strings.id(threads[thread].name),
      thread: thread + 1,
    });
    threads[thread].busy_ns += to - from;
    free[cpu] = to + (rng.next() < 0.3 ? rng.time(run) : 0);
    last[cpu] = thread;
    const dice = rng.next();
    blocked[thread] =
      dice < 0.15
        ? { since: to, state: text["Runnable (Preempted)"], until: to }
        : {
            since: to,
            state: dice < 0.25 ? text["Uninterruptible Sleep (IO)"] : text.Sleeping,
            until: to + rng.time(sleep / weight[thread]),
          };
  }
  arrows.sort((a, b) => a.from - b.from);
  return { running, states, arrows };
}

/** The trace with what every trace has; orders processes and threads as the document demands. */
function trace({ title, duration, strings, methods = null, processes, threads, tracks, cpus = null, ...rest }) {
  return {
    title,
    clock: "boot",
    start_ns: String(START_NS),
    duration_ns: duration,
    wall_start_ns: "1396187895123456789",
    machine: "Linux localhost 6.6.30-android15 aarch64",
    device: "Pixel 8, Android 15",
    cpus,
    times: "wall",
    has_cpu_time: false,
    window: null,
    strings: strings.all,
    methods,
    processes,
    threads,
    tracks,
    summary: {
      inputs: [{ name: "launch.dat", format: "trace.dat", size: 1234567, clock: "boot" }],
      report: { events: 12345, losses: [], damage: [], notes: [] },
    },
    launches: [],
    frames: [],
    ...rest,
  };
}

/**
 * Orders threads (and with them processes) busiest first; returns them with the old-to-new index of a thread.
 */
function ordered(processes, threads) {
  const busy = processes.map((_, p) => threads.reduce((sum, t) => sum + (t.process === p ? t.busy_ns : 0), 0));
  const order = threads
    .map((_, i) => i)
    .sort(
      (a, b) =>
        busy[threads[b].process] - busy[threads[a].process]
        || threads[a].process - threads[b].process
        || threads[b].busy_ns - threads[a].busy_ns,
    );
  const place = new Array(threads.length);
  order.forEach((old, now) => (place[old] = now));
  return { threads: order.map((i) => threads[i]), place };
}

/** The frames of the app in numbers. */
function frameSummary({ cpu, overrun }) {
  const percentiles = (values) => {
    const sorted = [...values].sort((a, b) => a - b);
    const at = (percent) => sorted[Math.round(((sorted.length - 1) * percent) / 100)] ?? 0;
    return { p50: at(50), p90: at(90), p95: at(95), p99: at(99) };
  };
  const janky = overrun.filter((ns) => ns > 0).length;
  return {
    package: "com.example.app",
    layer: null,
    count: cpu.length,
    with_deadline: cpu.length,
    deadline: "vsync",
    janky,
    janky_share: janky / Math.max(cpu.length, 1),
    slow: cpu.filter((ns) => ns > 20e6).length,
    big_jank: 0,
    huge_jank: 0,
    duration_cpu_ns: percentiles(cpu),
    overrun_ns: percentiles(overrun),
  };
}

/** A system trace: CPUs, scheduling, states, wake-ups, slices on main threads, frames, counters,
  method calls. */
function system({ seed, title, processCount, threadCount, cpus, duration, run, sleep, methodCalls }) {
  const rng = random(seed);
  const strings = new Strings();
  const methods = methodTable(strings, 800, rng);
  const processNames = [
    "com.example.app",
    "system_server",
    "surfaceflinger",
    "com.android.systemui",
    "media.codec",
    "kworker",
    "zygote64",
    "com.google.android.gms",
  ];
  const threadNames = [
    "RenderThread",
    "Binder:1_1",
    "Binder:1_2",
    "HeapTaskDaemon",
    "Jit thread pool",
    "OkHttp Dispatch",
    "pool-1-thread-1",
    "FinalizerDaemon",
  ];
  const processes = Array.from({ length: processCount }, (_, i) => ({
    pid: 1000 + i * 100,
    name: processNames[i % processNames.length] + (i < processNames.length ? "" : `:${i}`),
  }));
  let threads = Array.from({ length: threadCount }, (_, i) => {
    const process = i % processCount;
    const nth = Math.floor(i / processCount);
    return {
      tid: processes[process].pid + nth,
      process,
      main: nth === 0,
      busy_ns: 0,
      doubt: null,
      name: nth === 0 ? processes[process].name : threadNames[(nth - 1) % threadNames.length],
    };
  });
  const app = threads.findIndex((t) => t.process === 0 && t.main);
  const render = threads.findIndex((t) => t.process === 0 && !t.main);
  const plan = schedule({ rng, strings, threads, cpus, duration, run, sleep });
  const tracks = [];
  const thread = {};
  ({ threads, place: thread.place } = ordered(processes, threads));
  const at = (old) => thread.place[old];
  for (const [cpu, running] of plan.running.entries()) {
    running.thread = running.thread.map((one) => at(one - 1) + 1);
    tracks.push({ kind: "slices", role: "running", cpu, depth: 1, columns: running });
    const irq = columns("start", "duration", "depth", "name");
    const frequency = columns("time", "value");
    const idle = columns("time", "value");
    const loss = columns("start", "duration", "count");
    for (let t = rng.time(3 * MS); t < duration; t += rng.time(4 * MS)) {
      const took = Math.min(rng.time(20000), duration - t);
      push(irq, {
        start: t,
        duration: took,
        depth: 0,
        name: strings.id(rng.next() < 0.5 ? "IRQ (arch_timer)" : "SCHED"),
      });
      t += took;
    }
    for (let t = 0; t < duration; t += rng.time(12 * MS)) {
      push(frequency, { time: t, value: [300000, 1098000, 1803000, 2914000][rng.below(4)] });
      push(idle, { time: t, value: rng.below(3) - 1 });
    }
    if (cpu === 2)
      push(loss, { start: Math.floor(duration * 0.62), duration: Math.floor(duration * 0.03), count: 4711 });
    tracks.push(
      { kind: "slices", role: "irq", cpu, depth: 1, columns: irq },
      { kind: "counter", role: "frequency", cpu, name: "frequency", unit: "kHz", columns: frequency },
      { kind: "counter", role: "idle", cpu, name: "idle", columns: idle },
    );
    if (loss.start.length) tracks.push({ kind: "losses", role: "losses", cpu, columns: loss });
  }
  const stateTrack = new Array(threadCount);
  plan.states.forEach((states, old) => {
    if (states.start.length === 0) return;
    states.waker = states.waker.map((one) => (one ? at(one - 1) + 1 : 0));
    stateTrack[old] = tracks.push({ kind: "states", role: "states", thread: at(old), columns: states }) - 1;
  });
  const frameNames = ["measure", "layout", "draw", "Record View#draw()", "inflate", "bindView"].map((n) =>
    strings.id(n),
  );
  const vsync = columns("time", "value");
  const main = columns("start", "duration", "depth", "name", "args");
  const drawn = columns("start", "duration", "depth", "name", "args");
  let nth = 0;
  const launchEnd = Math.floor(Math.min(duration * 0.2, 900 * MS));
  const stages = [
    ["bindApplication", 0.05, 0.4],
    ["activityStart", 0.42, 0.7],
    ["activityResume", 0.71, 0.9],
  ];
  for (const [name, from, to] of stages) {
    const [a, b] = [Math.floor(launchEnd * from), Math.floor(launchEnd * to)];
    push(main, { start: a, duration: b - a, depth: 0, name: strings.id(name), args: 0 });
    nest({ rng, into: main, names: frameNames, from: a + 1000, to: b - 1000, level: 1, levels: 4, size: (b - a) / 4 });
  }
  const frames = columns("start", "duration", "depth", "name", "flags", "cpu", "overrun");
  for (let t = 0; t < duration; t += 16666667) {
    push(vsync, { time: t, value: nth++ % 2 });
    if (t < launchEnd || t + 40 * MS > duration || rng.next() < 0.3) continue;
    const took = Math.floor(rng.next() < 0.12 ? 19 * MS : 3 * MS + rng.next() * 8 * MS);
    const late = took > 17 * MS;
    push(main, { start: t, duration: took, depth: 0, name: strings.id(`Choreographer#doFrame ${nth}`), args: 0 });
    nest({
      rng,
      into: main,
      names: frameNames,
      from: t + 1000,
      to: t + took - 1000,
      level: 1,
      levels: 4,
      size: took / 4,
    });
    const long = Math.floor(late ? 21 * MS : 6 * MS);
    push(drawn, { start: t + took, duration: long, depth: 0, name: strings.id(`DrawFrames ${nth}`), args: 0 });
    push(drawn, {
      start: t + took + 1000,
      duration: long - 2000,
      depth: 1,
      name: strings.id("flush commands"),
      args: 0,
    });
    const [cpu, overrun] = [took + long, took + long - 16666667];
    push(frames, {
      start: t,
      duration: cpu,
      depth: overrun > 16666667 ? 1 : 0,
      name: strings.id(overrun > 0 ? `${nth} AppDeadlineMissed` : String(nth)),
      flags: overrun > 0 ? 4 : 0,
      cpu,
      overrun,
    });
    if (late) t += 2 * 16666667;
  }
  main.args = main.args.map((_, i) => (i % 17 === 0 ? strings.id(`frame=${i}, view=com.example.app.MainView`) + 1 : 0));
  tracks.push({ kind: "slices", role: "atrace", thread: at(app), depth: 4, columns: main });
  if (render >= 0) tracks.push({ kind: "slices", role: "atrace", thread: at(render), depth: 2, columns: drawn });
  for (let old = 0; old < threadCount; old++) {
    if (old === app || old === render || old % 3) continue;
    const into = columns("start", "duration", "depth", "name", "args");
    const names = ["binder transaction", "monitor contention with owner main (1000)", "GC", "query"].map((n) =>
      strings.id(n),
    );
    nest({ rng, into, names, from: rng.time(duration / 20), to: duration, level: 0, levels: 3, size: duration / 60 });
    tracks.push({ kind: "slices", role: "atrace", thread: at(old), depth: 3, columns: into });
  }
  if (methodCalls > 0) {
    const made = calls({
      rng,
      count: methodCalls,
      methods: 800,
      from: Math.floor(launchEnd * 0.06),
      depth: 24,
      step: Math.floor((duration * 0.7) / methodCalls / 2),
      withCpu: true,
    });
    tracks.push({ kind: "calls", role: "methods", thread: at(app), depth: made.depth, columns: made.columns });
  }
  const counter = columns("time", "value");
  const memory = columns("time", "value");
  for (let t = 0, v = 0; t < duration; t += rng.time(9 * MS)) {
    push(counter, { time: t, value: (v = Math.max(0, v + rng.below(5) - 2)) });
    push(memory, { time: t, value: 120.5 + Math.sin(t / 1e8) * 40 });
  }
  tracks.push(
    { kind: "counter", role: "counter", process: 0, name: "aq:pending:com.example.app", columns: counter },
    { kind: "counter", role: "counter", process: 0, name: "Heap size", unit: "MB", columns: memory },
    { kind: "counter", role: "vsync", process: 2 % processCount, name: "VSYNC-app", columns: vsync },
  );
  const async = columns("start", "duration", "depth", "name", "args");
  for (let t = rng.time(50 * MS), i = 0; t < duration; t += rng.time(60 * MS), i++) {
    push(async, {
      start: t,
      duration: Math.min(duration - t, rng.time(70 * MS)),
      depth: i % 3,
      name: strings.id("deliverInputEvent"),
      args: strings.id(`cookie=${i}`) + 1,
    });
  }
  if (frames.start.length > 0)
    tracks.push({ kind: "slices", role: "frames", process: 0, name: "", depth: 2, columns: frames });
  tracks.push({ kind: "slices", role: "async", process: 0, name: "deliverInputEvent", depth: 3, columns: async });
  const ticks = columns("time", "name", "args");
  for (let t = rng.time(20 * MS); t < duration; t += rng.time(40 * MS)) {
    push(ticks, { time: t, name: strings.id("touch"), args: strings.id(`x=${t % 1080}`) + 1 });
  }
  tracks.push(
    { kind: "instants", role: "markers", thread: at(app), columns: ticks },
    { kind: "instants", role: "events", thread: at(app), columns: ticks },
  );
  const wakeup = columns("from", "to", "from_track", "to_track");
  const binder = columns("from", "to", "from_track", "to_track");
  for (const { from, waker, thread: woken, to } of plan.arrows) {
    if (stateTrack[waker] === undefined || stateTrack[woken] === undefined) continue;
    const row = { from, to: to - from, from_track: stateTrack[waker], to_track: stateTrack[woken] };
    push(wakeup, row);
    if (rng.next() < 0.05) push(binder, row);
  }
  tracks.push(
    { kind: "arrows", role: "wakeup", name: "wake-ups", columns: wakeup },
    { kind: "arrows", role: "binder", name: "binder", columns: binder },
  );
  return trace({
    title,
    duration,
    strings,
    methods: methodCalls ? methods : null,
    processes,
    threads,
    tracks,
    cpus,
    has_cpu_time: methodCalls > 0,
    launches: [
      {
        package: "com.example.app",
        type: "cold",
        rule: "as Android 12 and later mark them",
        process: 0,
        thread: at(app),
        render_thread: render >= 0 ? at(render) : null,
        begin_ns: Math.floor(launchEnd * 0.02),
        end_ns: launchEnd,
        cut: null,
        ttid_ns: Math.floor(launchEnd * 0.95),
        ttfd_ns: Math.floor(launchEnd * 1.3),
        overlapped: false,
        stages: stages.map(([name, from, to]) => ({
          name,
          start_ns: Math.floor(launchEnd * from),
          end_ns: Math.floor(launchEnd * to),
        })),
      },
    ],
    frames: [frameSummary(frames)],
  });
}

/** Method calls alone, on `threadCount` threads of one process. */
function methodTrace({ seed, title, threadCount, count, methodCount }) {
  const rng = random(seed);
  const strings = new Strings();
  const methods = methodTable(strings, methodCount, rng);
  const processes = [{ pid: 4242, name: "com.example.app" }];
  const tracks = [];
  let duration = 0;
  const threads = Array.from({ length: threadCount }, (_, i) => {
    const made = calls({
      rng,
      count: Math.floor(count / threadCount),
      methods: methodCount,
      from: rng.time(MS),
      step: 900,
      depth: 48,
      withCpu: false,
    });
    duration = Math.max(duration, made.end);
    tracks.push({ kind: "calls", role: "methods", thread: i, depth: made.depth, columns: made.columns });
    return {
      tid: 4242 + i,
      process: 0,
      name: i === 0 ? "main" : `worker-${i}`,
      main: i === 0,
      doubt: null,
      busy_ns: made.end,
    };
  });
  return trace({ title, duration, strings, methods, processes, threads, tracks });
}

export const HOSTILE_NAMES = [
  "<script>alert(1)</script>",
  "</script><img src=x onerror=alert(1)>",
  "\u202Egnp.exe",
  "a\u0000b\u001b[31m",
  "${alert(1)}",
  "🐈‍⬛ Καλημέρα 日本語 مرحبا",
  "",
  " ",
  "x".repeat(20000),
  "__proto__",
  "constructor",
  "\"'`",
  "&lt;b&gt;",
  "]]>",
  "<!--",
  "%s%n%x",
  "../../etc/passwd",
  "javascript:alert(1)",
  "line\nfeed\ttab",
  "\ud800",
];

/** Every kind and role of track once, with hostile names everywhere. */
function small() {
  const strings = new Strings();
  const name = (i) => strings.id(HOSTILE_NAMES[i % HOSTILE_NAMES.length]);
  const duration = 100 * MS;
  const processes = [
    { pid: 100, name: HOSTILE_NAMES[0] },
    { pid: 200, name: "com.example.plain" },
  ];
  const threads = [0, 1, 2, 3].map((i) => ({
    tid: i === 3 ? null : 100 + i * 50,
    process: i === 3 ? null : i >> 1,
    name: ["main", HOSTILE_NAMES[1], HOSTILE_NAMES[5], HOSTILE_NAMES[2]][i],
    main: i === 0,
    busy_ns: (4 - i) * 10 * MS,
    doubt: i === 1 ? "the thread's name is of a later thread with the same number" : null,
  }));
  const row = (times, more) => ({
    start: times.map(([a]) => a * MS),
    duration: times.map(([a, b]) => (b - a) * MS),
    ...more,
  });
  const state = ["Running", "Runnable", "Sleeping", "Uninterruptible Sleep (IO)"].map((text) => strings.id(text));
  const methods = { class: [], name: [], signature: [], file: [], inclusive: [] };
  HOSTILE_NAMES.forEach((_, i) => {
    methods.class.push(name(i));
    methods.name.push(name(i + 1));
    methods.signature.push(name(i + 2));
    methods.file.push(name(i + 3));
    methods.inclusive.push(i * 1000);
  });
  const stripe = {
    start: HOSTILE_NAMES.map((_, i) => 2 * i * MS),
    duration: HOSTILE_NAMES.map(() => 1.5 * MS),
    depth: HOSTILE_NAMES.map(() => 0),
  };
  const tracks = [
    {
      kind: "slices",
      role: "running",
      cpu: 0,
      depth: 1,
      columns: row(
        [
          [0, 20],
          [20, 30],
          [50, 60],
        ],
        { depth: [0, 0, 0], name: [name(0), name(1), name(5)], thread: [1, 2, 0] },
      ),
    },
    {
      kind: "slices",
      role: "irq",
      cpu: 0,
      depth: 2,
      columns: row(
        [
          [5, 7],
          [6, 7],
        ],
        { depth: [0, 1], name: [name(0), name(3)] },
      ),
    },
    {
      kind: "counter",
      role: "frequency",
      cpu: 0,
      name: "frequency",
      unit: "kHz",
      columns: { time: [0, 30 * MS], value: [300000, 2400000] },
    },
    { kind: "counter", role: "idle", cpu: 0, name: "idle", columns: { time: [0, 60 * MS], value: [-1, 2] } },
    { kind: "losses", role: "losses", cpu: 0, columns: row([[70, 80]], { count: [0] }) },
    {
      kind: "states",
      role: "states",
      thread: 0,
      columns: row(
        [
          [0, 20],
          [20, 40],
          [40, 45],
          [45, 90],
        ],
        { state: [state[0], state[2], state[1], state[0]], cpu: [1, 0, 0, 2], waker: [0, 2, 0, 0] },
      ),
    },
    {
      kind: "states",
      role: "states",
      thread: 1,
      columns: row(
        [
          [0, 20],
          [20, 30],
          [30, 100],
        ],
        { state: [state[1], state[0], state[3]], cpu: [0, 1, 0], waker: [0, 0, 0] },
      ),
    },
    {
      kind: "slices",
      role: "atrace",
      thread: 0,
      depth: 3,
      columns: row(
        [
          [0, 40],
          [2, 20],
          [3, 10],
          [50, 90],
        ],
        {
          depth: [0, 1, 2, 0],
          name: [strings.id("outer"), name(0), strings.id("inner"), strings.id("outer")],
          args: [0, strings.id("a=1") + 1, 0, name(1) + 1],
          flags: [1, 0, 0, 2],
        },
      ),
    },
    {
      kind: "calls",
      role: "methods",
      thread: 0,
      depth: 3,
      columns: row(
        [
          [4, 9],
          [5, 8],
          [6, 7],
          [52, 80],
          [55, 60],
        ],
        { depth: [0, 1, 2, 0, 1], method: [0, 1, 1, 2, 0], cpu: [4 * MS, 3 * MS, MS, 20 * MS, 5 * MS] },
      ),
    },
    {
      kind: "slices",
      role: "atrace",
      thread: 1,
      depth: 1,
      columns: { ...stripe, name: HOSTILE_NAMES.map((_, i) => name(i)) },
    },
    {
      kind: "calls",
      role: "methods",
      thread: 2,
      depth: 1,
      columns: { ...stripe, method: HOSTILE_NAMES.map((_, i) => i), cpu: HOSTILE_NAMES.map(() => MS) },
    },
    {
      kind: "slices",
      role: "async",
      process: 0,
      name: HOSTILE_NAMES[0],
      depth: 2,
      columns: row(
        [
          [1, 50],
          [10, 60],
        ],
        { depth: [0, 1], name: [name(0), name(4)] },
      ),
    },
    {
      kind: "slices",
      role: "own",
      process: null,
      name: "machine-wide",
      depth: 1,
      columns: row([[1, 99]], { depth: [0], name: [name(9)] }),
    },
    { kind: "instants", role: "own", process: 0, name: HOSTILE_NAMES[1], columns: { time: [5 * MS], name: [name(1)] } },
    {
      kind: "counter",
      role: "own",
      thread: 2,
      name: HOSTILE_NAMES[5],
      unit: HOSTILE_NAMES[0],
      columns: { time: [0, 10 * MS, 20 * MS], value: [-1.5, 2.25, 1e12] },
    },
    {
      kind: "instants",
      role: "markers",
      thread: 0,
      columns: { time: [11 * MS, 12 * MS], name: [name(0), name(1)], args: [name(2) + 1, 0] },
    },
    { kind: "instants", role: "markers", process: 1, name: "global", columns: { time: [13 * MS], name: [name(2)] } },
    { kind: "instants", role: "events", thread: 0, columns: { time: [14 * MS], name: [name(3)], args: [name(1) + 1] } },
    {
      kind: "counter",
      role: "counter",
      process: 0,
      name: HOSTILE_NAMES[0],
      columns: { time: [0, 50 * MS], value: [-5, 7] },
    },
    { kind: "counter", role: "counter", name: "clk:gpu", unit: "Hz", columns: { time: [0, 40 * MS], value: [1e9, 0] } },
    {
      kind: "counter",
      role: "vsync",
      process: 1,
      name: "VSYNC-app",
      columns: { time: [0, 16, 33, 50, 66, 83].map((t) => t * MS), value: [0, 1, 0, 1, 0, 1] },
    },
    { kind: "arrows", role: "wakeup", columns: { from: [45 * MS], to: [0], from_track: [6], to_track: [5] } },
    {
      kind: "arrows",
      role: "binder",
      columns: { from: [10 * MS, 60 * MS], to: [2 * MS, -MS], from_track: [5, 6], to_track: [6, 5] },
    },
    { kind: "arrows", role: "flow", columns: { from: [20 * MS], to: [30 * MS], from_track: [12], to_track: [13] } },
  ];
  return trace({
    title: HOSTILE_NAMES[0],
    duration,
    strings,
    methods,
    processes,
    threads,
    tracks,
    cpus: 1,
    has_cpu_time: true,
    summary: {
      inputs: [
        {
          name: HOSTILE_NAMES[1],
          size: 17,
          format: HOSTILE_NAMES[2],
          header: [
            [HOSTILE_NAMES[0], HOSTILE_NAMES[3]],
            ["start", "2014-03-30 13:58:15"],
          ],
        },
      ],
      report: { events: 40, notes: [HOSTILE_NAMES[0]], damage: [{ offset: 17, what: HOSTILE_NAMES[1] }] },
    },
    launch: {
      package: HOSTILE_NAMES[0],
      stages: [{ name: HOSTILE_NAMES[1], start_ns: 0, end_ns: 40 * MS, thread: 0 }],
    },
  });
}

/**
 * Adds what threads did and waited for, from their states: every sleep that a thread ended is a wait for its lock, for a
 * binder call that it answered, or for itself, in turn.
 */
function withCauses(made) {
  const strings = made.strings;
  const id = (text) => (strings.includes(text) ? strings.indexOf(text) : strings.push(text) - 1);
  const waits = ["binder", "lock", "other_thread"].map(id);
  const [running, runnable, disk, idle] = ["running", "runnable", "disk", "idle"].map(id);
  const subjects = ["android.app.IActivityManager", "java.lang.Object", ""].map((text) => (text ? id(text) + 1 : 0));
  const file = id("base.apk") + 1;
  const tracks = made.tracks
    .filter(({ kind }) => kind === "states")
    .map(({ thread, columns: states }) => {
      const causes = columns("start", "duration", "cause", "subject", "follow");
      states.start.forEach((start, i) => {
        const text = strings[states.state[i]];
        const waker = states.waker[i];
        const wait = (i + thread) % 3;
        const cause =
          text === "Running" ? running : text.startsWith("Runnable") ? runnable : waker ? waits[wait] : idle;
        const isDisk = text.endsWith("(IO)");
        push(causes, {
          start,
          duration: states.duration[i],
          cause: isDisk ? disk : cause,
          subject: isDisk ? file : waits.includes(cause) ? subjects[wait] : 0,
          follow: !isDisk && waits.includes(cause) ? waker : 0,
        });
      });
      return { kind: "causes", role: "causes", thread, columns: causes };
    });
  // Arrows name tracks by their numbers: these come last.
  made.tracks.push(...tracks);
  return made;
}

export const KINDS = {
  small,
  launch: () =>
    system({
      seed: 1,
      title: "launch.dat + app.trace",
      processCount: 8,
      threadCount: 40,
      cpus: 8,
      duration: 5e9,
      run: 600000,
      sleep: 40 * MS,
      methodCalls: 200000,
    }),
  /** Two CPUs for many threads, so that they wait for each other; with causes. */
  tasks: () =>
    withCauses(
      system({
        seed: 6,
        title: "tasks.dat",
        processCount: 6,
        threadCount: 30,
        cpus: 2,
        duration: 3e9,
        run: 900000,
        sleep: 12 * MS,
        methodCalls: 30000,
      }),
    ),
  methods: () => methodTrace({ seed: 5, title: "app.trace", threadCount: 8, count: 20000, methodCount: 100 }),
  big: () => methodTrace({ seed: 2, title: "big.trace", threadCount: 8, count: 5000000, methodCount: 5000 }),
  /** 25 million calls, and 10 million slices on threads of their own. */
  huge: () => {
    const made = methodTrace({ seed: 7, title: "huge.trace", threadCount: 8, count: 25_000_000, methodCount: 20_000 });
    const rng = random(8);
    const names = Array.from({ length: 500 }, (_, i) => made.strings.push(`slice ${i}`) - 1);
    for (let n = 0; n < 8; n++) {
      const { columns: all, depth } = calls({ rng, count: 1_250_000, methods: 500, from: MS, step: 2000, depth: 12 });
      const { method, ...rest } = all;
      const thread = made.threads.push({ ...made.threads[1], tid: 5000 + n, name: `events-${n}`, busy_ns: 1 }) - 1;
      const columns = { ...rest, name: method.map((one) => names[one]) };
      made.tracks.push({ kind: "slices", role: "atrace", thread, depth, columns });
    }
    return made;
  },
  threads: () =>
    system({
      seed: 3,
      title: "threads.dat",
      processCount: 90,
      threadCount: 1500,
      cpus: 8,
      duration: 3e9,
      run: 300000,
      sleep: 900 * MS,
      methodCalls: 20000,
    }),
  sched: () =>
    system({
      seed: 4,
      title: "sched.dat",
      processCount: 30,
      threadCount: 300,
      cpus: 8,
      duration: 12e9,
      run: 130000,
      sleep: 5 * MS,
      methodCalls: 0,
    }),
};
