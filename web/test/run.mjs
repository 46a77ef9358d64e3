// Runs all test/*.test.mjs, one file after the other: several browsers at once disturb each other's times.
//
// usage: node test/run.mjs [PART-OF-A-FILE-NAME …]

import { readdirSync } from "node:fs";
import { run } from "node:test";
import { spec } from "node:test/reporters";
import { fileURLToPath } from "node:url";

const directory = fileURLToPath(new URL(".", import.meta.url));
const parts = process.argv.slice(2);
const files = readdirSync(directory).filter((name) => name.endsWith(".test.mjs"))
  .filter((name) => parts.length === 0 || parts.some((part) => name.includes(part)))
  .sort().map((name) => `${directory}${name}`);
if (files.length === 0) throw new Error("no test has such a name");

run({ files, concurrency: 1 })
  .on("test:fail", () => (process.exitCode = 1))
  .compose(new spec())
  .pipe(process.stdout);
