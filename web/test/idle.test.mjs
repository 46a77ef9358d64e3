// The profile folds methods in which threads wait for work, says so, and shows them where somebody asks; the flame
// graph of many threads has room for the large ones.

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";

import { pageOf } from "./fixture.mjs";
import { KINDS } from "./fixture_traces.mjs";
import { browserTest, clickButton, gridRows, openPage, scratch, setControl, settled, texts } from "./harness.mjs";
import { callsOf, profileOf } from "./profile_reference.mjs";

const MS = 1e6;
const directory = scratch();
const trace = KINDS.methods();
// The methods 3 and 5 are those in which Java's and Android's threads wait.
const [WAIT, POLL] = [3, 5];
for (const [method, owner, name] of [
  [WAIT, "java.lang.Object", "wait"],
  [POLL, "android.os.MessageQueue", "nativePollOnce"],
]) {
  trace.methods.class[method] = trace.strings.push(owner) - 1;
  trace.methods.name[method] = trace.strings.push(name) - 1;
}
const FILE = join(directory, "idle.html");
writeFileSync(FILE, pageOf([["trace", trace]]));

const ms = (ns) => (ns / MS).toLocaleString("en-US", { minimumFractionDigits: 3, maximumFractionDigits: 3 });

browserTest("chromium", "idle methods are folded and said, and shown where somebody asks", async (browser) => {
  const { page, problems } = await openPage(browser, FILE);
  const calls = callsOf(trace).filter(({ thread }) => thread === 0);
  const wanted = profileOf(calls, ({ key }) => key);
  const line = async () => (await texts(page, ".idle"))[0];
  const idle = wanted.get(WAIT).exclusive + wanted.get(POLL).exclusive;
  const names = async () => (await gridRows(page)).map(({ exact }) => exact[0].split(" ")[0]);
  assert.match(await line(), /^Folded: .* of waiting for work in (Object\.wait|MessageQueue\.nativePollOnce), /);
  assert.ok((await line()).includes(`${(idle / 1e3).toFixed(1)} µs`), `${await line()}; ${idle} ns`);
  assert.ok(!(await names()).some((name) => /\.wait$|nativePollOnce$/.test(name)));
  // Who filters for one finds it.
  await setControl(page, "Filter", "pollonce");
  assert.deepEqual(await names(), ["android.os.MessageQueue.nativePollOnce"]);
  await setControl(page, "Filter", "");
  // The tree has neither the idle calls nor their time.
  await clickButton(page, "Call tree");
  const isIdle = (call) => call !== null && (call.key === WAIT || call.key === POLL || isIdle(call.parent));
  const outermost = calls.filter(({ parent }) => parent === null);
  const idleTime = calls
    .filter((call) => isIdle(call) && !isIdle(call.parent))
    .reduce((sum, { start, end }) => sum + end - start, 0);
  const whole = outermost.reduce((sum, { start, end }) => sum + end - start, 0);
  const total = async () => {
    const heads = await texts(page, ".grid-head .cell");
    return (await gridRows(page))[0].text[heads.findIndex((head) => head.startsWith("Incl wall ms"))];
  };
  assert.equal(await total(), ms(whole - idleTime));
  await clickButton(page, "Show idle");
  assert.equal(await total(), ms(whole));
  await clickButton(page, "Table", ".profile");
  const shown = await names();
  assert.ok(shown.includes("java.lang.Object.wait") && shown.includes("android.os.MessageQueue.nativePollOnce"));
  await clickButton(page, "Fold idle");
  assert.ok(!(await names()).includes("java.lang.Object.wait"));
  await page.evaluate((method) => {
    window.__tracebridge.timeline.store.set({ selection: { kind: "method", method } });
  }, WAIT);
  await settled(page);
  assert.ok((await names()).includes("java.lang.Object.wait"), "who selects one sees it");
  assert.deepEqual(problems, []);
});

browserTest("chromium", "threads with little of the time share a box of the flame graph", async (browser) => {
  const many = KINDS.methods();
  // The calls of the second thread are done again by forty others, which have hardly any time.
  const [, track] = many.tracks;
  for (let n = 0; n < 40; n++) {
    const thread = many.threads.push({ ...many.threads[1], tid: 9000 + n, name: `pool-thread-${n}`, busy_ns: 0 }) - 1;
    const columns = Object.fromEntries(
      Object.entries(track.columns).map(([name, values]) => [name, values.slice(0, 1)]),
    );
    columns.duration = [1000];
    many.tracks.push({ ...track, thread, columns });
  }
  const file = join(directory, "many.html");
  writeFileSync(file, pageOf([["trace", many]]));
  const { page, problems } = await openPage(browser, file);
  await setControl(page, "Threads", "all");
  await clickButton(page, "Flame graph");
  await page.focus(".flame-canvas");
  const seen = [];
  for (let n = 0; n < 12; n++) {
    const [line] = await texts(page, ".flame-line");
    if (seen.at(-1) === line) break;
    seen.push(line);
    await page.keyboard.press("ArrowRight");
    await settled(page);
  }
  assert.equal(seen.length, 9, seen.join("\n"));
  assert.match(seen[8], /^40 other threads: /);
  assert.deepEqual(problems, []);
});
