// The parts of the page that need no browser: columns, levels of detail, nesting, search.

import assert from "node:assert/strict";
import { test } from "node:test";

import { build } from "esbuild";

const ENTRY = `
export { ColumnReader } from "./src/data/columns.ts";
export { flatProfile } from "./src/profile/flat.ts";
export { FlatIndex } from "./src/profile/flat_index.ts";
export { lowerBound, upperBound } from "./src/data/search_sorted.ts";
export { Intervals } from "./src/timeline/intervals.ts";
export { Stack } from "./src/timeline/stack.ts";
export { Model } from "./src/timeline/model.ts";
export { buildRows } from "./src/timeline/rows.ts";
export { searchMatches } from "./src/timeline/search.ts";
export * from "./src/timeline/time.ts";
export { criticalPath } from "./src/why/critical_path.ts";
export { percentile } from "./src/data/percentile.ts";
export { colorOfName } from "./src/timeline/colors.ts";
export { order } from "./src/table/sorted.ts";
export { Groups } from "./src/table/groups.ts";
export { FIRST_TABLE, parseTableChoice, tableChoiceText } from "./src/table/choice.ts";
export { csvField } from "./src/ui/csv.ts";
export { columnUnit, inUnit } from "./src/ui/units.ts";
`;
const { outputFiles } = await build({
  stdin: { contents: ENTRY, resolveDir: new URL("..", import.meta.url).pathname, loader: "ts" },
  bundle: true,
  write: false,
  format: "esm",
});
const code = Buffer.from(outputFiles[0].text).toString("base64");
const page = await import(`data:text/javascript;base64,${code}`);
const { ColumnReader, Intervals, Stack, searchMatches } = page;

/** A repeatable random number generator. */
function random(seed) {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1103515245) + 12345) >>> 0;
    return Math.floor((state / 4294967296) * below);
  };
}

test("columns are read as the document defines them", () => {
  const read = (bytes, encoding, out) => [...new ColumnReader(Uint8Array.from(bytes), 0).into(encoding, out)];
  assert.deepEqual(
    read([0, 127, 128, 1, 255, 127, 128, 128, 1], "varint", new Float64Array(5)),
    [0, 127, 128, 16383, 16384],
  );
  assert.deepEqual(read([0, 1, 2, 3, 4], "zigzag", new Float64Array(5)), [0, -1, 1, -2, 2]);
  assert.deepEqual(read([5, 0, 3], "delta", new Float64Array(3)), [5, 5, 8]);
  assert.deepEqual(read([2, 2, 3, 1], "zigzag-delta", new Float64Array(4)), [1, 2, 0, -1]);
  const large = 2 ** 53 - 1;
  const bytes = [];
  for (let left = large; left > 0; left = Math.floor(left / 128)) bytes.push((left % 128) | (left >= 128 ? 128 : 0));
  assert.deepEqual(read(bytes, "varint", new Float64Array(1)), [large]);
  const f64 = Buffer.alloc(16);
  f64.writeDoubleLE(-1.5, 0);
  f64.writeDoubleLE(1e300, 8);
  assert.deepEqual(read([...f64], "f64", new Float64Array(2)), [-1.5, 1e300]);
  assert.throws(() => read([1, 2], "varint", new Float64Array(3)), /ends too early/);
  assert.throws(() => read([200, 200], "varint", new Float64Array(1)), /ends too early/);
  assert.throws(() => read([1], "runs", new Float64Array(1)), /encoding/);
});

/** Intervals with bursts of short ones, as method traces have them. */
function bursts(count, seed) {
  const next = random(seed);
  const start = new Float64Array(count);
  const end = new Float64Array(count);
  let time = 0;
  for (let i = 0; i < count; i++) {
    time += next(10) === 0 ? next(5000) : next(4);
    start[i] = time;
    time += next(50) === 0 ? next(3000) : next(6);
    end[i] = time;
  }
  return { start, end, last: time };
}

test("a row at any zoom has paint where intervals are, and none further than a pixel away from one", () => {
  const { start, end, last } = bursts(20000, 7);
  const row = new Intervals(start, end);
  const key = new Uint32Array(start.length);
  const next = random(3);
  const WIDTH = 300;
  for (let zoom = 0; zoom < 24; zoom++) {
    const quantum = (last / WIDTH) * 0.55 ** zoom;
    const from = next(Math.max(1, Math.floor(last - WIDTH * quantum)));
    const line = new Uint32Array(WIDTH);
    row.paint(line, from, quantum, key, Uint32Array.of(1), Infinity, () => {});
    const wanted = new Uint8Array(WIDTH + 1);
    for (let i = 0; i < start.length; i++) {
      const x0 = Math.floor((start[i] - from) / quantum);
      const x1 = Math.max(x0 + 1, Math.floor((end[i] - from) / quantum));
      // A wide one leaves its last pixel to the gap between neighbours.
      const stop = x1 - x0 > 3 ? x1 - 1 : x1;
      for (let x = Math.max(0, x0); x < Math.min(WIDTH, stop); x++) wanted[x] = 1;
    }
    for (let x = 0; x < WIDTH; x++) {
      if (wanted[x]) assert.equal(line[x], 1, `zoom ${zoom}: pixel ${x} is bare`);
      if (line[x]) assert.ok(wanted[x - 1] || wanted[x] || wanted[x + 1], `zoom ${zoom}: pixel ${x} is painted`);
    }
  }
});

test("binary searches find the first of equal values, and the place behind the last", () => {
  const sorted = Float64Array.of(1, 3, 3, 3, 7);
  assert.deepEqual(
    [0, 1, 2, 3, 7, 8].map((value) => page.lowerBound(sorted, value)),
    [0, 0, 1, 1, 4, 5],
  );
  assert.deepEqual(
    [0, 1, 2, 3, 7, 8].map((value) => page.upperBound(sorted, value)),
    [0, 1, 1, 4, 5, 5],
  );
  assert.equal(page.lowerBound(sorted, 3, 2), 2);
  assert.equal(page.lowerBound(new Float64Array(0), 3), 0);
});

test("the longest of the intervals that share a pixel shows, and is what the pointer finds", () => {
  const start = Float64Array.from({ length: 2000 }, (_, i) => i * 10);
  const end = start.map((time, i) => time + (i % 100 === 57 ? 9 : 2));
  const row = new Intervals(start, end);
  const key = Uint32Array.from(start, (_, i) => (i % 100 === 57 ? 1 : 0));
  const line = new Uint32Array(20);
  row.paint(line, 0, 1000, key, Uint32Array.of(5, 9), Infinity, () => {});
  assert.deepEqual([...line], new Array(20).fill(9));
  const item = row.at(3500, 1000, 3000);
  assert.equal(item % 100, 57);
  assert.equal(row.at(570.5, 0.1, 0.3), 57, "zoomed in: the interval itself");
  assert.equal(row.at(8, 0.1, 0.3), -1, "and nothing between two");
});

const track = (id, kind, rows) => ({
  id,
  kind,
  role: kind === "calls" ? "methods" : "atrace",
  count: rows.length,
  spans: {
    start: Float64Array.from(rows, ([a]) => a),
    end: Float64Array.from(rows, ([, b]) => b),
    depth: Uint16Array.from(rows, ([, , d]) => d),
    label: Uint32Array.from(rows, ([, , , l]) => l ?? 0),
  },
});

test("frames have two rows above the threads of their process, and late ones are told", () => {
  const spans = (flags) => ({
    start: Float64Array.of(0, 5, 30),
    end: Float64Array.of(10, 25, 40),
    depth: Uint16Array.of(0, 1, 0),
    label: Uint32Array.of(0, 1, 0),
    flags,
  });
  const of = { kind: "slices", name: "", cpu: null, thread: null, process: 0, unit: "", count: 3, depth: 2 };
  const trace = {
    duration: 50,
    strings: ["20", "21 App Deadline Missed"],
    methods: null,
    threads: [{ tid: 7, process: 0, name: "main", main: true, busy_ns: 9, doubt: null }],
    index: { processes: [{ pid: 7, name: "app" }], launches: [], frames: [] },
    threadName: () => "main",
    tracks: [
      { ...of, id: 0, role: "async", name: "load", spans: spans() },
      { ...of, id: 1, role: "expected_frames", name: "Expected Timeline", spans: spans() },
      { ...of, id: 2, role: "actual_frames", name: "Actual Timeline", spans: spans(Uint8Array.of(0, 4, 2)) },
      { ...of, id: 3, role: "atrace", thread: 0, spans: spans() },
    ],
  };
  const model = new page.Model(trace);
  const rows = page
    .buildRows(model, new Map(), { sort: "activity", filter: "" })
    .map(({ label, detail }) => [label, detail]);
  assert.deepEqual(rows.slice(1), [
    ["Expected Timeline", ""],
    ["Actual Timeline", "1 of 3 late"],
    ["main", "7"],
    ["load", ""],
  ]);
  const late = model.stack([trace.tracks[2]]).late;
  assert.equal(late.length, 2);
  assert.equal(late[0], null);
  assert.deepEqual([late[1].count, late[1].item(0)], [1, 1]);
  assert.equal(model.stack([trace.tracks[1]]).late, null);
});

test("slices and calls become one stack, in which nothing overlaps and parents enclose", () => {
  const slices = track(0, "slices", [
    [0, 100, 0, 1],
    [10, 50, 1, 2],
    [60, 70, 1, 2],
  ]);
  const calls = track(1, "calls", [
    [0, 100, 0, 0],
    [12, 40, 1, 1],
    [13, 14, 2, 1],
    [61, 69, 1, 1],
    [100, 105, 0, 0],
  ]);
  const stack = new Stack([slices, calls], 10);
  assert.deepEqual([...stack.level], [0, 2, 2, 1, 3, 4, 3, 0]);
  assert.equal(stack.levels, 5);
  assert.deepEqual([...stack.key], [1, 2, 2, 10, 11, 11, 11, 10]);
  const at = (trackId, item) => stack.find(trackId, item);
  assert.equal(stack.vertical(at(1, 1), -1), at(0, 1), "the parent of a call is the marker around it");
  assert.equal(stack.vertical(at(0, 1), 1), at(1, 1));
  assert.equal(stack.vertical(at(0, 0), -1), -1);
  assert.equal(stack.beside(at(0, 1), 1), at(0, 2));
  assert.equal(stack.beside(at(0, 2), 1), -1);
  assert.equal(stack.sameName(at(1, 1), 1), at(1, 2));
  assert.equal(stack.sameName(at(0, 2), 1), -1, "a name of slices is no name of calls");
  assert.deepEqual(stack.source(at(1, 3)), { track: calls, item: 3 });
});

test("slices and calls that cross each other never overlap on a level", () => {
  const next = random(11);
  const tree = (kind, id) => {
    const rows = [];
    const grow = (from, to, depth) => {
      for (let time = from + next(20); time < to && rows.length < 3000;) {
        const end = Math.min(to, time + 1 + next(400 >> depth));
        rows.push([time, end, depth]);
        if (depth < 5) grow(time, end, depth + 1);
        time = end + next(30);
      }
    };
    grow(0, 20000, 0);
    return track(id, kind, rows);
  };
  const stack = new Stack([tree("slices", 0), tree("calls", 1)], 1);
  let seen = 0;
  for (let level = 0; level < stack.levels; level++) {
    const row = stack.row(level);
    seen += row.count;
    for (let i = 1; i < row.count; i++) {
      assert.ok(stack.start[row.item(i)] >= stack.end[row.item(i - 1)], `level ${level}, place ${i}`);
    }
  }
  assert.equal(seen, stack.count, "each item is on one level");
});

test("a large trace is profiled in steps, with the same figures as in one go", () => {
  const next = random(5);
  const METHODS = 50;
  const spans = [];
  const call = (from, to, parent, depth) => {
    for (let time = from; time < to && spans.length < 130_000;) {
      const end = Math.min(to, time + 1 + next(6000 >> (2 * depth)));
      spans.push([time, end, parent]);
      if (depth < 5) call(time + 1, end, spans.length - 1, depth + 1);
      time = end + next(20);
    }
  };
  call(0, 1e9, -1, 0);
  const sources = [
    {
      thread: 0,
      track: 0,
      base: 0,
      start: Float64Array.from(spans, ([start]) => start),
      end: Float64Array.from(spans, ([, end]) => end),
      parent: Int32Array.from(spans, ([, , parent]) => parent),
      label: Uint32Array.from(spans, () => next(METHODS)),
    },
  ];
  const rows = { by: "method", count: METHODS, rowOf: Uint32Array.from({ length: METHODS }, (_, i) => i) };
  const last = spans.at(-1)[1];
  assert.ok(spans.length > 100_000);
  for (const window of [
    { from: 0, to: Infinity },
    { from: last * 0.21, to: last * 0.83 },
    { from: last * 0.5, to: Infinity },
  ]) {
    const index = new page.FlatIndex(sources, rows);
    assert.equal(index.ready(window), false);
    let steps = 0;
    for (; !index.ready(window); steps++) assert.equal(index.prepare(window), true);
    assert.ok(steps > 1, `${steps} steps`);
    const [found, wanted] = [index.of(window), page.flatProfile(sources, rows, window)];
    assert.deepEqual(found.figures, wanted.figures);
    assert.equal(found.wallTotal, wanted.wallTotal);
    while (index.prepare(window)) steps++;
    assert.ok(index.ready({ from: 1, to: last / 2 }) && index.ready({ from: 0, to: Infinity }), "all is prepared");
  }
});

test("the search visits each match once, in order of time, in both directions", () => {
  const trace = {
    strings: ["", "needle one", "hay", "NEEDLE two"],
    methods: null,
    methodName: () => "",
    threads: [
      { name: "needle thread", tid: 1, process: 0 },
      { name: "other", tid: 2, process: 0 },
    ],
    index: { processes: [{ name: "p", pid: 1 }] },
    tracks: [
      track(0, "slices", [
        [5, 9, 0, 1],
        [20, 30, 0, 3],
        [20, 25, 1, 1],
      ]),
      track(1, "slices", [
        [1, 2, 0, 3],
        [20, 21, 0, 1],
        [40, 50, 0, 2],
      ]),
    ],
  };
  const found = searchMatches(trace, "needle");
  const visit = (step) =>
    Array.from({ length: found.count }, () => found[step]()).map((selection) =>
      selection.kind === "thread" ? `thread ${selection.thread}` : `${selection.track}:${selection.item}`,
    );
  // The number 1 is the first thread's, and the process's.
  const forward = visit("next");
  assert.deepEqual(forward, ["thread 0", "1:0", "0:0", "0:1", "0:2", "1:1"]);
  assert.deepEqual(visit("next"), forward, "after the last comes the first");
  const back = visit("previous");
  assert.deepEqual(back, [...forward.slice(0, -1).reverse(), forward.at(-1)]);
  assert.equal(searchMatches(trace, "  ").count, 0);
  assert.equal(searchMatches(trace, "nothing").next(), null);
});

test("times and values read as people write them", () => {
  assert.equal(page.formatDuration(0), "0 ns");
  assert.equal(page.formatDuration(999), "999 ns");
  assert.equal(page.formatDuration(1234), "1.234 µs");
  assert.equal(page.formatDuration(12345678), "12.35 ms");
  assert.equal(page.formatMoment(1250003417), "1.250 003 417 s");
  const index = { start_ns: "9007199254740993123", wall_start_ns: "1396187895123456789" };
  assert.equal(page.formatClock(index, 2), "9007199254.740993125 s");
  assert.equal(page.formatWall(index, 1e9), "2014-03-30 13:58:16.123456 UTC");
  assert.equal(page.formatTick(2500000, 500000, 4e6), "2.5 ms");
  assert.equal(page.rulerStep(130), 200);
  assert.equal(page.formatValue(2400000, "kHz"), "2.4 GHz");
  assert.equal(page.formatValue(12.5, "MB"), "12.5 MB");
});

/** A trace of what threads did: `[from, to, cause, subject, follow]`, and of one thread the slices `[from, to, name]`. */
function tracedCauses(threads, slices = []) {
  const strings = [];
  const id = (text) => {
    if (!strings.includes(text)) strings.push(text);
    return strings.indexOf(text);
  };
  const tracks = threads.map((rows, thread) => ({
    id: thread,
    thread,
    kind: "causes",
    role: "causes",
    count: rows.length,
    causes: {
      start: Float64Array.from(rows, ([from]) => from),
      end: Float64Array.from(rows, ([, to]) => to),
      cause: Uint32Array.from(rows, ([, , cause]) => id(cause)),
      subject: Uint32Array.from(rows, ([, , , subject]) => (subject ? id(subject) + 1 : 0)),
      follow: Uint32Array.from(rows, ([, , , , follow]) => (follow === undefined ? 0 : follow + 1)),
    },
  }));
  const spans = {
    start: Float64Array.from(slices, ([from]) => from),
    end: Float64Array.from(slices, ([, to]) => to),
    depth: Uint16Array.from(slices, ([, , , depth]) => depth),
    label: Uint32Array.from(slices, ([, , name]) => id(name)),
  };
  tracks.push({ id: 9, thread: 0, kind: "slices", role: "atrace", count: slices.length, spans });
  const lives = threads.map(() => ({ process: null }));
  return { strings, tracks, threads: lives, spanName: (track, item) => strings[track.spans.label[item]] };
}

const told = ({ causes }) =>
  causes.map(({ hops, ns, count }) => [hops.map(({ cause, thread }) => `${cause} ${thread}`).join(" > "), ns, count]);

test("the critical path follows waits over threads, and its causes add up", () => {
  const trace = tracedCauses(
    [
      [
        [0, 10, "running"],
        [10, 60, "lock", "", 1],
        [60, 80, "running"],
      ],
      [
        [0, 20, "running"],
        [20, 50, "disk", "base.apk"],
        [50, 90, "running"],
      ],
    ],
    [
      [0, 80, "load", 0],
      [65, 75, "inner", 1],
    ],
  );
  const path = page.criticalPath(trace, [{ thread: 0, from: 5, to: 100 }]);
  assert.deepEqual(told(path), [
    ["lock 0 > disk 1", 30, 1],
    ["lock 0 > running 1", 20, 2],
    ["not_recorded 0", 20, 1],
    ["running 0", 15, 3],
    ["running 0", 10, 1],
  ]);
  // Slices are code of the app: each is a line of its own.
  assert.deepEqual(path.causes[3].subjects, [{ name: "load", ns: 15 }]);
  assert.deepEqual(path.causes[4].subjects, [{ name: "inner", ns: 10 }]);
  assert.deepEqual(path.causes[0].subjects, [{ name: "base.apk", ns: 30 }]);
  assert.equal(path.ns, 95);
  let at = 5;
  for (const { from, to } of path.steps) {
    assert.equal(from, at);
    at = to;
  }
  assert.equal(at, 100);
});

test("a path that leads in a circle ends", () => {
  const trace = tracedCauses([[[0, 10, "lock", "", 1]], [[0, 10, "lock", "", 0]]]);
  const path = page.criticalPath(trace, [{ thread: 0, from: 0, to: 10 }]);
  assert.equal(path.ns, 10);
  assert.equal(path.causes[0].hops.at(-1).cause, "unexplained");
});

/** Runs steps to their end: their value, and how many there were. */
function run(steps) {
  for (let count = 0; ; count++) {
    const { done, value } = steps.next();
    if (done) return { value, count };
  }
}

test("a name has one colour everywhere, and numbers in it do not matter", () => {
  const color = page.colorOfName;
  assert.equal(color("doFrame 17"), color("doFrame 123456"));
  const used = new Set(
    Array.from({ length: 26 * 26 }, (_, i) => color(String.fromCharCode(97 + (i % 26), 97 + i / 26))),
  );
  assert.ok(used.size >= 27, `${used.size} colours`);
});

test("a percentile lies between the two nearest ranks, as in the program", () => {
  const of = (numbers, percent) => page.percentile(numbers.length, (rank) => numbers[rank], percent);
  assert.equal(of([], 50), null);
  assert.equal(of([7], 99), 7);
  assert.equal(of([10, 20, 30, 40], 50), 25);
  assert.equal(
    of(
      Array.from({ length: 101 }, (_, i) => i),
      95,
    ),
    95,
  );
  assert.equal(of([-10, 0], 90), -1);
});

test("numbers are ordered in steps: equal ones by their places, unknown ones last", () => {
  const next = random(9);
  for (const count of [0, 1, 50, 120_000]) {
    const values = Float64Array.from({ length: count }, (_, i) => {
      const kind = next(8);
      if (kind === 0) return NaN;
      if (kind === 1) return -next(1000) / 7;
      if (kind === 2) return i % 2 ? 0 : -0;
      return kind === 3 ? next(2 ** 30) * 2 ** 22 : next(500);
    });
    for (const down of [false, true]) {
      const { value: found, count: steps } = run(page.order(values, down));
      const sign = down ? -1 : 1;
      const wanted = Array.from(values, (_, i) => i).sort((a, b) => {
        const [x, y] = [values[a], values[b]];
        if (Number.isNaN(x) || Number.isNaN(y)) return Number(Number.isNaN(x)) - Number(Number.isNaN(y)) || a - b;
        return sign * (x - y) || a - b;
      });
      assert.deepEqual([...found], wanted, `${count} ${down}`);
      if (count > 100_000) assert.ok(steps >= 5, `${steps} steps`);
    }
  }
});

test("groups have sums and percentiles of what is known, and list their items largest first", () => {
  const values = Float64Array.of(5, 1, NaN, 3, 10, NaN);
  const { value: groups } = run(page.Groups.of(["a", "b", "c"], Uint32Array.of(0, 0, 0, 0, 1, 2), values));
  const { figures } = groups;
  assert.deepEqual([...figures.count], [4, 1, 1]);
  assert.deepEqual([...figures.sum], [9, 10, NaN]);
  assert.deepEqual([...figures.mean], [3, 10, NaN]);
  assert.deepEqual([...figures.min], [1, 10, NaN]);
  assert.deepEqual([...figures.max], [5, 10, NaN]);
  assert.deepEqual([...figures.p90], [4.6, 10, NaN]);
  assert.deepEqual([...figures.share], [9 / 19, 10 / 19, NaN]);
  assert.deepEqual(
    [0, 1, 2, 3].map((rank) => groups.place(0, rank, values)),
    [0, 3, 1, 2],
  );
  assert.equal(groups.place(2, 0, values), 5);
  groups.sort({ id: "sum", down: true });
  assert.deepEqual([...groups.order], [1, 0, 2]);
  groups.sort({ id: "name", down: false });
  assert.deepEqual([...groups.order], [0, 1, 2]);
});

test("fields of CSV are quoted, and none is run by a spreadsheet", () => {
  assert.equal(page.csvField("plain"), "plain");
  assert.equal(page.csvField('a "b", c'), '"a ""b"", c"');
  assert.equal(page.csvField("two\nlines"), '"two\nlines"');
  assert.equal(page.csvField("=1+1"), "'=1+1");
  assert.equal(page.csvField('@SUM("a")'), `"'@SUM(""a"")"`);
  assert.equal(page.csvField("-12.5"), "-12.5");
});

test("a column of times has one unit", () => {
  const text = (most, ns) => {
    const unit = page.columnUnit(most);
    return `${page.inUnit(ns, unit)} ${unit.name}`;
  };
  assert.equal(text(900, 17), "17 ns");
  assert.equal(text(1e6 - 1, 17), "0.017 µs");
  assert.equal(text(2e9, 1_234_567_890), "1,234.568 ms");
  assert.equal(text(3e12, 2e9), "2.000 s");
});

test("the choice of a table is told by a link, and what does not fit is as at first", () => {
  const { FIRST_TABLE, parseTableChoice, tableChoiceText } = page;
  assert.equal(tableChoiceText(FIRST_TABLE), null);
  const choice = { ...FIRST_TABLE, kind: "states", by: "", filter: "a&b", sort: { id: "duration", down: false } };
  assert.deepEqual(parseTableChoice(tableChoiceText(choice)), choice);
  for (const bad of [null, "", "{", "[1]", "null", '{"kind":7,"sort":{"id":1}}', '{"inView":"yes"}'])
    assert.deepEqual(parseTableChoice(bad), FIRST_TABLE, bad);
});
