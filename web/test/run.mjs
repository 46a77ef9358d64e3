// Runs all test/*.test.mjs in one process, one test after the other: all share a browser of each name, and several
// pages at once would disturb each other's times.
//
// usage: node test/run.mjs [PART-OF-A-FILE-NAME …]

import { run } from "node:test";
import { spec } from "node:test/reporters";
import { fileURLToPath } from "node:url";

import { chosenFiles } from "./suite.mjs";

/** The whole suite takes some minutes. Its waits have limits of their own; this one ends a loop in a test. */
const SUITE_LIMIT_MS = 90 * 60_000;

const parts = process.argv.slice(2);
if (chosenFiles(parts).length === 0) throw new Error("no test has such a name");
process.env.TRACEBRIDGE_PAGE_TESTS = JSON.stringify(parts);

run({ files: [fileURLToPath(new URL("suite.mjs", import.meta.url))], concurrency: 1, timeout: SUITE_LIMIT_MS })
  .on("test:fail", () => (process.exitCode = 1))
  .compose(new spec())
  .pipe(process.stdout);
