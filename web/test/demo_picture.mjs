// Takes the README's picture in Chromium: the timeline of the page that ./scripts/demo has made.
//
// usage: node web/test/demo_picture.mjs [PAGE [PICTURE.png]]     (out/demo.html and docs/demo.png)

import { existsSync } from "node:fs";
import { join } from "node:path";

import { close, launch } from "./browsers.mjs";
import { openPage } from "./pages.mjs";
import { settled } from "./waiting.mjs";

const SIZE = { width: 1280, height: 640 };
/** Screens of most readers draw two pixels for each of CSS's. */
const PIXELS_FOR_EACH = 2;

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

const root = join(import.meta.dirname, "..", "..");
const [file = join(root, "out/demo.html"), picture = join(root, "docs/demo.png")] = process.argv.slice(2);
if (!existsSync(file)) {
  console.error(`${file} is missing: ./scripts/demo makes it`);
  process.exit(1);
}
const browser = await launch();
const { page, problems } = await openPage(browser, file, { fragment: "panel=timeline&theme=light", ...SIZE });
await page.setViewport({ ...SIZE, deviceScaleFactor: PIXELS_FOR_EACH });
const length = await page.evaluate(showLaunch);
if (length === 0) problems.push("the page holds no launch");
await page.evaluate(unfoldCpus);
await settled(page);
if (problems.length === 0) await page.screenshot({ path: picture });
await close(browser);
if (problems.length > 0) throw new Error(`${file}: ${problems.join("\n")}`);
console.log(`${picture}: a launch of ${length / 1e6} ms`);
