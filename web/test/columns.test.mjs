// No figure and no head of a column is cut, at any width of the page.

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";

import { comparisonPage } from "./comparison_fixture.mjs";
import { writeFixture } from "./fixture.mjs";
import { browserTest, clickButton, openPage, scratch, texts } from "./harness.mjs";

const directory = scratch();
const TASKS = join(directory, "tasks.html");
const COMPARISON = join(directory, "comparison.html");
writeFixture("tasks", TASKS);
writeFileSync(COMPARISON, comparisonPage().html);

/** The figures and heads that do not fit their cells. */
const cutTexts = (page) =>
  page.evaluate(() =>
    [
      ...document.querySelectorAll(
        ".grid .cell.number .text, .grid-head .cell:not(.texts), .grid-head button, .details dd",
      ),
    ]
      .filter((cell) => cell.scrollWidth > cell.clientWidth + 1 && cell.clientWidth > 0)
      .map((cell) => `${cell.closest("[aria-label]").getAttribute("aria-label")}: ${cell.textContent}`),
  );

for (const width of [1600, 1280, 800]) {
  browserTest("chromium", `no figure is cut at ${width} pixels`, async (browser) => {
    for (const [file, fragment] of [
      [TASKS, "panel=launches"],
      [COMPARISON, "panel=comparison"],
    ]) {
      const { page, problems } = await openPage(browser, file, { fragment, width, height: 800 });
      await page.evaluate(() => {
        window.__tracebridge.timeline.store.set({ selection: { kind: "launch", launch: 0 } });
      });
      for (const tab of await texts(page, "[role=tab]")) {
        await clickButton(page, tab, ".tabs");
        assert.deepEqual(await cutTexts(page), [], tab);
        for (const question of tab === "Table" ? await texts(page, ".questions button") : []) {
          await clickButton(page, question, ".questions");
          assert.deepEqual(await cutTexts(page), [], question);
        }
      }
      assert.deepEqual(problems, []);
    }
  });
}
