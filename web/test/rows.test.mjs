// Which rows the timeline shows: filtered, sorted, pinned and hidden; and the width of their names.

import assert from "node:assert/strict";
import { join } from "node:path";

import { writeFixture } from "./fixture.mjs";
import { browserTest, clickButton, link, openPage, scratch, setControl, settled, texts } from "./harness.mjs";

const FILE = join(scratch(), "launch.html");
writeFixture("launch", FILE);

const rows = (page) => page.evaluate(() => window.__tracebridge.timeline.rows());
const headings = async (page) =>
  (await rows(page)).filter(({ kind, id }) => kind === "group" && id.startsWith("process")).map(({ label }) => label);
/** Clicks a tool of the row with this name. */
async function tool(page, title, name) {
  await page.evaluate((name) => {
    const { timeline } = window.__tracebridge;
    timeline.scrollTo(timeline.rows().find(({ label }) => label === name).y - 50);
  }, name);
  await settled(page);
  const found = await page.evaluate(
    (title, name) => {
      const button = [...document.querySelectorAll(".tl-tools button")].find(
        (b) => b.getAttribute("aria-label") === `${title}: ${name}`,
      );
      button?.click();
      return Boolean(button);
    },
    title,
    name,
  );
  assert.ok(found, `${title}: ${name}`);
  await settled(page);
}

browserTest("chromium", "f filters rows by their names, also those that are folded", async (browser) => {
  const { page, problems } = await openPage(browser, FILE, { fragment: "panel=timeline" });
  const before = (await rows(page)).length;
  await page.focus(".tl-plot");
  await page.keyboard.press("f");
  await page.keyboard.type("heaptask");
  await settled(page);
  const shown = await rows(page);
  const threads = shown.filter(({ kind }) => kind === "row");
  assert.equal(threads.length, 8, "one thread of each process");
  assert.ok(threads.every(({ label }) => label === "HeapTaskDaemon"));
  assert.ok(shown.every(({ y }, i) => i === 0 || y === shown[i - 1].y + shown[i - 1].height));
  await link(page, "the filter", (parts) => assert.equal(parts.get("rows"), "heaptask"));
  await page.keyboard.press("Escape");
  await settled(page);
  assert.equal((await rows(page)).length, before);
  assert.deepEqual(problems, []);
});

browserTest("chromium", "a process has a share of a CPU where switches tell its time on CPUs", async (browser) => {
  for (const [kind, hasShare] of [
    ["launch", true],
    ["methods", false],
  ]) {
    const file = join(scratch(), `${kind}-share.html`);
    writeFixture(kind, file);
    const { page } = await openPage(browser, file, { fragment: "panel=timeline" });
    const processes = (await rows(page)).filter(({ kind, id }) => kind === "group" && id.startsWith("process"));
    assert.ok(processes.length > 0 && processes.every(({ detail }) => /% of a CPU/.test(detail) === hasShare), kind);
  }
});

browserTest("chromium", "rows are sorted, pinned and hidden, and the address keeps that", async (browser) => {
  const { page, problems } = await openPage(browser, FILE, { fragment: "panel=timeline", height: 2400 });
  const busiest = await headings(page);
  assert.equal(busiest[0], "com.example.app");
  await setControl(page, "sorted by", "name");
  assert.deepEqual(await headings(page), [...busiest].sort());
  await setControl(page, "sorted by", "activity");
  await tool(page, "Pin to the top", "RenderThread");
  const [first] = await rows(page);
  assert.equal(first.label, "RenderThread");
  assert.match(first.detail, /com\.example\.app$/);
  // It stays where it is while the others scroll, and is clicked there.
  const render = await page.evaluate(() => {
    const { trace } = window.__tracebridge.timeline.store.state;
    const app = trace.index.launches[0].process;
    return trace.tracks.find(
      ({ role, thread }) =>
        role === "atrace" && trace.threads[thread].name === "RenderThread" && trace.threads[thread].process === app,
    ).id;
  });
  await page.evaluate(() => window.__tracebridge.timeline.store.set({ view: { from: 9e8, to: 1.1e9 } }));
  const place = () =>
    page.evaluate((track) => window.__tracebridge.timeline.box({ kind: "span", track, item: 0 }), render);
  const before = await place();
  const fill = () => page.evaluate(({ x, y }) => window.__tracebridge.timeline.pixel(x + 2, y + 3), before);
  const colour = await fill();
  await page.evaluate(() => window.__tracebridge.timeline.scrollTo(700));
  await settled(page);
  assert.deepEqual(await place(), before);
  assert.deepEqual(await fill(), colour);
  await page.mouse.click(before.x + 3, before.y + 5);
  await settled(page);
  const selection = await page.evaluate(() => window.__tracebridge.timeline.store.state.selection);
  assert.deepEqual(selection, { kind: "span", track: render, item: 0 });
  await page.evaluate(() => window.__tracebridge.timeline.store.set({ selection: null }));
  await tool(page, "Hide", "CPUs");
  assert.ok((await rows(page)).every(({ id }) => !id.startsWith("cpu")));
  const parts = await link(page, "the choice", (parts) => {
    assert.equal(parts.get("hide"), "cpus");
    assert.match(parts.get("pin"), /^thread \d+$/);
  });
  const chosen = await rows(page);
  await clickButton(page, "Show 1 hidden row");
  assert.ok((await rows(page)).some(({ id }) => id === "cpus"));
  await tool(page, "Unpin", "RenderThread");
  assert.equal((await rows(page))[0].label, "com.example.app");
  const again = await openPage(browser, FILE, { fragment: parts.toString() });
  assert.deepEqual(await rows(again.page), chosen);
  assert.deepEqual([...problems, ...again.problems], []);
});

browserTest("chromium", "names are cut in the middle, and their column can be widened", async (browser) => {
  const { page, problems } = await openPage(browser, FILE, { fragment: "panel=timeline" });
  const width = () => page.$eval(".tl-labels", (element) => element.clientWidth);
  const before = await width();
  await page.focus(".tl-grip");
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("ArrowRight");
  await settled(page);
  assert.ok(Math.abs((await width()) - before - 40) <= 2, "two steps wider");
  const grip = await page.$eval(".tl-grip", (element) => element.getBoundingClientRect().toJSON());
  await page.mouse.move(grip.x + 3, grip.y + 200);
  await page.mouse.down();
  await page.mouse.move(grip.x - 150, grip.y + 200, { steps: 3 });
  await page.mouse.up();
  await settled(page);
  assert.ok((await width()) < before, "dragged narrower");
  const tails = await texts(page, ".tl-tail");
  assert.ok(
    tails.every((tail) => tail.length <= 10),
    tails.join(),
  );
  assert.deepEqual(problems, []);
});
