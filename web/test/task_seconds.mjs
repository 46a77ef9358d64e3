// Prints the table of docs/report.md: fifteen tasks, the clicks that each takes here and in ui.perfetto.dev, and how
// long this page takes for its answers, all clicks together, in Chromium. The time of whoever clicks is not in it.
//
// usage: node test/task_seconds.mjs [RUNS]      (3; the median counts)

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { argv } from "node:process";

import { close, launch } from "./browsers.mjs";
import { comparisonPage } from "./comparison_fixture.mjs";
import { writeFixture } from "./fixture.mjs";
import { openPage } from "./pages.mjs";
import { scratch } from "./run_directory.mjs";
import { keepSaved, Mouse, TASKS } from "./tasks.mjs";

const runs = Number(argv[2] ?? 3);
const directory = scratch();
const pages = { tasks: join(directory, "tasks.html"), comparison: join(directory, "comparison.html") };
writeFixture("tasks", pages.tasks);
writeFileSync(pages.comparison, comparisonPage().html);
const browser = await launch();
console.log("| task | here | clicks | seconds | clicks in Perfetto |\n| --- | --- | --- | --- | --- |");
for (const { title, how, page: name = "tasks", mouse, check, perfetto } of TASKS) {
  const times = [];
  let clicks = 0;
  for (let run = 0; run < runs; run++) {
    const { page } = await openPage(browser, pages[name], { before: keepSaved });
    const hand = new Mouse(page);
    const began = performance.now();
    await mouse(hand);
    times.push(performance.now() - began);
    await check(hand);
    ({ clicks } = hand);
    await page.close();
  }
  const median = times.sort((a, b) => a - b)[runs >> 1] / 1000;
  console.log(`| ${title} | ${how} | ${clicks} | ${median.toFixed(1)} | ${perfetto} |`);
}
await close(browser);
