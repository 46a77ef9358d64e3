// Two timelines under each other: aligned, moved together, and with what is measured on both rulers.

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";

import { comparisonPage } from "./comparison_fixture.mjs";
import { pageOf } from "./fixture.mjs";
import { KINDS } from "./fixture_traces.mjs";
import { browserTest, browsersOfRun, clickButton, eventually, openPage, scratch, settled, texts } from "./harness.mjs";

const MS = 1e6;
const directory = scratch();
const FILE = join(directory, "comparison.html");
const LONG = join(directory, "long.html");
const made = comparisonPage();
writeFileSync(FILE, made.html);

/** Two launches of which the old one begins 100 ms later, with long names that differ at their ends. */
function longNames() {
  const traces = { new: KINDS.launch(), old: KINDS.launch() };
  for (const role of ["new", "old"]) {
    const name = (end) => `androidx.benchmark.integration.macrobenchmark.${end}`;
    traces[role].title = name(role === "new" ? "target.today.pftrace" : "target.lastweek.pftrace");
    traces[role].processes[0].name = name("target");
    traces[role].processes[1].name = name("test");
  }
  for (const track of traces.old.tracks) {
    for (const column of ["start", "time", "from"]) {
      if (track.columns[column]) track.columns[column] = track.columns[column].map((at) => at + 100 * MS);
    }
  }
  for (const launch of traces.old.launches) {
    launch.begin_ns += 100 * MS;
    launch.end_ns += 100 * MS;
  }
  traces.old.duration_ns += 100 * MS;
  const { comparison } = comparisonPage([
    "androidx.benchmark.integration.macrobenchmark.a.very.long.package.of.a.method.that.does.not.fit.in.target",
    "androidx.benchmark.integration.macrobenchmark.a.very.long.package.of.a.method.that.does.not.fit.in.test",
  ]);
  return pageOf(
    [
      ["new", traces.new],
      ["old", traces.old],
    ],
    comparison,
  );
}
writeFileSync(LONG, longNames());

/** What the two timelines show. */
const both = (page) =>
  page.evaluate(() => {
    const { timeline, other } = window.__tracebridge;
    const side = (one) => ({ ...one.view(), scrolled: one.scrolled(), selection: one.selection() });
    return { new: side(timeline), old: side(other), shown: timeline.store.state.trace.role };
  });
const near = (value, wanted, what) => assert.ok(Math.abs(value - wanted) < 2, `${what}: ${value}, not ${wanted}`);

for (const browser of browsersOfRun) {
  browserTest(
    browser,
    "both timelines lie under each other, aligned at the launch, and move together",
    async (running) => {
      const { page, problems } = await openPage(running, LONG, { height: 1000 });
      assert.equal(await page.$eval("[role=tab][aria-selected=true]", (tab) => tab.textContent), "Comparison");
      const places = await page.$$eval(".side .timeline", (all) =>
        all.map((one) => one.getBoundingClientRect().toJSON()),
      );
      assert.equal(places.length, 2);
      assert.ok(
        places[0].bottom <= places[1].top && places.every(({ height }) => height > 150),
        JSON.stringify(places),
      );
      assert.equal(places[0].left, places[1].left);
      const aligned = async (what) => {
        const { new: now, old } = await both(page);
        near(old.from - now.from, 100 * MS, `${what}: begin`);
        near(old.to - now.to, 100 * MS, `${what}: end`);
        return now;
      };
      const whole = await aligned("at the opening");
      assert.ok(whole.from <= -100 * MS + 2 && whole.to >= 5000 * MS, "all of both is in view");
      // The wheel over either one moves both.
      for (const [n, place] of places.entries()) {
        await page.mouse.move(place.x + place.width / 2, place.y + place.height - 40);
        await page.keyboard.down("Control");
        await page.mouse.wheel({ deltaY: -200 });
        await page.keyboard.up("Control");
        await settled(page);
        const before = await aligned(`zoomed over ${n}`);
        assert.ok(before.to - before.from < (whole.to - whole.from) * 0.8, "zoomed");
        await page.keyboard.down("Shift");
        await page.mouse.wheel({ deltaY: 60 });
        await page.keyboard.up("Shift");
        await settled(page);
        assert.ok((await aligned(`panned over ${n}`)).from !== before.from, "panned");
      }
      // So do keys.
      await page.evaluate(() => document.querySelectorAll(".side .tl-plot")[1].focus());
      await page.keyboard.press("Home");
      await settled(page);
      assert.deepEqual(await aligned("Home"), whole);
      // Rows scroll together.
      await page.mouse.wheel({ deltaY: 150 });
      await settled(page);
      const scrolled = await both(page);
      assert.ok(scrolled.old.scrolled > 100, JSON.stringify(scrolled));
      assert.equal(scrolled.new.scrolled, scrolled.old.scrolled);
      assert.deepEqual(problems, []);
    },
  );
}

browserTest("chromium", "what is measured is said, and drawn on the ruler of both", async (browser) => {
  const { page, problems } = await openPage(browser, FILE, { fragment: "view=0-1500000000" });
  // The line of what is measured is the last one of the ruler: dark from its begin to its end.
  const found = await page.evaluate(() => {
    const { timeline, other } = window.__tracebridge;
    return [...document.querySelectorAll(".side .tl-ruler canvas")].map((canvas, n) => {
      const { from, to } = (n === 0 ? timeline : other).view();
      const ratio = devicePixelRatio || 1;
      const y = Math.round((canvas.clientHeight - 10) * ratio);
      const copy = new OffscreenCanvas(canvas.width, 1).getContext("2d", { willReadFrequently: true });
      copy.drawImage(canvas, 0, -y);
      const { data } = copy.getImageData(0, 0, canvas.width, 1);
      let [first, last] = [-1, -1];
      for (let x = 0; x < canvas.width; x++) {
        if (data[4 * x] + data[4 * x + 1] + data[4 * x + 2] > 200) continue;
        if (first < 0) first = x;
        last = x;
      }
      const time = (x) => from + (x / canvas.width) * (to - from);
      return [time(first), time(last + 1), (to - from) / canvas.width];
    });
  });
  const sides = [made.comparison.new, made.comparison.old];
  for (const [n, [from, to, pixel]] of found.entries()) {
    assert.ok(Math.abs(from - sides[n].from_ns) <= 2 * pixel, `begin ${from}`);
    assert.ok(Math.abs(to - sides[n].to_ns) <= 2 * pixel, `end ${to}`);
  }
  // Losses of either are told.
  assert.match((await texts(page, ".banner"))[0], /The new trace is not complete\..*The old trace is not complete\./);
  assert.deepEqual(problems, []);
});

browserTest("chromium", "a row of the comparison is aligned and selected in both", async (browser) => {
  const { page, problems } = await openPage(browser, FILE);
  await page.focus(".grid");
  await page.keyboard.press("Enter");
  await settled(page);
  const { new: now, old } = await both(page);
  near(old.from - now.from, made.old.start - made.new.start, "aligned at the row");
  for (const [side, { start, duration }] of [
    [now, made.new],
    [old, made.old],
  ]) {
    assert.ok(side.from < start && side.to > start + duration, "in view");
    assert.equal(side.selection?.kind, "span");
  }
  assert.match((await texts(page, ".aligned"))[0], /^aligned at the chosen row's longest ones$/);
  // The rows are in view, also beside the details.
  const seen = await page.evaluate(() => {
    const plots = [...document.querySelectorAll(".side .tl-plot")].map((plot) => plot.getBoundingClientRect());
    return [window.__tracebridge.timeline, window.__tracebridge.other].map((timeline, n) => {
      const box = timeline.box(timeline.selection());
      return { top: box.y - plots[n].top, room: plots[n].bottom - box.y - box.height, height: plots[n].height };
    });
  });
  for (const { top, room, height } of seen) {
    assert.ok(top >= -1 && room >= -1 && height > 80, JSON.stringify(seen));
  }
  // The address keeps it all.
  const fragment = await eventually("the address has the alignment", async () => {
    const hash = await page.evaluate(() => location.hash.slice(1));
    assert.match(hash, /align=\d+-\d+/);
    assert.match(hash, /other=/);
    return hash;
  });
  const again = await openPage(browser, FILE, { fragment });
  const reopened = await both(again.page);
  assert.deepEqual([reopened.new.selection, reopened.old.selection], [now.selection, old.selection]);
  near(reopened.old.from - reopened.new.from, old.from - now.from, "aligned again");
  await page.bringToFront();
  await clickButton(page, "Align at the begin of the launch", ".comparison");
  const back = await both(page);
  near(back.old.from, back.new.from, "aligned at the launch");
  assert.deepEqual([...problems, ...again.problems], []);
});

browserTest(
  "chromium",
  "a click in either timeline shows its details, and both keep their selections",
  async (browser) => {
    const { page, problems } = await openPage(browser, FILE, { height: 1000 });
    const click = async (name) => {
      const box = await page.evaluate((name) => {
        const timeline = window.__tracebridge[name];
        const { traces } = timeline.store.state;
        const trace = traces[name === "timeline" ? 0 : 1];
        const track = trace.tracks.find(({ role, thread }) => role === "atrace" && trace.threads[thread].main).id;
        return timeline.box({ kind: "span", track, item: 0 });
      }, name);
      await page.mouse.click(box.x + box.width / 2, box.y + 5);
      await settled(page);
    };
    await click("timeline");
    let now = await both(page);
    assert.deepEqual([now.shown, now.new.selection?.item, now.old.selection], ["new", 0, null]);
    await click("other");
    now = await both(page);
    assert.deepEqual([now.shown, now.new.selection?.item, now.old.selection?.item], ["old", 0, 0]);
    assert.equal((await page.$$(".side.shown")).length, 1);
    assert.equal((await texts(page, ".side.shown .side-name b"))[0], "old");
    await click("timeline");
    assert.equal((await both(page)).shown, "new");
    assert.deepEqual(problems, []);
  },
);

browserTest(
  "chromium",
  "names that differ at their ends are told apart, and few rows take little room",
  async (browser) => {
    for (const width of [1280, 800]) {
      const { page, problems } = await openPage(browser, LONG, { width, height: 900 });
      const tails = await page.$$eval(".side-name, .titles, .comparison .cell", (all) =>
        all.flatMap((one) =>
          [...one.querySelectorAll(".tail")].map((tail) => {
            const [inner, outer] = [tail.getBoundingClientRect(), one.getBoundingClientRect()];
            return {
              text: tail.textContent,
              isIn: inner.width > 4 * Math.min(tail.textContent.length, 5) && inner.right <= outer.right + 1,
            };
          }),
        ),
      );
      const text = tails.map(({ text }) => text).join(" ");
      for (const end of [/today\.pftrace/, /stweek\.pftrace/, /in\.target/, /in\.test/]) assert.match(text, end);
      assert.deepEqual(
        tails.filter(({ isIn }) => !isIn),
        [],
      );
      const labels = await texts(page, ".side:first-child .tl-group");
      assert.ok(
        labels.some((label) => /target.*pid 1000/.test(label)),
        labels.join(),
      );
      const sizes = await page.evaluate(() => {
        const height = (selector) => document.querySelector(selector).getBoundingClientRect().height;
        return { panel: height(".lower"), timelines: height(".timelines") };
      });
      assert.ok(sizes.panel < 420 && sizes.timelines > 380, JSON.stringify(sizes));
      await page.focus(".splitter-grip");
      await page.keyboard.press("Home");
      await settled(page);
      const after = await page.$eval(".timelines", (element) => element.getBoundingClientRect().height);
      assert.ok(after < sizes.timelines, "the bar still moves");
      assert.deepEqual(problems, []);
    }
  },
);
