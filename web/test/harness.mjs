// The tools that the tests of report pages share: browsers, pages, waits, and a directory for files.

import { after, test } from "node:test";

import { close, hasBrowser, launch } from "./browsers.mjs";
import { LimitError, within } from "./waiting.mjs";

export { close, hasBrowser, launch } from "./browsers.mjs";
export { clickButton, gridRows, link, openPage, setControl, texts } from "./pages.mjs";
export { scratch } from "./run_directory.mjs";
export { eventually, settled } from "./waiting.mjs";

/** The longest that a test may take; each of its waits has a limit of its own, LIMIT_MS. */
const TEST_LIMIT_MS = 20 * 60_000;

/**
 * The browsers of a test that Chromium alone takes in most runs: a test of each kind takes Firefox in every run,
 * and the others only with TRACEBRIDGE_ALL in the environment (scripts/test --all).
 */
export const browsersOfRun = process.env.TRACEBRIDGE_ALL ? ["chromium", "firefox"] : ["chromium"];
if (browsersOfRun.length === 1)
  console.error("SKIPPED (--all): most tests of the page in Firefox: TRACEBRIDGE_ALL is not set");

const running = new Map();

/** The browser that all tests share; another one where it has ended. */
async function sharedBrowser(name) {
  if (!running.get(name)?.connected) running.set(name, await launch(name));
  return running.get(name);
}

/** A test that needs a browser. All tests share one of each name; it is closed when they are done. */
export function browserTest(name, title, body) {
  const here = hasBrowser(name);
  test(`${title} (${name})`, { skip: here ? false : `no ${name}` }, async (context) => {
    const browser = await sharedBrowser(name);
    const before = await browser.pages();
    try {
      await within(title, body(browser, context), TEST_LIMIT_MS);
    } catch (error) {
      // What may still wait in the page must not go on beside the next test.
      if (error instanceof LimitError) await close(browser);
      throw error;
    } finally {
      await closePages(browser, before);
    }
  });
}

/** Closes the pages that a test has opened; closes the browser where that fails. */
async function closePages(browser, before) {
  try {
    for (const page of await browser.pages()) if (!before.includes(page)) await page.close();
  } catch {
    await close(browser);
  }
}

after(async () => {
  for (const browser of running.values()) await close(browser);
});
