// The comparison panel: what got slower or faster from the old to the new trace, and by how much.

import { useMemo, useState } from "preact/hooks";

import type { Comparison, ComparisonRow } from "../data/format";
import { hasSpans, type Trace } from "../data/trace";
import { lowerBound } from "../data/search_sorted";
import { ALL_ROWS, type Range, type Selection, type Store } from "../store";
import { MiddleCut } from "../ui/middle_cut";
import { useMedia } from "../ui/use_media";
import { alignedAt, boundsOf, firstAlignment } from "./alignment";
import { swapTraces } from "./open_other";
import { formatDuration } from "../timeline/time";
import { Choice, Field } from "../ui/controls";
import { CHOSEN } from "../ui/fragment";
import { Grid, type GridColumn, type GridRow } from "../ui/grid";
import { counted, countText, folded, visibleName } from "../ui/text";
import { useStore } from "../ui/use_store";

type Part = "stages" | "states" | "methods" | "slices" | "metrics";

const PARTS: [Part, string][] = [
  ["stages", "Stages"],
  ["states", "States"],
  ["methods", "Methods"],
  ["slices", "Slices"],
  ["metrics", "Metrics"],
];

const MEANING: Record<Part, string> = {
  stages: "Stages of the launch, or the slices of the main thread that nothing encloses.",
  states: "Time of the main thread by its state.",
  methods: "Exclusive time of methods, all threads.",
  slices: "Exclusive time of slices by name, all threads.",
  metrics: "Times that the benchmark has measured itself.",
};

const COLUMNS: GridColumn[] = [
  {
    id: "name",
    title: "Name",
    least: 120,
    meaning: "Enter or a click shows the longest one in the timeline",
    sortable: true,
  },
  {
    id: "old_ns",
    title: "Old",
    meaning: "Time in the old trace; the median of several runs",
    width: 96,
    sortable: true,
  },
  {
    id: "new_ns",
    title: "New",
    meaning: "Time in the new trace; the median of several runs",
    width: 96,
    sortable: true,
  },
  { id: "delta_ns", title: "Change", meaning: "New minus old", width: 104, sortable: true },
  { id: "percent", title: "%", meaning: "The change in percent of the old time", width: 84, sortable: true },
  { id: "bar", title: "faster ◂ ▸ slower", meaning: "The change, to the right where it became slower", width: 200 },
  { id: "calls", title: "Old → new calls", meaning: "How often, in the old and in the new trace", width: 128 },
  {
    id: "p",
    title: "Verdict",
    meaning: "By the Mann-Whitney test, with its p-value; it needs five runs on each side",
    width: 250,
    sortable: true,
  },
];

export function ComparisonPanel({
  store,
  traces,
  comparison,
}: {
  store: Store;
  traces: readonly Trace[];
  comparison: Comparison;
}) {
  const { trace, alignment } = useStore(store, "trace", "alignment");
  const [part, setPart] = useState<Part>(() => PARTS.find(([name]) => comparison[name].length > 0)?.[0] ?? "stages");
  const [filter, setFilter] = useState("");
  const [sort, setSort] = useState({ id: "delta_ns", down: true });
  const [chosen, setChosen] = useState<ComparisonRow | null>(null);
  const rows = useMemo(() => sorted(comparison[part], filter, sort), [comparison, part, filter, sort]);
  const most = useMemo(() => rows.reduce((most, row) => Math.max(most, Math.abs(row.delta_ns)), 1), [rows]);

  const isNarrow = useMedia("(max-width: 1000px)");
  const isWanted = ({ id }: GridColumn) => !isNarrow || !["bar", "calls", "percent"].includes(id);

  const show = (row: ComparisonRow, role: "old" | "new") => {
    setChosen(row);
    jump(store, role, row, part);
  };
  const choose = (at: number) => {
    const row = rows[at];
    const here = trace.role === "old" ? "old" : "new";
    const place = here === "old" ? row.old_at_ns : row.new_at_ns;
    show(row, place === null ? (here === "old" ? "new" : "old") : here);
  };
  const onSort = (id: string) => setSort({ id, down: sort.id === id ? !sort.down : id !== "name" && id !== "p" });
  return (
    <div class="comparison">
      <Total comparison={comparison} isOfPages={traces.some(({ isDropped }) => isDropped)} />
      <div class="toolbar" role="toolbar" aria-label="Comparison">
        <Choice
          label="Compare"
          value={part}
          onChange={(to) => {
            setPart(to);
            setChosen(null);
          }}
          choices={PARTS.map(([name, title]) => [name, `${title} (${countText(comparison[name].length)})`])}
        />
        <Field label="Filter">
          <input
            type="search"
            value={filter}
            placeholder="part of a name"
            onInput={(e) => setFilter(e.currentTarget.value)}
          />
        </Field>
        <span class="choice" role="group" aria-label="Show in timeline">
          <button
            type="button"
            disabled={(chosen?.old_at_ns ?? null) === null}
            onClick={() => chosen && show(chosen, "old")}
          >
            Show in old
          </button>
          <button
            type="button"
            disabled={(chosen?.new_at_ns ?? null) === null}
            onClick={() => chosen && show(chosen, "new")}
          >
            Show in new
          </button>
        </span>
        {alignment?.what === CHOSEN && (
          <button
            type="button"
            onClick={() => store.set({ alignment: firstAlignment(traces, comparison), otherSelection: null })}
          >
            Align at {firstAlignment(traces, comparison)?.what}
          </button>
        )}
        {traces.some(({ isDropped }) => isDropped) && (
          <button type="button" onClick={() => swapTraces(store)}>
            Swap old and new
          </button>
        )}
        <span class="muted">
          {MEANING[part]}
          {comparison.rows_left_out > 0
            && ` ${countText(comparison.rows_left_out)} rows of all kinds that changed less are left out.`}
        </span>
      </div>
      <Grid
        label={`Comparison of ${part}`}
        columns={COLUMNS.filter(isWanted)}
        count={rows.length}
        sort={sort}
        onSort={onSort}
        row={(at) => gridRow(rows[at], at, most, rows[at] === chosen, isWanted)}
        onChoose={choose}
        onOpen={choose}
        empty={filter ? "No row has such a name." : "The traces have nothing of this kind."}
      />
    </div>
  );
}

/** Where the longest one of a row lies in a trace. */
interface RowPlace extends Range {
  selection: Selection | null;
}

function placeOf(trace: Trace, row: ComparisonRow, part: Part): RowPlace | null {
  const isOld = trace.role === "old";
  const at = isOld ? row.old_at_ns : row.new_at_ns;
  if (at === null) return null;
  const found = part === "states" ? null : spanAt(trace, row.name, at);
  const time = (isOld ? row.old_ns : row.new_ns) ?? 0;
  const length = found ? found.length : Math.max(time, 1e6);
  const selection: Selection | null = found ? { kind: "span", track: found.track, item: found.item } : null;
  return { from: at, to: Math.min(at + length, trace.duration), selection };
}

/** Shows the longest one of a row in both timelines, aligned at its begin in each; `role` says whose details show. */
function jump(store: Store, role: "old" | "new", row: ComparisonRow, part: Part): void {
  const { state } = store;
  const { traces, comparison } = state;
  const trace = traces.find((one) => one.role === role);
  const here = trace && placeOf(trace, row, part);
  if (!trace || !here) return;
  const other = traces.find((one) => one !== trace);
  const there = other ? placeOf(other, row, part) : null;
  const begins = traces.map((one) => (one === trace ? here.from : (there?.from ?? 0)));
  const alignment = there ? alignedAt(traces, CHOSEN, begins) : firstAlignment(traces, comparison);
  const length = Math.max(here.to - here.from, there ? there.to - there.from : 0);
  const margin = Math.max(length * 0.1, 500);
  const bounds = boundsOf({ trace, traces, alignment });
  const view = {
    from: Math.max(here.from - margin, bounds.from),
    to: Math.min(here.from + length + margin, bounds.to),
  };
  const { sort, filter } = state.rows;
  store.set({
    trace,
    alignment,
    view,
    range: null,
    selection: here.selection,
    otherSelection: there?.selection ?? null,
    rows: trace === state.trace ? state.rows : { ...ALL_ROWS, sort, filter },
  });
}

/** The span that begins at `at` and has the name; where several do, the longest. */
function spanAt(trace: Trace, name: string, at: number): { track: number; item: number; length: number } | null {
  let best: { track: number; item: number; length: number } | null = null;
  for (const track of trace.tracks) {
    if (!hasSpans(track) || track.role === "running" || track.role === "irq") continue;
    const { start, end } = track.spans;
    for (let item = lowerBound(start, at); item < start.length && start[item] === at; item++) {
      const length = end[item] - at;
      if ((!best || length > best.length) && name.startsWith(trace.spanName(track, item))) {
        best = { track: track.id, item, length };
      }
    }
  }
  return best;
}

function sorted(rows: ComparisonRow[], filter: string, sort: { id: string; down: boolean }): ComparisonRow[] {
  const wanted = folded(filter.trim());
  const found = wanted ? rows.filter((row) => folded(row.name).includes(wanted)) : [...rows];
  const direction = sort.down ? -1 : 1;
  if (sort.id === "name") return found.sort((a, b) => direction * (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
  const value = (row: ComparisonRow): number => {
    if (sort.id === "delta_ns") return Math.abs(row.delta_ns);
    if (sort.id === "percent") return percent(row) ?? -Infinity;
    return row[sort.id as "old_ns" | "new_ns" | "p"] ?? (sort.id === "p" ? Infinity : -Infinity);
  };
  return found.sort((a, b) => direction * (value(a) - value(b) || 0));
}

/** The change in percent of the old time; null where there is no old time. */
function percent({ old_ns, delta_ns }: ComparisonRow): number | null {
  return old_ns ? (100 * delta_ns) / old_ns : null;
}

function percentCell(row: ComparisonRow): string {
  const change = percent(row);
  if (change === null) return row.old_ns === null ? "new" : "–";
  if (row.new_ns === null) return "gone";
  return `${signed(change, change.toFixed(1))} %`;
}

function signed(value: number, text: string): string {
  return value > 0 ? `+${text}` : text.replace("-", "−");
}

export function changeText(ns: number): string {
  return signed(ns, formatDuration(ns));
}

function verdictText({ p_adjusted: p, verdict_text: text }: ComparisonRow): string {
  return p === null ? text : `${text} (p ${p < 0.001 ? "< 0.001" : `= ${p.toFixed(3)}`})`;
}

/** The class by which a row is coloured: the direction of its change, or that there may be none. */
function sideOf({ verdict, delta_ns }: ComparisonRow): string {
  return verdict === "no change" ? "noise" : delta_ns > 0 ? "slower" : "faster";
}

function gridRow(
  row: ComparisonRow,
  at: number,
  most: number,
  selected: boolean,
  isWanted: (column: GridColumn) => boolean,
): GridRow {
  const time = (ns: number | null) => ({
    text: ns === null ? "–" : formatDuration(ns),
    className: "number",
    exact: ns === null ? undefined : `${ns} ns`,
  });
  const width = `${(50 * Math.abs(row.delta_ns)) / most}%`;
  return {
    id: String(at),
    level: 0,
    selected,
    className: sideOf(row),
    cells: [
      { text: <MiddleCut text={visibleName(row.name)} />, exact: row.name },
      time(row.old_ns),
      time(row.new_ns),
      { text: changeText(row.delta_ns), exact: `${row.delta_ns} ns`, className: "number change" },
      { text: percentCell(row), className: "number change" },
      {
        text: (
          <span class="change-bar">
            <span style={{ width, [row.delta_ns > 0 ? "left" : "right"]: "50%" }} />
          </span>
        ),
      },
      { text: `${countText(row.old_count)} → ${countText(row.new_count)}`, className: "number" },
      { text: verdictText(row), exact: row.verdict_text, className: "number" },
    ].filter((_, n) => isWanted(COLUMNS[n])),
  };
}

function Total({ comparison, isOfPages }: { comparison: Comparison; isOfPages: boolean }) {
  const { total, old, new: now } = comparison;
  const change = percent(total);
  const word = total.delta_ns > 0 ? "slower" : "faster";
  return (
    <div class={`total ${sideOf(total)}`}>
      <p>
        <b>{total.delta_ns === 0 ? "No change" : `${changeText(total.delta_ns)} ${word}`}</b>
        {change !== null && ` (${percentCell(total)})`}: {visibleName(total.name)} took{" "}
        {total.new_ns === null ? "–" : formatDuration(total.new_ns)}, before{" "}
        {total.old_ns === null ? "–" : formatDuration(total.old_ns)}. Verdict: {verdictText(total)}.
      </p>
      <p class="muted titles">
        Old: <MiddleCut text={visibleName(old.title)} /> ({counted(old.runs, "run")}). New:{" "}
        <MiddleCut text={visibleName(now.title)} /> ({counted(now.runs, "run")}).
      </p>
      {isOfPages && (
        <p class="one-run">
          Computed by this page, of one run against one: it knows no other runs, so that nothing here is more than a
          difference, and a period, a slice that ends the launch and a benchmark&#39;s own times are not compared. For
          those: <code>tracebridge report NEW… --against OLD…</code>
        </p>
      )}
    </div>
  );
}
