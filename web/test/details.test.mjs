// The details of the selection, the way to search hits, and the marks of hits on the ruler.

import assert from "node:assert/strict";
import { join } from "node:path";

import { writeFixture } from "./fixture.mjs";
import { KINDS } from "./fixture_traces.mjs";
import { browserTest, clickButton, eventually, openPage, scratch, settled, texts } from "./harness.mjs";

const MS = 1e6;
const directory = scratch();
const FILES = Object.fromEntries(
  ["small", "launch", "tasks"].map((kind) => {
    const file = join(directory, `${kind}.html`);
    writeFixture(kind, file);
    return [kind, file];
  }),
);

const state = (page, member) => page.evaluate((member) => window.__tracebridge.timeline.store.state[member], member);
const set = async (page, change) => {
  await page.evaluate((change) => window.__tracebridge.timeline.store.set(change), change);
  await settled(page);
};
/** The rows of a list of names and values. */
const facts = (page) =>
  page.$$eval(".details dl div", (rows) =>
    Object.fromEntries(rows.map((row) => [row.children[0].textContent.trim(), row.children[1].textContent.trim()])),
  );

browserTest("chromium", "whatever is selected has its details, with links that lead on", async (browser) => {
  const { page, problems } = await openPage(browser, FILES.small);
  assert.deepEqual(await texts(page, ".details"), [], "nothing is selected");
  // The call 0 of the small fixture lies in the slices "outer", "inner" and the one in it, from 4 to 9 ms.
  const tracks = await page.evaluate(() =>
    window.__tracebridge.timeline.store.state.trace.tracks.map(({ id, kind, role }) => ({ id, kind, role })),
  );
  const calls = tracks.find(({ kind }) => kind === "calls").id;
  await set(page, { selection: { kind: "span", track: calls, item: 0 } });
  const shown = await facts(page);
  assert.equal(shown.Duration, "5.000 ms");
  assert.equal(shown.Self, "2.000 ms");
  assert.equal(shown["CPU time"], "4.000 ms");
  assert.match(shown.Running, /^5\.000 ms · 100\.0 %$/);
  const parents = await page.$$eval(".details section:not(:has(.muted)) .link", (all) => all.map((l) => l.textContent));
  assert.equal(parents[0], "outer");
  assert.equal(parents.length, 3);
  await clickButton(page, "outer", ".details");
  const selection = await state(page, "selection");
  assert.equal(selection.kind, "span");
  assert.notEqual(selection.track, calls);
  assert.deepEqual(await texts(page, ".details h2"), ["outer"]);
  const relations = await texts(page, ".details li .muted");
  assert.ok(relations.includes("the next one"), relations.join());
  await page.click('.details [aria-label="Drop the selection"]');
  await settled(page);
  assert.equal(await state(page, "selection"), null);
  assert.deepEqual(problems, []);
});

browserTest("chromium", "a copy of the details is in the clipboard", async (browser) => {
  const before = () => {
    Object.defineProperty(navigator, "clipboard", {
      value: { writeText: (text) => Promise.resolve((window.__copied = text)) },
    });
  };
  const { page, problems } = await openPage(browser, FILES.launch, { fragment: "panel=launches", before });
  await set(page, { selection: { kind: "launch", launch: 0 } });
  await clickButton(page, "Copy", ".details");
  await eventually("the button says so", async () => {
    assert.ok((await texts(page, ".details button")).includes("Copied"));
  });
  const copied = await page.evaluate(() => window.__copied);
  assert.match(copied, /^cold launch of com\.example\.app\n[^]*Total: 882\.0 ms\nTTID: 855\.0 ms[^]*\nSleeping: /);
  assert.deepEqual(problems, []);
});

browserTest("chromium", "n and N go to search hits, which are centred and marked on the ruler", async (browser) => {
  const { page, problems } = await openPage(browser, FILES.launch, { fragment: "q=deliverInputEvent" });
  await eventually("the search counts", async () => {
    assert.match((await texts(page, ".search .count"))[0], /^\d+ matches$/);
  });
  const red = () =>
    page.evaluate(() => {
      const canvas = document.querySelector(".tl-ruler canvas");
      const copy = new OffscreenCanvas(canvas.width, 1).getContext("2d", { willReadFrequently: true });
      copy.drawImage(canvas, 0, -Math.round(20 * (devicePixelRatio || 1)));
      const { data } = copy.getImageData(0, 0, canvas.width, 1);
      let found = 0;
      for (let i = 0; i < data.length; i += 4) found += data[i] > 150 && data[i + 1] < 80 ? 1 : 0;
      return found;
    });
  assert.ok((await red()) > 20, "the hits are marked");
  await page.evaluate(() => document.activeElement.blur());
  await page.keyboard.press("n");
  await settled(page);
  const first = await state(page, "selection");
  const times = ({ track, item }) =>
    page.evaluate(
      (track, item) => {
        const { spans } = window.__tracebridge.timeline.store.state.trace.tracks[track];
        return [spans.start[item], spans.end[item]];
      },
      track,
      item,
    );
  await page.keyboard.press("n");
  await page.keyboard.press("n");
  await settled(page);
  const third = await state(page, "selection");
  const [from, to] = await times(third);
  const view = await state(page, "view");
  assert.ok(Math.abs((view.to - view.from) / (to - from) - 3) < 1e-6, "a third of the width");
  assert.ok(Math.abs((view.from + view.to) / 2 - (from + to) / 2) < MS, "in the middle");
  await page.keyboard.down("Shift");
  await page.keyboard.press("n");
  await page.keyboard.press("n");
  await page.keyboard.up("Shift");
  await settled(page);
  assert.deepEqual(await state(page, "selection"), first);
  assert.deepEqual(problems, []);
});

/** The links of the details as `[relation, name]`. */
const linksOf = (page) =>
  page.$$eval(".details li", (items) =>
    items.map((item) => [item.querySelector(".muted")?.textContent.trim(), item.querySelector(".link").textContent]),
  );
const TASKS = KINDS.tasks();
const threadName = (thread) => `${TASKS.threads[thread].name} (${TASKS.threads[thread].tid})`;

browserTest(
  "chromium",
  "a state tells who woke its thread, and who had its CPU while it was ready",
  async (browser) => {
    const { page, problems } = await openPage(browser, FILES.tasks);
    const main = TASKS.launches[0].thread;
    const track = TASKS.tracks.findIndex(({ kind, thread }) => kind === "states" && thread === main);
    const { columns } = TASKS.tracks[track];
    const item = columns.start.findIndex((_, i) => TASKS.strings[columns.state[i]] === "Sleeping" && columns.waker[i]);
    await set(page, { selection: { kind: "state", track, item } });
    const woken = (await linksOf(page)).filter(([relation]) => relation === "woken by");
    assert.deepEqual(woken[0], ["woken by", threadName(columns.waker[item] - 1)]);
    assert.equal((await facts(page)).Process, "com.example.app (1000)");
    // The longest wait for a CPU: others had the CPU for all of it, or it was free.
    let ready = -1;
    columns.start.forEach((_, i) => {
      const isReady = TASKS.strings[columns.state[i]].startsWith("Runnable") && columns.cpu[i + 1] > 0;
      if (isReady && (ready < 0 || columns.duration[i] > columns.duration[ready])) ready = i;
    });
    const [from, to] = [columns.start[ready], columns.start[ready] + columns.duration[ready]];
    const running = TASKS.tracks.find(({ role, cpu }) => role === "running" && cpu === columns.cpu[ready + 1] - 1);
    const names = new Set();
    running.columns.start.forEach((start, i) => {
      const end = start + running.columns.duration[i];
      if (start < to && end > from) names.add(threadName(running.columns.thread[i] - 1));
    });
    assert.ok(names.size > 0);
    await set(page, { selection: { kind: "state", track, item: ready } });
    const ran = await page.$$eval(".details section", (sections) =>
      sections
        .filter((section) => section.querySelector("h3").textContent === "Ran meanwhile on its CPU")
        .flatMap((section) => [...section.querySelectorAll(".link")].map((link) => link.textContent)),
    );
    assert.deepEqual(new Set(ran), names);
    assert.deepEqual(problems, []);
  },
);

browserTest(
  "chromium",
  "methods, names, threads, launches, frames and counters have details and links",
  async (browser) => {
    const { page, problems } = await openPage(browser, FILES.tasks);
    const calls = TASKS.tracks.find(({ kind }) => kind === "calls").columns;
    const [method] = calls.method;
    const durations = [...calls.duration].filter((_, i) => calls.method[i] === method);
    await set(page, { selection: { kind: "method", method } });
    assert.equal((await facts(page)).Count, durations.length.toLocaleString("en-US"));
    assert.deepEqual(
      (await linksOf(page)).map(([relation]) => relation),
      ["the longest one, on", "the first one, on"],
    );
    await page.click(".details li .link");
    await settled(page);
    const longest = await state(page, "selection");
    assert.equal(calls.duration[longest.item], Math.max(...durations));
    await set(page, { selection: { kind: "name", name: "GC" } });
    assert.ok(Number((await facts(page)).Count.replace(",", "")) > 10);
    await set(page, { selection: { kind: "launch", launch: 0 } });
    assert.equal((await linksOf(page))[0][0], "main thread");
    await clickButton(page, threadName(TASKS.launches[0].thread), ".details");
    const thread = await facts(page);
    assert.equal(thread.Thread, "1000, the main thread");
    assert.match(thread["On a CPU"], / ms$| s$/);
    const frames = TASKS.tracks.findIndex(({ role }) => role === "frames");
    await set(page, { selection: { kind: "span", track: frames, item: 0 } });
    assert.ok((await texts(page, ".details h3")).includes("States of the main thread inside"));
    const counter = TASKS.tracks.findIndex(({ name }) => name === "Heap size");
    await set(page, { selection: { kind: "counter", track: counter, item: 1 } });
    assert.deepEqual(
      (await linksOf(page)).map(([relation]) => relation),
      ["the one before", "the next one"],
    );
    const running = TASKS.tracks.findIndex(({ role }) => role === "running");
    await set(page, { selection: { kind: "span", track: running, item: 0 } });
    assert.deepEqual(
      (await linksOf(page)).map(([relation]) => relation).filter((relation) => /thread|state/.test(relation)),
      ["on thread", "its state"],
    );
    assert.ok((await facts(page)).Process);
    assert.deepEqual(problems, []);
  },
);

browserTest("chromium", "the profile of a slice is that of its thread in its period", async (browser) => {
  const { page, problems } = await openPage(browser, FILES.tasks);
  const main = TASKS.launches[0].thread;
  const track = TASKS.tracks.findIndex(({ role, thread }) => role === "atrace" && thread !== main);
  const { columns, thread } = TASKS.tracks[track];
  const item = columns.duration.findIndex((ns) => ns > 5 * MS);
  await set(page, { selection: { kind: "span", track, item }, panel: "summary" });
  await clickButton(page, "Profile it", ".details");
  const period = { from: columns.start[item], to: columns.start[item] + columns.duration[item] };
  assert.deepEqual(await state(page, "range"), period);
  const chosen = await page.$eval('.profile [aria-label="Profile"] select', (select) => select.selectedOptions[0].text);
  assert.equal(chosen, threadName(thread));
  assert.deepEqual(problems, []);
});
