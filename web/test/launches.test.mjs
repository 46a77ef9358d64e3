// Launches and frames: their marks on the ruler, their panel, where a click leads, and the order of the rows.

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";

import { pageOf, writeFixture } from "./fixture.mjs";
import { KINDS } from "./fixture_traces.mjs";
import { browserTest, eventually, link, openPage, scratch, settled, texts } from "./harness.mjs";

const directory = scratch();
const FILE = join(directory, "launch.html");
writeFixture("launch", FILE);

const state = (page, member) => page.evaluate((member) => window.__tracebridge.timeline.store.state[member], member);
const ask = (page, name, ...args) =>
  page.evaluate((name, args) => window.__tracebridge.timeline[name](...args), name, args);
const cells = (page, grid) =>
  page.$$eval(`[aria-label="${grid}"] .grid-row`, (rows) =>
    rows.map((row) => [...row.querySelectorAll(".text")].map((cell) => cell.textContent)),
  );
async function clickRow(page, grid, at) {
  await page.click(`[aria-label="${grid}"] .grid-row:nth-child(${at + 1})`);
  await settled(page);
}
/** The selection lies in the middle of the picture, and takes a third of its width. */
async function checkCentred(page, from, to) {
  const view = await state(page, "view");
  const length = to - from;
  assert.ok(Math.abs((view.to - view.from) / length - 3) < 1e-6, `${view.from} … ${view.to} for ${from} … ${to}`);
  assert.ok(Math.abs((view.from + view.to) / 2 - (from + to) / 2) < 1, "centred");
}

browserTest(
  "chromium",
  "the panel lists launches with their stages, and frames with the late ones",
  async (browser) => {
    const { page, problems } = await openPage(browser, FILE, { fragment: "panel=launches" });
    assert.deepEqual(await cells(page, "Launches"), [
      ["com.example.app", "cold", "0.018 s", "882.0 ms", "855.0 ms", "1.170 s"],
      ["bindApplication", "", "0.045 s", "315.0 ms", "", ""],
      ["activityStart", "", "0.378 s", "252.0 ms", "", ""],
      ["activityResume", "", "0.639 s", "171.0 ms", "", ""],
    ]);
    const [summary] = await page.evaluate(() => window.__tracebridge.timeline.store.state.trace.index.frames);
    const [[app, count, , , , p99, , janky]] = await cells(page, "Frames of apps");
    assert.deepEqual([app, Number(count)], ["com.example.app", summary.count]);
    assert.equal(p99, (summary.duration_cpu_ns.p99 / 1e6).toFixed(2));
    assert.match(janky, new RegExp(`^${summary.janky} · \\d+\\.\\d %$`));
    assert.ok(
      (await texts(page, ".launches .window-line")).includes(
        `${summary.janky} late frames of com.example.app, the latest first`,
      ),
    );
    const late = await cells(page, "Late frames");
    assert.match(late[0][0], /^Frame \d+ AppDeadlineMissed$/);
    assert.deepEqual(problems, []);
  },
);

browserTest("chromium", "a click on a frame, a stage or a launch selects it and goes there", async (browser) => {
  const { page, problems } = await openPage(browser, FILE, { fragment: "panel=launches" });
  await clickRow(page, "Late frames", 3);
  const frame = await state(page, "selection");
  assert.equal(frame.kind, "span");
  const [from, to, role] = await page.evaluate(({ track, item }) => {
    const { spans, role } = window.__tracebridge.timeline.store.state.trace.tracks[track];
    return [spans.start[item], spans.end[item], role];
  }, frame);
  assert.equal(role, "frames");
  await checkCentred(page, from, to);
  assert.equal(await page.$eval(".tl-live", (element) => element.textContent.startsWith("Selected Frame ")), true);
  await clickRow(page, "Launches", 1);
  const stage = await state(page, "selection");
  const name = await page.evaluate(({ track, item }) => {
    const { trace } = window.__tracebridge.timeline.store.state;
    return trace.strings[trace.tracks[track].spans.label[item]];
  }, stage);
  assert.equal(name, "bindApplication");
  const box = await ask(page, "box", stage);
  const plot = await page.$eval(".tl-plot", (element) => element.getBoundingClientRect().toJSON());
  assert.ok(box.x >= plot.x && box.x + box.width <= plot.x + plot.width, "the stage is in view");
  await clickRow(page, "Launches", 0);
  assert.deepEqual(await state(page, "selection"), { kind: "launch", launch: 0 });
  assert.match(
    await page.$eval(".tl-live", (element) => element.textContent),
    /^Selected cold launch of com\.example\.app/,
  );
  const parts = await link(page, "the launch", (parts) =>
    assert.equal(parts.get("select"), '["launch","com.example.app",18000000]'),
  );
  const again = await openPage(browser, FILE, { fragment: parts.toString() });
  assert.deepEqual(await state(again.page, "selection"), { kind: "launch", launch: 0 });
  assert.deepEqual([...problems, ...again.problems], []);
});

browserTest("chromium", "the ruler marks launches, and a click on a mark selects the launch", async (browser) => {
  const { page, problems } = await openPage(browser, FILE, { fragment: "panel=timeline" });
  const ruler = await page.$eval(".tl-ruler", (element) => element.getBoundingClientRect().toJSON());
  const colours = (x) =>
    page.evaluate((x) => {
      const canvas = document.querySelector(".tl-ruler canvas");
      const ratio = devicePixelRatio || 1;
      const copy = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
      copy.drawImage(canvas, -Math.round(x * ratio), -Math.round(38 * ratio));
      const { data } = copy.getImageData(0, 0, 1, 1);
      return [...data].join();
    }, x);
  const place = (ns) => (ns / 5e9) * ruler.width;
  assert.notEqual(await colours(place(30e6)), await colours(place(3e9)), "the launch has a bar");
  assert.notEqual(await colours(place(18e6 + 1170e6)), await colours(place(3e9)), "TTFD has a mark");
  await page.mouse.click(ruler.x + place(3e9), ruler.y + 35);
  await settled(page);
  assert.equal(await state(page, "selection"), null);
  await page.mouse.click(ruler.x + place(500e6), ruler.y + 35);
  await eventually("the launch is selected", async () => {
    assert.deepEqual(await state(page, "selection"), { kind: "launch", launch: 0 });
  });
  assert.deepEqual(problems, []);
});

browserTest("chromium", "the launched app stands first, its main thread and RenderThread on top", async (browser) => {
  const { page, problems } = await openPage(browser, FILE, { fragment: "panel=timeline" });
  const rows = await ask(page, "rows");
  assert.equal(rows[0].label, "com.example.app");
  const threads = rows.filter(({ id }) => id.startsWith("thread ")).map(({ label }) => label);
  assert.deepEqual(threads.slice(0, 2), ["com.example.app", "RenderThread"]);
  assert.ok(rows.findIndex(({ id }) => id === "cpus") > 0, "the CPUs come behind it");
  const frames = rows.find(({ label }) => label === "Frames");
  assert.match(frames.detail, /^\d+ of \d+ late$/);
  assert.deepEqual(problems, []);
});

browserTest("chromium", "where no deadline is known the slow frames are listed", async (browser) => {
  const trace = KINDS.launch();
  const { columns } = trace.tracks.find(({ role }) => role === "frames");
  const [noDeadline, isSlow] = [8, 16];
  columns.flags = columns.cpu.map((ns) => noDeadline + (ns > 20e6 ? isSlow : 0));
  Object.assign(trace.frames[0], { with_deadline: 0, deadline: null, janky: 0, janky_share: null, overrun_ns: null });
  const file = join(directory, "timeless.html");
  writeFileSync(file, pageOf([["trace", trace]]));
  const { page, problems } = await openPage(browser, file, { fragment: "panel=launches" });
  const slow = columns.cpu.filter((ns) => ns > 20e6).length;
  assert.ok(slow > 5);
  const lines = await texts(page, ".launches .window-line");
  assert.ok(
    lines.includes(`${slow} slow frames of com.example.app (more than 20 ms of CPU time), the longest first`),
    lines[2],
  );
  const [[, , cpu, overrun]] = await cells(page, "Late frames");
  assert.equal(cpu, `${(Math.max(...columns.cpu) / 1e6).toFixed(2)} ms`);
  assert.equal(overrun, "–");
  const rows = await ask(page, "rows");
  assert.match(rows.find(({ label }) => label === "Frames").detail, /no deadline known$/);
  assert.deepEqual(problems, []);
});
