// axe-core finds no violation in any panel, light and dark, in both browsers.

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";

import { findViolations, useAxe } from "./axe.mjs";
import { comparisonPage } from "./comparison_fixture.mjs";
import { writeFixture } from "./fixture.mjs";
import { browserTest, browsersOfRun, clickButton, openPage, scratch, settled } from "./harness.mjs";

const directory = scratch();
const FILE = join(directory, "comparison.html");
const LAUNCH = join(directory, "launch.html");
const TASKS = join(directory, "tasks.html");
writeFixture("launch", LAUNCH);
writeFixture("tasks", TASKS);
writeFileSync(FILE, comparisonPage().html);

for (const theme of ["light", "dark"]) {
  browserTest("chromium", `axe-core finds no violation, ${theme}`, async (browser) => {
    const { page } = await openPage(browser, FILE, { fragment: `theme=${theme}&panel=profile` });
    await useAxe(page);
    assert.deepEqual(await findViolations(page), [], "profile table");
    for (const view of ["Call tree", "Bottom up", "Flame graph"]) {
      await clickButton(page, view);
      assert.deepEqual(await findViolations(page), [], view);
    }
    for (const panel of ["Comparison", "Summary"]) {
      await clickButton(page, panel, ".tabs");
      assert.deepEqual(await findViolations(page), [], panel);
    }
    await page.keyboard.press("?");
    await settled(page);
    assert.deepEqual(await findViolations(page), [], "help");
  });

  for (const browser of browsersOfRun) {
    browserTest(browser, `every tab, with a period and details, has no violation, ${theme}`, async (running) => {
      const { page } = await openPage(running, TASKS, {
        fragment: `theme=${theme}&q=inflate&range=100000000-700000000`,
      });
      await useAxe(page);
      await page.evaluate(() => {
        const { store } = window.__tracebridge.timeline;
        const { trace } = store.state;
        const track = trace.tracks.find(({ role, thread }) => role === "atrace" && trace.threads[thread].main);
        store.set({ selection: { kind: "span", track: track.id, item: 0 } });
      });
      const tabs = await page.$$eval("[role=tab]", (all) => all.map((tab) => tab.textContent));
      assert.deepEqual(tabs, ["Launches and frames", "Why", "Profile", "Table", "Summary"]);
      for (const tab of tabs) {
        await clickButton(page, tab, ".tabs");
        assert.deepEqual(await findViolations(page), [], tab);
      }
    });
  }

  browserTest("chromium", `launches and details have no violation, ${theme}`, async (browser) => {
    const { page } = await openPage(browser, LAUNCH, {
      fragment: `theme=${theme}&panel=launches&q=inflate&range=100000000-700000000`,
    });
    await useAxe(page);
    await page.evaluate(() => {
      window.__tracebridge.timeline.store.set({ selection: { kind: "launch", launch: 0 } });
    });
    await settled(page);
    assert.deepEqual(await findViolations(page), [], "launches");
  });

  browserTest("chromium", `menu, messages and notes have no serious violation, ${theme}`, async (browser) => {
    for (const width of [1440, 800]) {
      const fragment = `theme=${theme}&panel=summary&mark=300000000+one&mark=600000000+two`;
      const { page } = await openPage(browser, LAUNCH, { fragment, width });
      await useAxe(page);
      assert.deepEqual(await findViolations(page), [], `notes at ${width}`);
      await page.evaluate(() => document.activeElement.blur());
      await page.keyboard.press("e");
      await settled(page);
      assert.deepEqual(await findViolations(page), [], `menu at ${width}`);
      await page.keyboard.press("Escape");
      await page.evaluate(() => document.activeElement.blur());
      await page.keyboard.press("m");
      await settled(page);
      assert.deepEqual(await findViolations(page), [], `note at ${width}`);
      await page.keyboard.press("Escape");
      await page.evaluate(() => {
        const data = new DataTransfer();
        data.items.add(new File(["x"], "x.html"));
        document.body.dispatchEvent(new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true }));
      });
      await page.waitForFunction(() => /cannot be opened/.test(document.body.textContent));
      assert.deepEqual(await findViolations(page), [], `message at ${width}`);
    }
  });

  browserTest("chromium", `labels outside of a chosen period can be read, ${theme}`, async (browser) => {
    const { page } = await openPage(browser, LAUNCH, {
      fragment: `theme=${theme}&panel=timeline&view=0-1000000000&range=990000000-999000000`,
    });
    const contrasts = await page.evaluate(() => {
      const { timeline } = window.__tracebridge;
      const { trace } = timeline.store.state;
      const track = trace.tracks.find(({ role, thread }) => role === "atrace" && trace.threads[thread].main);
      const plot = document.querySelector(".tl-plot").getBoundingClientRect();
      const luminance = ([r, g, b]) =>
        [r, g, b]
          .map((part) => part / 255)
          .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4))
          .reduce((sum, part, i) => sum + part * [0.2126, 0.7152, 0.0722][i], 0);
      const found = [];
      for (let item = 0; item < track.count && found.length < 12; item++) {
        const box = timeline.box({ kind: "span", track: track.id, item });
        if (!box || box.width < 60 || box.y + 16 > plot.bottom) continue;
        const copy = new OffscreenCanvas(50, 14).getContext("2d", { willReadFrequently: true });
        for (const canvas of document.querySelectorAll(".tl-plot canvas"))
          copy.drawImage(canvas, plot.left - box.x - 3, plot.top - box.y - 2, plot.width, plot.height);
        const { data } = copy.getImageData(0, 0, 50, 14);
        const all = Array.from({ length: data.length / 4 }, (_, i) => luminance(data.subarray(4 * i, 4 * i + 3)));
        all.sort((a, b) => a - b);
        // Most of a slice is its fill, and the darkest part its text.
        found.push((all[all.length >> 1] + 0.05) / (all[0] + 0.05));
      }
      return found;
    });
    assert.ok(contrasts.length >= 3, `${contrasts.length} labels`);
    assert.ok(Math.min(...contrasts) >= 4.5, contrasts.map((c) => c.toFixed(1)).join());
  });
}
