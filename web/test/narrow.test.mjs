// Fingers, and windows of 800 pixels.

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";

import { comparisonPage } from "./comparison_fixture.mjs";
import { writeFixture } from "./fixture.mjs";
import { browserTest, openPage, scratch, settled } from "./harness.mjs";

const directory = scratch();
const LAUNCH = join(directory, "launch.html");
const COMPARISON = join(directory, "comparison.html");
writeFixture("launch", LAUNCH);
writeFileSync(COMPARISON, comparisonPage().html);

const shown = (page) =>
  page.evaluate(() => {
    const { timeline } = window.__tracebridge;
    const { view, selection } = timeline.store.state;
    return { ...view, selection, scrolled: timeline.scrolled() };
  });

browserTest("chromium", "two fingers pan and scroll without zooming", async (browser) => {
  const { page, problems } = await openPage(browser, LAUNCH, { fragment: "panel=timeline&view=1000000000-2000000000" });
  const plot = await page.$eval(".tl-plot", (element) => element.getBoundingClientRect().toJSON());
  const before = await shown(page);
  const at = [plot.x + plot.width * 0.4, plot.x + plot.width * 0.6];
  const fingers = [];
  for (const x of at) fingers.push(await page.touchscreen.touchStart(x, plot.y + 300));
  for (let step = 1; step <= 4; step++) {
    for (const [n, finger] of fingers.entries()) await finger.move(at[n] - 25 * step, plot.y + 300 - 20 * step);
  }
  await settled(page);
  for (const finger of fingers) await finger.end();
  await settled(page);
  const after = await shown(page);
  const pixel = (before.to - before.from) / plot.width;
  assert.ok(Math.abs(after.to - after.from - (before.to - before.from)) < 2 * pixel, "as long as before");
  assert.ok(
    Math.abs(after.from - before.from - 100 * pixel) < 3 * pixel,
    `panned by ${(after.from - before.from) / pixel}`,
  );
  assert.ok(Math.abs(after.scrolled - 80) <= 4, `scrolled by ${after.scrolled}`);
  assert.equal(after.selection, null, "that is no tap");
  assert.deepEqual(problems, []);
});

browserTest("chromium", "a finger drags, a tap selects, and a long press says what lies there", async (browser) => {
  const { page, problems } = await openPage(browser, LAUNCH, { fragment: "panel=timeline&view=0-500000000" });
  const track = await page.evaluate(() => {
    const { trace } = window.__tracebridge.timeline.store.state;
    return trace.tracks.find(({ role, thread }) => role === "atrace" && trace.threads[thread].main).id;
  });
  const boxOf = () =>
    page.evaluate((track) => window.__tracebridge.timeline.box({ kind: "span", track, item: 0 }), track);
  const tip = () => page.$eval(".tl-tip", (element) => getComputedStyle(element).display);
  let box = await boxOf();
  const long = await page.touchscreen.touchStart(box.x + 40, box.y + 6);
  await page.waitForFunction(() => document.querySelector(".tl-tip").style.display === "block");
  await long.end();
  await settled(page);
  assert.equal((await shown(page)).selection, null, "a long press selects nothing");
  assert.equal(await tip(), "block", "what it asked for stays to be read");
  await page.touchscreen.tap(box.x + 40, box.y + 6);
  await settled(page);
  assert.deepEqual((await shown(page)).selection, { kind: "span", track, item: 0 });
  const before = await shown(page);
  const finger = await page.touchscreen.touchStart(box.x + 300, box.y + 30);
  for (let step = 1; step <= 4; step++) await finger.move(box.x + 300 - 30 * step, box.y + 30);
  await settled(page);
  await finger.end();
  await settled(page);
  const after = await shown(page);
  assert.ok(after.from > before.from, "dragged to later times");
  assert.deepEqual(after.selection, before.selection, "a drag selects nothing");
  box = await boxOf();
  assert.deepEqual(problems, []);
});

/** Controls that overlap, reach out of the window, or cut their text. */
const faults = (page) =>
  page.evaluate(() => {
    const isSeen = (element) => {
      const { width, height } = element.getBoundingClientRect();
      return width > 2 && height > 2 && getComputedStyle(element).visibility !== "hidden";
    };
    const name = (element) => element.getAttribute("aria-label") || element.textContent.trim() || element.tagName;
    const found = [];
    const controls = [
      ...document.querySelectorAll(
        "header button, header input, header select, .splitter button, .splitter input, .splitter select, .toolbar button, .toolbar input, .toolbar select",
      ),
    ].filter(isSeen);
    const boxes = controls.map((element) => ({ element, box: element.getBoundingClientRect() }));
    boxes.forEach(({ element, box }, n) => {
      if (box.left < -0.5 || box.right > innerWidth + 0.5) found.push(`${name(element)} is outside`);
      if (element.tagName === "BUTTON" && element.scrollWidth > element.clientWidth + 1)
        found.push(`${name(element)} is cut`);
      for (const other of boxes.slice(n + 1)) {
        const wide = Math.min(box.right, other.box.right) - Math.max(box.left, other.box.left);
        const tall = Math.min(box.bottom, other.box.bottom) - Math.max(box.top, other.box.top);
        // Buttons of a choice share their borders.
        if (wide > 2 && tall > 2) found.push(`${name(element)} overlaps ${name(other.element)}`);
      }
    });
    // What is wider than the page would scroll it sideways.
    if (document.documentElement.scrollWidth > innerWidth) found.push("the page is wider than the window");
    const texts = [...document.querySelectorAll(".total p, .side-name, .banner, .window-line")].filter(isSeen);
    for (const text of texts) {
      const box = text.getBoundingClientRect();
      if (box.right > innerWidth + 0.5 || text.scrollWidth > text.clientWidth + 1)
        found.push(`${text.className} is cut`);
    }
    const grid = document.querySelector(".comparison .grid");
    if (grid && grid.scrollWidth > grid.clientWidth) found.push("the comparison is wider than the window");
    return found;
  });

for (const width of [800, 1280]) {
  browserTest("chromium", `nothing overlaps and nothing is cut in a window of ${width} pixels`, async (browser) => {
    for (const [file, panels] of [
      [LAUNCH, ["launches", "profile", "summary", "timeline"]],
      [COMPARISON, ["comparison", "profile", "summary"]],
    ]) {
      for (const panel of panels) {
        const { page, problems } = await openPage(browser, file, { fragment: `panel=${panel}`, width, height: 900 });
        assert.deepEqual(await faults(page), [], `${panel} at ${width}`);
        const plot = await page.$eval(".tl-plot", (element) => element.getBoundingClientRect().toJSON());
        assert.ok(plot.width > 0.6 * width && plot.height > 80, `${panel}: the timeline has room, ${plot.height}`);
        await page.evaluate(() => document.activeElement.blur());
        await page.keyboard.press("e");
        await settled(page);
        const menu = await page.$eval(".menu", (element) => element.getBoundingClientRect().toJSON());
        assert.ok(menu.left >= 0 && menu.right <= width, "the menu is in the window");
        await page.keyboard.press("Escape");
        assert.deepEqual(problems, []);
        await page.close();
      }
    }
  });
}
