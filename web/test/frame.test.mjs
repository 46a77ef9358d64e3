// The frame: opening, errors, the fragment, the search field, the splitter, the theme, the help, the banner, and
// the summary.

import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { pageOf } from "./fixture.mjs";
import { KINDS } from "./fixture_traces.mjs";
import {
  browserTest,
  browsersOfRun,
  clickButton,
  eventually,
  link,
  openPage,
  scratch,
  setControl,
  settled,
  texts,
} from "./harness.mjs";

const directory = scratch();
const trace = KINDS.small();
trace.title = "small.trace";
const FILE = write("small.html", pageOf([["trace", trace]]));

function write(name, html) {
  const path = join(directory, name);
  writeFileSync(path, html);
  return path;
}

browserTest("chromium", "damaged pages say in one sentence what is wrong", async (browser) => {
  const html = readFileSync(FILE, "utf8");
  const block = /(<!--tracebridge-block:)([^-]*)(-->)/g;
  const blocks = [...html.matchAll(block)].length;
  let nth = 0;
  const cases = {
    "no data": [
      html.replace(/<script type="application\/json" id="tracebridge-directory">[^]*?<\/script>/, ""),
      /holds no trace data/,
    ],
    "a later version": [html.replace('"version":7', '"version":9'), /version 9/],
    "a missing block": [html.replace(block, (all) => (++nth === blocks ? "" : all)), /missing|damaged|cut/],
    "a cut block": [html.replace(block, (all, a, b, c) => a + b.slice(0, b.length >> 2) + c), /damaged|cut/],
  };
  for (const [name, [text, message]] of Object.entries(cases)) {
    const { page } = await openPage(browser, write("bad.html", text));
    const [said, ...more] = await texts(page, ".failed");
    assert.match(said ?? "(nothing)", message, name);
    assert.deepEqual(more, []);
  }
});

for (const browser of browsersOfRun) {
  browserTest(browser, "workers decode the trace, and where none may run the page itself", async (running) => {
    const counting = () => {
      window.__answers = 0;
      window.Worker = class extends Worker {
        constructor(source) {
          super(source);
          this.addEventListener("message", () => window.__answers++);
        }
      };
    };
    const withWorkers = await openPage(running, FILE, { before: counting });
    assert.ok((await withWorkers.page.evaluate(() => window.__answers)) > 0);
    const without = await openPage(running, FILE, {
      before: () => {
        window.Worker = undefined;
      },
    });
    const lines = await Promise.all([withWorkers, without].map(({ page }) => texts(page, ".window-line")));
    assert.deepEqual(lines[0], lines[1]);
    assert.match(lines[0][0], /^Whole trace/);
    assert.deepEqual([...withWorkers.problems, ...without.problems], []);
  });

  browserTest(browser, "the fragment keeps the state over a reload and takes changes", async (running) => {
    const { page, problems } = await openPage(running, FILE, {
      fragment: "view=10000000-60000000&range=20000000-30000000&panel=summary&theme=dark&q=out&mark=5000000+first",
    });
    assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), "dark");
    assert.equal(await page.$eval(".search input", (input) => input.value), "out");
    assert.equal((await page.$$(".summary")).length, 1);
    await clickButton(page, "Profile", ".tabs");
    await link(page, "the panel of a page just opened", (changed) => {
      assert.equal(changed.get("panel"), null);
      assert.equal(changed.get("view"), "10000000-60000000");
      assert.equal(changed.get("mark"), "5000000 first");
    });
    assert.match((await texts(page, ".window-line"))[0], /^Chosen range .*10\.00 ms/);
    await page.reload();
    await page.waitForSelector(".panels");
    await settled(page);
    assert.match((await texts(page, ".window-line"))[0], /^Chosen range .*10\.00 ms/);
    await page.evaluate(() => {
      location.hash = "panel=profile";
    });
    await eventually("the profile follows the address", async () => {
      assert.match((await texts(page, ".window-line"))[0], /^Whole trace/);
    });
    assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), "auto");
    assert.deepEqual(problems, []);
  });
}

browserTest("chromium", "hostile fragments do no harm", async (browser) => {
  const { page, problems } = await openPage(browser, FILE);
  for (const fragment of [
    "view=9-1",
    "view=a-b",
    "view=-5-99999999999999999999",
    "range=0-0",
    "select=%5B%5D",
    'select=["span","calls","methods","",null,null,null,1e400,-1]',
    "select={",
    "panel=__proto__",
    "theme=constructor",
    "trace=x",
    "mark=",
    "q=%E0%A4%A",
    'select=["method",null]',
    'select=["span","slices","atrace","",100,null,null,0,99999]',
  ]) {
    // Once in an open page, and once in one that opens with it.
    await page.evaluate((fragment) => {
      location.hash = fragment;
    }, fragment);
    await settled(page);
    assert.equal((await page.$$(".panels")).length, 1, fragment);
    await page.reload();
    await page.waitForSelector(".panels, .failed");
    await settled(page);
    assert.equal((await page.$$(".panels")).length, 1, fragment);
    assert.deepEqual(problems, [], fragment);
  }
});

browserTest("chromium", "a selected span is the same one after a reload", async (browser) => {
  const { page, problems } = await openPage(browser, FILE, { fragment: "q=inner" });
  await eventually("the search counts its matches", async () => {
    assert.deepEqual(await texts(page, ".search .count"), ["1 match"]);
  });
  await page.focus(".search input");
  await page.keyboard.press("Enter");
  const before = await link(page, "the selected span", (parts) => {
    assert.deepEqual(JSON.parse(parts.get("select"))?.slice(0, 3), ["span", "slices", "atrace"]);
  });
  await page.reload();
  await page.waitForSelector(".panels");
  await clickButton(page, "Summary", ".tabs");
  const after = await link(page, "the panel", (parts) => assert.equal(parts.get("panel"), "summary"));
  assert.equal(after.get("select"), before.get("select"));
  assert.deepEqual(problems, []);
});

browserTest("chromium", "search, help, theme and splitter work by keyboard alone", async (browser) => {
  const { page, problems } = await openPage(browser, FILE);
  await page.keyboard.press("/");
  await page.keyboard.type("no such thing");
  await eventually("the search says that it finds nothing", async () => {
    assert.deepEqual(await texts(page, ".search .count"), ["nothing found"]);
  });
  await page.keyboard.press("Escape");
  await settled(page);
  assert.equal(await page.$eval(".search input", (input) => input.value), "");
  await page.evaluate(() => document.activeElement.blur());
  await page.keyboard.press("?");
  await settled(page);
  const keys = await texts(page, "dialog kbd");
  assert.ok(keys.length > 15 && keys.includes("?"), keys.join(" | "));
  await page.keyboard.press("Escape");
  await settled(page);
  assert.equal((await page.$$("dialog")).length, 0);
  const height = () => page.$eval(".timeline", (element) => element.clientHeight);
  const before = await height();
  await page.focus(".splitter-grip");
  await page.keyboard.press("ArrowUp");
  await settled(page);
  assert.ok((await height()) < before, "the timeline became smaller");
  await page.keyboard.press("Enter");
  await settled(page);
  assert.equal((await page.$$(".panel")).length, 0);
  assert.ok((await height()) > before, "the timeline has the whole page");
  await page.focus("[role=tab]");
  for (const name of ["Table", "Summary"]) {
    await page.keyboard.press("ArrowRight");
    await settled(page);
    assert.equal(await page.$eval("[role=tab][aria-selected=true]", (tab) => tab.textContent), name);
  }
  await setControl(page, "Theme", "dark");
  const dark = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  await setControl(page, "Theme", "light");
  assert.notEqual(await page.evaluate(() => getComputedStyle(document.body).backgroundColor), dark);
  assert.deepEqual(problems, []);
});

browserTest("chromium", "what the page does not show is no alarm", async (browser) => {
  const whole = KINDS.small();
  whole.tracks = whole.tracks.filter(({ kind }) => kind !== "losses");
  whole.summary = { not_written: { battery: 8 }, report: { unread: { packages_list: 1 } } };
  const { page, problems } = await openPage(browser, write("whole.html", pageOf([["trace", whole]])), {
    fragment: "panel=summary",
  });
  assert.deepEqual(await texts(page, ".banner"), []);
  assert.deepEqual(await texts(page, ".summary .wrong"), []);
  assert.deepEqual(await texts(page, ".not-shown"), ["The page has no rows for 8 battery, 1 packages list."]);
  assert.deepEqual(problems, []);
});

browserTest("chromium", "losses and damage stand in the banner and in the summary", async (browser) => {
  const lossy = KINDS.small();
  lossy.summary = {
    markers: 5,
    methods: 25,
    problems: { unmatched_exits: 3, open_at_end: 2 },
    not_written: { unmatched_ends: 10 },
    inputs: [
      {
        name: "/tmp/app.trace",
        format: "method trace v3, dual clock",
        size: 1234567,
        clock: "monotonic",
        why: "no recording to compare with",
        offset_ns: -1500,
        verdict: "proven",
        residual_median_ns: 900,
        residual_p99_ns: 12000,
        events: 0,
        duplicates: 0,
        method_edges: 50,
        header: [
          ["start", "2014-03-30 13:58:15"],
          ["gc-count", "17"],
        ],
        explain: ["tried boot", "tried mono"],
      },
    ],
    report: {
      cpus: { 0: { events: 100, lost: 7, gaps: 0 }, 3: { events: 50, lost: 5, gaps: 2 } },
      losses: [
        { kind: "cpu_events", text: "12 events were lost (CPU 0), as the kernel reports" },
        { kind: "unmatched_exits", text: "3 exits match no open call and are left out, as the reader reports" },
      ],
      damage: [{ offset: 4096, what: "a record is cut" }],
      notes: ["a note"],
      irregular: ["2 calls were open"],
    },
  };
  const { page, problems } = await openPage(browser, write("lossy.html", pageOf([["trace", lossy]])));
  const banner = (await texts(page, ".banner"))[0];
  for (const part of ["not complete", "12 events", "2 gaps", "at byte 4096: a record is cut", "3 exits match no"])
    assert.ok(banner.includes(part), `${banner} has ${part}`);
  assert.ok(!banner.includes("unmatched ends"), "what the page alone lacks is no loss of the recording");
  await clickButton(page, "Details", ".banner");
  const summary = (await texts(page, ".summary"))[0];
  for (const part of [
    "Missing",
    "The page has no rows for 10 unmatched ends.",
    "at byte 4096",
    "app.trace",
    "1.18 MiB (1,234,567 bytes)",
    "proven",
    "-1,500 ns",
    "median 900 ns, 99 % within 12.00 µs",
    "gc-count",
    "17",
    "2014-03-30 13:58:15 UTC",
    "tried mono",
    "a note",
    "2 calls were open",
    "2 open at end",
    "Memory of this page",
  ])
    assert.ok(summary.includes(part), part);
  const losses = await texts(page, ".summary caption + thead + tbody tr");
  assert.deepEqual(losses, ["010070", "35052"]);
  assert.deepEqual(problems, []);
});
