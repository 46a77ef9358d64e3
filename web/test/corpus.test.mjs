// Real traces: the profile's table says what `tracebridge profile --json` says, the summary what `info --json` says,
// and markers have the names that catapult shows.
//
// TRACEBRIDGE_BIN names the program, TRACEBRIDGE_CORPUS a directory of traces (method-trace/ and others below it).

import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { catapultNames } from "./catapult_names.mjs";
import { browserTest, clickButton, gridRows, openPage, scratch, setControl, texts } from "./harness.mjs";
import { runProgram } from "./program.mjs";

const { TRACEBRIDGE_BIN: program, TRACEBRIDGE_CORPUS: corpus } = process.env;
const directory = scratch();

async function run(...args) {
  const { stdout, stderr, status } = await runProgram(program, args);
  if (status !== 0 && status !== 3) throw new Error(`${args.join(" ")}: exit ${status}: ${stderr}`);
  return stdout;
}

/** The files of a kind, those with less than one event aside. */
function files(kind) {
  return existsSync(join(corpus, kind)) ? readdirSync(join(corpus, kind)).map((name) => join(corpus, kind, name)) : [];
}

/** Rows by name: methods with the same name and signature have rows of their own. */
function byName(rows) {
  return rows.map((row) => JSON.stringify(row)).sort();
}

/** A row of the page's table as `profile --json` has it. */
function tableRow({ text, exact }, columns) {
  const at = (title) => columns.findIndex((column) => column.startsWith(title));
  const ns = (title) => (at(title) < 0 ? undefined : Number(/^-?\d+/.exec(exact[at(title)])[0]));
  const [calls, recursive] = exact[at("Calls")].match(/\d+/g).map(Number);
  const clock = columns.some((column) => column.startsWith("Incl wall")) ? "wall" : "CPU";
  return [
    exact[0].trim() || text[0],
    calls,
    recursive,
    ns(`Incl ${clock} ms`),
    ns(`Excl ${clock} ms`),
    ...(clock === "wall" && at("Incl CPU ms") > 0 ? [ns("Incl CPU ms"), ns("Excl CPU ms")] : []),
  ];
}

function jsonRow(row) {
  const times =
    row.wall_inclusive_ns === undefined
      ? [row.cpu_inclusive_ns, row.cpu_exclusive_ns]
      : [row.wall_inclusive_ns, row.wall_exclusive_ns];
  if (row.wall_inclusive_ns !== undefined && row.cpu_inclusive_ns !== undefined) {
    times.push(row.cpu_inclusive_ns, row.cpu_exclusive_ns);
  }
  return [row.name.trim().replace(/^\(unknown (.*)\)$/, "$1"), row.calls, row.recursive_calls, ...times];
}

/** How the table of a page differs from `profile --json`. */
async function differences(page, file, rows, records) {
  if ((await texts(page, ".idle button")).includes("Show idle")) await clickButton(page, "Show idle");
  const columns = await texts(page, ".grid-head .cell");
  const found = (await gridRows(page)).map((row) => tableRow(row, columns));
  const [inPage, inJson] = [new Set(byName(found)), new Set(byName(rows.map(jsonRow)))];
  const more = [...inPage].filter((row) => !inJson.has(row));
  const less = [...inJson].filter((row) => !inPage.has(row));
  // The timeline has no calls of which the trace has only the exit.
  const before = less.reduce((calls, row) => calls + JSON.parse(row)[1], 0);
  if (more.length === 0 && before <= records.exits_without_enter && found.length + less.length === rows.length) {
    return [];
  }
  return [
    `${file}: ${found.length} and ${rows.length} rows; only in the page: ${more.slice(0, 3)}; `
      + `only in profile --json: ${less.slice(0, 3)} (${more.length} and ${less.length})`,
  ];
}

/** Checks the summary of a page against `info --json`, and the banner against the status of `report`. */
async function agrees(page, file, info, status) {
  const summary = (await texts(page, ".summary"))[0];
  const [first] = info
    .split("\n")
    .filter(Boolean)
    .map((line) => JSON.parse(line));
  const size = first.bytes ?? first.size;
  assert.ok(summary.includes(`${size.toLocaleString("en-US")} bytes`), `${file}: ${size} bytes`);
  assert.ok(summary.includes(first.format), `${file}: ${first.format}`);
  for (const { what } of first.report?.damage ?? []) {
    assert.ok(summary.includes(what.slice(0, 60)), `${file}: ${what}`);
  }
  // Losses stand in the banner, what only the page lacks in the summary.
  const isLacking = (await page.$$(".banner, .not-shown")).length > 0;
  assert.equal(isLacking, status === 3, `${file}: what is said to be missing, and the exit status`);
}

/** Compares the names of slices and counters with those that catapult shows for the same text. */
async function sameNames(page, file) {
  const text = join(directory, "names.txt");
  await run("convert", file, "-o", text);
  const wanted = catapultNames(readFileSync(text, "utf8"));
  const found = await page.evaluate(() => {
    const { trace } = window.__tracebridge.timeline.store.state;
    const names = { slices: [], async: [], counters: [] };
    for (const track of trace.tracks) {
      const kind = { atrace: "slices", async: "async", counter: "counters", vsync: "counters" }[track.role];
      const noBegin = (i) => (track.spans.flags?.[i] ?? 0) !== 0 && track.role === "async";
      if (kind === "counters" && track.counter && track.process !== null) {
        for (let i = 0; i < track.count; i++) names.counters.push(track.name);
      } else if (kind && track.spans) {
        for (let i = 0; i < track.count; i++) if (!noBegin(i)) names[kind].push(trace.spanName(track, i));
      }
    }
    return names;
  });
  for (const [kind, names] of Object.entries(wanted)) {
    const counts = new Map();
    for (const name of found[kind]) counts.set(name, (counts.get(name) ?? 0) + 1);
    const sorted = (map) => [...map].sort(([a], [b]) => (a < b ? -1 : 1));
    assert.deepEqual(sorted(counts), sorted(names), `${file}: names of ${kind}`);
  }
  return found.slices.length;
}

if (!program || !corpus || !existsSync(corpus)) {
  const why = !program
    ? "TRACEBRIDGE_BIN is not set"
    : `TRACEBRIDGE_CORPUS names no directory (${corpus ?? "not set"})`;
  console.error(`SKIPPED (corpus): ${why}; real traces are not tested`);
  test("real traces", { skip: why }, () => {});
} else {
  browserTest(
    "chromium",
    "tables equal profile --json, summaries info --json, and markers have catapult's names",
    async (browser) => {
      const different = [];
      let [compared, names] = [0, 0];
      for (const file of ["method-trace", "systrace", "perfetto"].flatMap(files)) {
        const info = await runProgram(program, ["info", "--json", file]);
        const path = join(directory, "trace.html");
        const written = await runProgram(program, ["report", file, "-o", path]);
        if (info.status === 1 || written.status === 1) continue;
        const { page, problems } = await openPage(browser, path);
        if (file.includes("/method-trace/")) {
          const { rows, problems: records } = JSON.parse(await run("profile", "--json", file));
          if (rows.length > 0) {
            compared += 1;
            await setControl(page, "Threads", "all");
            different.push(...(await differences(page, file, rows, records)));
          }
        }
        if (file.includes("/systrace/")) names += await sameNames(page, file);
        await clickButton(page, "Summary", ".tabs");
        await agrees(page, file, info.stdout, written.status);
        await clickButton(page, "Profile", ".tabs");
        assert.deepEqual(problems, [], file);
        await page.close();
      }
      assert.ok(compared > 0, "there are method traces");
      assert.ok(names > 5000, `${names} names were compared`);
      assert.deepEqual(different, []);
    },
  );
}
