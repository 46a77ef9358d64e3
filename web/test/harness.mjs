// Opens report pages in real browsers, and collects what they complain about.
//
// Chromium is /usr/bin/chromium and Firefox /usr/bin/firefox-esr, unless TRACEBRIDGE_CHROMIUM and
// TRACEBRIDGE_FIREFOX name others. A test of a browser that is missing is skipped, and says so, unless
// TRACEBRIDGE_REQUIRE contains "browser".

import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { pathToFileURL } from "node:url";

import puppeteer from "puppeteer-core";

const PATHS = {
  chromium: process.env.TRACEBRIDGE_CHROMIUM ?? "/usr/bin/chromium",
  firefox: process.env.TRACEBRIDGE_FIREFOX ?? "/usr/bin/firefox-esr",
};
const WAIT_MS = 30_000;

/** Whether a browser is here; throws where it is missing and must not be. */
export function hasBrowser(name) {
  if (existsSync(PATHS[name])) return true;
  if ((process.env.TRACEBRIDGE_REQUIRE ?? "").includes("browser")) throw new Error(`${PATHS[name]} is missing`);
  console.error(`SKIPPED: no ${name} at ${PATHS[name]}; its tests do not run`);
  return false;
}

/**
 * Starts a browser. Chromium draws without WebGL, unless `args` say otherwise: WebGL without a GPU takes seconds for
 * each page.
 */
export function launch(name = "chromium", args = ["--disable-gpu", "--disable-3d-apis"]) {
  const firefox = name === "firefox";
  return puppeteer.launch({
    browser: firefox ? "firefox" : "chrome",
    protocol: firefox ? "webDriverBiDi" : "cdp",
    executablePath: PATHS[name],
    headless: true,
    timeout: 120_000,
    protocolTimeout: 120_000,
    defaultViewport: { width: 1440, height: 900 },
    args: firefox ? [] : ["--no-sandbox", "--disable-dev-shm-usage", ...args],
  });
}

/**
 * Opens the page file `path`, and waits until its panels are there. The answer's `problems` gets each error of the
 * console and each uncaught one. `before` is a function that runs in the page before the page's own script.
 */
export async function openPage(browser, path, { fragment = "", width = 1440, height = 900, wait = ".panels",
  before = null } = {}) {
  const page = await browser.newPage();
  if (before) await page.evaluateOnNewDocument(before);
  await page.setViewport({ width, height });
  const problems = [];
  page.on("console", (message) => {
    if (message.type() === "error" || message.type() === "warn") problems.push(`console: ${message.text()}`);
  });
  page.on("pageerror", (error) => problems.push(`uncaught: ${error.message}`));
  page.on("dialog", (dialog) => {
    problems.push(`dialog: ${dialog.message()}`);
    dialog.dismiss();
  });
  await page.goto(`${pathToFileURL(path).href}${fragment ? `#${fragment}` : ""}`, { waitUntil: "load" });
  await page.waitForSelector(`${wait}, .failed`, { timeout: WAIT_MS });
  await page.waitForSelector(".profile, .summary, .comparison, .splitter [aria-pressed=true], .failed",
    { timeout: WAIT_MS });
  await settled(page);
  return { page, problems };
}

/** Waits until the page has drawn what it had to draw. */
export async function settled(page) {
  await page.evaluate(() => new Promise((done) => {
    setTimeout(() => requestAnimationFrame(() => requestAnimationFrame(() => done(null))), 60);
  }));
}

/** A text that a selector's elements have, as an array. */
export function texts(page, selector) {
  return page.$$eval(selector, (elements) => elements.map((element) => element.textContent.trim()));
}

/** Clicks the button with the text; the first one inside of `within`. */
export async function clickButton(page, text, within = "body") {
  const found = await page.evaluate((text, within) => {
    const button = [...document.querySelectorAll(`${within} button`)].find((b) => b.textContent.trim() === text);
    button?.click();
    return Boolean(button);
  }, text, within);
  if (!found) throw new Error(`no button "${text}" in ${within}`);
  await settled(page);
}

/** Sets the value of a select or an input as a user would. */
export async function setControl(page, label, value) {
  const found = await page.evaluate((label, value) => {
    const field = [...document.querySelectorAll("label.field")]
      .find((f) => f.querySelector("span")?.textContent === label);
    const control = field?.querySelector("select, input");
    if (!control) return false;
    control.value = value;
    control.dispatchEvent(new Event(control.tagName === "SELECT" ? "change" : "input", { bubbles: true }));
    return control.value === value;
  }, label, value);
  if (!found) throw new Error(`no control "${label}" takes "${value}"`);
  await settled(page);
}

/** The rows of a grid, all of them: it is made as high as they are. Each has its cells' texts and exact figures. */
export function gridRows(page) {
  return page.evaluate(async () => {
    const grid = document.querySelector(".grid");
    const all = grid.getAttribute("aria-rowcount") - 1;
    const style = grid.style.cssText;
    // Thousands of rows need not be laid out to be read.
    const body = grid.querySelector(".grid-body");
    body.style.contentVisibility = "hidden";
    grid.style.cssText += `;position:fixed;top:0;left:0;width:1400px;height:${22 * all + 100}px`;
    const until = performance.now() + 10_000;
    while (grid.querySelectorAll(".grid-row").length < all && performance.now() < until) {
      await new Promise((done) => setTimeout(done, 20));
    }
    const rows = [...grid.querySelectorAll(".grid-row")].map((row) => {
      const cells = [...row.querySelectorAll(".cell")];
      return {
        at: Number(row.getAttribute("aria-rowindex")), level: Number(row.getAttribute("aria-level")),
        classes: row.className, text: cells.map((cell) => cell.querySelector(".text").textContent),
        exact: cells.map((cell) => cell.getAttribute("title")),
      };
    });
    grid.style.cssText = style;
    body.style.contentVisibility = "";
    return rows.sort((a, b) => a.at - b.at);
  });
}

/** A directory that is gone when the process ends. */
export function scratch() {
  const directory = mkdtempSync(join(tmpdir(), "tracebridge-page-"));
  process.on("exit", () => rmSync(directory, { recursive: true, force: true }));
  return directory;
}

const running = new Map();

/** A test that needs a browser. All tests share one of each name; it is closed when they are done. */
export function browserTest(name, title, body) {
  const here = hasBrowser(name);
  test(`${title} (${name})`, { skip: here ? false : `no ${name}` }, async (context) => {
    if (!running.has(name)) running.set(name, launch(name));
    const browser = await running.get(name);
    const before = await browser.pages();
    try {
      await body(browser, context);
    } finally {
      for (const page of await browser.pages()) if (!before.includes(page)) await page.close();
    }
  });
}

after(async () => {
  for (const browser of running.values()) await (await browser).close();
});
