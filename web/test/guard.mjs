// Cleans up behind a test run: waits until its own input ends, which it does when the run has ended, also
// when it was killed. Then it ends what the run has started, and removes the run's directory.
//
// usage: node guard.mjs DIRECTORY …      the run's directory, and others that are its own

import { readdirSync, readFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { pathToFileURL } from "node:url";

import { RUN_VARIABLE } from "./run_directory.mjs";

/** A process that has been killed may take a while to end, and may write until then. */
const LIMIT_MS = 30_000;
const PAUSE_MS = 100;

/**
 * The processes of a run: those in whose environment the variable has the run's directory as its value, and
 * those that name a file of that directory in their arguments. Chromium's helpers write their title over
 * their environment; all of them have the profile's directory in it. Empty where there is no /proc.
 */
export function processesOf(variable, directory) {
  const told = Buffer.from(`${variable}=${directory}\0`);
  const inside = Buffer.from(`${directory}/`);
  const read = (pid, file) => {
    try {
      return readFileSync(`/proc/${pid}/${file}`);
    } catch {
      // It has ended, or belongs to somebody else.
      return Buffer.alloc(0);
    }
  };
  let all = [];
  try {
    all = readdirSync("/proc").map(Number).filter(Boolean);
  } catch {
    // Not on Linux: browsers notice there by themselves that the run has ended, sooner or later.
  }
  const isOfRun = (pid) => read(pid, "environ").includes(told) || read(pid, "cmdline").includes(inside);
  return all.filter((pid) => pid !== process.pid && isOfRun(pid));
}

async function cleanUp(directories) {
  const until = performance.now() + LIMIT_MS;
  for (;;) {
    const left = processesOf(RUN_VARIABLE, directories[0]);
    for (const pid of left) {
      try {
        process.kill(pid, "SIGKILL");
      } catch {
        // It has ended meanwhile.
      }
    }
    const removals = directories.map((directory) => rm(directory, { recursive: true, force: true }));
    const removed = (await Promise.allSettled(removals)).every(({ status }) => status === "fulfilled");
    if ((removed && left.length === 0) || performance.now() > until) return;
    await new Promise((done) => setTimeout(done, PAUSE_MS));
  }
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const directories = process.argv.slice(2);
  if (directories.length === 0) throw new Error("usage: node guard.mjs DIRECTORY …");
  process.stdin.resume().on("close", () => cleanUp(directories));
}
