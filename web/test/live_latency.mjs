// Measures how long a marker takes from its write on a device to its pixel in the page of a recording that runs: the real
// program, a real adb or this machine's own kernel, and headless Chromium. Prints the median, the 95th and the 99th
// percentile, what was missing, frames a second by Chromium's own trace, and the page's memory.
//
// usage: node test/live_latency.mjs PROGRAM (--serial SERIAL | --here) [--load GENERATOR] [--seconds N] [--rates N,N]
//   PROGRAM           the host's tracebridge; --here needs root and a tracefs: the recorder's stream of this machine is
//                     followed in a file
//   --load GENERATOR  the path, on what is recorded, of tools/load_generator.rs, which writes the other events; without
//                     it there are none
//   --seconds N       measure so long for each rate (default: 60)
//   --rates N,N       markers a second of the load (default: 2000,100000)
//
// A script writes a marker whenever it is asked to, five times a second. The marker's time is the kernel's, taken within
// the write; the page notes when the frame behind the one that shows it begins. The time of each marker lies between the
// request and its answer: so the clocks are compared, and what error is left is printed.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";

import { close, launch } from "./browsers.mjs";
import { countFrames, percentiles, residentMemory } from "./live_measures.mjs";
import { eventually, LIMIT_MS, within } from "./waiting.mjs";

const { values, positionals } = parseArgs({
  options: {
    serial: { type: "string" },
    here: { type: "boolean" },
    load: { type: "string" },
    seconds: { type: "string", default: "60" },
    rates: { type: "string", default: "2000,100000" },
  },
  allowPositionals: true,
});
const [program] = positionals;
if (!program || !values.serial === !values.here)
  throw new Error("usage: live_latency.mjs PROGRAM (--serial SERIAL | --here)");
const seconds = Number(values.seconds);
const PROBE_MS = 200;
const SETTLE_MS = 4000;
/** The load ends by itself after so long. */
const MOST_SECONDS = 3600;
const MARKER = "/sys/kernel/tracing/trace_marker";
/** The name of the process that writes the probes, which is watched: its rows are on top. */
const NAME = "probe.latency";
/** What a shell does to write the marker $n. */
const PROBE = `echo "B|$$|probe $n" >${MARKER}; echo "E|$$" >${MARKER}`;

const children = new Set();
function start(command, args) {
  const child = spawn(command, args, { stdio: ["pipe", "pipe", "pipe"] });
  children.add(child);
  child.said = "";
  child.on("close", () => children.delete(child));
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (bytes) => (child.said += bytes));
  return child;
}
/** Runs a script on what is recorded. */
const shell = (script) =>
  values.here ? start("sh", ["-c", script]) : start("adb", ["-s", values.serial, "shell", script]);
const said = (child, pattern) =>
  eventually(`${child.spawnargs.join(" ")} says ${pattern}`, async () => {
    if (child.exitCode !== null && !pattern.test(child.said)) throw new Error(`it has ended: ${child.said}`);
    assert.match(child.said, pattern);
    return pattern.exec(child.said);
  });
const clock = () => performance.timeOrigin + performance.now();

/** The difference of two clocks, from times of the first that lie between two of the second; and how far it may be off. */
function difference(pings) {
  const least = Math.max(...pings.map(([, time, after]) => time - after));
  const most = Math.min(...pings.map(([before, time]) => time - before));
  return { offset: (least + most) / 2, error: Math.abs(most - least) / 2 };
}

async function measure(browser, rate) {
  const watched = ["--open", "none", "--app", NAME];
  let shown;
  let recorder = null;
  if (values.here) {
    const file = join(scratch, `${rate}.stream`);
    recorder = start("sh", ["-c", `exec "$0" record -o - --live sched >"$1"`, program, file]);
    await eventually("the recorder writes", async () => assert.ok(existsSync(file) && statSync(file).size > 0));
    shown = start(program, ["live", file, ...watched]);
  } else shown = start(program, ["adb", "live", "--serial", values.serial, ...watched]);
  const [, address] = await said(shown, /(http:\/\/\S+)/);
  const page = await browser.newPage();
  await page.goto(address);
  await page.waitForFunction(() => window.__tracebridge?.live?.latest() > 0, { timeout: LIMIT_MS });
  const prober = shell(`echo -n ${NAME} >/proc/$$/comm; echo $$; while read -r n; do ${PROBE}; echo "<$n>"; done`);
  const [, tid] = await said(prober, /(\d+)/);

  /** When each marker was requested, and when the answer came. */
  const requested = [];
  async function probe() {
    const n = requested.length;
    const before = clock();
    prober.stdin.write(`${n}\n`);
    while (!prober.said.includes(`<${n}>`)) await within("a marker is written", once(prober.stdout, "data"));
    requested.push([before, clock()]);
  }
  const pageClock = [];
  async function pingPage() {
    const before = clock();
    pageClock.push([before, await page.evaluate(() => performance.now()), clock()]);
  }
  // It writes until its input ends.
  const load =
    values.load
    && rate > 0
    && shell(`${values.load} markers --rate ${rate} --seconds ${MOST_SECONDS} & read -r _; kill $!`);
  await new Promise((done) => setTimeout(done, SETTLE_MS));

  await page.evaluate((row) => {
    const seen = new Map();
    const rates = [];
    window.__seen = { seen, rates };
    let fresh = [];
    const look = () => {
      const { live } = window.__tracebridge;
      const now = performance.now();
      for (const name of fresh) seen.get(name).push(now);
      fresh = [];
      const edge = live.edge();
      for (const [name, start] of live.begun(row, edge - 10e9)) {
        if (!name.startsWith("probe ") || seen.has(name) || start > edge) continue;
        seen.set(name, [start]);
        fresh.push(name);
      }
      requestAnimationFrame(look);
    };
    requestAnimationFrame(look);
    setInterval(() => rates.push(document.querySelector(".live-figures").textContent), 1000);
  }, `thread ${tid}`);
  const frames = await countFrames(page);
  const began = clock();
  while (clock() < began + seconds * 1000) {
    const next = clock() + PROBE_MS;
    await probe();
    await pingPage();
    await new Promise((done) => setTimeout(done, Math.max(0, next - clock())));
  }
  // Time for the last of them to be drawn.
  await new Promise((done) => setTimeout(done, SETTLE_MS / 2));
  const { fps, dropped } = await frames();
  // Each probe that is still in view has its pixel.
  const blank = await page.evaluate((row) => {
    const { live } = window.__tracebridge;
    const { y, bands } = live.rows().find(({ id }) => id === row);
    const band = bands.at(-1);
    const at = (x) => live.pixel(x, y + band.y + band.height / 2).join();
    // A marker has a pixel or two, of which the first may be cut.
    const isDrawn = (x) => [-1, 0, 1].some((aside) => at(x + aside) !== at(x - 8));
    const edge = live.edge();
    const inView = live
      .begun(row, edge - live.window() * 0.9)
      .filter(([name, start]) => /^probe/.test(name) && start < edge);
    return inView.filter(([, start]) => !isDrawn(live.xOf(start))).length;
  }, `thread ${tid}`);
  if (load) {
    load.stdin.end();
    await within("the load ends", once(load, "close"), LIMIT_MS);
  }
  const { seen, told } = await page.evaluate(() => ({ seen: [...window.__seen.seen], told: window.__seen.rates }));
  const memory = await residentMemory(browser);
  await page.close();
  prober.stdin.end();
  recorder?.kill("SIGINT");
  if (!recorder) shown.kill("SIGINT");
  await within("the recording ends", once(shown, "close"));

  const starts = new Map(seen.map(([name, [start]]) => [name, start / 1e6]));
  const device = difference(
    requested.flatMap(([before, after], n) =>
      starts.has(`probe ${n}`) ? [[before, starts.get(`probe ${n}`), after]] : [],
    ),
  );
  const pages = difference(pageClock);
  const latencies = seen
    .filter(([, [, drawn]]) => drawn !== undefined)
    .map(([, [start, drawn]]) => drawn - pages.offset - (start / 1e6 - device.offset));
  const figure = (name) =>
    told.map((text) => Number((new RegExp(`${name}([\\d,]+)`).exec(text)?.[1] ?? "0").replaceAll(",", "")));
  const events = figure("Events").sort((a, b) => a - b);
  const [lost] = figure("Lost").sort((a, b) => b - a);
  console.log(
    `${rate} markers/s (${events[events.length >> 1]} events/s in all) for ${seconds} s: `
      + `${percentiles(latencies)} ms from write to pixel (median / 95 % / 99 %), within `
      + `${(device.error + pages.error).toFixed(1)} ms; ${requested.length - latencies.length} of ${requested.length} probes missing, `
      + `${blank} without a pixel, at most ${lost} events lost in ten seconds; ${fps.toFixed(1)} frames/s, ${dropped} dropped; `
      + `${Math.round(memory)} MB resident`,
  );
  console.log(`  ${shown.said.trim().split("\n").at(-1)}`);
}

const scratch = mkdtempSync(join(tmpdir(), "live-latency-"));
const browser = await launch();
try {
  for (const rate of values.rates.split(",").map(Number)) await measure(browser, rate);
} finally {
  await close(browser);
  for (const child of children) child.kill("SIGINT");
  rmSync(scratch, { recursive: true });
}
