// Measures the page in headless Chromium or Firefox: from opening it to its first picture, profiles of periods, and each
// frame while the view zooms, pans and scrolls. Prints milliseconds: of frames the median and the 95th and 99th
// percentiles.
//
// usage: node test/timeline_frames.mjs PAGE.html [webgl|firefox]
//   webgl    draws with WebGL in software (SwiftShader), else on the canvas alone
//   firefox  measures Firefox
//
// `picture` is what drawing takes in the page's own thread. `frame` is the time from one animation frame to
// the next, which includes what the browser does with the picture; with software WebGL that is most of it.

import { resolve } from "node:path";
import { argv } from "node:process";
import { pathToFileURL } from "node:url";

import { close, launch } from "./browsers.mjs";

const [file, painter] = argv.slice(2);
if (!file) throw new Error("usage: node test/timeline_frames.mjs PAGE.html [webgl]");
const FRAMES = 100;
const REST_MS = 5000;
/** A hundred pictures of a large trace take minutes with WebGL in software. */
const LIMIT_MS = 600_000;

const swiftShader = ["--use-angle=swiftshader", "--enable-unsafe-swiftshader"];
const browser = await launch(
  painter === "firefox" ? "firefox" : "chromium",
  painter === "webgl" ? swiftShader : undefined,
  LIMIT_MS,
);
const page = await browser.newPage();
await page.setViewport({ width: 1440, height: 900 });
// The moment of the first frame behind the first picture, on the clock that begins with the navigation.
await page.evaluateOnNewDocument(() => {
  window.__tracebridgeSoftwareGl = true;
  const look = () => {
    if (window.__tracebridge?.timeline?.frameTimes.length) window.__firstPicture = performance.now();
    else requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
});
await page.goto(pathToFileURL(resolve(file)).href);
await page.waitForFunction(() => window.__firstPicture, { timeout: 60_000 });
const [used, first] = await page.evaluate(() => [window.__tracebridge.timeline.painter, window.__firstPicture]);
console.log(`${file}, ${used}: first picture after ${first.toFixed(0)} ms`);
await page.waitForSelector(".window-line", { timeout: 60_000 });
const whole = await page.evaluate(() => performance.now());
await new Promise((done) => setTimeout(done, REST_MS));
// A period is chosen, and its profile shows; the page waits a while before that, for what the user does next.
const windows = [];
for (const [from, to] of [
  [0.21, 0.83],
  [0.3, 0.6],
  [0.5, 0.51],
]) {
  windows.push(
    await page.evaluate(
      async (from, to) => {
        const { store } = window.__tracebridge.timeline;
        const { duration } = store.state.trace;
        const range = { from: Math.round(duration * from), to: Math.round(duration * to) };
        const began = performance.now();
        store.set({ range });
        while (document.querySelector(".window-line")?.dataset.window !== `${range.from}-${range.to}`) {
          await new Promise((done) => setTimeout(done, 1));
        }
        return Math.round(performance.now() - began);
      },
      from,
      to,
    ),
  );
}
console.log(
  `profile of the whole trace after ${whole.toFixed(0)} ms, `
    + `of periods ${windows.join(", ")} ms after their choice`,
);
await page.evaluate(() => window.__tracebridge.timeline.store.set({ panel: "timeline", range: null }));
await new Promise((done) => setTimeout(done, REST_MS));

const moves = {
  "zoom in": (part, duration) => {
    const [centre, factor] = [duration * 0.43, Math.exp(-10 * part)];
    return { from: centre - centre * factor, to: centre + (duration - centre) * factor };
  },
  "pan, a third in view": (part, duration) => ({
    from: (duration * 2 * part) / 3,
    to: (duration * (1 + 2 * part)) / 3,
  }),
  "pan, a twentieth": (part, duration) => ({ from: duration * 0.95 * part, to: duration * (0.95 * part + 0.05) }),
  scroll: null,
};
for (const [name, move] of Object.entries(moves)) {
  const times = await page.evaluate(
    async (frames, source) => {
      const { timeline } = window.__tracebridge;
      const { duration } = timeline.store.state.trace;
      const view = source && new Function(`return ${source}`)();
      if (!view) timeline.store.set({ view: { from: 0, to: duration } });
      const between = [];
      timeline.frameTimes.length = 0;
      let last = await new Promise((done) => requestAnimationFrame(done));
      for (let i = 0; i < frames; i++) {
        if (view) timeline.store.set({ view: view(i / frames, duration) });
        else timeline.scrollTo(i * 40);
        const now = await new Promise((done) => requestAnimationFrame(done));
        between.push(now - last);
        last = now;
      }
      return { picture: [...timeline.frameTimes], frame: between };
    },
    FRAMES,
    move?.toString(),
  );
  const say = ([kind, values]) => {
    const sorted = values.sort((a, b) => a - b);
    const at = (part) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))].toFixed(1);
    return `${kind} ${at(0.5)} / ${at(0.95)} / ${at(0.99)}`;
  };
  console.log(
    `${name}: ${Object.entries(times)
      .filter(([, values]) => values.length)
      .map(say)
      .join(", ")}`,
  );
}
await close(browser);
