// The tests of the page as one file. TRACEBRIDGE_PAGE_TESTS is a JSON array of the names of the files to run.

import { readdirSync } from "node:fs";

import { endWithParent } from "./parent.mjs";

const HERE = new URL(".", import.meta.url);

/** The test files whose names hold one of `parts`; all of them where there are no parts. */
export function chosenFiles(parts) {
  return readdirSync(HERE)
    .filter((name) => name.endsWith(".test.mjs"))
    .filter((name) => parts.length === 0 || parts.some((part) => name.includes(part)))
    .sort();
}

const { TRACEBRIDGE_PAGE_TESTS: names, NODE_TEST_CONTEXT: underTest } = process.env;
if (underTest && names) {
  endWithParent();
  for (const name of JSON.parse(names)) await import(new URL(name, HERE));
}
