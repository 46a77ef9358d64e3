// Takes the pictures of docs/report.md: of report pages that the program writes, in Chromium.
//
// usage: node test/pictures.mjs PROGRAM OUT-DIRECTORY TRACE … [--diff NEW OLD]
// Writes timeline.png, profile.png, flame.png and summary.png of the traces (merged), and comparison.png.

import { mkdirSync } from "node:fs";
import { join } from "node:path";

import { close, launch } from "./browsers.mjs";
import { clickButton, openPage } from "./pages.mjs";
import { runProgram } from "./program.mjs";
import { scratch } from "./run_directory.mjs";
import { settled } from "./waiting.mjs";

const [program, out, ...rest] = process.argv.slice(2);
const at = rest.indexOf("--diff");
const traces = at < 0 ? rest : rest.slice(0, at);
const pair = at < 0 ? null : rest.slice(at + 1);
if (!out || (traces.length === 0 && !pair)) {
  console.error("usage: node test/pictures.mjs PROGRAM OUT-DIRECTORY TRACE … [--diff NEW OLD]");
  process.exit(2);
}
mkdirSync(out, { recursive: true });
const directory = scratch();
const browser = await launch();

async function picture(args, name, fragment, prepare = async () => {}) {
  const file = join(directory, "report.html");
  const { status, stderr } = await runProgram(program, ["report", ...args, "-o", file]);
  if (status !== 0 && status !== 3) throw new Error(stderr);
  const { page, problems } = await openPage(browser, file, { fragment });
  await prepare(page);
  await settled(page);
  await page.screenshot({ path: join(out, `${name}.png`) });
  await page.close();
  if (problems.length > 0) throw new Error(`${name}: ${problems.join("\n")}`);
  console.log(join(out, `${name}.png`));
}

if (traces.length > 0) {
  await picture(traces, "timeline", "panel=timeline");
  await picture(traces, "profile", "", async (page) => {
    await page.focus(".grid");
    for (const key of ["ArrowDown", "ArrowRight", "Enter"]) await page.keyboard.press(key);
  });
  await picture(traces, "flame", "theme=dark", (page) => clickButton(page, "Flame graph"));
  await picture(traces, "summary", "panel=summary");
}
if (pair) await picture([pair[0], "--diff", ...pair.slice(1)], "comparison", "panel=comparison");
await close(browser);
