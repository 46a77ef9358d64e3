// Builds the page: bundles src/main.tsx and src/page.css into src/page.html, and writes the result to the file
// that the Rust program embeds. The page has a placeholder, @TRACEBRIDGE_DATA@, where the writer puts the data.
//
// usage: node build.mjs [--check]
//   --check  writes nothing, and fails where the checked-in page is not what the source builds

import { build } from "esbuild";
import { createHash } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";

const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const OUTPUT = here("../src/export/report_page/page.html");

const bundle = async (entry, loader) => {
  const result = await build({
    entryPoints: [here(entry)],
    bundle: true,
    minify: true,
    write: false,
    format: "iife",
    target: "es2023",
    charset: "utf8",
    legalComments: "inline",
    loader,
    jsx: "automatic",
    jsxImportSource: "preact",
  });
  return result.outputFiles[0].text.trim();
};

const script = await bundle("src/main.tsx", {});
const style = await bundle("src/page.css", { ".css": "css" });
if (/<\/script|<!--/i.test(script) || /<\/style/i.test(style)) throw new Error("the bundle would end its own element");
// Readers of systrace's pages look for this text, and would take every page for one.
if (script.includes("trace-data")) throw new Error("the bundle names the section that holds a trace's text");
const hash = (text) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;
const page = (await readFile(here("src/page.html"), "utf8"))
  .replace("@SCRIPT_HASH@", () => hash(script))
  .replace("@STYLE@", () => style)
  .replace("@SCRIPT@", () => script);

if (process.argv.includes("--check")) {
  if ((await readFile(OUTPUT, "utf8")) !== page) {
    console.error(`${OUTPUT} is not what web/ builds: run "npm run build" in web/, and commit the page`);
    process.exit(1);
  }
} else {
  await writeFile(OUTPUT, page);
  console.log(`${OUTPUT}: ${page.length} characters`);
}
