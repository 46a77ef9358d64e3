// Finds files that import themselves by way of others. A type counts as much as a value: a reader has to know
// both files to understand either.
//
// usage: node import_circles.mjs [DIRECTORY …]      without a directory: src and test

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

import ts from "typescript";

const SOURCE = /\.(ts|tsx|mjs)$/;
/** An import may leave out the ending of a file. */
const ENDINGS = ["", ".ts", ".tsx"];

/**
 * The circles among the files of `directories`: each is a list of files, in which each one imports the next
 * one, and the last one the first. A file that is in several circles is named in one of them. Throws where an
 * import leads to no file.
 */
export function findCircles(directories) {
  const files = directories.flatMap(filesOf);
  const imports = new Map(files.map((file) => [file, importsOf(file)]));
  const circles = [];
  const done = new Set();
  const path = [];
  const visit = (file) => {
    const at = path.indexOf(file);
    if (at >= 0) circles.push(path.slice(at));
    if (at >= 0 || done.has(file)) return;
    path.push(file);
    for (const next of imports.get(file) ?? []) visit(next);
    path.pop();
    done.add(file);
  };
  for (const file of files) visit(file);
  return circles;
}

function filesOf(directory) {
  return readdirSync(directory, { withFileTypes: true }).flatMap((entry) => {
    const path = join(directory, entry.name);
    if (entry.isDirectory()) return filesOf(path);
    return SOURCE.test(entry.name) ? [path] : [];
  });
}

/** The files that a file imports, packages and style sheets aside. */
function importsOf(file) {
  const { importedFiles } = ts.preProcessFile(readFileSync(file, "utf8"), true, true);
  const names = importedFiles.map(({ fileName }) => fileName).filter((name) => name.startsWith("."));
  return names.flatMap((name) => {
    const target = resolve(dirname(file), name);
    const found = ENDINGS.map((ending) => target + ending).find((path) => SOURCE.test(path) && existsSync(path));
    if (!found && !existsSync(target)) throw new Error(`${file} imports "${name}", which is no file`);
    return found ? [found] : [];
  });
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const here = fileURLToPath(new URL(".", import.meta.url));
  const chosen = process.argv.slice(2);
  const directories = chosen.length > 0 ? chosen : [join(here, "src"), join(here, "test")];
  const circles = findCircles(directories.map((directory) => resolve(directory)));
  for (const circle of circles) {
    console.error(`import circle: ${[...circle, circle[0]].map((file) => relative(here, file)).join(" -> ")}`);
  }
  if (circles.length > 0) process.exit(1);
}
