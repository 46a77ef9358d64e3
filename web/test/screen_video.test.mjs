// Videos of the screen: the picture at a moment is the frame that the screen showed then, from a file beside the page
// and from the page itself. Each frame of test/screen.mp4 is of another grey; tests/support makes the file.
//
// TRACEBRIDGE_BIN names the program.

import assert from "node:assert/strict";
import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

import { findViolations, useAxe } from "./axe.mjs";
import { browserTest, clickButton, eventually, openPage, scratch } from "./harness.mjs";
import { runProgram } from "./program.mjs";

const program = process.env.TRACEBRIDGE_BIN;
const VIDEO = fileURLToPath(new URL("screen.mp4", import.meta.url));
const directory = scratch();

/** The frames are shown from 10.0 s on, one each 100 ms. The slice "load" goes from 10.25 s to 10.85 s. */
const RECORDING = `# tracer: nop
#
    main-40    (   40) [000] ..... 10.050000: tracing_mark_write: I|40|first
    main-40    (   40) [000] ..... 10.250000: tracing_mark_write: B|40|load
    main-40    (   40) [000] ..... 10.850000: tracing_mark_write: E|40
    main-40    (   40) [000] ..... 11.000000: tracing_mark_write: I|40|last
`;
const FRAMES = 10;
/** The luminance of a frame (16 is black, 235 white) as the grey of a pixel. */
const greyOf = (frame) => ((20 + frame * (210 / FRAMES) - 16) * 255) / 219;

/** Writes the page of the recording and the video, which lies in `inputs`. */
async function writePage(name, inputs, ...more) {
  mkdirSync(join(directory, inputs), { recursive: true });
  const [recording, video, page] = [join(inputs, "rec.txt"), join(inputs, "my screen.mp4"), name].map((path) =>
    join(directory, path),
  );
  mkdirSync(dirname(page), { recursive: true });
  writeFileSync(recording, RECORDING);
  copyFileSync(VIDEO, video);
  const { status, stderr } = await runProgram(program, ["merge", recording, video, "-o", page, ...more]);
  assert.equal(status, 0, stderr);
  return { page, video };
}

/** The grey of the middle of an element, as the screen shows it. */
async function greyAt(browser, page, selector) {
  const element = await page.$(selector);
  const picture = await element.screenshot({ encoding: "base64" });
  const decoder = await browser.newPage();
  const grey = await decoder.evaluate(async (picture) => {
    const image = new Image();
    image.src = `data:image/png;base64,${picture}`;
    await image.decode();
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [image.width, image.height];
    const context = canvas.getContext("2d");
    context.drawImage(image, 0, 0);
    const [r, g, b] = context.getImageData(image.width / 2, image.height / 2, 1, 1).data;
    return Math.max(r, g, b) - Math.min(r, g, b) < 8 ? (r + g + b) / 3 : -1;
  }, picture);
  await decoder.close();
  await page.bringToFront();
  return grey;
}

/**
 * Waits until the page shows this frame, and compares its picture. `act` is done again each time that it is looked: on
 * a busy machine a page that has just come to the front may miss a move of the mouse.
 */
async function shows(browser, page, frame, act = () => {}) {
  await eventually(`frame ${frame} is shown`, async () => {
    await act();
    const shown = await page.$eval(".screen video", (video) => [
      Number(video.dataset.frame),
      video.seeking,
      video.readyState,
    ]);
    assert.deepEqual(shown, [frame, false, 4]);
    const grey = await greyAt(browser, page, ".screen video");
    const distance = (other) => Math.abs(greyOf(other) - grey);
    const nearest = [...Array(FRAMES).keys()].reduce((best, other) =>
      distance(other) < distance(best) ? other : best,
    );
    assert.equal(nearest, frame, `grey ${grey}`);
    assert.ok(distance(frame) < 6, `grey ${grey} is ${greyOf(frame)}`);
  });
}

/** Selects the slice with this name. */
function selectSlice(page, name) {
  return page.evaluate((name) => {
    const { store } = window.__tracebridge.timeline;
    const { trace } = store.state;
    const track = trace.tracks.find(({ spans }) => spans && trace.strings[spans.label[0]] === name);
    store.set({ selection: { kind: "span", track: track.id, item: 0 } });
  }, name);
}

const policy = (file) => /Content-Security-Policy" content="([^"]*)"/.exec(readFileSync(file, "utf8"))[1];

for (const [where, inputs, more] of [
  ["a file beside the page", "beside", []],
  ["a file in another directory", "beside/of it", []],
  ["the page itself", "inside", ["--embed-video"]],
]) {
  browserTest("chromium", `the picture is that of the moment, from ${where}`, async (browser) => {
    const { page: file, video } = await writePage(
      join("beside", `${more.length}${inputs.length}.html`),
      inputs,
      ...more,
    );
    if (more.length > 0) rmSync(video);
    const { page, problems } = await openPage(browser, file, { fragment: "panel=screen" });
    // The trace begins with the video; so does the view.
    await shows(browser, page, 0);
    await selectSlice(page, "load");
    await shows(browser, page, 2);
    await page.keyboard.press(".");
    await shows(browser, page, 3);
    await page.keyboard.press(",");
    await page.keyboard.press(",");
    await shows(browser, page, 1);
    await clickButton(page, "Next frame", ".screen");
    await shows(browser, page, 2);
    assert.match(await page.$eval(".screen-frame", (text) => text.textContent), /frame 2 of 0 to 9, 0\.200 s/);
    // The step has selected the frame on the timeline.
    const selection = await page.evaluate(() => window.__tracebridge.timeline.store.state.selection);
    assert.deepEqual([selection.kind, selection.item], ["instant", 2]);
    // Steps move the view no more than they have to.
    const long = () => page.evaluate(() => window.__tracebridge.timeline.store.state.view);
    const { from, to } = await long();
    await page.keyboard.press(".");
    await shows(browser, page, 3);
    const after = await long();
    assert.ok(Math.abs(after.to - after.from - (to - from)) < 1, "as long as before");
    await page.keyboard.press(",");
    await shows(browser, page, 2);
    // The pointer comes first: its time is 0.65 s of 1.0 s.
    const box = await (await page.$(".tl-plot")).boundingBox();
    await page.evaluate(() => {
      const { store } = window.__tracebridge.timeline;
      store.set({ view: { from: 0, to: store.state.trace.duration } });
    });
    await shows(browser, page, 6, () => page.mouse.move(box.x + box.width * 0.65, box.y + box.height / 2));
    await shows(browser, page, 2, () => page.mouse.move(box.x + box.width / 2, 2));
    assert.deepEqual(problems, []);
  });
}

for (const theme of ["light", "dark"]) {
  browserTest("chromium", `axe-core finds no violation beside a video, ${theme}`, async (browser) => {
    const { page: file } = await writePage(`axe/${theme}.html`, `axe ${theme}`, "--embed-video");
    const { page } = await openPage(browser, file, { fragment: `panel=screen&theme=${theme}` });
    await shows(browser, page, 0);
    await useAxe(page);
    assert.deepEqual(await findViolations(page), []);
  });
}

browserTest(
  "chromium",
  "a page may load videos only where it has one, and says where one is missing",
  async (browser) => {
    const { page: file, video } = await writePage("missing/x.html", "missing");
    assert.match(policy(file), /; media-src 'self';/);
    const { page: inside } = await writePage("missing/y.html", "missing", "--embed-video");
    assert.match(policy(inside), /; media-src blob:;/);
    const plain = join(directory, "missing/plain.html");
    const { status } = await runProgram(program, ["convert", join(directory, "missing/rec.txt"), "-o", plain]);
    assert.equal(status, 0);
    assert.doesNotMatch(policy(plain), /media-src/);
    rmSync(video);
    const { page } = await openPage(browser, file, { fragment: "panel=screen" });
    await page.waitForSelector(".screen-message");
    assert.match(
      await page.$eval(".screen-message", (text) => text.textContent),
      /^my screen\.mp4 does not play: it has to/,
    );
  },
);
