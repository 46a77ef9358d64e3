// Another report page is dropped on this one: the two become a comparison, and what is no such page gets a sentence.

import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { inflateRawSync } from "node:zlib";

import { pageOf } from "./fixture.mjs";
import { HOSTILE_NAMES, KINDS } from "./fixture_traces.mjs";
import {
  browserTest,
  browsersOfRun,
  clickButton,
  eventually,
  gridRows,
  openPage,
  scratch,
  settled,
  texts,
} from "./harness.mjs";
import { runProgram } from "./program.mjs";

const { TRACEBRIDGE_BIN: program } = process.env;
const directory = scratch();
/** Where the directory begins. The script before it has the same words in another form. */
const DIRECTORY = '<script type="application/json" id="tracebridge-directory">';
const FILE = join(directory, "own.html");
const own = KINDS.launch();
own.title = "own.dat";
writeFileSync(FILE, pageOf([["trace", own]]));

/** Drops texts on the page as files, and waits for what the page says; the sentence that it says. */
async function drop(page, ...files) {
  await page.evaluate((files) => {
    const data = new DataTransfer();
    for (const [name, text] of files) data.items.add(new File([text], name, { type: "text/html" }));
    for (const kind of ["dragover", "drop"]) {
      document.body.dispatchEvent(new DragEvent(kind, { dataTransfer: data, bubbles: true, cancelable: true }));
    }
  }, files);
  const said = await eventually("the page says what became of it", async () => {
    const all = (await texts(page, ".said")).filter(Boolean).join(" ");
    assert.ok(all && !all.startsWith("Opening"), all);
    return all;
  });
  await settled(page);
  await page.evaluate(() => {
    for (const button of document.querySelectorAll(".said button")) button.click();
  });
  await settled(page);
  return said.replace(/✕$/, "");
}

for (const browser of browsersOfRun) {
  browserTest(browser, "a dropped page becomes the old one of a comparison", async (running) => {
    const other = KINDS.launch();
    other.title = "earlier.dat";
    const { page, problems } = await openPage(running, FILE, {
      fragment: "mark=5000000+mine",
    });
    const said = await drop(page, ["earlier.html", pageOf([["trace", other]])]);
    assert.match(said, /“earlier\.html” is opened beside this page, as the old one/);
    assert.equal(await page.$eval("[role=tab][aria-selected=true]", (tab) => tab.textContent), "Comparison");
    assert.deepEqual(await texts(page, ".side-name b"), ["new", "old"]);
    assert.match((await texts(page, ".total b"))[0], /^No change/);
    assert.match(
      (await texts(page, ".one-run"))[0],
      /of one run against one: .*tracebridge report NEW… --against OLD…/,
    );
    assert.equal(await page.evaluate(() => window.__tracebridge.timeline.store.state.notes.length), 1);
    const rows = await gridRows(page);
    assert.ok(rows.length > 0 && rows.every(({ exact }) => exact[3] === "0 ns"), "the same trace");
    await clickButton(page, "Swap old and new", ".comparison");
    assert.match((await texts(page, ".side:first-child .side-name"))[0], /^newearlier\.dat/);
    // What it shows is not in its address, which is that of this page alone.
    await page.reload();
    await page.waitForSelector(".panels");
    await settled(page);
    assert.equal((await page.$$(".side")).length, 0);
    assert.deepEqual(problems, []);
  });
}

browserTest("chromium", "a page is opened beside this one by keyboard alone", async (running) => {
  const other = join(directory, "other.html");
  writeFileSync(other, pageOf([["trace", KINDS.small()]]));
  const { page, problems } = await openPage(running, FILE);
  await page.evaluate(() => document.activeElement.blur());
  await page.keyboard.press("e");
  await settled(page);
  await page.keyboard.press("End");
  assert.match(await page.evaluate(() => document.activeElement.textContent), /^Compare with/);
  const waiting = page.waitForFileChooser();
  // The browser is told to hand the choice to the test before the key is pressed.
  await page.evaluate(() => null);
  await page.keyboard.press("Enter");
  const chooser = await waiting;
  await chooser.accept([other]);
  await eventually("a comparison", async () => assert.equal((await page.$$(".side")).length, 2));
  assert.deepEqual(problems, []);
});

browserTest(
  "chromium",
  "what is no report page, or a damaged one, gets a sentence and changes nothing",
  async (running) => {
    const { page, problems } = await openPage(running, FILE, { fragment: "panel=timeline" });
    const whole = pageOf([["trace", KINDS.small()]]);
    const block = /<!--tracebridge-block:[^-]*-->/g;
    const last = whole.match(block).at(-1);
    const cases = [
      ["empty", "", /no report page; tracebridge report makes one/],
      ["a text", "hello", /no report page/],
      ["another page", "<!doctype html><title>x</title><p>y", /none that tracebridge report has written/],
      ["cut in its directory", whole.slice(0, whole.indexOf(DIRECTORY) + 90), /ends in the middle/],
      ["cut in a block", whole.slice(0, whole.indexOf(last) + 30), /ends in the middle/],
      ["without its last block", whole.replace(last, ""), /Block \d+ .*missing/],
      ["cut behind its directory", whole.slice(0, whole.indexOf("<!--tracebridge-block:")), /Block \d+ .*missing/],
      ["cut before its directory", whole.slice(0, whole.indexOf(DIRECTORY)) + last, /before the directory/],
      ["a later version", whole.replace('"version":7', '"version":99'), /version 99/],
      ["a broken directory", whole.replace('{"format"', '{"format'), /directory is damaged/],
      ["no traces", whole.replace(/"traces":\[[^\]]*\]/, '"traces":[]'), /names no trace/],
      ["a block that is none", whole.replace(block, "<!--tracebridge-block:????-->"), /damaged/],
      ["a cut block", whole.replace(block, (all) => `${all.slice(0, 40)}-->`), /damaged|missing/],
    ];
    for (const [name, text, sentence] of cases) {
      const said = await drop(page, ["x.html", text]);
      assert.match(said, /^“x\.html” cannot be opened beside this page: /, name);
      assert.match(said, sentence, name);
      assert.equal((await page.$$(".side")).length, 0, name);
    }
    const two = await drop(page, ["a.html", whole], ["b.html", whole]);
    assert.match(two, /^One page at a time/);
    assert.deepEqual(problems, []);
  },
);

/** A page whose index is changed by `change`. */
function changed(trace, change) {
  const html = pageOf([["trace", trace]]);
  const { traces } = JSON.parse(/id="tracebridge-directory">([^<]*)</.exec(html)[1]);
  let nth = -1;
  return html.replace(/(<!--tracebridge-block:)([^-]*)(-->)/g, (all, begin, text, end) => {
    if (++nth !== traces[0].index) return all;
    const index = JSON.parse(inflateRawSync(Buffer.from(text, "base64")).toString());
    change(index);
    // Not packed: a stored block of DEFLATE.
    const bytes = Buffer.from(JSON.stringify(index));
    const pieces = [];
    for (let at = 0; at < bytes.length || at === 0; at += 65535) {
      const piece = bytes.subarray(at, at + 65535);
      const head = Buffer.alloc(5);
      head[0] = at + 65535 >= bytes.length ? 1 : 0;
      head.writeUInt16LE(piece.length, 1);
      head.writeUInt16LE(65535 - piece.length, 3);
      pieces.push(head, piece);
    }
    return begin + Buffer.concat(pieces).toString("base64") + end;
  });
}

browserTest("chromium", "a hostile page does no harm, and no claim of it is believed", async (running) => {
  const { page, problems } = await openPage(running, FILE, { fragment: "panel=timeline" });
  const damaged = /cannot be opened beside this page: .*(damaged|claims|ends too early|more than|missing|not known)/;
  const cases = {
    "no processes": (index) => (index.processes = null),
    "a thread of no process": (index) => (index.threads[0].process = 99),
    "a thread that is none": (index) => (index.threads[1] = null),
    "a name that is none": (index) => (index.processes[0].name = { toString: 1 }),
    "a track of no thread": (index) => (index.tracks[7].thread = -1),
    "a huge count": (index) => (index.tracks[7].count = 1e15),
    "a count that the block has not": (index) => (index.tracks[7].count = 30_000_000),
    "an unknown kind": (index) => (index.tracks[7].kind = "__proto__"),
    "an unknown encoding": (index) => (index.tracks[7].columns[0][1] = "eval"),
    "a column less": (index) => index.tracks[7].columns.splice(2),
    "names that are not there": (index) => (index.strings = index.strings + 1000),
    "names that are the index": (index) => (index.strings = index.tracks[0].block),
    "no methods": (index) => (index.methods = null),
    "a time that is none": (index) => (index.start_ns = "1e999"),
    "a duration below zero": (index) => (index.duration_ns = -5),
    "a launch of no thread": (index) =>
      (index.launches = [{ package: "x", rule: "y", type: null, stages: null, begin_ns: 0, end_ns: 1, cut: null }]),
    "frames that are none": (index) => (index.frames = [1]),
    "a column beyond the block": (index) => (index.tracks[7].offset = 1e9),
  };
  for (const [name, change] of Object.entries(cases)) {
    const said = await drop(page, ["hostile.html", changed(KINDS.small(), change)]);
    assert.match(said, damaged, name);
    assert.equal((await page.$$(".side")).length, 0, name);
  }
  // A page whose names look like markup is a page like any other.
  const trace = KINDS.small();
  trace.title = HOSTILE_NAMES[0];
  trace.summary = { inputs: 5, report: { damage: "x", notes: [{}], cpus: [1] }, problems: [] };
  const said = await drop(page, [`${HOSTILE_NAMES[0].replace(/\//g, "")}.html`, pageOf([["trace", trace]])]);
  assert.match(said, /is opened beside this page/);
  await clickButton(page, "old", "header");
  for (const panel of ["Profile", "Summary", "Comparison"]) await clickButton(page, panel, ".tabs");
  const found = await page.evaluate(() => ({
    images: document.querySelectorAll("img, iframe").length,
    scripts: document.querySelectorAll("#app script, #app [onerror]").length,
    polluted: "polluted" in {},
  }));
  assert.deepEqual(found, { images: 0, scripts: 0, polluted: false });
  assert.deepEqual(problems, []);
});

browserTest("chromium", "whatever is changed in an index is either shown or refused", async (running) => {
  const { page, problems } = await openPage(running, FILE, { fragment: "panel=timeline" });
  // A fixed sequence, so that a failure comes again.
  let seed = 7;
  const random = (limit) => (seed = (seed * 48271) % 2147483647) % limit;
  const values = [null, -1, 1e20, "x", [], {}, true, 3, "<b>"];
  let refused = 0;
  const ROUNDS = 40;
  for (let round = 0; round < ROUNDS; round++) {
    let where = "";
    const text = changed(KINDS.small(), (index) => {
      let at = index;
      for (;;) {
        const keys = Object.keys(at);
        const key = keys[random(keys.length)];
        where += `.${key}`;
        const isLeaf = typeof at[key] !== "object" || at[key] === null || Object.keys(at[key]).length === 0;
        if (isLeaf || random(4) === 0) {
          at[key] = values[random(values.length)];
          where += ` = ${JSON.stringify(at[key])}`;
          return;
        }
        at = at[key];
      }
    });
    const said = await drop(page, ["x.html", text]);
    if (/cannot be opened/.test(said)) refused++;
    else assert.match(said, /is opened beside/, where);
    assert.deepEqual(problems, [], where);
  }
  assert.ok(refused > 5 && refused < ROUNDS, `${refused} of ${ROUNDS} refused`);
});

browserTest("chromium", "a block that claims gigabytes is refused before it has them", async (running) => {
  const { page, problems } = await openPage(running, FILE, { fragment: "panel=timeline" });
  const { deflateRawSync } = await import("node:zlib");
  const bomb = deflateRawSync(Buffer.alloc(600 << 20), { level: 9 }).toString("base64");
  const html = pageOf([["trace", KINDS.small()]]);
  const { traces } = JSON.parse(/id="tracebridge-directory">([^<]*)</.exec(html)[1]);
  let nth = -1;
  const text = html.replace(/<!--tracebridge-block:[^-]*-->/g, (all) =>
    ++nth === traces[0].index ? `<!--tracebridge-block:${bomb}-->` : all,
  );
  assert.match(await drop(page, ["bomb.html", text]), /more than \d+ bytes unpacked/);
  assert.deepEqual(problems, []);
});

browserTest("chromium", "two pages compare as the program compares their traces", async (running, context) => {
  if (!program) {
    context.skip("TRACEBRIDGE_BIN names no program");
    return;
  }
  const mark = (us, what) => ` m-7 ( 7) [000] ...1 1.${String(us).padStart(6, "0")}: tracing_mark_write: ${what}\n`;
  const state = (us, prev, next) =>
    ` m-7 ( 7) [000] d..2 1.${String(us).padStart(6, "0")}: sched_switch: prev_comm=${prev[0]} prev_pid=${prev[1]} prev_prio=120 prev_state=${prev[2]} ==> next_comm=${next[0]} next_pid=${next[1]} next_prio=120\n`;
  const idle = ["swapper/0", 0, "R"];
  const traceOf = (work) =>
    [
      mark(10, "B|7|stage"),
      mark(20, "B|7|work"),
      state(25, ["m", 7, "S"], idle),
      state(45, idle, ["m", 7, "R"]),
      mark(50 + work, "B|7|inner <i>"),
      mark(60 + 2 * work, "E|7"),
      mark(80 + 3 * work, "E|7"),
      mark(90 + 3 * work, "B|7|work"),
      mark(95 + 4 * work, "E|7"),
      mark(100 + 4 * work, "E|7"),
      ...(work > 50 ? [mark(110 + 4 * work, "B|7|only here"), mark(130 + 4 * work, "E|7")] : []),
      mark(200 + 4 * work, "B|7|last"),
      mark(230 + 4 * work, "E|7"),
    ].join("");
  const path = (name) => join(directory, name);
  writeFileSync(path("new.txt"), traceOf(80));
  writeFileSync(path("old.txt"), traceOf(30));
  const report = async (...args) => {
    const { status, stderr } = await runProgram(program, ["report", ...args]);
    assert.ok(status === 0 || status === 3, stderr);
  };
  await report(path("new.txt"), "-o", path("new.html"));
  await report(path("old.txt"), "-o", path("old.html"));
  await report(path("new.txt"), "--against", path("old.txt"), "-o", path("both.html"));
  const compared = await openPage(running, path("both.html"));
  const dropped = await openPage(running, path("new.html"));
  await drop(dropped.page, ["old.html", readFileSync(path("old.html"), "utf8")]);
  const read = ({ page }) =>
    page.evaluate(() => {
      const { comparison } = window.__tracebridge.timeline.store.state;
      const { old, new: now, total, stages, states, methods, slices } = comparison;
      const side = ({ from_ns, to_ns, runs }) => ({ from_ns, to_ns, runs });
      return { old: side(old), new: side(now), total, stages, states, methods, slices };
    });
  const [wanted, found] = [await read(compared), await read(dropped)];
  assert.ok(wanted.slices.length >= 5 && wanted.states.length >= 2, JSON.stringify(wanted));
  assert.deepEqual(found, wanted);
  assert.deepEqual([...compared.problems, ...dropped.problems], []);
});
