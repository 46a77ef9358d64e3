// Takes the README's picture in Chromium: the timeline of the page that ./scripts/demo has made.
//
// usage: node web/test/demo_picture.mjs [PAGE [PICTURE.png]]     (out/demo.html and docs/demo.png)

import { existsSync } from "node:fs";
import { join } from "node:path";

import { close, launch } from "./browsers.mjs";
import { openPage } from "./pages.mjs";
import { settled } from "./waiting.mjs";

/** The period that the picture shows. */
const PERIOD_NS = 40e6;
const SIZE = { width: 1280, height: 640 };
/** Screens of most readers draw two pixels for each of CSS's. */
const PIXELS_FOR_EACH = 2;

/** In the page: shows the period of this length in which most method calls begin. Returns how many they are. */
function showBusiestPeriod(length) {
  const { store } = window.__tracebridge.timeline;
  const calls = store.state.trace.tracks.filter(({ kind }) => kind === "calls");
  const begins = Float64Array.from(calls.flatMap(({ spans }) => [...spans.start])).sort();
  let best = 0;
  let most = 0;
  let end = 0;
  for (let first = 0; first < begins.length; first++) {
    while (end < begins.length && begins[end] < begins[first] + length) end++;
    if (end - first > most) {
      best = first;
      most = end - first;
    }
  }
  if (most > 0) store.set({ view: { from: begins[best], to: begins[best] + length } });
  return most;
}

/** In the page: unfolds the rows of the CPUs, which then name the threads that run there. */
function unfoldCpus() {
  for (const button of document.querySelectorAll('[aria-label^="Details of CPU "][aria-expanded="false"]')) {
    button.click();
  }
}

const root = join(import.meta.dirname, "..", "..");
const [file = join(root, "out/demo.html"), picture = join(root, "docs/demo.png")] = process.argv.slice(2);
if (!existsSync(file)) {
  console.error(`${file} is missing: ./scripts/demo makes it`);
  process.exit(1);
}
const browser = await launch();
const { page, problems } = await openPage(browser, file, { fragment: "panel=timeline&theme=light", ...SIZE });
await page.setViewport({ ...SIZE, deviceScaleFactor: PIXELS_FOR_EACH });
const calls = await page.evaluate(showBusiestPeriod, PERIOD_NS);
if (calls === 0) problems.push("the page holds no method calls");
await page.evaluate(unfoldCpus);
await settled(page);
if (problems.length === 0) await page.screenshot({ path: picture });
await close(browser);
if (problems.length > 0) throw new Error(`${file}: ${problems.join("\n")}`);
console.log(`${picture}: ${PERIOD_NS / 1e6} ms with ${calls} calls`);
