// Notes: written, changed, listed and deleted by keyboard alone, drawn on the ruler, and harmless.

import assert from "node:assert/strict";
import { join } from "node:path";

import { writeFixture } from "./fixture.mjs";
import { browserTest, browsersOfRun, clickButton, link, openPage, scratch, settled, texts } from "./harness.mjs";

const MS = 1e6;
const FILE = join(scratch(), "small.html");
writeFixture("small", FILE);

const notes = (page) =>
  page.evaluate(() =>
    window.__tracebridge.timeline.store.state.notes.map(({ at, text, selection }) => ({ at, text, selection })),
  );
const press = async (page, ...keys) => {
  for (const key of keys) {
    await page.keyboard.press(key);
    await settled(page);
  }
};
/** How many pixels of the ruler's top have the colour of flags, in the columns from `from` to `to` ns. */
const red = (page, from, to) =>
  page.evaluate(
    (from, to) => {
      const canvas = document.querySelector(".tl-ruler canvas");
      const { view } = window.__tracebridge.timeline.store.state;
      const place = (time) => Math.round(((time - view.from) / (view.to - view.from)) * canvas.width);
      const [x0, x1] = [Math.max(place(from), 0), Math.min(place(to), canvas.width)];
      const copy = new OffscreenCanvas(x1 - x0, 6).getContext("2d", { willReadFrequently: true });
      copy.drawImage(canvas, -x0, 0);
      const { data } = copy.getImageData(0, 0, x1 - x0, 6);
      let found = 0;
      for (let i = 0; i < data.length; i += 4) found += data[i] > 150 && data[i + 1] < 80 ? 1 : 0;
      return found;
    },
    from,
    to,
  );

for (const browser of browsersOfRun) {
  browserTest(browser, "a note is written at the selection, drawn, listed, changed and deleted", async (running) => {
    const { page, problems } = await openPage(running, FILE);
    assert.equal(await red(page, 0, 100 * MS), 0);
    await page.focus(".tl-plot");
    await press(page, "ArrowRight");
    const { selection } = await page.evaluate(() => window.__tracebridge.timeline.store.state);
    assert.equal(selection.kind, "span");
    const at = await page.evaluate(({ track, item }) => {
      const { trace } = window.__tracebridge.timeline.store.state;
      return trace.tracks[track].spans.start[item];
    }, selection);
    await press(page, "m");
    assert.equal((await page.$$("dialog[open]")).length, 1);
    await page.keyboard.type("why so <b>long</b>? m");
    await press(page, "Enter");
    assert.deepEqual(await notes(page), [{ at, text: "why so <b>long</b>? m", selection }]);
    assert.equal((await page.$$("dialog")).length, 0);
    assert.equal(await page.$eval(".tl-live", (element) => element.textContent), "1 note on this page");
    assert.ok((await red(page, at - 2 * MS, at + 2 * MS)) > 10, "a flag on the ruler");
    const parts = await link(page, "the note", (parts) => assert.ok(parts.get("note")));
    assert.equal(JSON.parse(parts.get("note"))[1], "why so <b>long</b>? m");
    // Without a selection: at the middle of the view, from anywhere in the page.
    await page.focus(".tl-plot");
    await press(page, "Escape");
    await page.evaluate(() => document.activeElement.blur());
    await press(page, "m");
    await page.keyboard.type("middle");
    await press(page, "Enter");
    const { view } = await page.evaluate(() => window.__tracebridge.timeline.store.state);
    assert.equal((await notes(page))[1].at, Math.round((view.from + view.to) / 2));
    // Nothing is pinned without a text.
    await press(page, "m", "Enter");
    await press(page, "m", "Escape");
    assert.equal((await notes(page)).length, 2);
    await clickButton(page, "Summary", ".tabs");
    assert.deepEqual(await texts(page, ".notes .note-text"), ["why so <b>long</b>? m", "middle"]);
    assert.equal((await page.$$(".notes b")).length, 0);
    await page.focus('[aria-label="Change the note middle"]');
    await press(page, "Enter");
    await page.keyboard.type("changed: ");
    await page.keyboard.down("Shift");
    await press(page, "Enter");
    await page.keyboard.up("Shift");
    await press(page, "Enter");
    assert.deepEqual(
      (await notes(page)).map(({ text }) => text),
      ["why so <b>long</b>? m", "changed: \nmiddle"],
    );
    await page.focus('[aria-label^="Delete the note why"]');
    await press(page, "Enter");
    assert.equal((await notes(page)).length, 1);
    assert.deepEqual(problems, []);
  });
}

browserTest(
  "chromium",
  "a flag on the ruler opens its note, and a note in the summary shows its place",
  async (running) => {
    const { page, problems } = await openPage(running, FILE, { fragment: "mark=30000000+first&panel=summary" });
    const ruler = await page.$eval(".tl-ruler", (element) => element.getBoundingClientRect().toJSON());
    await page.mouse.click(ruler.x + ruler.width * 0.3, ruler.y + 4);
    await settled(page);
    assert.equal(await page.$eval("dialog textarea", (field) => field.value), "first");
    await clickButton(page, "Delete", "dialog");
    assert.deepEqual(await notes(page), []);
    await page.evaluate(() => {
      const { store } = window.__tracebridge.timeline;
      store.set({ notes: [{ trace: store.state.trace, at: 70e6, text: "later", selection: null }] });
    });
    await settled(page);
    await page.click(".notes .link");
    await settled(page);
    const { view } = await page.evaluate(() => window.__tracebridge.timeline.store.state);
    assert.ok(
      view.from > 60 * MS && view.from < 70 * MS && view.to > 70 * MS && view.to < 80 * MS,
      JSON.stringify(view),
    );
    assert.deepEqual(problems, []);
  },
);

browserTest("chromium", "the page has the name that it is given", async (running) => {
  const { page, problems } = await openPage(running, FILE, { fragment: "panel=summary" });
  await page.type(".notes input", "Start <i>3</i>");
  await press(page, "Tab");
  assert.deepEqual(await texts(page, "header h1"), ["Start <i>3</i>"]);
  assert.equal(await page.title(), "Start <i>3</i> · tracebridge");
  await link(page, "the name", (parts) => assert.equal(parts.get("name"), "Start <i>3</i>"));
  assert.deepEqual(problems, []);
});
