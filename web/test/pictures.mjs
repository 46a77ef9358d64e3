// Takes the pictures of the README and of docs/report.md in Chromium: of the page that ./scripts/demo has made, and of
// a comparison where one is named. Pictures have at most 256 colours.
//
// usage: node web/test/pictures.mjs [PAGE [DIRECTORY [COMPARISON]]]      (out/demo.html and docs)

import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { close, launch } from "./browsers.mjs";
import { clickButton, openPage } from "./pages.mjs";
import { smallPng } from "./small_png.mjs";
import { settled } from "./waiting.mjs";

const SIZE = { width: 1280, height: 800 };
/** Screens of most readers of the README draw two pixels for each of CSS's. */
const README = { width: 1280, height: 640, deviceScaleFactor: 2 };

/**
 * In the page: shows the launch, from the moment before the app's process is bound to some frames after the first.
 * Returns how long that is, ns, or 0 where the page holds no launch.
 */
function showLaunch() {
  const { store } = window.__tracebridge.timeline;
  const { trace } = store.state;
  const first = (prefix, moment) => {
    const tracks = trace.tracks.filter(({ spans }) => spans !== undefined);
    const moments = tracks.flatMap((track) =>
      Array.from(track.spans.start, (start, at) => [start, at])
        .filter(([, at]) => trace.spanName(track, at).startsWith(prefix))
        .map(([, at]) => moment(track.spans, at)),
    );
    return Math.min(...moments);
  };
  const bound = first("bindApplication", (spans, at) => spans.start[at]);
  const drawn = first("DrawFrame", (spans, at) => spans.end[at]);
  const length = drawn - bound;
  if (!(length > 0 && Number.isFinite(length))) return 0;
  store.set({ view: { from: bound - length / 40, to: drawn + length / 5 } });
  return length;
}

/** In the page: unfolds the rows of the CPUs, which then name the threads that run there. */
function unfoldCpus() {
  for (const button of document.querySelectorAll('[aria-label^="Details of CPU "][aria-expanded="false"]')) {
    button.click();
  }
}

/** In the page: selects the longest item of the launched main thread's tracks of a role. */
function selectLongest(role) {
  const { store } = window.__tracebridge.timeline;
  const { trace } = store.state;
  const track = trace.tracks.find((one) => one.thread === trace.launched.thread && one.role === role);
  const { start, end, state } = track.spans ?? track.states;
  let item = -1;
  for (let i = 0; i < start.length; i++) {
    if (state && !/^Runnable/.test(trace.strings[state[i]])) continue;
    if (item < 0 || end[i] - start[i] > end[item] - start[item]) item = i;
  }
  store.set({ selection: { kind: state ? "state" : "span", track: track.id, item } });
}

const root = join(import.meta.dirname, "..", "..");
const [file = join(root, "out/demo.html"), out = join(root, "docs"), comparison] = process.argv.slice(2);
if (!existsSync(file)) {
  console.error(`${file} is missing: ./scripts/demo makes it`);
  process.exit(1);
}
const browser = await launch();

async function picture(name, fragment, prepare = async () => {}, { page: of = file, size = SIZE } = {}) {
  const { width, height } = size;
  const { page, problems } = await openPage(browser, of, { fragment, width, height });
  await page.setViewport(size);
  await prepare(page);
  await settled(page);
  const png = smallPng(Buffer.from(await page.screenshot()));
  await page.close();
  if (problems.length > 0) throw new Error(`${name}: ${problems.join("\n")}`);
  const path = join(out, `${name}.png`);
  writeFileSync(path, png);
  console.log(`${path}: ${Math.round(png.length / 1000)} kB`);
}

const firstRow = async (page, label) => {
  await page.click(`.grid[aria-label^="${label}"] .grid-row:first-child`);
  await settled(page);
};
await picture(
  "demo",
  "panel=timeline&theme=light",
  async (page) => {
    if ((await page.evaluate(showLaunch)) === 0) throw new Error(`${file} holds no launch`);
    await page.evaluate(unfoldCpus);
  },
  { size: README },
);
await picture("report-launches", "panel=launches&theme=light", (page) => firstRow(page, "Launches"));
await picture("report-why", "panel=why&theme=light", (page) => firstRow(page, "Causes"));
await picture("report-profile", "theme=light", async (page) => {
  await page.focus(".grid");
  for (const key of ["ArrowDown", "ArrowDown", "ArrowRight"]) await page.keyboard.press(key);
});
await picture("report-flame", "theme=dark", (page) => clickButton(page, "Flame graph", ".profile"));
await picture("report-table", "panel=table&theme=light", async (page) => {
  await clickButton(page, "Longest waits of the main thread", ".questions");
});
await picture("report-details", "panel=table&theme=light", async (page) => {
  await clickButton(page, "Who ran while it was ready", ".questions");
  await page.evaluate(selectLongest, "states");
});
await picture("report-summary", "panel=summary&theme=light");
if (comparison) await picture("report-comparison", "panel=comparison&theme=light", undefined, { page: comparison });
await close(browser);
