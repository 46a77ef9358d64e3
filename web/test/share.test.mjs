// Links, copies and pictures: what they hold is what was seen.

import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { pageOf } from "./fixture.mjs";
import { KINDS } from "./fixture_traces.mjs";
import { browserTest, browsersOfRun, clickButton, eventually, openPage, scratch, settled, texts } from "./harness.mjs";

const directory = scratch();
const HOSTILE = '</script><img src=x onerror="document.title=1">&amp; -->\u202e';
const trace = KINDS.launch();
// A process and a slice are called so that a picture that took names for markup would be harmed.
trace.processes[0].name = HOSTILE;
trace.strings = trace.strings.map((name) => (name === "bindApplication" ? `bindApplication ${HOSTILE}` : name));
const FILE = join(directory, "launch.html");
/** The recording as text, which pages of systrace's form hold besides. */
const SECTION = '<script class="trace-data" type="application/text">\n# tracer: nop <b> & "\n</script>';
writeFileSync(
  FILE,
  pageOf([["trace", trace]]).replace("\n<script>", () => `\n${SECTION}\n<script>`),
);

/** Keeps the files that the page hands to the browser, and the text that it copies. */
const keeping = () => {
  window.__files = [];
  const make = URL.createObjectURL.bind(URL);
  URL.createObjectURL = (blob) => {
    window.__files.push(blob);
    return make(blob);
  };
  HTMLAnchorElement.prototype.click = function () {
    if (this.download) window.__name = this.download;
  };
  Object.defineProperty(navigator, "clipboard", {
    value: { writeText: (text) => Promise.resolve((window.__copied = text)) },
  });
};

const choose = async (page, item) => {
  await clickButton(page, "Share ▾");
  const found = await page.evaluate((item) => {
    const entry = [...document.querySelectorAll("[role=menuitem]")].find((one) => one.textContent.startsWith(item));
    entry?.click();
    return Boolean(entry);
  }, item);
  assert.ok(found, item);
};

/** The name and the bytes of the file that an item of the menu makes. */
async function fileOf(page, item) {
  await page.evaluate(() => (window.__name = null));
  await choose(page, item);
  await eventually(`${item}: a file`, async () => assert.ok(await page.evaluate(() => window.__name)));
  const { name, base64 } = await page.evaluate(async () => {
    const reader = new FileReader();
    const done = new Promise((resolve) => (reader.onload = resolve));
    reader.readAsDataURL(window.__files.at(-1));
    await done;
    return { name: window.__name, base64: reader.result.split(",")[1] };
  });
  return { name, bytes: Buffer.from(base64, "base64") };
}

/** What a page shows, as far as a copy or a link tells of it. */
const shown = async (page) => {
  const text = await page.evaluate(() => {
    const { timeline } = window.__tracebridge;
    const { view, range, selection, panel, theme, query, rows, notes, name } = timeline.store.state;
    return JSON.stringify({
      ...{ view, range, selection, panel, theme, query, rows, name },
      notes: notes.map(({ at, text, selection }) => ({ at, text, selection })),
      scrolled: timeline.scrolled(),
      open: timeline.rows().map(({ id, open }) => [id, open]),
      names: document.querySelector(".tl").style.getPropertyValue("--names"),
      title: document.title,
    });
  });
  return JSON.parse(text);
};

/** Makes a picture of its own: a part in view, a selection, notes, rows of one's own choice. */
async function arrange(page) {
  await page.evaluate((HOSTILE) => {
    const { timeline } = window.__tracebridge;
    const { store } = timeline;
    const { trace, rows } = store.state;
    const main = trace.tracks.find(({ role, thread }) => role === "atrace" && trace.threads[thread].main).id;
    const selection = { kind: "span", track: main, item: 0 };
    store.set({ selection, name: `Start ${HOSTILE}` });
    store.set({
      view: { from: 20_000_000, to: 420_000_000 },
      range: { from: 50_000_000, to: 300_000_000 },
      panel: "summary",
      theme: "dark",
      rows: { ...rows, sort: "name" },
      notes: [
        { trace, at: 60_000_000, text: `begins ${HOSTILE}\nand more`, selection: null },
        { trace, at: 200_000_000, text: "slow here", selection },
      ],
    });
  }, HOSTILE);
  await settled(page);
  await page.evaluate(() => {
    const fold = document.querySelector(".tl-group button");
    fold.click();
    window.__tracebridge.timeline.scrollTo(140);
  });
  await page.focus(".tl-grip");
  await page.keyboard.press("ArrowRight");
  await settled(page);
}

for (const browser of ["chromium", "firefox"]) {
  browserTest(browser, "a saved copy opens with what was seen, and is a page like any other", async (running) => {
    const { page, problems } = await openPage(running, FILE, { before: keeping });
    await arrange(page);
    const before = await shown(page);
    assert.ok(before.scrolled > 0 && before.names.endsWith("px"), JSON.stringify(before));
    const { name, bytes } = await fileOf(page, "Save copy");
    assert.match(name, /^Start-[^<>/&\s]*\.html$/);
    assert.match((await texts(page, ".said")).join(" "), /^A copy of this page with its view, notes and name is saved/);
    const copy = join(directory, `copy-${browser}.html`);
    writeFileSync(copy, bytes);
    const [original, text] = [readFileSync(FILE, "utf8"), bytes.toString("utf8")];
    for (const part of [/<meta http-equiv[^>]*>/, /<script>[^]*<\/script>/, /<style>[^]*?<\/style>/]) {
      const exact = part.source.startsWith("<meta")
        ? original.match(part)[0].replaceAll("'", "'")
        : original.match(part)[0];
      assert.ok(text.includes(exact.slice(0, 2000)), `${part} is in the copy`);
    }
    assert.equal(text.split("<!--tracebridge-block:").length, original.split("<!--tracebridge-block:").length);
    assert.ok(original.includes(SECTION) && text.includes(SECTION), "the recording as text");
    const again = await openPage(running, copy, { before: keeping });
    assert.deepEqual(await shown(again.page), before);
    const summary = await again.page.$eval(".notes", (element) => element.textContent);
    assert.ok(summary.includes(HOSTILE.replace("\u202e", "\\u{202e}")), summary);
    assert.equal(await again.page.evaluate(() => document.querySelectorAll("img").length), 0);
    // A copy of the copy is the copy.
    const second = await fileOf(again.page, "Save copy");
    assert.ok(second.bytes.equals(bytes), "a copy of the copy");
    // A link asks for something else than the copy was made with.
    const linked = await openPage(running, copy, { fragment: "panel=profile" });
    assert.deepEqual((await shown(linked.page)).notes, []);
    assert.deepEqual([...problems, ...again.problems, ...linked.problems], []);
  });
}

browserTest("chromium", "the browser saves copy and pictures of a page that is a file", async (running) => {
  const folder = scratch();
  const context = await running.createBrowserContext({
    downloadBehavior: { policy: "allow", downloadPath: folder },
  });
  try {
    const { page, problems } = await openPage(context, FILE);
    for (const [item, ending, begin] of [
      ["Save copy", "html", "<!doctype html>"],
      ["Picture (PNG)", "png", "\x89PNG"],
      ["Picture (SVG)", "svg", "<svg xmlns"],
    ]) {
      await choose(page, item);
      const file = join(folder, `launch.dat-+-app.trace.${ending}`);
      await eventually(`${item} is on the disk`, async () => {
        let bytes = "";
        try {
          bytes = readFileSync(file, "latin1");
        } catch {
          // The browser has not begun with it.
        }
        assert.ok(bytes.startsWith(begin) && bytes.length > 1000, file);
      });
    }
    assert.deepEqual(problems, []);
  } finally {
    await context.close();
  }
});

browserTest(
  "chromium",
  "a link opens with what was seen, and is shown where the clipboard refuses it",
  async (running) => {
    const { page, problems } = await openPage(running, FILE, { before: keeping });
    await arrange(page);
    const before = await shown(page);
    await page.evaluate(() => document.activeElement.blur());
    await page.keyboard.press("l");
    await eventually("the page says so", async () => {
      assert.match((await texts(page, ".said")).join(" "), /^Link copied/);
    });
    const link = await page.evaluate(() => window.__copied);
    const again = await openPage(running, FILE, { fragment: link.split("#")[1] });
    assert.deepEqual(await shown(again.page), before);
    await again.page.evaluate(() => {
      Object.defineProperty(navigator, "clipboard", { value: { writeText: () => Promise.reject(new Error("no")) } });
    });
    await choose(again.page, "Copy link");
    await eventually("the link stands in a field", async () => {
      const field = await again.page.$$eval(".said input", (fields) => fields.map(({ value }) => value));
      assert.deepEqual(field, [link]);
    });
    // A link that programs cut says so.
    await page.bringToFront();
    await page.evaluate(() => {
      const { store } = window.__tracebridge.timeline;
      const note = { trace: store.state.trace, at: 5, text: "x".repeat(2000), selection: null };
      store.set({ notes: [note, { ...note, at: 6 }] });
    });
    await page.keyboard.press("l");
    await eventually("a warning", async () => {
      assert.match((await texts(page, ".said")).join(" "), /It has [\d,]+ characters, and some programs cut/);
    });
    assert.deepEqual([...problems, ...again.problems], []);
  },
);

browserTest("chromium", "the menu is used by keyboard alone, and closes", async (running) => {
  const { page, problems } = await openPage(running, FILE, { before: keeping });
  await page.evaluate(() => document.activeElement.blur());
  await page.keyboard.press("?");
  await settled(page);
  const keys = await page.$$eval("dialog dl div", (rows) => rows.map((row) => row.textContent));
  for (const key of [/^M.*note/, /^L.*link/, /^E.*Share/, /^P.*period/, /^B.*number/, /^Long press/])
    assert.ok(
      keys.some((line) => key.test(line)),
      `${key} is listed`,
    );
  await page.keyboard.press("Escape");
  await settled(page);
  await page.keyboard.press("e");
  await settled(page);
  const focused = () => page.evaluate(() => document.activeElement.textContent);
  assert.match(await focused(), /^Copy link/);
  await page.keyboard.press("ArrowUp");
  assert.match(await focused(), /^Compare with/);
  await page.keyboard.press("Escape");
  await settled(page);
  assert.equal((await page.$$("[role=menu]")).length, 0);
  assert.match(await focused(), /^Share/);
  await page.keyboard.press("Enter");
  await settled(page);
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await eventually("a picture", async () => {
    assert.match(await page.evaluate(() => window.__name ?? ""), /\.svg$/);
  });
  assert.deepEqual(problems, []);
});

for (const browser of browsersOfRun) {
  browserTest(browser, "pictures show what is seen, with ruler and names; in SVG texts are texts", async (running) => {
    const { page, problems } = await openPage(running, FILE, { before: keeping, fragment: "theme=light" });
    await page.evaluate(() => {
      const { store } = window.__tracebridge.timeline;
      const { trace } = store.state;
      const note = { trace, at: 100_000_000, text: "<b>note</b>", selection: null };
      store.set({ view: { from: 0, to: 400_000_000 }, notes: [note], panel: "timeline" });
    });
    await settled(page);
    const png = (await fileOf(page, "Picture (PNG)")).bytes;
    const svg = (await fileOf(page, "Picture (SVG)")).bytes.toString("utf8");
    // The middles of some slices in the page: what the pictures have there, too.
    const found = await page.evaluate(
      async (svg, png) => {
        const { timeline } = window.__tracebridge;
        const { trace } = timeline.store.state;
        const main = trace.tracks.find(({ role, thread }) => role === "atrace" && trace.threads[thread].main).id;
        const labels = document.querySelector(".tl-labels").getBoundingClientRect();
        const ruler = document.querySelector(".tl-ruler").getBoundingClientRect();
        const TITLE = 22;
        const places = [];
        for (let item = 0; item < 400 && places.length < 6; item++) {
          const box = timeline.box({ kind: "span", track: main, item });
          if (!box || box.width < 12 || box.y > labels.bottom - 20) continue;
          const [x, y] = [box.x + box.width - 5, box.y + box.height - 6];
          places.push({ x: x - labels.left, y: y - labels.top + TITLE + ruler.height, color: timeline.pixel(x, y) });
        }
        // The flag of the note on the ruler.
        const { from, to } = timeline.view();
        const flag = labels.width + ((100e6 - from) / (to - from)) * ruler.width;
        places.push({ x: flag, y: TITLE + 3, color: null });
        const read = async (type, bytes) => {
          const image = new Image();
          const loaded = new Promise((done, fail) => Object.assign(image, { onload: done, onerror: fail }));
          image.src = `data:${type};base64,${bytes}`;
          await loaded;
          const canvas = new OffscreenCanvas(image.naturalWidth, image.naturalHeight);
          const context = canvas.getContext("2d", { willReadFrequently: true });
          context.drawImage(image, 0, 0);
          const ratio = type === "image/png" ? 2 : 1;
          const pixels = places.map(({ x, y }) => [
            ...context.getImageData(Math.round(x * ratio), Math.round(y * ratio), 1, 1).data.slice(0, 3),
          ]);
          return { width: image.naturalWidth / ratio, pixels };
        };
        const xml = new DOMParser().parseFromString(
          new TextDecoder().decode(Uint8Array.from(atob(svg), (c) => c.charCodeAt(0))),
          "image/svg+xml",
        );
        return {
          places,
          png: await read("image/png", png),
          svg: await read("image/svg+xml", svg),
          wrong: xml.querySelectorAll("parsererror, script, foreignObject, [onerror], b").length,
          texts: [...xml.querySelectorAll("text")].map((text) => text.textContent),
          width: labels.width + ruler.width,
        };
      },
      Buffer.from(svg).toString("base64"),
      png.toString("base64"),
    );
    assert.ok(found.places.length >= 4, `${found.places.length} slices`);
    const wanted = found.places.slice(0, -1).map(({ color }) => color);
    for (const [kind, { pixels }] of Object.entries({ PNG: found.png, SVG: found.svg })) {
      assert.deepEqual(pixels.slice(0, -1), wanted, kind);
      const [r, g, b] = pixels.at(-1);
      assert.ok(r > 150 && g < 80 && b < 80, `${kind}: the note's flag is red, ${pixels.at(-1)}`);
    }
    for (const { width } of [found.png, found.svg]) assert.ok(Math.abs(width - found.width) <= 2, `${width}`);
    assert.equal(found.wrong, 0);
    const visible = HOSTILE.replace("\u202e", "\\u{202e}");
    const has = (what, test) => assert.ok(found.texts.some(test), `${what}: ${found.texts.slice(0, 40).join(" | ")}`);
    has("the trace", (text) => text === "launch.dat + app.trace");
    has("a tick", (text) => /^50 ms$/.test(text));
    has("a row", (text) => text === "RenderThread" || text === "Frames");
    has("a process", (text) => text.endsWith(visible.slice(-10)));
    has("a note", (text) => text === "<b>note</b>");
    has("a slice", (text) => text.startsWith("bindApplication"));
    assert.deepEqual(problems, []);
  });
}
