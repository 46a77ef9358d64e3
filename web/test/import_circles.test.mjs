// Files of the page that import each other in a circle are found, and the page has none.

import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { findCircles } from "../import_circles.mjs";
import { runProgram } from "./program.mjs";
import { scratch } from "./run_directory.mjs";

const COMMAND = fileURLToPath(new URL("../import_circles.mjs", import.meta.url));

/** Writes files by their names and contents; returns their directory. */
function written(files) {
  const directory = scratch();
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(directory, name)), { recursive: true });
    writeFileSync(join(directory, name), text);
  }
  return directory;
}

/** The circles of files by their names, each from its first file in the order of the alphabet. */
function circlesOf(files) {
  const directory = written(files);
  return findCircles([directory]).map((circle) => {
    const names = circle.map((file) => file.slice(directory.length + 1));
    const first = names.indexOf([...names].sort()[0]);
    return [...names.slice(first), ...names.slice(0, first)];
  });
}

test("files that import each other are found, also by types, over several files and directories", () => {
  assert.deepEqual(circlesOf({ "a.ts": 'import { b } from "./b";', "b.ts": 'import { a } from "./a.ts";' }), [
    ["a.ts", "b.ts"],
  ]);
  assert.deepEqual(
    circlesOf({
      "panel.tsx": 'import type { Key } from "./keys/all";\nexport type { Key };',
      "keys/all.ts": 'export * from "./one";',
      "keys/one.ts": 'export const load = () => import("../panel");',
    }),
    [["keys/all.ts", "keys/one.ts", "panel.tsx"]],
  );
  assert.deepEqual(circlesOf({ "self.mjs": 'import "./self.mjs";' }), [["self.mjs"]]);
});

test("files that import one file by two ways are no circle", () => {
  const files = {
    "a.ts": 'import "./b";\nimport "./c";\nimport "preact";',
    "b.ts": 'import { d } from "./d";',
    "c.ts": 'import { d } from "./d"; // a.ts is no import: import "./a"',
    "d.ts": 'export const d = `import "./a"`;',
  };
  assert.deepEqual(circlesOf(files), []);
  assert.throws(() => circlesOf({ "a.ts": 'import "./gone";' }), /a\.ts imports "\.\/gone", which is no file/);
});

test("the command names a circle and fails; the page has none", async () => {
  const run = (...directories) => runProgram(process.execPath, [COMMAND, ...directories]);
  const directory = written({ "a.ts": 'import "./b";', "b.ts": 'import "./a";' });
  const found = await run(directory);
  assert.equal(found.status, 1, found.stderr);
  assert.match(found.stderr, /^import circle: \S*a\.ts -> \S*b\.ts -> \S*a\.ts$/m);
  const page = await run();
  assert.deepEqual([page.status, page.stderr], [0, ""]);
});
