// Opens report pages, and uses them as people do.

import { pathToFileURL } from "node:url";

import { eventually, LIMIT_MS, settled } from "./waiting.mjs";

/**
 * Opens the page file `path`, and waits until its panels are there. The answer's `problems` gets each error
 * of the console and each uncaught one. `before` is a function that runs in the page before the page's own
 * script.
 */
export async function openPage(
  browser,
  path,
  { fragment = "", width = 1440, height = 900, wait = ".panels", before = null } = {},
) {
  const page = await browser.newPage();
  page.setDefaultTimeout(LIMIT_MS);
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
  await page.waitForSelector(`${wait}, .failed`);
  await page.waitForSelector(
    ".profile, .table-panel, .too-large, .launches, .summary, .comparison, .screen, .splitter [aria-pressed=true], .failed",
  );
  await settled(page);
  return { page, problems };
}

/**
 * The state that the page has written into its address, as soon as `check`, which gets it as URLSearchParams,
 * throws no assertion error: the page writes it when nothing has changed for a while.
 */
export function link(page, what, check) {
  return eventually(`${what} stands in the address`, async () => {
    const parts = new URLSearchParams(await page.evaluate(() => location.hash.slice(1)));
    check(parts);
    return parts;
  });
}

/** A text that a selector's elements have, as an array. */
export function texts(page, selector) {
  return page.$$eval(selector, (elements) => elements.map((element) => element.textContent.trim()));
}

/** Clicks the button with the text; the first one inside of `within`. */
export async function clickButton(page, text, within = "body") {
  const found = await page.evaluate(
    (text, within) => {
      const button = [...document.querySelectorAll(`${within} button`)].find((b) => b.textContent.trim() === text);
      button?.click();
      return Boolean(button);
    },
    text,
    within,
  );
  if (!found) throw new Error(`no button "${text}" in ${within}`);
  await settled(page);
}

/** Sets the value of a select or an input as a user would. */
export async function setControl(page, label, value) {
  const found = await page.evaluate(
    (label, value) => {
      const field = [...document.querySelectorAll("label.field")].find(
        (f) => f.querySelector("span")?.textContent === label,
      );
      const control = field?.querySelector("select, input");
      if (!control) return false;
      control.value = value;
      control.dispatchEvent(new Event(control.tagName === "SELECT" ? "change" : "input", { bubbles: true }));
      return control.value === value;
    },
    label,
    value,
  );
  if (!found) throw new Error(`no control "${label}" takes "${value}"`);
  await settled(page);
}

/**
 * The rows of a grid, all of them: it is made as high as they are. Each has its cells' texts and exact
 * figures.
 */
export async function gridRows(page) {
  const { rows, all } = await page.evaluate(async (limit) => {
    const ROW_PX = 22;
    const grid = document.querySelector(".grid");
    const all = grid.getAttribute("aria-rowcount") - 1;
    const style = grid.style.cssText;
    // Thousands of rows need not be laid out to be read.
    const body = grid.querySelector(".grid-body");
    body.style.contentVisibility = "hidden";
    grid.style.cssText += `;position:fixed;top:0;left:0;width:1400px;height:${ROW_PX * all + 100}px`;
    const until = performance.now() + limit;
    while (grid.querySelectorAll(".grid-row").length < all && performance.now() < until) {
      await new Promise((done) => requestAnimationFrame(done));
    }
    const rows = [...grid.querySelectorAll(".grid-row")].map((row) => {
      const cells = [...row.querySelectorAll(".cell")];
      return {
        at: Number(row.getAttribute("aria-rowindex")),
        level: Number(row.getAttribute("aria-level")),
        classes: row.className,
        text: cells.map((cell) => cell.querySelector(".text").textContent),
        exact: cells.map((cell) => cell.getAttribute("title")),
      };
    });
    grid.style.cssText = style;
    // Nor need they be when all but those in view go again.
    const room = grid.clientHeight / ROW_PX + 100;
    while (grid.querySelectorAll(".grid-row").length > room && performance.now() < until) {
      await new Promise((done) => requestAnimationFrame(done));
    }
    body.style.contentVisibility = "";
    return { rows: rows.sort((a, b) => a.at - b.at), all };
  }, LIMIT_MS / 2);
  if (rows.length < all) throw new Error(`within ${LIMIT_MS / 2000} s the grid showed ${rows.length} of ${all} rows`);
  return rows;
}
