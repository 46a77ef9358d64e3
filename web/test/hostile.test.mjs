// Hostile names are data: they show as themselves in every place that shows one, and do nothing.

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";

import { comparisonPage } from "./comparison_fixture.mjs";
import { pageOf } from "./fixture.mjs";
import { HOSTILE_NAMES, KINDS } from "./fixture_traces.mjs";
import { browserTest, clickButton, gridRows, openPage, scratch, setControl, settled, texts } from "./harness.mjs";

const directory = scratch();
const names = HOSTILE_NAMES.filter((name) => name.trim() !== "" && !/\p{Surrogate}/u.test(name));

/** How the page writes a name: what cannot be seen by its code point. */
const UNSEEN = "[\\u0000-\\u001f\\u007f-\\u009f\\u200b\\u200e\\u200f\\u2028-\\u202e\\u2060-\\u2069\\ufeff]";
const shown = (name) => name.replace(new RegExp(UNSEEN, "g"), (c) => `\\u{${c.codePointAt(0).toString(16)}}`);

function write(name, html) {
  const path = join(directory, name);
  writeFileSync(path, html);
  return path;
}

/** Fails where a name has become an element, has run, or has left the page. */
async function unharmed(page, problems) {
  const found = await page.evaluate(() => ({
    images: document.querySelectorAll("img, iframe, object, embed").length,
    scripts: document.querySelectorAll("#app script, #app [onerror], #app [onclick]").length,
    polluted: "polluted" in {} || typeof Object.prototype.constructor !== "function",
  }));
  assert.deepEqual(found, { images: 0, scripts: 0, polluted: false });
  assert.deepEqual(problems, []);
}

for (const browser of ["chromium", "firefox"]) {
  browserTest(browser, "hostile names show as themselves in all panels", async (running) => {
    const trace = KINDS.small();
    trace.summary = {
      inputs: names.map((name) => ({
        name,
        format: name,
        clock: name,
        why: name,
        verdict: name,
        header: [[name, name]],
        explain: [name],
      })),
      report: { cpus: {}, damage: names.map((what) => ({ offset: 1, what })), notes: names, irregular: names },
    };
    Object.assign(trace, { machine: names[1], device: names[2], title: names[0] });
    const launch = { type: "cold", rule: names[1], process: 0, thread: 0, render_thread: null, cut: null };
    Object.assign(launch, { begin_ns: 0, end_ns: 9, ttid_ns: 5, ttfd_ns: 7, overlapped: true });
    trace.launches = names.map((name) => ({
      ...launch,
      package: name,
      stages: names.map((name) => ({ name, start_ns: 0, end_ns: 5 })),
    }));
    const none = { p50: 0, p90: 0, p95: 0, p99: 0 };
    const figures = { count: 1, with_deadline: 0, deadline: null, janky: 0, duration_cpu_ns: none, overrun_ns: null };
    trace.frames = names.map((name) => ({ package: name, layer: name, ...figures }));
    const file = write("hostile.html", pageOf([["trace", trace]]));
    const { page, problems } = await openPage(running, file);
    assert.equal((await texts(page, "header h1"))[0], names[0]);
    assert.equal(await page.title(), `${names[0]} · tracebridge`);
    await clickButton(page, "Launches and frames", ".tabs");
    const launched = await texts(page, '[aria-label="Launches"] .grid-row .cell:first-child .text');
    assert.ok(launched.includes(shown(names[0])), launched.join());
    await page.evaluate(() => {
      window.__tracebridge.timeline.store.set({ selection: { kind: "launch", launch: 0 } });
    });
    await settled(page);
    assert.equal((await texts(page, ".details h2"))[0], `cold launch of ${shown(names[0])}`);
    await page.evaluate(() => {
      const { store } = window.__tracebridge.timeline;
      store.set({ selection: null, view: { from: 0, to: store.state.trace.duration } });
    });
    await clickButton(page, "Profile", ".tabs");
    await setControl(page, "Threads", "all");
    const rows = (await gridRows(page)).map(({ text }) => text[0]);
    for (const name of names)
      assert.ok(
        rows.some((row) => row.includes(shown(name))),
        `methods show ${shown(name)}`,
      );
    for (const by of ["class", "package", "thread"]) {
      await setControl(page, "Rows", by);
      assert.ok((await gridRows(page)).length > 0, by);
    }
    await setControl(page, "Rows", "method");
    for (const name of names.slice(0, 5)) {
      await setControl(page, "Filter", name);
      assert.ok((await gridRows(page)).length > 0, `the filter finds ${shown(name)}`);
    }
    await setControl(page, "Filter", "");
    for (const view of ["Call tree", "Bottom up", "Flame graph", "Table"]) await clickButton(page, view, ".profile");
    await clickButton(page, "Slices", ".profile");
    const slices = (await gridRows(page)).map(({ text }) => text[0].trim());
    for (const name of names) assert.ok(slices.includes(shown(name)), `slices show ${shown(name)}`);
    await clickButton(page, "Table", ".tabs");
    const groups = (await gridRows(page)).map(({ text }) => text[0].trim());
    for (const name of names.filter(Boolean)) assert.ok(groups.includes(shown(name)), `the table shows ${shown(name)}`);
    await clickButton(page, "Summary", ".tabs");
    const summary = await page.$eval(".summary", (element) => element.textContent);
    for (const name of names) {
      const times = summary.split(shown(name)).length - 1;
      assert.ok(times >= 5, `the summary shows ${shown(name)} in every place: ${times}`);
    }
    await unharmed(page, problems);
  });
}

browserTest("chromium", "hostile names show as themselves in the comparison", async (browser) => {
  const { page, problems } = await openPage(browser, write("comparison.html", comparisonPage(names).html), {
    fragment: "panel=comparison",
  });
  for (const part of ["Stages", "Methods"]) {
    await page.evaluate(
      (part) =>
        [...document.querySelectorAll(".comparison button")].find((b) => b.textContent.startsWith(part)).click(),
      part,
    );
    const rows = (await gridRows(page)).map(({ text }) => text[0]);
    for (const name of names) assert.ok(rows.includes(shown(name)), `${part} shows ${shown(name)}`);
  }
  await unharmed(page, problems);
});
