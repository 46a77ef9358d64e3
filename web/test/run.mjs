// Runs all test/*.test.mjs in one process, one test after the other: all share a browser of each name. A browser
// mostly waits, so that scripts/test runs two halves beside each other.
//
// usage: node test/run.mjs [--half 1|2] [PART-OF-A-FILE-NAME …]

import { run } from "node:test";
import { spec } from "node:test/reporters";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

import { chosenFiles } from "./suite.mjs";

/** The whole suite takes some minutes. Its waits have limits of their own; this one ends a loop in a test. */
const SUITE_LIMIT_MS = 90 * 60_000;

const { values, positionals } = parseArgs({ options: { half: { type: "string" } }, allowPositionals: true });
if (!["1", "2", undefined].includes(values.half)) throw new Error("--half takes 1 or 2");
// Every second file: neighbours by name are alike.
const files = chosenFiles(positionals).filter((_, n) => values.half === undefined || n % 2 === Number(values.half) - 1);
if (files.length === 0) throw new Error("no test has such a name");
process.env.TRACEBRIDGE_PAGE_TESTS = JSON.stringify(files);

run({ files: [fileURLToPath(new URL("suite.mjs", import.meta.url))], concurrency: 1, timeout: SUITE_LIMIT_MS })
  .on("test:fail", () => (process.exitCode = 1))
  .compose(new spec())
  .pipe(process.stdout);
