// A test run that is killed leaves nothing behind: no browser, no process of its own, no file.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readFileSync, readdirSync } from "node:fs";
import { test } from "node:test";

import { processesOf } from "./guard.mjs";
import { browsersOfRun, eventually, hasBrowser, scratch } from "./harness.mjs";

const MARK = "TRACEBRIDGE_PAGE_KILLED_RUN";
const BROWSERS = new URL("browsers.mjs", import.meta.url).href;

/**
 * Starts node with the arguments; `left` are it and the processes that it has started, as far as they have
 * not ended.
 */
function start(directory, ...args) {
  const env = { ...process.env, TMPDIR: directory, [MARK]: directory };
  delete env.NODE_TEST_CONTEXT;
  const run = spawn(process.execPath, args, { env, stdio: ["ignore", "pipe", "inherit"] });
  let said = "";
  run.stdout.on("data", (text) => (said += text));
  const ready = () => eventually("the run is ready", async () => assert.match(said, /^ready$/));
  return { run, ready, left: () => processesOf(MARK, directory) };
}

/** The processes that descend from one. */
function descendants(ancestor) {
  const parentOf = (pid) => {
    try {
      // The name, in parentheses, may hold anything.
      return Number(readFileSync(`/proc/${pid}/stat`, "utf8").split(")").at(-1).split(" ")[2]);
    } catch {
      // It has ended.
      return 0;
    }
  };
  const parents = readdirSync("/proc")
    .map(Number)
    .filter(Boolean)
    .map((pid) => [pid, parentOf(pid)]);
  const below = (pid) => parents.flatMap(([child, parent]) => (parent === pid ? [child, ...below(child)] : []));
  return below(ancestor);
}

async function killedWithoutTrace({ run, left }, directory) {
  run.kill("SIGKILL");
  await eventually("what the killed run had started ends", async () => assert.deepEqual(left(), []));
  await eventually("its files are gone", async () => assert.deepEqual(readdirSync(directory), []));
}

const skip = process.platform === "linux" ? false : "processes are found in /proc, which only Linux has";

for (const name of browsersOfRun) {
  const here = hasBrowser(name) ? skip : `no ${name}`;
  test(`a run that is killed leaves no ${name} and no file`, { skip: here }, async () => {
    const directory = scratch();
    const script = `import { launch } from "${BROWSERS}";
      const browser = await launch("${name}");
      await browser.newPage();
      process.stdout.write("ready");
      await new Promise(() => setInterval(() => {}, 1000));`;
    const started = start(directory, "--input-type=module", "--eval", script);
    await started.ready();
    // A process that the guard does not find may write after everything has been removed.
    await eventually("all that it has started is found", async () => {
      const all = descendants(started.run.pid);
      const found = new Set(started.left());
      const missed = all.filter((pid) => !found.has(pid));
      assert.ok(all.length > 2, "a guard, a browser and its helpers");
      assert.deepEqual(missed, []);
    });
    await killedWithoutTrace(started, directory);
  });
}

test("a process that the killed one has started ends with it", { skip }, async () => {
  const directory = scratch();
  const child = `import { endWithParent } from "${new URL("parent.mjs", import.meta.url).href}";
    endWithParent();
    setInterval(() => {}, 1000);
    process.stdout.write("ready");`;
  const script = `import { spawn } from "node:child_process";
    const child = ${JSON.stringify(child)};
    spawn(process.execPath, ["--input-type=module", "--eval", child], { stdio: "inherit" });`;
  const started = start(directory, "--input-type=module", "--eval", script);
  await started.ready();
  assert.equal(started.left().length, 2, "a process and its child");
  await killedWithoutTrace(started, directory);
});
