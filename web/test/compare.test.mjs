// The comparison panel: its tables, and the jumps into both timelines.

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";

import { comparisonPage } from "./comparison_fixture.mjs";
import {
  browserTest,
  browsersOfRun,
  clickButton,
  eventually,
  gridRows,
  link,
  openPage,
  scratch,
  texts,
} from "./harness.mjs";

const FILE = join(scratch(), "comparison.html");
const made = comparisonPage();
writeFileSync(FILE, made.html);

for (const browser of browsersOfRun) {
  browserTest(browser, "the comparison shows every row with its change", async (running) => {
    const { page, problems } = await openPage(running, FILE);
    assert.match((await texts(page, ".total"))[0], /\+192\.0 ms slower \(\+23\.6 %\).*Verdict: slower \(p = 0\.008\)/);
    assert.match((await texts(page, ".comparison .toolbar"))[0], /12 rows of all kinds that changed less are left out/);
    for (const part of ["stages", "states", "methods", "slices", "metrics"]) {
      const expected = made.comparison[part];
      await clickButton(page, `${part[0].toUpperCase()}${part.slice(1)} (${expected.length})`, ".comparison");
      const rows = await gridRows(page);
      const byChange = [...expected].sort((a, b) => Math.abs(b.delta_ns) - Math.abs(a.delta_ns));
      assert.deepEqual(
        rows.map(({ exact }) => [exact[0], exact[3]]),
        byChange.map(({ name, delta_ns }) => [name, `${delta_ns} ns`]),
      );
      for (const [n, { old_ns, new_ns, delta_ns, verdict }] of byChange.entries()) {
        assert.equal(rows[n].exact[1], old_ns === null ? null : `${old_ns} ns`);
        assert.equal(rows[n].exact[2], new_ns === null ? null : `${new_ns} ns`);
        const side = verdict === "no change" ? "noise" : delta_ns > 0 ? "slower" : "faster";
        assert.equal(rows[n].exact.at(-1), byChange[n].verdict_text);
        assert.ok(rows[n].classes.includes(side), `${rows[n].exact[0]} is ${side}`);
      }
    }
    assert.deepEqual(problems, []);
  });
}

browserTest("chromium", "a row jumps to both timelines", async (browser) => {
  const { page, problems } = await openPage(browser, FILE, { fragment: "panel=comparison" });
  await page.focus(".grid");
  await page.keyboard.press("Enter");
  const covers = (text, { start, duration }) => {
    assert.ok(text, "the view is not the whole trace");
    const [from, to] = text.split("-").map(Number);
    assert.ok(from <= start && to >= start + duration && to - from < 1.5 * duration, `${text} shows ${start}`);
  };
  await link(page, "the row's place in the new trace", (parts) => {
    assert.equal(parts.get("trace"), null);
    covers(parts.get("view"), made.new);
  });
  await clickButton(page, "Show in old", ".comparison");
  await link(page, "the row's place in the old trace", (parts) => {
    assert.equal(parts.get("trace"), "old");
    covers(parts.get("view"), made.old);
    assert.equal(JSON.parse(parts.get("select"))[0], "span");
  });
  assert.deepEqual(await texts(page, "header h1"), ["last-week.dat"]);
  await clickButton(page, "new", "header");
  assert.deepEqual(await texts(page, "header h1"), ["today.dat"]);
  await page.evaluate(() => {
    location.hash = "panel=comparison&trace=old";
  });
  await eventually("the page follows the address", async () => {
    assert.deepEqual(await texts(page, "header h1"), ["last-week.dat"]);
  });
  assert.deepEqual(problems, []);
});
