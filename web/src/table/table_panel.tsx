// The table panel: the items of the trace as rows, filtered, grouped, and summed up; a row leads to the timeline.

import { useMemo, useState } from "preact/hooks";

import type { Trace } from "../data/trace";
import type { Selection, Store } from "../store";
import { formatDuration, formatMoment } from "../timeline/time";
import { Field } from "../ui/controls";
import { Grid, type GridRow } from "../ui/grid";
import { saveFile } from "../ui/save_file";
import { inSteps } from "../ui/steps";
import { counted, visibleName } from "../ui/text";
import { useStore } from "../ui/use_store";
import { Cells, groupFigures } from "./cells";
import type { TableChoice, TableKind } from "./choice";
import type { Computed } from "./computed";
import { csvPieces } from "./csv_file";
import type { Items } from "./items";
import { questions } from "./questions";
import { TableRows } from "./table_rows";
import { tableKinds } from "./tables";
import { type Chosen, fitting, type Table, useTable } from "./use_table";

export function TablePanel({ store }: { store: Store }) {
  const { trace, table: choice } = useStore(store, "trace", "selection", "range", "view", "table");
  const chosen = fitting(trace, choice);
  const table = useTable(store, chosen);
  const kinds = tableKinds(trace);
  const set = (change: Partial<TableChoice>) => store.set({ table: { ...chosen, ...change } });
  if (kinds.length === 0) return <p class="empty">This trace holds nothing for tables.</p>;
  return (
    <div class="table-panel">
      <Questions trace={trace} kinds={kinds.map(([kind]) => kind)} chosen={chosen} store={store} />
      <Controls trace={trace} kinds={kinds} chosen={chosen} table={table} set={set} />
      <Line store={store} table={table} />
      {table.computed && <Rows store={store} chosen={chosen} computed={table.computed} set={set} />}
    </div>
  );
}

interface QuestionProps {
  store: Store;
  trace: Trace;
  kinds: TableKind[];
  chosen: Chosen;
}

function Questions({ store, trace, kinds, chosen }: QuestionProps) {
  const all = useMemo(() => questions(trace, kinds), [trace]);
  const same = (choice: TableChoice) =>
    (["kind", "by", "figure", "filter", "where", "threads"] as const).every((name) => choice[name] === chosen[name]);
  return (
    <div class="questions" role="group" aria-label="Questions">
      {all.map(({ title, choice }) => (
        <button
          type="button"
          aria-pressed={same(choice)}
          onClick={() => store.set({ table: { ...choice, inView: chosen.inView } })}
        >
          {title}
        </button>
      ))}
    </div>
  );
}

interface ControlProps {
  trace: Trace;
  kinds: [TableKind, string][];
  chosen: Chosen;
  table: Table;
  set: (change: Partial<TableChoice>) => void;
}

function Controls({ trace, kinds, chosen, table, set }: ControlProps) {
  const { items, computed } = table;
  const [saving, setSaving] = useState(false);
  const by = items.texts.some(({ id }) => id === chosen.by) ? chosen.by : "";
  const figures = items.figures.filter(({ unit }) => unit !== "moment");
  const figure = (figures.find(({ id }) => id === chosen.figure) ?? figures.at(0))?.id;
  const owners = useMemo(() => ownerChoices(trace, items, chosen.kind), [trace, items]);
  const save = () => {
    if (!computed) return;
    setSaving(true);
    inSteps(csvPieces(computed), (pieces) => {
      setSaving(false);
      saveFile(`${chosen.kind}${by ? `-by-${by}` : ""}.csv`, new Blob(pieces, { type: "text/csv;charset=utf-8" }));
    });
  };
  const rowsBy = (by: string) => set({ by, sort: firstSort(items, by, figure ?? "") });
  return (
    <div class="toolbar" role="toolbar" aria-label="Table">
      <Field label="Table of">
        <select
          value={chosen.kind}
          onChange={(e) =>
            set({
              kind: e.currentTarget.value as TableKind,
              by: "name",
              figure: "",
              where: "",
              sort: { id: "sum", down: true },
            })
          }
        >
          {kinds.map(([kind, title]) => (
            <option value={kind}>{title}</option>
          ))}
        </select>
      </Field>
      <Field label="Rows">
        <select value={by} onChange={(e) => rowsBy(e.currentTarget.value)}>
          {items.texts.map(({ id, title }) => (
            <option value={id}>by {title.toLowerCase()}</option>
          ))}
          <option value="">each one</option>
        </select>
      </Field>
      {by !== "" && figures.length > 1 && (
        <Field label="Figure">
          <select value={figure} onChange={(e) => set({ figure: e.currentTarget.value })}>
            {figures.map(({ id, title }) => (
              <option value={id}>{title}</option>
            ))}
          </select>
        </Field>
      )}
      {owners.length > 1 && (
        <Field label={chosen.kind === "ready" ? "Ready thread" : "Threads"}>
          <select
            value={chosen.kind === "ready" ? `t${chosen.thread}` : chosen.threads}
            onChange={(e) => set({ threads: e.currentTarget.value })}
          >
            {owners.map(([value, text]) => (
              <option value={value}>{text}</option>
            ))}
          </select>
        </Field>
      )}
      <Field label="Filter">
        <input
          type="search"
          value={chosen.filter}
          placeholder="part of a text"
          onInput={(e) => set({ filter: e.currentTarget.value })}
        />
      </Field>
      <Field label="in">
        <select value={chosen.where} onChange={(e) => set({ where: e.currentTarget.value })}>
          <option value="">all columns</option>
          {items.texts.map(({ id, title }) => (
            <option value={id}>{title.toLowerCase()}</option>
          ))}
        </select>
      </Field>
      <label class="check">
        <input type="checkbox" checked={chosen.inView} onChange={(e) => set({ inView: e.currentTarget.checked })} />{" "}
        only what is in view
      </label>
      <button type="button" disabled={!computed || saving} onClick={save} title="All rows of this table, times in ns">
        {saving ? "Saving …" : "Save CSV"}
      </button>
    </div>
  );
}

function Line({ store, table }: { store: Store; table: Table }) {
  const { range } = store.state;
  const { computed, isComputing, period, items } = table;
  return (
    <p class="window-line table-line">
      <b>{!period ? "Whole trace" : range ? "Chosen period" : "Visible part"}</b>
      {period
        && ` ${formatMoment(period.from)} – ${formatMoment(period.to)} (${formatDuration(period.to - period.from)})`}
      {computed
        && `: ${counted(computed.found.length, "item")} of ${counted(items.count, "item")}${
          computed.groups ? ` in ${counted(computed.count, "row")}` : ""
        }.`}
      {period && " Of those that the edges cut the part inside counts."}
      {range && (
        <button type="button" onClick={() => store.set({ range: null })}>
          Drop the period
        </button>
      )}
      {isComputing && (
        <span class="empty" role="status">
          {" "}
          Computing …
        </span>
      )}
    </p>
  );
}

interface RowsProps {
  store: Store;
  chosen: Chosen;
  computed: Computed;
  set: (change: Partial<TableChoice>) => void;
}

function Rows({ store, chosen, computed, set }: RowsProps) {
  const { selection } = store.state;
  const { items, by, figure } = computed.wanted;
  // Groups are known by their names, so that a new period leaves them open.
  const [unfolded, setUnfolded] = useState<ReadonlySet<string>>(new Set());
  const sort = useMemo(() => shownSort(computed, chosen.sort), [computed, chosen.sort.id, chosen.sort.down]);
  const rows = useMemo(() => {
    computed.groups?.sort(sort);
    return new TableRows(computed, (group) => unfolded.has(computed.groups?.names[group] ?? ""));
  }, [computed, sort, unfolded]);
  const cells = useMemo(() => new Cells(computed), [computed]);
  const selectionOf = (number: number): Selection | null => {
    if (number < 0) return null;
    const { source, item } = computed.place(number);
    return items.select(source, item);
  };
  const row = (at: number): GridRow => {
    const { group, item } = rows.entry(at);
    if (item < 0) {
      return {
        id: `g${group}`,
        level: 0,
        unfolded: unfolded.has(computed.groups?.names[group] ?? ""),
        cells: cells.group(group),
      };
    }
    const selected = selection !== null && isSame(selection, selectionOf(item));
    const level = group < 0 ? 0 : 1;
    return { id: `${group} ${item}`, level, selected, cells: cells.item(item, group >= 0) };
  };
  const choose = (at: number) => {
    const { group, item } = rows.entry(at);
    const chosen = selectionOf(item < 0 ? computed.itemOf(group, 0) : item);
    if (chosen) store.set({ selection: chosen });
  };
  const unfold = (at: number) => {
    const name = computed.groups?.names[rows.entry(at).group];
    if (name === undefined) return;
    const now = new Set(unfolded);
    if (!now.delete(name)) now.add(name);
    setUnfolded(now);
  };
  const isText = (id: string) => items.texts.some((column) => column.id === id);
  return (
    <Grid
      label={by ? `Table by ${by.title.toLowerCase()}: ${figure.title}` : "Table"}
      columns={cells.columns}
      count={rows.count}
      row={row}
      sort={sort}
      onSort={(id) => set({ sort: { id, down: sort.id === id ? !sort.down : !isText(id) } })}
      onChoose={choose}
      onOpen={choose}
      onUnfold={unfold}
      empty={chosen.filter ? "Nothing in this period has such a text." : "Nothing lies in this period."}
    />
  );
}

/** The sort as the table can do it. */
function shownSort({ wanted }: Computed, sort: TableChoice["sort"]): TableChoice["sort"] {
  const { by, figure } = wanted;
  if (!by) return wanted.sort;
  const known: string[] = [by.id, ...groupFigures(figure)];
  return known.includes(sort.id) ? sort : { id: known.includes("sum") ? "sum" : "count", down: true };
}

/** How rows are sorted first: the largest on top. */
function firstSort(items: Items, by: string, figure: string): TableChoice["sort"] {
  if (by) return { id: "sum", down: true };
  return { id: figure || items.figures[0].id, down: true };
}

function isSame(a: Selection, b: Selection | null): boolean {
  if (a.kind !== b?.kind) return false;
  if (a.kind === "launch" && b.kind === "launch") return a.launch === b.launch;
  return "track" in a && "track" in b && a.track === b.track && a.item === b.item;
}

/** The processes and threads that a table has items of. */
function ownerChoices(trace: Trace, items: Items, kind: TableKind): [string, string][] {
  const threads = new Set<number>();
  const processes = new Set<number>();
  const add = (thread: number | null, process: number | null) => {
    if (thread !== null) threads.add(thread);
    const owner = process ?? (thread === null ? null : trace.threads[thread].process);
    if (owner !== null) processes.add(owner);
  };
  if (kind === "ready") trace.tracks.forEach((track) => track.kind === "states" && add(track.thread, null));
  else if (kind === "running") trace.threads.forEach(({ busy_ns }, thread) => busy_ns > 0 && add(thread, null));
  else for (const { thread, process } of items.sources) add(thread, process);
  const named = [...threads]
    .sort((a, b) => a - b)
    .map((thread): [string, string] => [`t${thread}`, visibleName(trace.threadName(thread))]);
  if (kind === "ready") return named;
  const owners = [...processes]
    .sort((a, b) => a - b)
    .map((process): [string, string] => {
      const { name, pid } = trace.index.processes[process];
      return [`p${process}`, `process ${visibleName(name) || pid} (${pid})`];
    });
  return [["all", "all"], ...owners, ...named];
}
