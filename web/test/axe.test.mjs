// axe-core finds no violation in any panel, light and dark.

import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { comparisonPage } from "./comparison_fixture.mjs";
import { browserTest, clickButton, openPage, scratch, settled } from "./harness.mjs";

const FILE = join(scratch(), "comparison.html");
writeFileSync(FILE, comparisonPage().html);
const AXE = readFileSync(fileURLToPath(new URL("../node_modules/axe-core/axe.min.js", import.meta.url)), "utf8");

async function check(page, place) {
  const found = await page.evaluate(async () => {
    const { violations } = await window.axe.run(document, { resultTypes: ["violations"] });
    return violations.map(
      ({ id, impact, nodes }) =>
        `${impact} ${id}: ${nodes
          .slice(0, 3)
          .map((n) => n.html)
          .join(" | ")}`,
    );
  });
  const bad = found.filter((line) => /^(serious|critical)/.test(line));
  assert.deepEqual(bad, [], place);
}

for (const theme of ["light", "dark"]) {
  browserTest("chromium", `axe-core finds no serious violation, ${theme}`, async (browser) => {
    const { page } = await openPage(browser, FILE, { fragment: `theme=${theme}` });
    await page.evaluate(AXE);
    await check(page, "profile table");
    for (const view of ["Call tree", "Bottom up", "Flame graph"]) {
      await clickButton(page, view);
      await check(page, view);
    }
    for (const panel of ["Comparison", "Summary"]) {
      await clickButton(page, panel, ".tabs");
      await check(page, panel);
    }
    await page.keyboard.press("?");
    await settled(page);
    await check(page, "help");
  });
}
