// The causes of the page name the app's own code and both methods of a monitor, as `tracebridge why` does.

import assert from "node:assert/strict";
import { test } from "node:test";

import { build } from "esbuild";

/** A module of the page, for node. */
async function loaded(module) {
  const entryPoints = [new URL(`../src/why/${module}.ts`, import.meta.url).pathname];
  const { outputFiles } = await build({ entryPoints, bundle: true, format: "esm", write: false, logLevel: "error" });
  return import(`data:text/javascript;base64,${Buffer.from(outputFiles[0].text).toString("base64")}`);
}

test("running code is named by the app's own method and not by the innermost one", async () => {
  const { criticalPath } = await loaded("critical_path");
  const calls = [
    ["android.app.Activity.performCreate", 2, 98],
    ["com.example.feed.MainActivity.onCreate", 3, 97],
    ["com.example.feed.SettingsStore.load", 10, 90],
    ["com.google.gson.Gson.fromJson", 11, 89],
    ["com.google.gson.JsonReader.nextString", 12, 70],
    ["com.example.feed.Dates.parse", 71, 72],
    ["androidx.core.Views.inflate", 91, 96],
  ];
  const spans = {
    label: calls.map((_, at) => at),
    start: calls.map(([, start]) => start),
    end: calls.map(([, , end]) => end),
    depth: [0, 1, 2, 3, 4, 4, 2],
  };
  const causes = { start: [0], end: [100], cause: [0], subject: [0], follow: [0] };
  const trace = {
    strings: ["running"],
    threads: [{ process: 0, name: "main", tid: 1 }],
    index: { processes: [{ name: "com.example.feed.debug", pid: 1 }] },
    tracks: [
      { kind: "calls", role: "methods", thread: 0, count: calls.length, spans },
      { kind: "states", role: "states", thread: 0, count: 1, causes },
    ],
    spanName: (_, at) => calls[at][0],
  };
  const path = criticalPath(trace, [{ thread: 0, from: 1, to: 99 }]);
  assert.deepEqual(
    path.causes.map(({ ns, own }) => [ns, own]),
    [
      [80, { name: calls[2][0], kind: "method", caller: calls[1][0], callee: calls[3][0] }],
      [14, { name: calls[1][0], kind: "method", caller: calls[0][0], callee: calls[6][0] }],
      [4, null],
    ],
  );
  assert.deepEqual(
    path.steps.map(({ from, to, cause }) => [from, to, cause]),
    [
      [1, 3, 2],
      [3, 10, 1],
      [10, 90, 0],
      [90, 97, 1],
      [97, 99, 2],
    ],
  );
});

test("a monitor's marker names both methods", async () => {
  const { lockSentence } = await loaded("lock_marker");
  const marker = (holder, waiter) =>
    `monitor contention with owner pool (2) (17) at ${holder} waiters=1 blocking from ${waiter}`;
  assert.equal(
    lockSentence(marker("void a.b.Loader.load(int)(Loader.java:57)", "a.b.Map a.b.Cache.get(int, int)(Cache.java:31)")),
    'waited in Cache.get (Cache.java:31) for a lock that "pool (2)" held in Loader.load (Loader.java:57)',
  );
  assert.equal(
    lockSentence(marker("void a.B.run()(null:-1)", "void a.C.<init>()(C.java:-2)")),
    'waited in C.<init> (C.java) for a lock that "pool (2)" held in B.run',
  );
  assert.equal(lockSentence("Lock contention on thread list lock (owner tid: 3)"), null);
});
