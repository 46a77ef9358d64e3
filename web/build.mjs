// Builds the pages: bundles a script and a style sheet into src/page.html, and writes the result to the file that the Rust
// program embeds. The report page has a placeholder, @TRACEBRIDGE_DATA@, where the writer puts the data; the page of a
// recording that runs has its own script, so that no report carries it.
//
// usage: node build.mjs [--check]
//   --check  writes nothing, and fails where a checked-in page is not what the source builds

import { build } from "esbuild";
import { createHash } from "node:crypto";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";

const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const DATA_MARK = "@TRACEBRIDGE_DATA@";
const PAGES = [
  { script: "src/main.tsx", style: "src/page.css", output: "../src/export/report_page/page.html" },
  { script: "src/live/main.tsx", style: "src/live/main.css", output: "../src/live/server/live.html", data: "" },
];

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

const hash = (text) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;
const template = await readFile(here("src/page.html"), "utf8");
let isStale = false;
for (const { script: entry, style: sheet, output, data = DATA_MARK } of PAGES) {
  const script = await bundle(entry, {});
  const style = await bundle(sheet, { ".css": "css" });
  if (/<\/script|<!--/i.test(script) || /<\/style/i.test(style))
    throw new Error("the bundle would end its own element");
  // Readers of systrace's pages look for this text, and would take every page for one.
  if (script.includes("trace-data")) throw new Error("the bundle names the section that holds a trace's text");
  const page = template
    .replace("@SCRIPT_HASH@", () => hash(script))
    .replace("@STYLE@", () => style)
    .replace("@SCRIPT@", () => script)
    .replace(DATA_MARK, () => data);
  if (process.argv.includes("--check")) {
    const found = await readFile(here(output), "utf8").catch(() => null);
    if (found !== page) {
      console.error(`${output} is not what web/ builds: run "npm run build" in web/, and commit the page`);
      isStale = true;
    }
  } else {
    await mkdir(dirname(here(output)), { recursive: true });
    await writeFile(here(output), page);
    console.log(`${output}: ${page.length} characters`);
  }
}
if (isStale) process.exit(1);
