// The directory of a test run: what the tests write, and the home and the profiles of the browsers, so that
// nothing of the user's own is read or changed. A process of its own (guard.mjs) removes it when the run
// ends, in whatever way, and ends what the run has started.

import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** Names the run's directory in the environment of all that the run starts. */
export const RUN_VARIABLE = "TRACEBRIDGE_PAGE_RUN";
/**
 * With a longer address of the run's directory, Chromium cannot make its socket there: of an address it has
 * 107 bytes.
 */
const MAX_SOCKET_DIRECTORY_BYTES = 60;

let made = null;

/**
 * The run's directory, and one for the browsers' sockets, which may be the same. Made when they are first
 * asked for.
 */
export function runDirectory() {
  made ??= make();
  return made;
}

function make() {
  const directory = mkdtempSync(join(tmpdir(), "tb-page-"));
  const short = Buffer.byteLength(directory) <= MAX_SOCKET_DIRECTORY_BYTES;
  const socketDirectory = short ? directory : mkdtempSync("/tmp/tb-page-");
  const directories = [...new Set([directory, socketDirectory])];
  const guard = spawn(process.execPath, [fileURLToPath(new URL("guard.mjs", import.meta.url)), ...directories], {
    // Not ended by what ends this run: a Ctrl+C goes to all of a terminal's processes.
    detached: true,
    stdio: ["pipe", "ignore", "ignore"],
  });
  guard.unref();
  guard.stdin.unref();
  process.on("exit", () => directories.forEach((one) => rmSync(one, { recursive: true, force: true })));
  const home = join(directory, "home");
  mkdirSync(home);
  Object.assign(process.env, { [RUN_VARIABLE]: directory, TMPDIR: directory, HOME: home, XDG_RUNTIME_DIR: home });
  for (const name of ["XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME"]) delete process.env[name];
  return { directory, socketDirectory };
}

/** A new directory for a test's files. It is gone when the run has ended. */
export function scratch() {
  return mkdtempSync(join(runDirectory().directory, "files-"));
}
