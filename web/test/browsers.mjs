// Starts and closes browsers.
//
// Chromium is /usr/bin/chromium and Firefox /usr/bin/firefox-esr, unless TRACEBRIDGE_CHROMIUM and
// TRACEBRIDGE_FIREFOX name others. A test of a browser that is missing is skipped, and says so, unless
// TRACEBRIDGE_REQUIRE contains "browser".

import { existsSync } from "node:fs";

import puppeteer from "puppeteer-core";

import { runDirectory } from "./run_directory.mjs";
import { LIMIT_MS, within } from "./waiting.mjs";

const PATHS = {
  chromium: process.env.TRACEBRIDGE_CHROMIUM ?? "/usr/bin/chromium",
  firefox: process.env.TRACEBRIDGE_FIREFOX ?? "/usr/bin/firefox-esr",
};
/** Whether a browser is here; throws where it is missing and must not be. */
export function hasBrowser(name) {
  if (existsSync(PATHS[name])) return true;
  if ((process.env.TRACEBRIDGE_REQUIRE ?? "").includes("browser")) throw new Error(`${PATHS[name]} is missing`);
  console.error(`SKIPPED: no ${name} at ${PATHS[name]}; its tests do not run`);
  return false;
}

/**
 * Starts a browser. Chromium draws without WebGL, unless `args` say otherwise: WebGL without a GPU takes
 * seconds for each page. No answer of the browser takes longer than `limit`, ms.
 */
export async function launch(name = "chromium", args = ["--disable-gpu", "--disable-3d-apis"], limit = LIMIT_MS) {
  const firefox = name === "firefox";
  const { socketDirectory } = runDirectory();
  const options = {
    browser: firefox ? "firefox" : "chrome",
    protocol: firefox ? "webDriverBiDi" : "cdp",
    executablePath: PATHS[name],
    headless: true,
    // Chromium ends when its pipe does.
    pipe: !firefox,
    timeout: LIMIT_MS,
    protocolTimeout: limit,
    defaultViewport: { width: 1440, height: 900 },
    args: firefox ? [] : ["--no-sandbox", "--disable-dev-shm-usage", ...args],
    env: { ...process.env, TMPDIR: socketDirectory },
  };
  try {
    return await puppeteer.launch(options);
  } catch (error) {
    throw new Error(`${name} does not start: ${error.message}`, { cause: error });
  }
}

/** Closes a browser; ends it where it does not obey. */
export async function close(browser) {
  try {
    await within("the browser closes", browser.close(), LIMIT_MS / 4);
  } catch {
    browser.process()?.kill("SIGKILL");
  }
}
