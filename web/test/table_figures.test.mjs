// The table's figures of real traces are those of the program's other outputs: percentiles of frames those of
// `info --json`, and those of slices what DuckDB finds in the tables of `convert -o x.parquet`.
//
// TRACEBRIDGE_BIN names the program, TRACEBRIDGE_CORPUS a directory of traces, TRACEBRIDGE_PYTHON a python with duckdb.

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { join } from "node:path";

import { browserTest, gridRows, openPage, scratch, setControl, texts } from "./harness.mjs";
import { runProgram } from "./program.mjs";

const { TRACEBRIDGE_BIN: program, TRACEBRIDGE_CORPUS: corpus, TRACEBRIDGE_PYTHON: python } = process.env;
const directory = scratch();
const FILE = join(corpus ?? "", "systrace/catapult-project__catapult__decompressed_atrace_data.txt");
const QUERY = `
import duckdb, json, sys
print(json.dumps(duckdb.sql("""
    SELECT name, count(*), sum(dur), min(dur), avg(dur), quantile_cont(dur, 0.5), quantile_cont(dur, 0.9),
        quantile_cont(dur, 0.95), quantile_cont(dur, 0.99), max(dur), sum(exclusive_ns)
    FROM read_parquet('{}/**/slice.parquet') WHERE kind IN ('thread', 'async', 'track') GROUP BY name
""".format(sys.argv[1])).fetchall(), default=float))
`;

async function run(command, ...args) {
  const { stdout, stderr, status } = await runProgram(command, args);
  if (status !== 0 && status !== 3) throw new Error(`${args.join(" ")}: exit ${status}: ${stderr}`);
  return stdout;
}

/** The exact figures of a table by groups: in the order of the heads of `columns`. */
async function groups(page, columns) {
  const heads = await texts(page, ".table-panel .grid-head .cell");
  const at = columns.map((name) => heads.findIndex((head) => head.startsWith(name)));
  return new Map(
    (await gridRows(page)).map(({ text, exact }) => [
      exact[0],
      at.map((n) => parseFloat(exact[n] ?? text[n].replaceAll(",", ""))),
    ]),
  );
}

function near(found, wanted, what) {
  assert.equal(found.length, wanted.length, what);
  found.forEach((value, n) => assert.ok(Math.abs(value - wanted[n]) < 0.01, `${what}: ${found}; ${wanted}`));
}

if (program && corpus && existsSync(FILE)) {
  const file = join(directory, "page.html");
  browserTest("chromium", "frames have the percentiles of info --json", async (browser) => {
    await run(program, "report", FILE, "-o", file);
    const [{ frames }] = JSON.parse(`[${await run(program, "info", "--json", FILE)}]`);
    assert.equal(frames.length, 1);
    assert.ok(frames[0].count > 10);
    const { page, problems } = await openPage(browser, file, { fragment: "panel=table" });
    await setControl(page, "Table of", "frames");
    await setControl(page, "Rows", "process");
    await setControl(page, "Figure", "cpu");
    const [row] = [...(await groups(page, ["Count", "p50", "p90", "p95", "p99"])).values()];
    const { p50, p90, p95, p99 } = frames[0].duration_cpu_ns;
    near(row, [frames[0].count, p50, p90, p95, p99], "frames");
    assert.deepEqual(problems, []);
  });

  if (python) {
    browserTest("chromium", "slices have the figures that DuckDB finds in the dataset", async (browser) => {
      await run(program, "report", FILE, "-o", file);
      const tables = join(directory, "tables.parquet");
      await run(program, "convert", FILE, "-o", tables);
      const rows = JSON.parse(await run(python, "-c", QUERY, tables));
      assert.ok(rows.length > 20, `${rows.length} names`);
      const { page, problems } = await openPage(browser, file, { fragment: "panel=table" });
      const found = await groups(page, ["Count", "Sum", "Min", "Mean", "p50", "p90", "p95", "p99", "Max"]);
      await setControl(page, "Figure", "self");
      const self = await groups(page, ["Sum"]);
      assert.equal(found.size, rows.length);
      for (const [name, ...wanted] of rows) {
        const exclusive = wanted.pop();
        near(found.get(name), wanted, name);
        if (exclusive !== null) near(self.get(name), [exclusive], `${name}, self`);
      }
      assert.deepEqual(problems, []);
    });
  } else console.error("SKIPPED: TRACEBRIDGE_PYTHON names no python; the table is not compared with DuckDB");
} else
  console.error(`SKIPPED (corpus): there is no ${FILE}, or no TRACEBRIDGE_BIN; tables of real traces are not compared`);
