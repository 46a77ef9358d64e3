// Fifteen tasks, each with at most three clicks, and each with the keyboard alone.

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";

import { comparisonPage } from "./comparison_fixture.mjs";
import { writeFixture } from "./fixture.mjs";
import { browserTest, openPage, scratch } from "./harness.mjs";
import { keepSaved, Keys, Mouse, TASKS } from "./tasks.mjs";

const MAX_CLICKS = 3;
const directory = scratch();
const PAGES = { tasks: join(directory, "tasks.html"), comparison: join(directory, "comparison.html") };
writeFixture("tasks", PAGES.tasks);
writeFileSync(PAGES.comparison, comparisonPage().html);

for (const { title, page: name = "tasks", mouse, keys, check } of TASKS) {
  browserTest("chromium", `${title}: three clicks at most, or the keyboard alone`, async (browser) => {
    const first = await openPage(browser, PAGES[name], { before: keepSaved });
    const hand = new Mouse(first.page);
    await mouse(hand);
    await check(hand);
    assert.ok(hand.clicks <= MAX_CLICKS, `${hand.clicks} clicks`);
    const second = await openPage(browser, PAGES[name], { before: keepSaved });
    const board = new Keys(second.page);
    await keys(board);
    await check(board);
    assert.deepEqual([...first.problems, ...second.problems], []);
  });
}
