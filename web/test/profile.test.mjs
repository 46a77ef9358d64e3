// The profile panel: its figures against the plain reference, by window, group and thread; sorting, filtering,
// unfolding, selecting, by mouse and by keyboard.

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";

import { pageOf } from "./fixture.mjs";
import { KINDS } from "./fixture_traces.mjs";
import {
  browserTest,
  browsersOfRun,
  clickButton,
  eventually,
  gridRows,
  link,
  openPage,
  scratch,
  setControl,
  settled,
  texts,
} from "./harness.mjs";
import { callsOf, profileOf } from "./profile_reference.mjs";

const directory = scratch();
const trace = shortened(KINDS.launch(), 20_000);
const FILE = join(directory, "launch.html");
writeFileSync(FILE, pageOf([["trace", trace]]));
const calls = callsOf(trace);
const methodName = ({ key }) => {
  const text = (column) => trace.strings[trace.methods[column][key]];
  return `${text("class")}.${text("name")} ${text("signature")}`.trim();
};

/** The trace with only the first calls, so that the tests are quick. */
function shortened(trace, count) {
  for (const track of trace.tracks.filter(({ kind }) => kind === "calls")) {
    for (const [name, values] of Object.entries(track.columns)) track.columns[name] = values.slice(0, count);
  }
  return trace;
}

const ends = calls.map(({ end }) => end).sort((a, b) => a - b);
/** Windows that begin and end inside of calls, and one that is shorter than any of them. */
const WINDOWS = [
  [ends[2000] + 7, ends[9000] - 3],
  [ends[5000], ends[5000] + 1],
  [0, ends[12000]],
];

/** Waits until the profile shows a window. */
async function shownWindow(page, from, to) {
  // A page behind another one draws no frames, and the profile is made in a frame.
  await page.bringToFront();
  await eventually("the profile shows the chosen period", async () => {
    assert.equal(await page.$eval(".window-line", (line) => line.dataset.window), `${from}-${to}`);
  });
  await settled(page);
}

/** The figures of a grid row of the table with wall and CPU times. */
function figures({ text, exact }) {
  const [calls, recursive] = exact[9].match(/\d+/g).map(Number);
  const ns = (at) => Number(/^(-?\d+) ns$/.exec(exact[at])[1]);
  return { name: exact[0], shown: text[0], calls, recursive, inclusive: ns(2), exclusive: ns(4) };
}

function compare(rows, expected) {
  assert.equal(rows.length, expected.size, "number of rows");
  for (const row of rows.map(figures)) {
    const { name, shown, ...found } = row;
    assert.deepEqual(found, expected.get(name), `${shown}: ${name}`);
  }
}

for (const browser of browsersOfRun) {
  browserTest(browser, "the table equals the reference, for the whole trace and for windows", async (running) => {
    const { page, problems } = await openPage(running, FILE);
    compare(await gridRows(page), profileOf(calls, methodName));
    for (const [from, to] of WINDOWS) {
      await page.evaluate((hash) => {
        location.hash = hash;
      }, `range=${from}-${to}`);
      await shownWindow(page, from, to);
      compare(await gridRows(page), profileOf(calls, methodName, from, to));
    }
    assert.deepEqual(problems, []);
  });
}

browserTest("chromium", "rows by class, package and thread equal the reference", async (browser) => {
  const { page, problems } = await openPage(browser, FILE);
  const owner = ({ key }) => trace.strings[trace.methods.class[key]];
  await setControl(page, "Rows", "class");
  compare(await gridRows(page), profileOf(calls, owner));
  await setControl(page, "Rows", "package");
  compare(
    await gridRows(page),
    profileOf(calls, (call) => owner(call).replace(/\.[^.]*$/, "")),
  );
  await setControl(page, "Rows", "thread");
  const threads = ({ thread }) => `${trace.threads[thread].name} (${trace.threads[thread].tid})`;
  compare(await gridRows(page), profileOf(calls, threads));
  assert.deepEqual(problems, []);
});

browserTest("chromium", "slices are profiled like calls, and both together", async (browser) => {
  const { page, problems } = await openPage(browser, FILE);
  await setControl(page, "Threads", "all");
  await clickButton(page, "Slices", ".profile");
  const slices = profileOf(callsOf(trace, "slices"), ({ key }) => trace.strings[key]);
  const found = new Map((await gridRows(page)).map(({ exact }) => [exact[0], exact]));
  assert.equal(found.size, slices.size);
  for (const [name, row] of slices) {
    assert.equal(found.get(name)[2], `${row.inclusive} ns`, name);
    assert.equal(found.get(name)[4], `${row.exclusive} ns`, name);
  }
  assert.deepEqual(problems, []);
});

browserTest("chromium", "slices and calls together are one tree", async (browser) => {
  const { page, problems } = await openPage(browser, writeNested());
  await clickButton(page, "Both", ".profile");
  const found = new Map((await gridRows(page)).map(({ exact }) => [exact[0], [exact[2], exact[4], exact[5]]]));
  const row = (inclusive, exclusive, calls) => [`${inclusive} ns`, `${exclusive} ns`, calls];
  // outer 0-100 { m0 10-60 { inner 20-50 { m1 25-45 { m0 30-40 } } } m1 70-90 { late 80-95, which outlasts it } }
  assert.deepEqual(
    found,
    new Map([
      ["outer", row(100e3, 30e3, "1 calls and 0 recursive calls")],
      ["a.B.m0 ()V", row(50e3, 30e3, "1 calls and 1 recursive calls")],
      ["a.B.m1 ()V", row(40e3, 20e3, "2 calls and 0 recursive calls")],
      ["inner", row(30e3, 10e3, "1 calls and 0 recursive calls")],
      ["late", row(15e3, 15e3, "1 calls and 0 recursive calls")],
    ]),
  );
  assert.deepEqual(problems, []);
});

/** A page of one thread whose slices and calls enclose each other. */
function writeNested() {
  const strings = ["", "outer", "inner", "late", "a.B", "m0", "m1", "()V", "app"];
  const times = (spans) => ({
    start: spans.map(([from]) => from * 1e3),
    duration: spans.map(([from, to]) => (to - from) * 1e3),
    depth: spans.map(([, , depth]) => depth),
  });
  const { summary } = trace;
  const file = join(directory, "nested.html");
  writeFileSync(
    file,
    pageOf([
      [
        "trace",
        {
          ...trace,
          strings,
          summary,
          duration_ns: 100e3,
          launches: [],
          frames: [],
          methods: { class: [4, 4], name: [5, 6], signature: [7, 7], file: [0, 0], inclusive: [50e3, 40e3] },
          processes: [{ pid: 1, name: "app" }],
          threads: [{ tid: 1, process: 0, name: "app", main: true, busy_ns: 1, doubt: null }],
          tracks: [
            {
              kind: "slices",
              role: "atrace",
              thread: 0,
              depth: 2,
              columns: {
                ...times([
                  [0, 100, 0],
                  [20, 50, 1],
                  [80, 95, 1],
                ]),
                name: [1, 2, 3],
              },
            },
            {
              kind: "calls",
              role: "methods",
              thread: 0,
              depth: 3,
              columns: {
                ...times([
                  [10, 60, 0],
                  [25, 45, 1],
                  [30, 40, 2],
                  [70, 90, 0],
                ]),
                method: [0, 1, 0, 1],
              },
            },
          ],
        },
      ],
    ]),
  );
  return file;
}

browserTest("chromium", "a row unfolds to its parents and children, whose times add up", async (browser) => {
  const { page, problems } = await openPage(browser, FILE);
  await page.focus(".grid");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowRight");
  await settled(page);
  const rows = await gridRows(page);
  const at = rows.findIndex(({ level }) => level === 2);
  const whole = figures(rows[at - 1]);
  const block = rows.slice(at).slice(
    0,
    rows.slice(at).findIndex(({ level }) => level === 1),
  );
  const headings = block.filter(({ classes }) => classes.includes("heading")).map(({ text }) => text[0]);
  assert.deepEqual(headings, ["Parents", "Children", "Parents while recursive", "Children while recursive"]);
  const sums = {};
  let heading = "";
  for (const row of block) {
    if (row.classes.includes("heading")) {
      heading = row.text[0];
      sums[heading] = { time: 0, calls: 0 };
      continue;
    }
    sums[heading].time += Number(/\d+/.exec(row.exact[2])[0]);
    if (!row.text[0].startsWith("self")) sums[heading].calls += Number(row.text[9].split("/")[0].replace(/,/g, ""));
  }
  assert.equal(sums.Parents.time, whole.inclusive);
  assert.equal(sums.Children.time, whole.inclusive);
  assert.equal(sums.Parents.calls, whole.calls);
  assert.equal(sums["Parents while recursive"].calls, whole.recursive);
  assert.ok(block.some(({ text }) => text[0] === "self"));
  const of = calls.filter((call) => methodName(call) === whole.name && call.parent);
  const child = calls.filter((call) => call.parent && of.includes(call.parent)).length;
  assert.ok(child >= sums.Children.calls, "no more children than there are");
  await page.keyboard.press("ArrowLeft");
  await settled(page);
  assert.equal((await gridRows(page)).filter(({ level }) => level > 1).length, 0);
  assert.deepEqual(problems, []);
});

browserTest("chromium", "columns sort, and the filter folds case", async (browser) => {
  const { page, problems } = await openPage(browser, FILE);
  const expected = [...profileOf(calls, methodName)];
  await page.evaluate(() =>
    [...document.querySelectorAll(".grid-head button")].find((b) => b.textContent.startsWith("Excl wall ms")).click(),
  );
  await settled(page);
  const byExclusive = (await gridRows(page)).map((row) => figures(row).exclusive);
  assert.deepEqual(
    byExclusive,
    expected.map(([, row]) => row.exclusive).sort((a, b) => b - a),
  );
  await page.evaluate(() =>
    [...document.querySelectorAll(".grid-head button")].find((b) => b.textContent.startsWith("Name")).click(),
  );
  await settled(page);
  const names = (await gridRows(page)).map(({ exact }) => exact[0].toLowerCase());
  assert.deepEqual(names, [...names].sort());
  await setControl(page, "Filter", "LAYOUT.DRAW");
  const found = (await gridRows(page)).map(({ exact }) => exact[0]);
  assert.deepEqual(
    new Set(found),
    new Set(expected.map(([name]) => name).filter((name) => name.toLowerCase().includes("layout.draw"))),
  );
  assert.ok(found.length > 0 && found.length < expected.length);
  assert.deepEqual(problems, []);
});

browserTest("chromium", "a row selects its method, and is shown in the timeline by the keyboard", async (browser) => {
  const { page, problems } = await openPage(browser, FILE);
  await page.focus(".grid");
  await page.keyboard.press("End");
  await page.keyboard.press("Enter");
  await settled(page);
  const [name] = await page.$$eval(".grid-row.selected .cell", (cells) => cells.map((cell) => cell.title));
  await link(page, "the selected method", (parts) => {
    const [kind, owner, method, signature] = JSON.parse(parts.get("select")) ?? [];
    assert.equal(kind, "method");
    assert.equal(`${owner}.${method} ${signature}`, name);
  });
  await page.keyboard.down("Shift");
  await page.keyboard.press("Enter");
  await page.keyboard.up("Shift");
  const longest = calls
    .filter((call) => methodName(call) === name)
    .reduce((a, b) => (b.end - b.start > a.end - a.start ? b : a));
  await link(page, "the longest call", (parts) => {
    assert.equal(JSON.parse(parts.get("select"))[0], "span");
    const [from, to] = parts.get("view").split("-").map(Number);
    assert.ok(from <= longest.start && to >= longest.end && to - from < 2 * (longest.end - longest.start) + 2000);
  });
  await settled(page);
  assert.equal((await texts(page, ".window-line"))[0].startsWith("Visible part"), true);
  assert.deepEqual(problems, []);
});

browserTest("chromium", "the call tree, bottom up and the flame graph show the same time", async (browser) => {
  const { page, problems } = await openPage(browser, FILE);
  const reference = profileOf(calls, methodName);
  const total = [...reference.values()].reduce((sum, row) => sum + row.exclusive, 0);
  await clickButton(page, "Call tree");
  const tree = await gridRows(page);
  const sum = (rows, at) => rows.reduce((sum, { exact }) => sum + Number(/\d+/.exec(exact[at])[0]), 0);
  assert.equal(
    sum(
      tree.filter(({ level }) => level === 1),
      2,
    ),
    total,
  );
  assert.equal(
    sum(
      tree.filter(({ level }) => level === 2),
      2,
    ),
    total,
  );
  await clickButton(page, "Bottom up");
  const up = await gridRows(page);
  assert.equal(up.length, reference.size);
  for (const { exact } of up) {
    const name = [...reference.keys()].find((key) => key.startsWith(`${exact[0]} `));
    assert.equal(exact[2], `${reference.get(name).exclusive} ns`, exact[0]);
  }
  await page.focus(".grid");
  await page.keyboard.press("ArrowRight");
  await settled(page);
  const callers = (await gridRows(page)).filter(({ level }) => level === 2);
  assert.ok(callers.length > 0 && sum(callers, 2) <= Number(/\d+/.exec(up[0].exact[2])[0]));
  await clickButton(page, "Flame graph");
  assert.match((await texts(page, ".flame-line"))[0], /100\.0 % of the window/);
  await page.focus(".flame-canvas");
  await page.keyboard.press("ArrowDown");
  await settled(page);
  assert.match((await texts(page, ".flame-line"))[0], /, [\d,]+ calls?$/);
  const before = await page.$eval(".flame-canvas", (canvas) => canvas.toDataURL());
  await page.keyboard.press("Enter");
  await settled(page);
  assert.notEqual(await page.$eval(".flame-canvas", (canvas) => canvas.toDataURL()), before, "zooming draws anew");
  await page.keyboard.press("Escape");
  await settled(page);
  assert.deepEqual(problems, []);
});

browserTest("chromium", "the profile opens with the main thread and its CPU time", async (browser) => {
  const { page, problems } = await openPage(browser, FILE);
  const chosen = await page.$$eval("label.field select", (all) =>
    all.map((select) => select.selectedOptions[0].textContent),
  );
  assert.ok(chosen.includes("com.example.app (1000)"), chosen.join());
  assert.equal(await page.$eval("[aria-sort]", (head) => head.textContent.trim().slice(0, 11)), "Incl CPU ms");
  await clickButton(page, "Flame graph");
  const line = () => page.$eval(".flame-line", (element) => element.textContent);
  assert.match(await line(), / of CPU time \(100\.0 % of the window\)/);
  const text = await line();
  await clickButton(page, "Off CPU");
  assert.match(await line(), / without a CPU, of /);
  await clickButton(page, "Wall");
  assert.notEqual(await line(), text);
  assert.doesNotMatch(await line(), /CPU/);
  assert.deepEqual(problems, []);
});

browserTest("chromium", "columns are as wide as their figures", async (browser) => {
  const long = KINDS.small();
  const track = long.tracks.find(({ kind }) => kind === "calls");
  // A call of a day: 86,400,000.000 ms.
  const day = 86_400_000_000_000;
  long.duration_ns = day;
  track.columns.duration = track.columns.duration.map((ns, i) => (i === 0 ? day - track.columns.start[0] : ns));
  const file = join(directory, "long.html");
  writeFileSync(file, pageOf([["trace", long]]));
  const { page, problems } = await openPage(browser, file);
  await setControl(page, "Threads", "all");
  const cut = await page.$$eval(".grid-row .cell.number .text", (all) =>
    all.filter((text) => text.scrollWidth > text.clientWidth).map((text) => text.textContent),
  );
  assert.deepEqual(cut, []);
  const widest = await texts(page, ".grid-row .cell.number .text");
  assert.ok(
    widest.some((text) => /^86,3\d\d,\d{3}\.\d{3}$/.test(text)),
    widest.join(),
  );
  assert.deepEqual(problems, []);
});
