// Measures the time from the last event on a device to the first picture on the desk: `adb record -t 5 -o x.html --open`
// with a Chromium that already runs, and prints the stages of that time, in ms. The device's clock is compared with the
// desk's before; half of what that takes is the error of the first stage.
//
// usage: node web/test/first_picture.mjs PROGRAM SERIAL [RUNS [SECONDS]]       (3 runs of 5 seconds)
// The device does what its load generator (scripts/bench-record pushes it) or its owner has it do meanwhile.

import { spawn, spawnSync } from "node:child_process";
import { chmodSync, readFileSync, watch, writeFileSync } from "node:fs";
import { join } from "node:path";
import { argv } from "node:process";
import { pathToFileURL } from "node:url";

import { close, launch } from "./browsers.mjs";
import { scratch } from "./run_directory.mjs";

const [program, serial, runs = "3", seconds = "5"] = argv.slice(2);
if (!serial) throw new Error("usage: node web/test/first_picture.mjs PROGRAM SERIAL [RUNS [SECONDS]]");
const directory = scratch();
const page = join(directory, "x.html");
const opened = join(directory, "opened");
const opener = join(directory, "opener");
writeFileSync(opener, `#!/bin/sh\necho "$1" >"${opened}"\n`);
chmodSync(opener, 0o755);
const now = () => performance.timeOrigin + performance.now();

/** By how much the device's clock since its boot is ahead of the desk's wall clock, ms, and how long it took to ask. */
function clockOffset() {
  const before = now();
  const { stdout } = spawnSync("adb", ["-s", serial, "shell", "cut -d' ' -f1 /proc/uptime"], { encoding: "utf8" });
  const took = now() - before;
  return { offset: Number(stdout) * 1000 - (before + took / 2), took };
}

/** Records; the moments at which stages ended, by the desk's clock. */
async function record(browser) {
  const moments = {};
  writeFileSync(opened, "");
  const isOpened = new Promise((done) => {
    const watcher = watch(opened, () => {
      if (readFileSync(opened, "utf8") === "") return;
      watcher.close();
      moments.opened = now();
      done();
    });
  });
  const args = ["adb", "record", "-v", "-s", serial, "-t", seconds, "-o", page, "--open", "sched"];
  const child = spawn(program, args, { env: { ...process.env, BROWSER: opener } });
  let text = "";
  child.stderr.on("data", (data) => {
    text += data;
    const at = now();
    if (/desk::device::pull: /.test(text)) moments.pulled ??= at;
    if (/export::convert: .*: written/.test(text)) moments.written ??= at;
    if (/adb::sync: adb: looking for .*capture\.dat/.test(text)) moments.ended ??= at;
  });
  const ended = new Promise((done) => child.on("close", done));
  await Promise.race([isOpened, ended]);
  if (!moments.opened) throw new Error(text);
  const tab = await browser.newPage();
  await tab.setViewport({ width: 1440, height: 900 });
  await tab.evaluateOnNewDocument(() => {
    const look = () => {
      if (window.__tracebridge?.timeline?.frameTimes.length)
        window.__firstPicture = performance.timeOrigin + performance.now();
      else requestAnimationFrame(look);
    };
    requestAnimationFrame(look);
  });
  await tab.goto(pathToFileURL(page).href, { waitUntil: "domcontentloaded" });
  const picture = await tab.waitForFunction(() => window.__firstPicture);
  moments.picture = await picture.jsonValue();
  const { last, events } = await tab.evaluate(() => {
    const { trace } = window.__tracebridge.timeline.store.state;
    const { cpus } = trace.index.summary.report;
    return {
      last: Number((BigInt(trace.index.start_ns) + BigInt(trace.duration)) / 1000n) / 1000,
      events: Object.values(cpus).reduce((sum, cpu) => sum + cpu.events, 0),
    };
  });
  await tab.close();
  await ended;
  return { moments, last, events };
}

const browser = await launch();
const rows = [];
for (let run = 0; run < Number(runs); run++) {
  const { offset, took } = clockOffset();
  const { moments, last, events } = await record(browser);
  const event = last - offset;
  const { ended, pulled, written, opened: called, picture } = moments;
  rows.push([ended - event, pulled - ended, written - pulled, called - written, picture - called, picture - event]);
  console.log(`run ${run + 1}: ${events} events, clocks ± ${(took / 2).toFixed(0)} ms: ${rows.at(-1).map(Math.round)}`);
}
const stages = [
  "the recorder stops, puts the settings back, completes the file, and adb says so",
  "the file is pulled and verified",
  "it is read, and the page is written",
  "the device is cleaned up, and the browser is called",
  "the browser draws the first picture",
  "all together",
];
console.log("\n| stage | ms |\n| --- | --- |");
stages.forEach((stage, n) => {
  const sorted = rows.map((row) => row[n]).sort((a, b) => a - b);
  console.log(`| ${stage} | ${Math.round(sorted[sorted.length >> 1])} |`);
});
await close(browser);
