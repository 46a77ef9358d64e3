// The table panel: its figures against those of the fixture's own columns, filters, periods, sorting, the way to the
// timeline, and the file that it saves.

import assert from "node:assert/strict";
import { join } from "node:path";

import { writeFixture } from "./fixture.mjs";
import { KINDS } from "./fixture_traces.mjs";
import {
  browserTest,
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

const MS = 1e6;
const FILE = join(scratch(), "tasks.html");
writeFixture("tasks", FILE);
const TRACE = KINDS.tasks();

const state = (page, member) => page.evaluate((member) => window.__tracebridge.timeline.store.state[member], member);
const heads = (page) => texts(page, ".table-panel .grid-head .cell");
/** The exact figures of a row by the heads of their columns. */
function figures(row, columns) {
  const entries = columns.map((column, at) => [column.replace(/ (ns|µs|ms|s)( [▾▴])?$| [▾▴]$/, ""), row.exact[at]]);
  return Object.fromEntries(
    entries.map(([name, exact]) => [name, /^-?[\d.]+ ns$/.test(exact) ? parseFloat(exact) : exact]),
  );
}
const question = (page, title) => clickButton(page, title, ".questions");

/** The items of some tracks as `[text, start, end]`. */
function items(wanted, text) {
  return TRACE.tracks
    .filter(wanted)
    .flatMap((track) =>
      Array.from(track.columns.start, (start, i) => [text(track, i), start, start + track.columns.duration[i]]),
    );
}
/** Percentiles and sums, computed in another way than the page does. */
function summary(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const at = (part) => {
    const [low, rest] = [Math.floor((sorted.length - 1) * part), ((sorted.length - 1) * part) % 1];
    return sorted[low] * (1 - rest) + (sorted[low + 1] ?? sorted[low]) * rest;
  };
  const sum = sorted.reduce((a, b) => a + b, 0);
  return {
    Sum: sum,
    Min: sorted[0],
    Mean: sum / sorted.length,
    p50: at(0.5),
    p90: at(0.9),
    p95: at(0.95),
    p99: at(0.99),
    Max: sorted.at(-1),
  };
}
function checkGroups(rows, columns, wanted) {
  const groups = new Map();
  for (const item of wanted) groups.set(item[0], [...(groups.get(item[0]) ?? []), item]);
  assert.equal(rows.length, groups.size);
  for (const row of rows) {
    const of = groups.get(row.exact[0] === "(none)" ? "" : row.exact[0]);
    assert.ok(of, row.exact[0]);
    const shown = figures(row, columns);
    for (const [name, value] of Object.entries(summary(of.map(([, from, to]) => to - from))))
      assert.ok(
        Math.abs(shown[name] - value) < 1e-3 + 1e-9 * value,
        `${row.exact[0]} ${name}: ${shown[name]}, ${value}`,
      );
    assert.equal(row.text[columns.findIndex((c) => c.startsWith("Count"))], of.length.toLocaleString("en-US"));
  }
}

const isSlice = ({ kind, role }) => kind === "slices" && ["atrace", "async", "own"].includes(role);
const name = (track, i) => TRACE.strings[track.columns.name[i]];

browserTest("chromium", "groups have the figures of their items, in the trace and in a period", async (browser) => {
  const { page, problems } = await openPage(browser, FILE, { fragment: "panel=table" });
  const all = items(isSlice, name);
  checkGroups(await gridRows(page), await heads(page), all);
  const { length } = all;
  assert.ok(
    (await texts(page, ".table-line"))[0].startsWith(`Whole trace: ${length.toLocaleString("en-US")} items of`),
  );
  const range = { from: 1000 * MS, to: 1300 * MS };
  await page.evaluate((range) => window.__tracebridge.timeline.store.set({ range }), range);
  await settled(page);
  const inside = all
    .filter(([, from, to]) => from < range.to && to > range.from)
    .map(([name, from, to]) => [name, Math.max(from, range.from), Math.min(to, range.to)]);
  assert.ok(inside.length > 100 && inside.length < length);
  checkGroups(await gridRows(page), await heads(page), inside);
  await clickButton(page, "Drop the period", ".table-panel");
  assert.equal(await state(page, "range"), null);
  assert.deepEqual(problems, []);
});

browserTest("chromium", "states, CPUs and wakers are tables too", async (browser) => {
  const { page, problems } = await openPage(browser, FILE, { fragment: "panel=table" });
  const process = (thread) => {
    const { name, pid } = TRACE.processes[TRACE.threads[thread].process];
    return `${name} (${pid})`;
  };
  await question(page, "CPU by process");
  const ran = items(
    ({ role }) => role === "running",
    ({ columns }, i) => process(columns.thread[i] - 1),
  );
  checkGroups(await gridRows(page), await heads(page), ran);
  await question(page, "Who woke the main thread");
  const main = TRACE.launches[0].thread;
  const woken = items(
    ({ kind, thread }) => kind === "states" && thread === main,
    ({ columns }, i) => {
      if (!/sleep/i.test(TRACE.strings[columns.state[i]])) return null;
      const waker = columns.waker[i];
      return waker ? `${TRACE.threads[waker - 1].name} (${TRACE.threads[waker - 1].tid})` : "";
    },
  ).filter(([waker]) => waker !== null);
  checkGroups(await gridRows(page), await heads(page), woken);
  assert.deepEqual(problems, []);
});

browserTest("chromium", "who ran while a thread was ready is what its next CPU did", async (browser) => {
  const { page, problems } = await openPage(browser, FILE, { fragment: "panel=table" });
  await question(page, "Who ran while it was ready");
  const main = TRACE.launches[0].thread;
  const { columns } = TRACE.tracks.find(({ kind, thread }) => kind === "states" && thread === main);
  const wanted = [];
  columns.start.forEach((start, i) => {
    if (!/^Runnable/.test(TRACE.strings[columns.state[i]]) || !columns.cpu[i + 1]) return;
    const end = start + columns.duration[i];
    const running = TRACE.tracks.find(({ role, cpu }) => role === "running" && cpu === columns.cpu[i + 1] - 1).columns;
    running.start.forEach((from, at) => {
      const to = from + running.duration[at];
      const { name, tid } = TRACE.threads[running.thread[at] - 1];
      if (from < end && to > start && running.thread[at] - 1 !== main)
        wanted.push([`${name} (${tid})`, Math.max(from, start), Math.min(to, end)]);
    });
  });
  const rows = await gridRows(page);
  assert.ok(wanted.length > 0, "the fixture has such waits");
  checkGroups(rows, await heads(page), wanted);
  assert.deepEqual(problems, []);
});

browserTest("chromium", "rows are filtered, sorted, unfolded, and lead to the timeline", async (browser) => {
  const { page, problems } = await openPage(browser, FILE, { fragment: "panel=table" });
  await setControl(page, "Filter", "BINDER");
  await setControl(page, "Rows", "");
  const rows = await gridRows(page);
  const all = items(isSlice, name).filter(([name]) => name === "binder transaction");
  const inThread = TRACE.tracks.filter(isSlice).filter(({ thread }) => /^Binder/.test(TRACE.threads[thread]?.name));
  assert.equal(rows.length > all.length, inThread.length > 0, "threads are looked into as well");
  await setControl(page, "in", "name");
  const found = await gridRows(page);
  assert.equal(found.length, all.length);
  const durations = (rows) => rows.map((row) => parseInt(row.exact[1], 10));
  const sorted = all.map(([, from, to]) => to - from).sort((a, b) => b - a);
  assert.deepEqual(durations(found), sorted, "the longest first");
  await page.evaluate(() => [...document.querySelectorAll(".grid-head button")][1].click());
  await settled(page);
  assert.deepEqual(durations(await gridRows(page)), [...sorted].reverse());
  await page.click(".grid-row:first-child");
  await settled(page);
  const selection = await state(page, "selection");
  const { columns } = TRACE.tracks[selection.track];
  assert.equal(columns.duration[selection.item], sorted.at(-1));
  assert.equal(TRACE.strings[columns.name[selection.item]], "binder transaction");
  const view = await state(page, "view");
  assert.ok(view.from < columns.start[selection.item] && view.to > columns.start[selection.item]);
  await setControl(page, "Rows", "thread");
  await page.focus(".grid");
  await page.keyboard.press("ArrowRight");
  await settled(page);
  const unfolded = await gridRows(page);
  const first = Number(unfolded[0].text[1]);
  assert.equal(unfolded.filter(({ level }) => level === 2).length, first);
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await settled(page);
  const chosen = await state(page, "selection");
  assert.equal(TRACE.tracks[chosen.track].columns.duration[chosen.item], parseInt(unfolded[1].exact.at(-1), 10));
  const parts = await link(page, "the table", (parts) => assert.match(parts.get("table"), /"by":"thread"/));
  const again = await openPage(browser, FILE, { fragment: parts.toString() });
  assert.deepEqual((await gridRows(again.page))[0].text, unfolded[0].text);
  assert.deepEqual([...problems, ...again.problems], []);
});

browserTest("chromium", "a table is saved as CSV, with all rows and exact figures", async (browser) => {
  const before = () => {
    window.__files = [];
    URL.createObjectURL = (blob) => {
      window.__files.push(blob);
      return "blob:none";
    };
    HTMLAnchorElement.prototype.click = function () {
      window.__name = this.download;
    };
  };
  const { page, problems } = await openPage(browser, FILE, { fragment: "panel=table", before });
  const saved = async () => {
    await clickButton(page, "Save CSV");
    return eventually("the file is made", async () => {
      const text = await page.evaluate(() => window.__files.pop()?.text());
      assert.ok(text !== undefined);
      return text.trimEnd().split("\n");
    });
  };
  const [head, ...lines] = await saved();
  assert.equal(
    head,
    "Name,count,sum of duration ns,share,min of duration ns,mean of duration ns,"
      + "p50 of duration ns,p90 of duration ns,p95 of duration ns,p99 of duration ns,max of duration ns",
  );
  const rows = await gridRows(page);
  assert.equal(lines.length, rows.length);
  assert.equal(lines[0].split(",")[0], rows[0].text[0]);
  assert.equal(await page.evaluate(() => window.__name), "slices-by-name.csv");
  await setControl(page, "Table of", "counters");
  await setControl(page, "Rows", "");
  const [counters, ...values] = await saved();
  assert.equal(counters, "Counter,CPU,Thread,Process,Unit,Value,For ns,Begins at ns");
  const heap = TRACE.tracks.find(({ name }) => name === "Heap size");
  const mine = values.filter((line) => line.startsWith("Heap size,"));
  assert.equal(mine.length, heap.columns.time.length);
  assert.ok(mine[0].includes(",com.example.app (1000),MB,"), mine[0]);
  assert.deepEqual(problems, []);
});

browserTest("chromium", "every table of the trace opens, each grouped and by items", async (browser) => {
  const { page, problems } = await openPage(browser, FILE, { fragment: "panel=table" });
  const options = (label) =>
    page.evaluate(
      (label) =>
        [...document.querySelectorAll(".table-panel label.field")]
          .find((field) => field.querySelector("span").textContent === label)
          ?.querySelectorAll("option")
          .values()
          .map(({ value }) => value)
          .toArray(),
      label,
    );
  const kinds = await options("Table of");
  assert.deepEqual([...kinds].sort(), [
    "arrows",
    "calls",
    "causes",
    "counters",
    "events",
    "frames",
    "interrupts",
    "launches",
    "ready",
    "running",
    "slices",
    "states",
  ]);
  for (const kind of kinds) {
    await setControl(page, "Table of", kind);
    for (const by of await options("Rows")) {
      await setControl(page, "Rows", by);
      const [first] = await texts(page, ".table-panel .grid-row:first-child .cell:first-child .text");
      assert.ok(first, `${kind} by ${by || "items"}`);
      await page.click(".table-panel .grid-row:first-child");
      await settled(page);
      assert.notEqual(await state(page, "selection"), null, `${kind} by ${by || "items"}`);
    }
  }
  assert.deepEqual(problems, []);
});
