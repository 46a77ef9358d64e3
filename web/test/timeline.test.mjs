// The timeline in a real browser: what is drawn, and what pointer, wheel, keys and search do.

import assert from "node:assert/strict";
import { join } from "node:path";

import { writeFixture } from "./fixture.mjs";
import { browserTest, close, eventually, launch, openPage, scratch, settled } from "./harness.mjs";

const MS = 1e6;
/** Tracks of the small fixture. */
const SMALL = { running: 0, frequency: 2, states: 5, slices: 7, calls: 8, async: 11, markers: 15 };

const directory = scratch();
const made = new Map();
function fixture(kind) {
  if (!made.has(kind)) {
    made.set(kind, join(directory, `${kind}.html`));
    writeFixture(kind, made.get(kind));
  }
  return made.get(kind);
}

/** Calls a function of the timeline's hook for tests. */
const ask = (page, name, ...args) =>
  page.evaluate(
    (name, args) => {
      const found = window.__tracebridge.timeline[name];
      return typeof found === "function" ? found(...args) : found;
    },
    name,
    args,
  );
const state = (page, member) => page.evaluate((member) => window.__tracebridge.timeline.store.state[member], member);
const set = async (page, change) => {
  await page.evaluate((change) => window.__tracebridge.timeline.store.set(change), change);
  await settled(page);
};
const boxOf = (page, kind, track, item) => ask(page, "box", { kind, track, item });
const middle = ({ x, y, width, height }) => [x + width / 2, y + height / 2];
async function clickOn(page, box) {
  assert.ok(box, "the item is in view");
  await page.mouse.click(...middle(box));
  await settled(page);
}
async function press(page, ...keys) {
  await page.focus(".tl-plot");
  for (const key of keys) await page.keyboard.press(key);
  await settled(page);
}
/** Types into the search field, and waits until the typing rests. */
async function search(page, text) {
  const field = await page.$("input[type=search]");
  await field.click({ count: 3 });
  await field.type(text);
  await eventually("the page searches what was typed", async () => assert.equal(await state(page, "query"), text));
  await settled(page);
}
const live = (page) => page.$eval(".tl-live", (element) => element.textContent);

/** Opens the timeline alone, so that all rows of the small fixture are in view. */
async function open(browser, kind, options = {}) {
  const opened = await openPage(browser, fixture(kind), { wait: ".tl-plot", height: 1400, ...options });
  await set(opened.page, { panel: "timeline" });
  await set(opened.page, {
    view: { from: 0, to: await opened.page.evaluate(() => window.__tracebridge.timeline.store.state.trace.duration) },
  });
  return opened;
}

/** A picture of the small fixture: what the pixels say, with the painter that the browser was allowed. */
async function checkAreas(page, painter) {
  assert.equal(await ask(page, "painter"), painter);
  const duration = await page.evaluate(() => window.__tracebridge.timeline.store.state.trace.duration);
  const plot = await page.$eval(".tl-plot", (element) => element.getBoundingClientRect().toJSON());
  // An outer slice lasts from 0 to 40 ms: coloured inside, background behind it.
  const outer = await boxOf(page, "span", SMALL.slices, 0);
  assert.ok(Math.abs(outer.width - (plot.width * 40 * MS) / duration) < 1, "as wide as it lasts");
  const inside = await ask(page, "pixel", outer.x + outer.width / 2, outer.y + 3);
  const behind = await ask(page, "pixel", outer.x + outer.width + 12, outer.y + 3);
  assert.notDeepEqual(inside, behind);
  assert.deepEqual(behind, [255, 255, 255]);
  assert.deepEqual(await ask(page, "pixel", outer.x + outer.width - 4, outer.y + 14), inside, "as high as its row");
  // Both slices with the name "outer" have one colour.
  const again = await boxOf(page, "span", SMALL.slices, 3);
  assert.deepEqual(await ask(page, "pixel", again.x + 5, again.y + 3), inside);
  // Running is green; sleeping and runnable have colours of their own.
  const colors = [];
  for (const item of [0, 1, 2]) {
    const strip = await boxOf(page, "state", SMALL.states, item);
    colors.push((await ask(page, "pixel", strip.x + strip.width / 2, strip.y + 3)).join());
  }
  assert.equal(colors[0], "0,158,115");
  assert.equal(new Set(colors).size, 3);
  // A call lies under the marker that encloses it, and that one under its own parent.
  const nested = [
    [SMALL.slices, 0],
    [SMALL.slices, 1],
    [SMALL.slices, 2],
    [SMALL.calls, 0],
    [SMALL.calls, 1],
  ];
  const ys = [];
  for (const [track, item] of nested) ys.push((await boxOf(page, "span", track, item)).y);
  assert.deepEqual(
    ys,
    [...ys].sort((a, b) => a - b),
  );
  assert.equal(new Set(ys).size, ys.length);
}

browserTest("chromium", "areas are drawn where their times say, without WebGL", async (browser) => {
  const { page, problems } = await open(browser, "small");
  await checkAreas(page, "canvas");
  assert.deepEqual(problems, []);
});

browserTest("chromium", "areas are drawn where their times say, with WebGL", async () => {
  const browser = await launch("chromium", ["--use-angle=swiftshader", "--enable-unsafe-swiftshader"]);
  try {
    // The page does not want WebGL in software: a switch that must be set before its program runs.
    const before = () => (window.__tracebridgeSoftwareGl = true);
    const { page, problems } = await open(browser, "small", { before });
    await checkAreas(page, "webgl");
    // The system may take the graphics card away, and give it back: the picture is the same as before.
    const outer = await boxOf(page, "span", SMALL.slices, 0);
    const color = await ask(page, "pixel", outer.x + 20, outer.y + 3);
    await page.evaluate(() => {
      const canvas = document.querySelector(".tl-plot canvas");
      window.__card = canvas.getContext("webgl2").getExtension("WEBGL_lose_context");
      window.__told = [];
      for (const name of ["webglcontextlost", "webglcontextrestored"]) {
        canvas.addEventListener(name, () => window.__told.push(name));
      }
      window.__card.loseContext();
    });
    const told = (...names) =>
      eventually(`the page is told: ${names.at(-1)}`, async () => {
        assert.deepEqual(await page.evaluate(() => window.__told), names);
      });
    await told("webglcontextlost");
    await page.evaluate(() => {
      window.__tracebridge.timeline.draw();
      window.__card.restoreContext();
    });
    await told("webglcontextlost", "webglcontextrestored");
    await settled(page);
    assert.deepEqual(await ask(page, "pixel", outer.x + 20, outer.y + 3), color);
    await checkAreas(page, "webgl");
    const uncaught = problems.filter((problem) => problem.startsWith("uncaught"));
    assert.deepEqual(uncaught, []);
  } finally {
    await close(browser);
  }
});

browserTest(
  "chromium",
  "CPUs and the threads that the kernel records are hatched where events were lost",
  async (browser) => {
    const { page, problems } = await open(browser, "small");
    const drawn = (x, y, width, height) =>
      page.evaluate(
        (x, y, width, height) => {
          const canvas = document.querySelectorAll(".tl-plot canvas")[1];
          const { left, top } = canvas.getBoundingClientRect();
          const copy = new OffscreenCanvas(width, height).getContext("2d", { willReadFrequently: true });
          copy.drawImage(canvas, left - x, top - y);
          const { data } = copy.getImageData(0, 0, width, height);
          return data.some((value, i) => i % 4 === 3 && value > 0);
        },
        Math.round(x),
        Math.round(y),
        width,
        height,
      );
    // Events were lost from 70 to 80 ms; the strip of the thread's states has no text.
    const strip = await boxOf(page, "state", SMALL.states, 0);
    const ms = strip.width / 20;
    const cpu = await boxOf(page, "span", SMALL.running, 0);
    for (const [what, y] of [
      ["thread", strip.y],
      ["CPU", cpu.y],
    ]) {
      assert.equal(await drawn(strip.x + 72 * ms, y + 1, Math.floor(6 * ms), 6), true, `${what}: lost`);
      assert.equal(await drawn(strip.x + 62 * ms, y + 1, Math.floor(6 * ms), 6), false, `${what}: before`);
      assert.equal(await drawn(strip.x + 82 * ms, y + 1, Math.floor(6 * ms), 6), false, `${what}: behind`);
    }
    assert.deepEqual(problems, []);
  },
);

browserTest("chromium", "two fingers zoom, and the time under each stays under it", async (browser) => {
  const { page, problems } = await open(browser, "small");
  const plot = await page.$eval(".tl-plot", (element) => element.getBoundingClientRect().toJSON());
  const timeAt = async (part) => {
    const { from, to } = await state(page, "view");
    return from + (to - from) * part;
  };
  const place = (part) => plot.x + plot.width * part;
  const [left, right] = [await timeAt(0.4), await timeAt(0.6)];
  const one = await page.touchscreen.touchStart(place(0.4), plot.y + 100);
  const other = await page.touchscreen.touchStart(place(0.6), plot.y + 100);
  for (const step of [1, 2, 3, 4]) {
    await one.move(place(0.4 - 0.05 * step), plot.y + 100);
    await other.move(place(0.6 + 0.05 * step), plot.y + 100);
  }
  // The browser hands out movements with its next frame.
  await settled(page);
  const near = (value, wanted) => assert.ok(Math.abs(value - wanted) < 0.2 * MS, `${value} and not ${wanted}`);
  near(await timeAt(0.2), left);
  near(await timeAt(0.8), right);
  await one.end();
  await other.end();
  await settled(page);
  near(await timeAt(0.2), left);
  assert.equal(await state(page, "selection"), null, "a pinch is no click");
  assert.deepEqual(problems, []);
});

browserTest("chromium", "a click selects, and says so; the selected method's calls are underlined", async (browser) => {
  const { page, problems } = await open(browser, "small");
  const call = await boxOf(page, "span", SMALL.calls, 1);
  const other = await boxOf(page, "span", SMALL.calls, 2);
  const before = await ask(page, "pixel", other.x + 3, other.y + other.height - 3);
  await clickOn(page, call);
  assert.deepEqual(await state(page, "selection"), { kind: "span", track: SMALL.calls, item: 1 });
  assert.match(await live(page), /^Selected .*Duration 3\.000 ms, Self 2\.000 ms/);
  const after = await ask(page, "pixel", other.x + 3, other.y + other.height - 3);
  assert.notDeepEqual(after, before, "the other call of the method is underlined");
  // A click on empty ground drops the selection.
  await page.mouse.click(call.x + call.width + 40, call.y + 3);
  await settled(page);
  assert.equal(await state(page, "selection"), null);
  assert.deepEqual(problems, []);
});

browserTest("chromium", "keys step to siblings, parents, children and equal names, and zoom", async (browser) => {
  const { page, problems } = await open(browser, "small");
  const selected = async () => {
    const { track, item } = await state(page, "selection");
    return [track, item];
  };
  await clickOn(page, await boxOf(page, "span", SMALL.slices, 0));
  await press(page, "ArrowRight");
  assert.deepEqual(await selected(), [SMALL.slices, 3]);
  await press(page, "ArrowLeft", "ArrowDown");
  assert.deepEqual(await selected(), [SMALL.slices, 1]);
  await press(page, "ArrowDown", "ArrowDown");
  assert.deepEqual(await selected(), [SMALL.calls, 0], "from a marker to the call inside");
  await press(page, "ArrowUp");
  assert.deepEqual(await selected(), [SMALL.slices, 2], "and back");
  await clickOn(page, await boxOf(page, "span", SMALL.calls, 0));
  await page.keyboard.down("Shift");
  await press(page, "ArrowRight");
  await page.keyboard.up("Shift");
  assert.deepEqual(await selected(), [SMALL.calls, 4], "the next call of the same method");
  await press(page, "Enter");
  const { from, to } = await state(page, "view");
  assert.ok(from < 55 * MS && from > 54 * MS && to > 60 * MS && to < 61 * MS, `zoomed to ${from} … ${to}`);
  await press(page, "Home");
  assert.deepEqual(await state(page, "view"), { from: 0, to: 100 * MS });
  await press(page, "p");
  assert.deepEqual(await state(page, "range"), { from: 55 * MS, to: 60 * MS });
  await press(page, "b");
  const notes = () =>
    page.evaluate(() => window.__tracebridge.timeline.store.state.notes.map(({ at, text }) => ({ at, text })));
  assert.deepEqual(await notes(), [{ at: 55 * MS, text: "1" }]);
  await press(page, "b", "Escape");
  assert.deepEqual(await notes(), []);
  assert.equal(await state(page, "range"), null);
  await press(page, "w");
  const zoomed = await state(page, "view");
  assert.ok(zoomed.to - zoomed.from < 100 * MS);
  await press(page, "d");
  assert.ok((await state(page, "view")).from > zoomed.from);
  await press(page, "]");
  assert.notDeepEqual(await selected(), [SMALL.calls, 4], "another row");
  assert.deepEqual(problems, []);
});

browserTest("chromium", "wheel and drags zoom, pan and measure, and never leave the trace", async (browser) => {
  const { page, problems } = await open(browser, "small");
  const plot = await page.$eval(".tl-plot", (element) => element.getBoundingClientRect().toJSON());
  const x = plot.x + plot.width / 4;
  await page.mouse.move(x, plot.y + 200);
  const wheel = async (key, deltaY, times = 1) => {
    await page.keyboard.down(key);
    for (let i = 0; i < times; i++) await page.mouse.wheel({ deltaY });
    await page.keyboard.up(key);
    await settled(page);
  };
  await wheel("Control", -300);
  let view = await state(page, "view");
  const fixed = view.from + (view.to - view.from) / 4;
  assert.ok(Math.abs(fixed - 25 * MS) < 0.2 * MS, `the time under the pointer stays: ${fixed}`);
  await wheel("Shift", 200);
  assert.ok((await state(page, "view")).from > view.from);
  view = await state(page, "view");
  await page.mouse.down();
  await page.mouse.move(x + 200, plot.y + 200, { steps: 4 });
  await page.mouse.up();
  assert.ok((await state(page, "view")).from < view.from, "a drag to the right shows earlier times");
  await wheel("Control", 300, 12);
  assert.deepEqual(await state(page, "view"), { from: 0, to: 100 * MS });
  await page.keyboard.down("Shift");
  await page.mouse.move(plot.x + plot.width * 0.2, plot.y + 300);
  await page.mouse.down();
  await page.mouse.move(plot.x + plot.width * 0.5, plot.y + 300, { steps: 4 });
  await page.mouse.up();
  await page.keyboard.up("Shift");
  const range = await state(page, "range");
  assert.ok(
    Math.abs(range.from - 20 * MS) < 0.3 * MS && Math.abs(range.to - 50 * MS) < 0.3 * MS,
    JSON.stringify(range),
  );
  await wheel("Control", -300, 60);
  view = await state(page, "view");
  assert.ok(view.to - view.from >= 20 - 1e-6 && view.to - view.from < 21, "no zoom below 20 ns");
  assert.deepEqual(problems, []);
});

browserTest("chromium", "the pointer is told name, clocks, durations, state and who woke it", async (browser) => {
  const { page, problems } = await open(browser, "small");
  const tip = async (box) => {
    await page.mouse.move(...middle(box));
    await settled(page);
    return page.$eval(".tl-tip", (element) => element.innerText);
  };
  const call = await tip(await boxOf(page, "span", SMALL.calls, 0));
  for (const wanted of [
    "0.004 000 000 s",
    "81234.571890123 s (boot)",
    "2014-03-30 13:58:15.127456 UTC",
    "5.000 ms",
    "Self\n2.000 ms",
    "CPU time\n4.000 ms",
    "Depth\n0",
    "Running on CPU 0",
  ]) {
    assert.ok(call.includes(wanted), `${wanted} in ${call}`);
  }
  assert.match(await tip(await boxOf(page, "span", SMALL.slices, 1)), /Arguments\na=1/);
  assert.match(await tip(await boxOf(page, "span", SMALL.slices, 3)), /its end was not recorded/);
  assert.match(await tip(await boxOf(page, "state", SMALL.states, 2)), /Runnable[\s\S]*Woken by[\s\S]*onerror/);
  const counter = await boxOf(page, "counter", SMALL.frequency, 1);
  assert.match(await tip({ ...counter, width: 100 }), /frequency: 2\.4 GHz/);
  assert.deepEqual(problems, []);
});

browserTest(
  "chromium",
  "the search fades what does not match, counts, and jumps to what is folded",
  async (browser) => {
    const { page, problems } = await open(browser, "launch");
    const found = await page.evaluate(() => window.__tracebridge.timeline.search("HeapTaskDaemon"));
    assert.equal(found.count, 8, "one thread of each process");
    const jumped = await page.evaluate(() => window.__tracebridge.timeline.search("deliverInputEvent"));
    assert.ok(jumped.count > 20);
    await set(page, { selection: jumped.first });
    assert.ok(await ask(page, "box", jumped.first), "the jump's row is there");
    const main = await page.evaluate(() => {
      const { trace } = window.__tracebridge.timeline.store.state;
      return trace.tracks.findIndex(
        ({ role, thread }) =>
          role === "atrace" && trace.threads[thread].main && trace.threads[thread].name === "com.example.app",
      );
    });
    await set(page, { selection: null, view: { from: 0, to: 5e9 } });
    await ask(page, "scrollTo", 0);
    const slice = await boxOf(page, "span", main, 0);
    const vivid = await ask(page, "pixel", slice.x + 4, slice.y + 3);
    await search(page, "no such name");
    const faded = await ask(page, "pixel", slice.x + 4, slice.y + 3);
    assert.notDeepEqual(faded, vivid);
    await search(page, "bindAppl");
    assert.deepEqual(await ask(page, "pixel", slice.x + 4, slice.y + 3), vivid);
    assert.deepEqual(problems, []);
  },
);

browserTest("chromium", "1,500 threads are folded by activity, and unfold", async (browser) => {
  const { page, problems } = await open(browser, "threads");
  const rows = await ask(page, "rows");
  assert.ok(rows.length < 120, `${rows.length} rows`);
  assert.ok(rows.some(({ label }) => /^… and \d+ quieter threads$/.test(label)));
  assert.ok(rows.some(({ label }) => /^… and \d+ quieter processes$/.test(label)));
  assert.ok(
    rows.every(({ y }, i) => i === 0 || y === rows[i - 1].y + rows[i - 1].height),
    "rows lie one below the other",
  );
  await ask(page, "scrollTo", rows.find(({ label }) => /quieter threads/.test(label)).y - 100);
  await settled(page);
  const label = await page.evaluateHandle(() =>
    [...document.querySelectorAll(".tl-more button")].find((button) => /quieter threads/.test(button.textContent)),
  );
  await label.asElement().focus();
  await page.keyboard.press("Enter");
  await settled(page);
  assert.ok((await ask(page, "rows")).length > rows.length);
  // A thread that is folded twice shows when it is selected.
  const last = await page.evaluate(() => window.__tracebridge.timeline.store.state.trace.threads.length - 1);
  await set(page, { selection: { kind: "thread", thread: last } });
  assert.ok((await ask(page, "rows")).some(({ id }) => id === `thread ${last}`));
  assert.deepEqual(problems, []);
});

browserTest("chromium", "the nearest twenty arrows show, and more on demand", async (browser) => {
  const { page, problems } = await open(browser, "launch");
  const note = () => page.$eval(".tl-note", (element) => element.textContent);
  await set(page, { view: { from: 1e9, to: 1.1e9 } });
  await ask(page, "scrollTo", 1e6);
  assert.equal(await note(), "", "without a selection there are none at first");
  await press(page, "r");
  const of = /^the nearest 20 arrows of (\d+); R shows more$/.exec(await note());
  assert.ok(Number(of?.[1]) > 20, await note());
  await press(page, "r");
  const all = await note();
  assert.ok(all === `${of[1]} arrows` || all.startsWith("the nearest 1500 arrows of"), all);
  await press(page, "r");
  assert.equal(await note(), "");
  // Of a selection that is as long as the trace, too, the nearest show.
  await set(page, { view: { from: 0, to: 5e9 } });
  const states = await page.evaluate(() => {
    const { trace } = window.__tracebridge.timeline.store.state;
    const { byThread } = { byThread: trace.tracks.filter(({ role }) => role === "states") };
    return byThread[0].id;
  });
  const longest = await page.evaluate((id) => {
    const { start, end } = window.__tracebridge.timeline.store.state.trace.tracks[id].states;
    return start.reduce((best, _, i) => (end[i] - start[i] > end[best] - start[best] ? i : best), 0);
  }, states);
  await set(page, { selection: { kind: "state", track: states, item: longest } });
  assert.match(await note(), /^(|the nearest 20 arrows of \d+; R shows more)$/);
  assert.deepEqual(problems, []);
});

browserTest("firefox", "the timeline draws, and a click selects", async (browser) => {
  const { page, problems } = await open(browser, "small");
  const slice = await boxOf(page, "span", SMALL.slices, 3);
  assert.notDeepEqual(await ask(page, "pixel", slice.x + 5, slice.y + 3), [255, 255, 255]);
  await clickOn(page, slice);
  assert.deepEqual(await state(page, "selection"), { kind: "span", track: SMALL.slices, item: 3 });
  assert.deepEqual(problems, []);
});
