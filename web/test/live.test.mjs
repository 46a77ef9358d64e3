// A recording that runs: what rolls by, what is missing, the stopped picture, and what can be asked for. A server of the
// test's own plays the program.

import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { pageOf } from "./fixture.mjs";
import { HOSTILE_NAMES, KINDS } from "./fixture_traces.mjs";
import { browserTest, browsersOfRun, clickButton, eventually, scratch, settled, texts } from "./harness.mjs";
import { APP, batchOf, HELLO, MS, NUMBERS, START_NS } from "./live_fixture.mjs";
import { encodeBatch, LiveServer } from "./live_server.mjs";
import { runProgram } from "./program.mjs";
import { LIMIT_MS } from "./waiting.mjs";

const AXE = readFileSync(fileURLToPath(new URL("../node_modules/axe-core/axe.min.js", import.meta.url)), "utf8");
const { TRACEBRIDGE_BIN: program } = process.env;
const RECORDING = { kind: "state", state: "recording", text: "Recording the phone." };
const SECOND = 1e9;

/** How the page writes a name: what cannot be seen by its code point. */
const UNSEEN = /[\u0000-\u001f\u007f-\u009f\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g; // eslint-disable-line no-control-regex
const shown = (name) => name.replace(UNSEEN, (c) => `\\u{${c.codePointAt(0).toString(16)}}`);

/** Opens the page of a server that greets with `greeting`; `act` gets both, and what the page complained of. */
async function withLive(browser, act, { greeting = [HELLO, RECORDING, NUMBERS], width = 1440 } = {}) {
  const server = await LiveServer.start();
  try {
    server.greeting = greeting;
    const page = await browser.newPage();
    page.setDefaultTimeout(LIMIT_MS);
    await page.setViewport({ width, height: 900 });
    const problems = [];
    page.on("console", (message) => {
      // The browser itself tells of answers that are errors, and of connections that break.
      const isNetwork = /WebSocket connection|Failed to load resource/.test(message.text());
      if (["error", "warn"].includes(message.type()) && !isNetwork) problems.push(`console: ${message.text()}`);
    });
    page.on("pageerror", (error) => problems.push(`uncaught: ${error.message}`));
    page.on("dialog", (dialog) => {
      problems.push(`dialog: ${dialog.message()}`);
      dialog.dismiss();
    });
    await page.goto(server.address);
    await page.waitForFunction(() => window.__tracebridge?.live);
    await eventually("the page is connected", async () => assert.ok(server.clients.size > 0));
    await act({ page, server });
    assert.deepEqual(problems, []);
  } finally {
    await server.close();
  }
}

/** The members of the picture that are asked for. */
const live = (page, ...names) =>
  page.evaluate((names) => names.map((name) => window.__tracebridge.live[name]()), names);

/** Waits until the picture has reached what was sent, until `to`. */
function reached(page, to) {
  return eventually(`the picture reaches ${to} ns`, async () => {
    const [latest, edge] = await live(page, "latest", "edge");
    assert.equal(latest, to);
    assert.equal(edge, to);
  });
}

/** Sends batches `from` to `to` of 100 ms each, and waits until they are shown. */
async function play(page, server, from, to, extra) {
  for (let number = from; number <= to; number++) server.send(batchOf(number, 100 * MS, extra));
  await reached(page, to * 100 * MS);
}

/** The colours at moments of a band of a row. */
function colours(page, id, band, times, part = 0.5) {
  return page.evaluate(
    (id, band, times, part) => {
      const { live } = window.__tracebridge;
      const row = live.rows().find((one) => one.id === id);
      if (!row) throw new Error(`no row ${id} among ${live.rows().map((one) => one.id)}`);
      const { y, height } = row.bands[band];
      return times.map((time) => live.pixel(live.xOf(time), row.y + y + height * part));
    },
    id,
    band,
    times,
    part,
  );
}

const RUNNING = [0, 158, 115];
const LATE = [232, 80, 91];
const IN_TIME = [156, 203, 232];
/** A second of the picture, so that a millisecond is a pixel. */
async function showSecond(page) {
  for (let n = 0; n < 4; n++) await page.keyboard.press("+");
  assert.deepEqual(await live(page, "window"), [SECOND]);
}

for (const browser of browsersOfRun) {
  browserTest(browser, "a recording rolls by: rows, states, slices, frames", async (running) => {
    await withLive(running, async ({ page, server }) => {
      await play(page, server, 1, 30);
      const [rows] = await live(page, "rows");
      assert.deepEqual(
        rows.map(({ kind, label }) => [kind, label]),
        [
          ["group", APP],
          ["row", "Frames of layer"],
          ["row", "main"],
          ["row", "RenderThread"],
          ["row", "memory"],
          ["group", "CPUs"],
          ["row", "CPU 0"],
          ["group", "system_server"],
        ],
      );
      await showSecond(page);
      // Frame 180 begins at 2,880 ms, and its thread works for 10 ms; frame 179 was late.
      const [begin, rest] = [2880 * MS + 5 * MS, 2880 * MS + 13 * MS];
      const [work, sleep] = await colours(page, "thread 100", 0, [begin, rest]);
      assert.deepEqual(work, RUNNING);
      assert.notDeepEqual(sleep, RUNNING);
      const [slice, none] = await colours(page, "thread 100", 1, [begin + 2 * MS, rest]);
      const [child, beside] = await colours(page, "thread 100", 2, [2880 * MS + 2.5 * MS, begin + 2 * MS]);
      assert.notDeepEqual(slice, none);
      assert.notDeepEqual(child, beside);
      assert.notDeepEqual(slice, child);
      const at = 2864 * MS;
      const [late, high, good, lowTop] = [
        ...(await colours(page, "track 4", 0, [at + 7 * MS], 0.9)),
        ...(await colours(page, "track 4", 0, [at + 7 * MS], 0.42)),
        ...(await colours(page, "track 4", 0, [begin], 0.9)),
        ...(await colours(page, "track 4", 0, [begin], 0.42)),
      ];
      // A late frame reaches over the line of its deadline, which lies in the middle.
      assert.deepEqual(late, LATE);
      assert.deepEqual(high, LATE);
      assert.deepEqual(good, IN_TIME);
      assert.notDeepEqual(lowTop, IN_TIME);
      const [one, other] = await colours(page, "cpu 0", 0, [begin, rest]);
      assert.notDeepEqual(one, other);
      // A process opens by click.
      await clickButton(page, "▸ system_serverpid 200 · 1 thread", ".tl-labels");
      await eventually("the process is open", async () => {
        const [rows] = await live(page, "rows");
        assert.ok(rows.some(({ id }) => id === "thread 200"));
      });
      const figures = await texts(page, ".live-figures div");
      assert.deepEqual(figures, [
        "Frames625",
        "Janky62 · 9.9 %",
        "Frame p9514.5 ms",
        "CPU of the app61.5 %",
        "Ready, no CPU–",
        "Lost0 events",
        "Events2,345/s",
      ]);
      assert.deepEqual(await texts(page, ".live-state"), ["Recording the phone."]);
    });
  });
}

browserTest("chromium", "what is not over yet grows, and what ends late is painted anew", async (running) => {
  await withLive(running, async ({ page, server }) => {
    const track = (values, open) => ({ key: 9, kind: "slices", role: "atrace", thread: 1, depth: 1, open, values });
    const slice = (start, duration) => ({ start: [start], duration: [duration], depth: [0], name: [1] });
    const frame = (start, duration) => ({
      tracks: [
        {
          key: 10,
          kind: "slices",
          role: "frames",
          process: 1,
          values: { start: [start], duration: [duration], depth: [0], name: [10], flags: [0], overrun: [-5 * MS] },
        },
      ],
    });
    server.send(batchOf(1), batchOf(2, 100 * MS, { tracks: [track(slice(150 * MS, 50 * MS), 1)] }));
    await reached(page, 200 * MS);
    await showSecond(page);
    const items = (await live(page, "items"))[0];
    const [before] = await colours(page, "thread 101", 1, [175 * MS], 0.9);
    await play(page, server, 3, 3, { tracks: [track(slice(150 * MS, 150 * MS), 1)] });
    await play(page, server, 4, 4, { tracks: [track(slice(150 * MS, 190 * MS), 0)] });
    const [was, then, over] = await colours(page, "thread 101", 1, [176 * MS, 335 * MS, 370 * MS], 0.9);
    assert.deepEqual(was, before);
    assert.deepEqual(then, before);
    assert.notDeepEqual(over, before);
    assert.equal(items, (await live(page, "items"))[0], "items are counted once a second");
    // A frame comes when it is over: its begin lies before what was painted.
    await play(page, server, 5, 5);
    await clickButton(page, "▸ system_serverpid 200 · 1 thread", ".tl-labels");
    await play(page, server, 6, 6, frame(250 * MS, 300 * MS));
    await eventually("the frame is there", async () => {
      const [rows] = await live(page, "rows");
      assert.ok(rows.some(({ id }) => id === "track 10"));
    });
    await play(page, server, 7, 7, frame(600 * MS, 80 * MS));
    await play(page, server, 8, 8, frame(410 * MS, 370 * MS));
    const all = await colours(
      page,
      "track 10",
      0,
      [300, 500, 570, 640, 700].map((time) => time * MS),
      0.95,
    );
    assert.deepEqual(all, Array(5).fill(IN_TIME));
  });
});

browserTest("chromium", "what is missing is a gap with its number", async (running) => {
  await withLive(running, async ({ page, server }) => {
    await play(page, server, 1, 10);
    server.send({ kind: "skipped", batches: 3 });
    const losses = {
      tracks: [
        {
          key: 20,
          kind: "losses",
          role: "losses",
          cpu: 0,
          values: { start: [1420 * MS], duration: [60 * MS], count: [77] },
        },
      ],
    };
    server.send(batchOf(14), batchOf(15, 100 * MS, losses), batchOf(18));
    server.send({ kind: "gap", from_ns: 1850 * MS, to_ns: 1950 * MS, text: "the cable was pulled" });
    await play(page, server, 19, 20);
    const [gaps] = await live(page, "gaps");
    assert.deepEqual(gaps, [
      { from: 1000 * MS, to: 1300 * MS, text: "3 parts skipped: the page was too slow" },
      { from: 1500 * MS, to: 1700 * MS, text: "2 parts skipped: the page was too slow" },
      { from: 1850 * MS, to: 1950 * MS, text: "the cable was pulled" },
    ]);
    await showSecond(page);
    // Hatching has the colour of danger in some of its pixels, in each row.
    const reddest = (id, from, to) =>
      page.evaluate(
        (id, from, to) => {
          const { live } = window.__tracebridge;
          const row = live.rows().find((one) => one.id === id);
          let most = -255;
          for (let time = from; time < to; time += 1e6) {
            const [red, green] = live.pixel(live.xOf(time), row.y + row.height - 4);
            most = Math.max(most, red - green);
          }
          return most;
        },
        id,
        from,
        to,
      );
    assert.ok((await reddest("machine", 1, 2).catch(() => null)) === null);
    for (const [from, to] of [
      [1500, 1700],
      [1850, 1950],
    ])
      assert.ok((await reddest("cpus", (from + 5) * MS, (to - 5) * MS)) > 30, `${from}`);
    assert.ok((await reddest("cpus", 1710 * MS, 1840 * MS)) < 20);
    assert.ok((await reddest("cpu 0", 1425 * MS, 1475 * MS)) > 30);
    assert.ok((await reddest("cpus", 1425 * MS, 1475 * MS)) < 20, "only that CPU's row lost something");
  });
});

browserTest("chromium", "Space shows what is kept as a report, and goes on", async (running) => {
  await withLive(running, async ({ page, server }) => {
    const trace = KINDS.launch();
    // The kept part begins half a second before the session.
    trace.start_ns = String(START_NS - 500 * MS);
    server.kept = pageOf([["trace", trace]]);
    await page.select(".live header select", "dark");
    await play(page, server, 1, 12);
    await showSecond(page);
    await page.evaluate(() => document.activeElement.blur());
    await page.keyboard.press("Space");
    await page.waitForSelector(".live-page .panels");
    await settled(page);
    const view = await page.evaluate(() => window.__tracebridge.timeline.view());
    const { duration } = await page.evaluate(() => ({
      duration: window.__tracebridge.timeline.store.state.trace.duration,
    }));
    assert.deepEqual(view, { from: Math.max(0, 200 * MS + 500 * MS), to: Math.min(duration, 1700 * MS) });
    assert.equal(await page.evaluate(() => getComputedStyle(document.querySelector(".live")).visibility), "hidden");
    // A selection has its profile and its reasons, as in any report.
    await page.evaluate(() => {
      const { store } = window.__tracebridge.timeline;
      const { trace } = store.state;
      const track = trace.tracks.find(({ role, thread }) => role === "atrace" && trace.threads[thread].main);
      store.set({ selection: { kind: "span", track: track.id, item: 0 } });
    });
    await settled(page);
    await clickButton(page, "Profile it", ".details");
    assert.ok((await texts(page, ".profile .grid-row")).length > 0);
    // The recording goes on meanwhile; keys of the report are the report's.
    for (let number = 13; number <= 20; number++) server.send(batchOf(number));
    await eventually("batches come", async () => assert.deepEqual(await live(page, "latest"), [2000 * MS]));
    assert.deepEqual(await live(page, "isStopped", "edge"), [true, 1200 * MS]);
    await page.keyboard.press("m");
    await settled(page);
    assert.equal((await page.$$("#mark-title")).length, 0, "M is the report's note here");
    await page.keyboard.press("Escape");
    await page.select("header select:not(.live header select)", "light");
    await page.evaluate(() => document.activeElement.blur());
    await page.keyboard.press("Space");
    await eventually("the picture rolls", async () => {
      assert.deepEqual(await live(page, "isStopped"), [false]);
      assert.equal((await page.$$(".live-page *")).length, 0);
    });
    await reached(page, 2000 * MS);
    assert.equal(await page.evaluate(() => location.hash), "");
    assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), "light");
    assert.equal(await page.$eval(".live header select", ({ value }) => value), "light");
    assert.equal(await page.title(), `${APP} · a phone · tracebridge`);
    assert.equal(await page.evaluate(() => document.activeElement.textContent), "Stop the picture");
    // Once more, with the buttons.
    await clickButton(page, "Stop the picture");
    await page.waitForSelector(".live-page .panels");
    await clickButton(page, "Go on", ".live-bar");
    await play(page, server, 21, 21);
  });
});

browserTest("chromium", "the picture stops at once, and moves within what is kept", async (running) => {
  await withLive(running, async ({ page, server }) => {
    await play(page, server, 1, 30);
    await showSecond(page);
    const [before] = await colours(page, "thread 100", 0, [2885 * MS]);
    await page.keyboard.press("Space");
    await eventually("the page says that nothing is kept", async () => {
      const [said] = await texts(page, ".live-alerts");
      assert.match(said, /What is kept cannot be shown as a report: nothing is kept yet/);
    });
    assert.deepEqual(await texts(page, ".live-state"), ["The picture is stopped; the recording goes on."]);
    for (let number = 31; number <= 40; number++) server.send(batchOf(number));
    await eventually("batches come", async () => assert.deepEqual(await live(page, "latest"), [4000 * MS]));
    assert.deepEqual(await live(page, "edge"), [3000 * MS]);
    assert.deepEqual(await colours(page, "thread 100", 0, [2885 * MS]), [before]);
    for (let n = 0; n < 5; n++) await page.keyboard.press("ArrowLeft");
    assert.deepEqual(await live(page, "edge"), [2400 * MS]);
    // Frame 120 begins at 1,920 ms.
    assert.deepEqual(await colours(page, "thread 100", 0, [1925 * MS]), [RUNNING]);
    for (let n = 0; n < 30; n++) await page.keyboard.press("ArrowRight");
    assert.deepEqual(await live(page, "edge"), [4000 * MS]);
    assert.deepEqual(await colours(page, "thread 100", 0, [3685 * MS]), [RUNNING]);
    await page.keyboard.press("-");
    assert.deepEqual(await live(page, "window"), [2 * SECOND]);
    await clickButton(page, "Go on", ".live");
    await play(page, server, 41, 42);
  });
});

browserTest("chromium", "marker, save, categories, end: by keys alone", async (running) => {
  await withLive(running, async ({ page, server }) => {
    await play(page, server, 1, 10);
    const asked = (what) =>
      eventually(`${JSON.stringify(what)} is asked for`, async () => assert.deepEqual(server.asked.at(-1), what));
    await page.keyboard.press("m");
    await page.waitForSelector("dialog[open]");
    await page.keyboard.type("before <b>");
    await page.keyboard.press("Enter");
    await asked({ do: "mark", name: "before <b>" });
    const markers = () => texts(page, '.live-side [aria-label="Markers"] li');
    assert.deepEqual(await markers(), [], "a marker shows when it is in the recording");
    server.send({ kind: "mark", name: "before <b>", at_ns: 900 * MS });
    server.send({ kind: "mark", name: "before <b>", at_ns: 900 * MS });
    await eventually("the marker shows", async () => assert.deepEqual(await markers(), ["before <b> at 0.9 s"]));

    const open = async (title) => {
      await page.evaluate((title) => {
        [...document.querySelectorAll(".live header button")].find((b) => b.textContent.startsWith(title)).focus();
      }, title);
      await page.keyboard.press("Enter");
      await page.keyboard.press("Tab");
    };
    await open("Save");
    await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    await asked({ do: "save", format: "pftrace" });
    assert.equal((await page.$$(".menu")).length, 0, "what was chosen closes the menu");
    assert.match(await page.evaluate(() => document.activeElement.textContent), /^Save/);
    server.send({ kind: "saved", path: "kept-1.pftrace" });
    server.send({ kind: "triggered", path: "late-1.dat", text: "frame.overrun > 50ms", at_ns: 5 });
    await eventually("the files show", async () =>
      assert.deepEqual(await texts(page, '.live-side [aria-label="Files"] li'), [
        "late-1.dat frame.overrun > 50ms",
        "kept-1.pftrace",
      ]),
    );
    await open("Categories");
    assert.deepEqual(await page.$$eval(".menu input", (all) => all.map(({ checked }) => checked)), [true, true, false]);
    await page.keyboard.press("Space");
    await asked({ do: "categories", on: [], off: ["gfx"] });
    assert.deepEqual(await live(page, "isStopped"), [false], "Space was the checkbox's");
    await page.keyboard.press("Space");
    await asked({ do: "categories", on: ["gfx"], off: [] });
    await page.keyboard.press("Escape");
    assert.match(await page.evaluate(() => document.activeElement.textContent), /^Categories/);

    const launch = { kind: "launch", package: APP, type: "cold", begin_ns: 100 * MS, end_ns: 700 * MS };
    server.send({ ...launch, ttid_ns: 450 * MS, ttfd_ns: null }, { ...launch, ttid_ns: 450 * MS, ttfd_ns: 600 * MS });
    await eventually("the launch shows once", async () =>
      assert.deepEqual(await texts(page, '.live-side [aria-label="Launches"] li'), [
        `${APP}cold · at 0.1 s · TTID 450.0 ms · TTFD 600.0 ms`,
      ]),
    );
    await page.focus(".live header .round");
    await page.keyboard.press("Space");
    await page.waitForSelector("dialog[open]");
    assert.deepEqual(await live(page, "isStopped"), [false], "Space was the button's");
    await page.keyboard.press("Escape");
    await page.waitForFunction(() => !document.querySelector("dialog"));
    await page.evaluate(() => document.activeElement.blur());
    await page.keyboard.press("?");
    await eventually("the keys are listed", async () =>
      assert.match((await texts(page, "dialog[open]")).join(), /Space.*stops the picture/),
    );
    await page.keyboard.press("Escape");
    await clickButton(page, "End the recording");
    await asked({ do: "stop" });
    server.send({ kind: "state", state: "ended", text: "" });
    await eventually("the end is told", async () =>
      assert.deepEqual(await texts(page, ".live-state"), ["The recording has ended."]),
    );
    server.send({ kind: "error", text: "x.dat cannot be written: no room" });
    await eventually("the error is told", async () =>
      assert.match((await texts(page, "[role=alert]")).join(), /no room/),
    );
    server.cut();
    await eventually("nothing more can be asked for", async () => {
      const disabled = await page.$$eval(".live header button:disabled", (all) => all.map((b) => b.textContent));
      assert.deepEqual(disabled, ["Marker", "Save ▾", "Categories ▾", "End the recording"]);
    });
    assert.deepEqual(await texts(page, ".live-state"), ["The recording has ended."]);
    assert.doesNotMatch((await texts(page, "[role=alert]")).join(), /tries again/);
  });
});

browserTest("chromium", "categories show what is recorded, not what was asked for", async (running) => {
  await withLive(running, async ({ page, server }) => {
    await play(page, server, 1, 2);
    await clickButton(page, "Categories ▾");
    const shows = (on, text) =>
      eventually(text, async () => {
        assert.deepEqual(await page.$$eval(".menu input", (all) => all.map(({ checked }) => checked)), on);
        assert.deepEqual(await texts(page, ".menu [role=status]"), [text]);
      });
    const told = (...on) => ({
      kind: "categories",
      categories: HELLO.categories.map((one, n) => ({ ...one, on: on[n] })),
    });
    const flip = (n) => page.evaluate((n) => document.querySelectorAll(".menu input")[n].click(), n);
    await shows([true, true, false], "2 of 3 categories recorded.");
    await flip(2);
    await shows([true, true, true], "Switching view …");
    server.send(told(true, true, true));
    await shows([true, true, true], "3 of 3 categories recorded.");
    // Another page switches one off.
    server.send(told(false, true, true));
    await shows([false, true, true], "2 of 3 categories recorded.");
    // What is refused stays as it was.
    await flip(1);
    await shows([false, false, true], "Switching sched …");
    server.send({ kind: "error", text: "sched cannot be switched off" });
    await shows([false, true, true], "2 of 3 categories recorded.");
    // Of two that are asked for one after the other, the first answer does not undo the second.
    await flip(0);
    await flip(2);
    await shows([true, true, false], "Switching gfx, view …");
    server.send(told(true, true, true));
    await shows([true, true, false], "Switching view …");
    server.send(told(true, true, false));
    await shows([true, true, false], "2 of 3 categories recorded.");
    // Without switches a state that is not over is not known to go on.
    const state = (number, open) => ({
      tracks: [
        {
          key: 40,
          kind: "states",
          role: "states",
          thread: 2,
          open,
          values: { start: [150 * MS], duration: [number * 100 * MS - 150 * MS], state: [3], cpu: [1] },
        },
      ],
    });
    await showSecond(page);
    await clickButton(page, "▸ system_serverpid 200 · 1 thread", ".tl-labels");
    await play(page, server, 3, 3, state(3, 1));
    server.send(told(true, false, false));
    await shows([true, false, false], "1 of 3 categories recorded.");
    await play(page, server, 4, 4, state(4, 1));
    await play(page, server, 5, 5);
    const [known, guessed] = await colours(page, "thread 200", 0, [250 * MS, 350 * MS]);
    assert.deepEqual(known, RUNNING);
    assert.notDeepEqual(guessed, RUNNING);
    server.send({ ...HELLO, can: ["save"] });
    await eventually("what cannot be switched is not offered", async () =>
      assert.ok(!(await texts(page, ".live header button")).some((text) => text.startsWith("Categories"))),
    );
  });
});

browserTest(
  "chromium",
  "of an app that was started anew the new process comes first, the ended ones last",
  async (running) => {
    // The kernel leaves the last 15 characters of the name of Android's processes.
    const package_ = "com.example.longer.app";
    const name = package_.slice(-15);
    await withLive(
      running,
      async ({ page, server }) => {
        const STEP = 500 * MS;
        // A process that runs until the end of some batch: of the states, the last one is open before.
        const states = (key, thread, from, to, isOpen) => ({
          key,
          kind: "states",
          role: "states",
          thread,
          open: isOpen ? 1 : 0,
          values: { start: [from], duration: [to - from], state: [0], cpu: [1] },
        });
        const strings = ["Running"];
        const part = (number, running) => {
          const [from, to] = [(number - 1) * STEP, number * STEP];
          const pids = running.map(([pid]) => pid);
          return encodeBatch({
            batch: number,
            from_ns: from,
            to_ns: to,
            strings,
            processes: pids.map((pid) => ({ pid, name })),
            threads: pids.map((pid) => ({ tid: pid, pid, name, main: true })),
            tracks: running.map(([pid, began, ends], n) => states(pid, n, began, Math.min(to, ends), ends > to)),
          });
        };
        const groups = async () => (await live(page, "rows"))[0].filter(({ kind }) => kind === "group");
        const order = async () => (await groups()).map(({ id, open }) => [id, open]);
        for (let number = 1; number <= 4; number++) server.send(part(number, [[10, 0, 4 * STEP]]));
        server.send(part(5, [[20, 4 * STEP, 1e12]]));
        await reached(page, 5 * STEP);
        await eventually("both are there, the new one first", async () =>
          assert.deepEqual(await order(), [
            ["process 20", true],
            ["process 10", true],
          ]),
        );
        assert.deepEqual(
          (await groups()).map(({ label }) => label),
          [package_, package_],
        );
        for (let number = 6; number <= 30; number++)
          server.send(
            part(number, [
              [20, 4 * STEP, 1e12],
              [30, (number - 1) * STEP, 1e12],
            ]),
          );
        await eventually("the ended one is folded, behind what still runs", async () =>
          assert.deepEqual(await order(), [
            ["process 30", true],
            ["process 20", true],
            ["process 10", false],
          ]),
        );
      },
      { greeting: [{ ...HELLO, app: package_ }, RECORDING] },
    );
  },
);

browserTest("chromium", "a broken connection is told and made again, and nothing comes twice", async (running) => {
  await withLive(running, async ({ page, server }) => {
    await play(page, server, 1, 24);
    const [items] = await live(page, "items");
    server.greeting = [HELLO, RECORDING, ...Array.from({ length: 24 }, (_, n) => batchOf(n + 1))];
    server.cut();
    await eventually("the page says so", async () =>
      assert.match((await texts(page, "[role=alert]")).join(), /no connection to tracebridge/),
    );
    await eventually("the page comes back", async () => assert.equal(server.connections, 2));
    // The next one is the first that the page does not have.
    await play(page, server, 25, 36);
    const [later] = await live(page, "items");
    assert.ok(later > items && later < items * 2, `old batches are not taken once more: ${items}, then ${later}`);
    assert.deepEqual(await live(page, "gaps"), [[]]);
    assert.equal((await texts(page, "[role=alert]")).join(), "");
    // What the server had no more is a gap.
    server.greeting = [HELLO, RECORDING];
    server.cut();
    await eventually("the page comes back once more", async () => assert.equal(server.connections, 3));
    await play(page, server, 40, 41);
    const [[gap]] = await live(page, "gaps");
    assert.deepEqual([gap.from, gap.to], [3600 * MS, 3900 * MS]);
  });
});

browserTest("chromium", "what is older than what is kept is dropped", async (running) => {
  await withLive(
    running,
    async ({ page, server }) => {
      await play(page, server, 1, 40);
      const [items, tracks] = await live(page, "items", "tracks");
      for (let from = 41; from < 400; from += 60) await play(page, server, from, from + 59);
      const [later, tracksLater] = await live(page, "items", "tracks");
      assert.ok(later < items * 2.5, `${items} items, then ${later}`);
      assert.equal(tracksLater, tracks);
      // A thread that is not heard of any more leaves.
      for (let number = 401; number <= 440; number++) {
        const [from, to] = [(number - 1) * 100 * MS, number * 100 * MS];
        server.send(encodeBatch({ batch: number, from_ns: from, to_ns: to }));
      }
      await eventually("the rows are gone", async () => {
        const [rows] = await live(page, "rows");
        assert.deepEqual(
          rows.filter(({ kind }) => kind === "row").map(({ label }) => label),
          ["memory"],
        );
      });
    },
    { greeting: [{ ...HELLO, keep_s: 2 }, RECORDING] },
  );
});

browserTest("chromium", "hostile names are texts, wherever they come from", async (running) => {
  const names = HOSTILE_NAMES.filter((name) => name.trim() !== "" && !/\p{Surrogate}/u.test(name) && name.length < 200);
  await withLive(
    running,
    async ({ page, server }) => {
      const at = (n) => ({ start: [n * MS], duration: [5 * MS], depth: [0], name: [n % names.length] });
      server.send(
        encodeBatch({
          batch: 1,
          from_ns: 0,
          to_ns: 100 * MS,
          strings: names,
          processes: names.map((name, n) => ({ pid: n, name })),
          threads: names.map((name, n) => ({ tid: n, pid: n, name, main: n % 2 === 0 })),
          tracks: names.flatMap((name, n) => [
            { key: n, kind: "slices", role: "atrace", name, thread: n, values: at(n) },
            { key: 100 + n, kind: "counter", role: "counter", name, unit: name, values: { time: [0], value: [n] } },
          ]),
        }),
      );
      for (const name of names) {
        server.send(
          { kind: "launch", package: name, type: name, begin_ns: 0, end_ns: 1, ttid_ns: 1, ttfd_ns: null },
          { kind: "mark", name, at_ns: 50 * MS },
          { kind: "saved", path: name },
          { kind: "triggered", path: `${name} `, text: name, at_ns: 1 },
          { kind: "gap", from_ns: 1 * MS, to_ns: 2 * MS, text: name },
          { kind: "state", state: "recording", text: name },
        );
      }
      server.send({ kind: "error", text: names[1] });
      await reached(page, 100 * MS);
      await eventually("all is listed", async () => {
        for (const list of ["Launches", "Markers", "Files"]) {
          const lines = await texts(page, `.live-side [aria-label="${list}"] b`);
          for (const name of names) assert.ok(lines.includes(shown(name).trim()), `${list} shows ${shown(name)}`);
        }
      });
      const labels = (await texts(page, ".tl-name")).join("\n");
      for (const name of names.slice(0, 5)) assert.ok(labels.includes(shown(name)), shown(name));
      assert.equal((await texts(page, "header h1"))[0], shown(names[2]));
      assert.match((await texts(page, "[role=alert]")).join(), /<\/script><img/);
      const found = await page.evaluate(() => ({
        images: document.querySelectorAll("img, iframe, object, embed").length,
        scripts: document.querySelectorAll("#app script, #app [onerror], #app [onclick]").length,
        polluted: "polluted" in {} || typeof Object.prototype.constructor !== "function",
      }));
      assert.deepEqual(found, { images: 0, scripts: 0, polluted: false });
    },
    {
      greeting: [
        {
          ...HELLO,
          app: null,
          title: names[2],
          categories: names.map((name) => ({ name, description: name, on: true })),
        },
      ],
    },
  );
});

browserTest("chromium", "damaged messages get a sentence, and the picture goes on", async (running) => {
  await withLive(running, async ({ page, server }) => {
    await play(page, server, 1, 5);
    const said = () => texts(page, "[role=alert] p span");
    const cases = [
      ["{", /A message of the recording is damaged/],
      ['{"kind":"mark"}', /A message "mark" of the recording lacks "at_ns"/],
      ['{"kind":"state","state":"__proto__"}', /lacks "state"/],
      [Buffer.alloc(2), /ends in its head/],
      [Buffer.from([255, 255, 255, 255, 1]), /ends in its head/],
      [Buffer.concat([Buffer.from([1, 0, 0, 0]), Buffer.from("x")]), /its head cannot be read/],
      [encodeBatch({ batch: -1, from_ns: 0, to_ns: 1 }), /it has no number or times/],
      [encodeBatch({ batch: 6, from_ns: 0, to_ns: 1, strings: [1] }), /its names are no texts/],
      [encodeBatch({ batch: 6, from_ns: 0, to_ns: 1, threads: [null] }), /threads or processes are no list/],
    ];
    for (const [what, sentence] of cases) {
      server.send(what);
      await eventually(String(sentence), async () => assert.match((await said())[0] ?? "", sentence));
    }
    // Tracks that are damaged are counted; the others are taken.
    const track = { key: 50, kind: "slices", role: "atrace", thread: 0, depth: 1 };
    const values = { start: [550 * MS], duration: [10 * MS], depth: [0], name: [1] };
    const damaged = [
      { ...track, values, thread: 99 },
      { ...track, values, key: "x" },
      { ...track, values, count: 1e12 },
      { ...track, values, offset: 1e9 },
      { ...track, values: { ...values, name: [999] } },
      { ...track, values: { ...values, start: [9e15] } },
      { ...track, values, columns: [["start", "eval"]] },
    ];
    server.send(batchOf(6, 100 * MS, { tracks: damaged }));
    await eventually("the tracks are told", async () =>
      assert.match((await said())[0], /7 tracks of a part of the recording are damaged/),
    );
    // A batch that is cut anywhere, and bytes of which any one is changed.
    let seed = 7;
    const random = (limit) => (seed = (seed * 48271) % 2147483647) % limit;
    for (let round = 0; round < 150; round++) {
      const bytes = Buffer.from(batchOf(7));
      if (round % 2) server.send(bytes.subarray(0, random(bytes.length)));
      else {
        bytes[random(bytes.length)] = random(256);
        server.send(bytes);
      }
    }
    server.send({ kind: "mark", name: "after all", at_ns: 600 * MS });
    await eventually("the page still listens", async () =>
      assert.match((await texts(page, ".live-side")).join(), /after all/),
    );
    assert.ok((await said()).length <= 5, "not every sentence is kept");
    const [latest] = await live(page, "latest");
    const next = Math.max(8, Math.ceil(latest / (100 * MS)) + 1);
    server.send(batchOf(next), batchOf(next + 1));
    await eventually("the picture goes on", async () => {
      const [edge, latest] = await live(page, "edge", "latest");
      assert.equal(latest, (next + 1) * 100 * MS);
      assert.equal(edge, latest);
    });
  });
});

browserTest(
  "chromium",
  "of a million threads the page shows what it can, and says how many it leaves out",
  async (running) => {
    await withLive(
      running,
      async ({ page, server }) => {
        const COUNT = 1_000_000;
        const PART = 50_000;
        for (let part = 0; part < COUNT / PART; part++) {
          const threads = Array.from({ length: PART }, (_, n) => {
            const tid = part * PART + n;
            return { tid, pid: tid >> 3, name: `thread ${tid}`, main: tid % 8 === 0 };
          });
          server.send(
            encodeBatch({
              batch: part + 1,
              from_ns: part * MS,
              to_ns: (part + 1) * MS,
              strings: ["work"],
              threads,
              tracks: threads.map(({ tid }, n) => ({
                key: tid,
                kind: "slices",
                role: "atrace",
                thread: n,
                values: { start: [part * MS], duration: [MS], depth: [0], name: [0] },
              })),
            }),
          );
        }
        await reached(page, (COUNT / PART) * MS);
        const [rows, tracks] = await live(page, "rows", "tracks");
        assert.ok(rows.length < 600, `${rows.length} rows`);
        assert.ok(tracks <= 10_000, `${tracks} tracks`);
        const last = rows.at(-1);
        assert.equal(last.label, "Not shown");
        assert.match(last.detail, /50,000 tracks for which there is no room/);
        assert.ok(rows.some(({ label }) => /^… and [\d,]+ quieter processes$/.test(label)));
      },
      { greeting: [{ ...HELLO, app: null }] },
    );
  },
);

browserTest(
  "chromium",
  "a million threads one after the other leave no more than the last of them",
  async (running) => {
    await withLive(
      running,
      async ({ page, server }) => {
        const BATCHES = 40;
        const PART = 25_000;
        const STEP = 500 * MS;
        for (let number = 1; number <= BATCHES; number++) {
          const start = (number - 1) * STEP;
          const threads = Array.from({ length: PART }, (_, n) => {
            const tid = (number - 1) * PART + n;
            return { tid, pid: tid >> 3, name: `thread ${tid}`, main: tid % 8 === 0 };
          });
          const item = { start: [start], duration: [MS], depth: [0] };
          server.send(
            encodeBatch({
              batch: number,
              from_ns: start,
              to_ns: start + STEP,
              strings: ["work", ...threads.slice(0, 500).map(({ name }) => `slice of ${name}`)],
              threads,
              tracks: threads.flatMap(({ tid }, n) => {
                const own = { key: tid, kind: "slices", role: "atrace", thread: n };
                return [{ ...own, values: { ...item, name: [n % 501] } }];
              }),
            }),
          );
          await eventually("the batch is taken", async () =>
            assert.deepEqual(await live(page, "latest"), [number * STEP]),
          );
        }
        await reached(page, BATCHES * STEP);
        const [rows, tracks, threads, processes, names] = await live(
          page,
          "rows",
          "tracks",
          "threads",
          "processes",
          "names",
        );
        // A second is kept, and what is older is dropped each second: in every third batch.
        const LAST = 6;
        assert.ok(tracks <= 6000 && threads <= 6000, `${tracks} tracks of ${threads} threads`);
        assert.ok(processes <= (LAST * PART) / 8, `${processes} processes`);
        assert.ok(names <= LAST * 501, `${names} names`);
        const shown = rows.flatMap(({ id }) => /^process (\d+)$/.exec(id)?.[1] ?? []).map(Number);
        assert.ok(shown.length > 0);
        for (const pid of shown) assert.ok(pid >= ((BATCHES - LAST) * PART) / 8, `process ${pid} has long been gone`);
      },
      { greeting: [{ ...HELLO, app: null, keep_s: 1 }] },
    );
  },
);

browserTest("chromium", "two pages show the same, and one that is opened again shows what is kept", async (running) => {
  await withLive(running, async ({ page, server }) => {
    await play(page, server, 1, 20);
    const kept = Array.from({ length: 20 }, (_, n) => batchOf(n + 1));
    server.greeting = [HELLO, RECORDING, NUMBERS, ...kept];
    const open = async () => {
      const other = await running.newPage();
      await other.setViewport({ width: 1440, height: 900 });
      await other.goto(server.address);
      await other.waitForFunction(() => window.__tracebridge?.live);
      await reached(other, 2000 * MS);
      return other;
    };
    const second = await open();
    assert.equal(server.clients.size, 2);
    assert.deepEqual(await live(second, "gaps"), [[]]);
    const labels = async (of) => (await live(of, "rows"))[0].map(({ label }) => label);
    assert.deepEqual(await labels(second), await labels(page));
    // What one asks for, both are told.
    server.send({ kind: "mark", name: "seen by both", at_ns: 1900 * MS });
    for (const one of [page, second]) {
      await eventually("the marker shows", async () =>
        assert.deepEqual(await texts(one, '.live-side [aria-label="Markers"] b'), ["seen by both"]),
      );
    }
    await second.close();
    await eventually("one page has left", async () => assert.equal(server.clients.size, 1));
    // The other one is in the background until it is brought to the front, and draws nothing there.
    await page.bringToFront();
    await play(page, server, 21, 22);
    server.greeting.push(batchOf(21), batchOf(22));
    const third = await running.newPage();
    await third.goto(server.address);
    await third.waitForFunction(() => window.__tracebridge?.live);
    await reached(third, 2200 * MS);
    const [again, first] = [await live(third, "edge", "gaps"), await live(page, "edge", "gaps")];
    assert.deepEqual(again, first);
    await third.close();
    await page.bringToFront();
  });
});

for (const theme of ["light", "dark"]) {
  browserTest("chromium", `axe-core finds nothing in a recording that runs, ${theme}`, async (running) => {
    for (const width of [1440, 800]) {
      await withLive(
        running,
        async ({ page, server }) => {
          server.kept = pageOf([["trace", KINDS.launch()]]);
          await page.select(".live header select", theme);
          await play(page, server, 1, 10);
          server.send({ kind: "launch", package: APP, type: "cold", begin_ns: 0, end_ns: 9, ttid_ns: 5, ttfd_ns: 7 });
          server.send({ kind: "mark", name: "here", at_ns: 5 }, { kind: "saved", path: "x.dat" });
          server.send({ kind: "numbers", ...NUMBERS, lost: 5 }, { kind: "error", text: "something" });
          await eventually("all shows", async () => assert.match((await texts(page, ".live")).join(), /something/));
          await page.evaluate(AXE);
          const check = async (place) => {
            const found = await page.evaluate(async () => {
              const { violations } = await window.axe.run(document, { resultTypes: ["violations"] });
              return violations.map(({ id, nodes }) => `${id}: ${nodes.map((n) => n.html).slice(0, 3)}`);
            });
            assert.deepEqual(found, [], `${place} at ${width}`);
            const wide = await page.evaluate(() => document.documentElement.scrollWidth);
            assert.ok(wide <= width, `${place} is ${wide} pixels wide`);
          };
          await check("rolling");
          for (const title of ["Save ▾", "Categories ▾"]) {
            await clickButton(page, title);
            await check(title);
            await page.keyboard.press("Escape");
            await page.mouse.click(width / 2, 890);
          }
          await page.evaluate(() => document.activeElement.blur());
          await page.keyboard.press("m");
          await settled(page);
          await check("marker");
          await page.keyboard.press("Escape");
          await page.evaluate(() => document.activeElement.blur());
          await page.keyboard.press("Space");
          await page.waitForSelector(".live-page .panels");
          await settled(page);
          await check("stopped");
        },
        { width },
      );
    }
  });
}

browserTest("chromium", "what the program keeps opens above the picture", async (running, context) => {
  if (!program) {
    context.skip("TRACEBRIDGE_BIN names no program");
    return;
  }
  const directory = scratch();
  const mark = (us, what) => ` m-7 ( 7) [000] ...1 5.${String(us).padStart(6, "0")}: tracing_mark_write: ${what}\n`;
  writeFileSync(
    join(directory, "kept.txt"),
    [mark(100000, "B|7|before"), mark(400000, "E|7"), mark(600000, "B|7|seen"), mark(900000, "E|7")].join(""),
  );
  const { status, stderr } = await runProgram(program, [
    "report",
    join(directory, "kept.txt"),
    "-o",
    join(directory, "kept.html"),
  ]);
  assert.ok(status === 0 || status === 3, stderr);
  await withLive(running, async ({ page, server }) => {
    server.kept = readFileSync(join(directory, "kept.html"), "utf8");
    await play(page, server, 1, 12);
    await page.keyboard.press("Space");
    await page.waitForSelector(".live-page .panels");
    await settled(page);
    const slices = await page.evaluate(() => {
      const { trace } = window.__tracebridge.timeline.store.state;
      const track = trace.tracks.find(({ role }) => role === "atrace");
      return [...track.spans.label].map((label) => trace.strings[label]);
    });
    assert.deepEqual(slices, ["before", "seen"]);
    // The copy is a report page of its own.
    const copy = await page.evaluate(async () => {
      const made = [];
      const { createObjectURL } = URL;
      URL.createObjectURL = (blob) => {
        if (blob.type === "text/html") made.push(blob);
        return createObjectURL(blob);
      };
      HTMLAnchorElement.prototype.click = () => undefined;
      document.querySelector(".live-page [aria-haspopup=menu]").click();
      await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
      const entries = [...document.querySelectorAll("[role=menuitem]")];
      if (entries.some((b) => b.textContent.startsWith("Copy link"))) throw new Error("what is kept has no address");
      entries.find((b) => b.textContent.startsWith("Save copy")).click();
      await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
      return made[0].text();
    });
    const path = join(directory, "copy.html");
    writeFileSync(path, copy);
    const { openPage } = await import("./harness.mjs");
    const opened = await openPage(running, path);
    assert.equal((await texts(opened.page, "header h1"))[0], "kept.txt");
    assert.deepEqual(opened.problems, []);
  });
});
