// Measures how a large page opens in Chromium and Firefox: when it says something, its first picture and its profile,
// and how much memory the browser's processes take then. Prints ms and MB.
//
// usage: node test/large_page.mjs PAGE.html [chromium|firefox] [--all]      --all: opens it where the page asks first

import { readdirSync, readFileSync } from "node:fs";
import { resolve } from "node:path";
import { argv } from "node:process";
import { pathToFileURL } from "node:url";

import { close, launch } from "./browsers.mjs";

const args = argv.slice(2).filter((arg) => arg !== "--all");
const [file, name = "chromium"] = args;
if (!file) throw new Error("usage: node test/large_page.mjs PAGE.html [chromium|firefox] [--all]");
const LIMIT_MS = 90_000;

/** Resident MB of a process and of all that it started; pages that several share count once each. */
function memory(root) {
  const parents = new Map();
  const sizes = new Map();
  for (const pid of readdirSync("/proc").filter(Number)) {
    try {
      const status = readFileSync(`/proc/${pid}/status`, "utf8");
      const field = (key) => Number(new RegExp(`^${key}:\\s+(\\d+)`, "m").exec(status)?.[1] ?? 0);
      parents.set(Number(pid), field("PPid"));
      sizes.set(Number(pid), field("RssAnon") / 1000);
    } catch {
      // It has ended.
    }
  }
  const isOwn = (pid) => pid === root || (parents.has(pid) && isOwn(parents.get(pid)));
  let largest = 0;
  let sum = 0;
  for (const [pid, size] of sizes) {
    if (!isOwn(pid)) continue;
    sum += size;
    largest = Math.max(largest, size);
  }
  return `${largest.toFixed(0)} MB in the largest process, ${sum.toFixed(0)} MB in all`;
}

const browser = await launch(name, undefined, LIMIT_MS);
const page = await browser.newPage();
page.setDefaultTimeout(LIMIT_MS);
await page.setViewport({ width: 1440, height: 900 });
await page.evaluateOnNewDocument(() => {
  const look = () => {
    if (document.querySelector(".too-large") || document.querySelector(".opening")?.textContent.includes("--from"))
      window.__said ??= performance.now();
    if (window.__tracebridge?.timeline?.frameTimes.length) window.__firstPicture = performance.now();
    else requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
});
await page.goto(pathToFileURL(resolve(file)).href, { waitUntil: "domcontentloaded", timeout: LIMIT_MS });
const first = await page.waitForFunction(() => window.__said ?? window.__firstPicture, { timeout: LIMIT_MS });
const asked = await page.evaluate(() => window.__said !== undefined);
console.log(
  `${file}, ${name}: ${asked ? "says what to cut" : "first picture"} after ${(await first.jsonValue()).toFixed(0)} ms`,
);
console.log(`memory: ${memory(browser.process().pid)}`);
if (asked && argv.includes("--all")) {
  const began = await page.evaluate(() => performance.now());
  await page.evaluate(() => document.querySelector(".too-large button").click());
  const picture = await page.waitForFunction(() => window.__firstPicture, { timeout: LIMIT_MS });
  console.log(`opened all the same: first picture ${((await picture.jsonValue()) - began).toFixed(0)} ms later`);
}
if (!asked || argv.includes("--all")) {
  await page.waitForSelector(".window-line");
  console.log(`profile after ${(await page.evaluate(() => performance.now())).toFixed(0)} ms`);
  console.log(`memory: ${memory(browser.process().pid)}`);
}
await close(browser);
