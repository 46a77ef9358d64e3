// The method table: inclusive and exclusive times, calls, and the parents and children of each unfolded row.

import { useMemo, useState } from "preact/hooks";

import type { State, Store } from "../store";
import { spanColor } from "../timeline/model";
import { Grid, type GridRow } from "../ui/grid";
import { countText, visibleName } from "../ui/text";
import { figureCells, hasCpu, profileColumns } from "./columns";
import type { Grouping } from "./grouping";
import { idleMethods } from "./idle";
import { figuresOf, MethodRows, sortedRows } from "./method_rows";
import type { ProfileOptions } from "./options";
import { relations } from "./relations";
import { selectedRow, selectionOf, showLongest } from "./select";
import { methodCount, windowOf } from "./span_source";
import type { Profile } from "./use_profile";

export interface ProfileViewProps {
  store: Store;
  options: ProfileOptions;
  set: (change: Partial<ProfileOptions>) => void;
  profile: Profile;
  /** Whether idle methods are left out. */
  isFolded: boolean;
}

export function MethodTable({ store, options, set, profile, isFolded }: ProfileViewProps) {
  const { trace, selection } = store.state;
  const { rows, flat } = profile;
  const [unfolded, setUnfolded] = useState<{ rows: Grouping; of: Set<number> }>({ rows, of: new Set() });
  const open = unfolded.rows === rows ? unfolded.of : new Set<number>();
  const columns = profileColumns(trace, hasCpu(trace, options.kind));
  const order = useMemo(
    () =>
      sortedRows(
        flat,
        rows,
        options.filter,
        options.sort,
        isFolded && rows.by === "method" ? idleMethods(trace) : null,
      ),
    [flat, rows, options.filter, options.sort, isFolded],
  );
  const model = useMemo(() => {
    const found = new Map(
      [...open].map((row) => [row, relations(profile.sources, rows, windowOf(trace, profile.window), row)]),
    );
    return new MethodRows(order, found);
  }, [order, unfolded, profile]);
  const selected = selectedRow(trace, rows, selection);
  const totals = { wall: flat.wallTotal, cpu: flat.cpuTotal };

  const name = (row: number) => (
    <>
      {visibleName(rows.name(row))}
      {rows.detail(row) && <span class="detail"> {visibleName(rows.detail(row))}</span>}
    </>
  );
  const gridRow = (at: number): GridRow => {
    const entry = model.entry(at);
    if (entry.kind === "row") {
      const { row } = entry;
      return {
        id: `r${row}`,
        level: 0,
        unfolded: open.has(row),
        selected: row === selected,
        colour: rowColour(store.state, rows, row),
        cells: [
          { text: name(row), exact: `${rows.name(row)} ${rows.detail(row)}`.trim() },
          ...figureCells(trace, columns, figuresOf(flat, row), totals),
        ],
      };
    }
    if (entry.kind === "heading") {
      return {
        id: `h${at}`,
        level: 1,
        className: `${entry.side} heading`,
        cells: [{ text: entry.text }, ...columns.slice(1).map(() => ({ text: "" }))],
      };
    }
    const { relation, of, side } = entry;
    const figures = {
      inclusive: relation.wall,
      cpuInclusive: relation.cpu,
      ...(relation.self ? {} : { calls: relation.calls, recursive: 0 }),
    };
    const all = side === "parents" ? of : relation.row;
    const calls = relation.self
      ? ""
      : `${countText(relation.calls)}/${countText(flat.calls(all) + flat.recursive(all))}`;
    const text = relation.self ? "self" : relation.row < 0 ? "(outside of all calls)" : name(relation.row);
    const base = { wall: flat.inclusive(of), cpu: flat.cpuInclusive(of) };
    return {
      id: `c${at}`,
      level: 2,
      className: side,
      colour: relation.row < 0 ? undefined : rowColour(store.state, rows, relation.row),
      cells: [
        { text, exact: relation.row < 0 ? undefined : rows.name(relation.row), className: relation.self ? "self" : "" },
        ...figureCells(trace, columns, figures, base, calls),
      ],
    };
  };
  const rowOf = (at: number) => {
    const entry = model.entry(at);
    return entry.kind === "row" ? entry.row : entry.kind === "relation" ? entry.relation.row : -1;
  };
  const unfold = (at: number) => {
    const entry = model.entry(at);
    if (entry.kind !== "row") return;
    const of = new Set(open);
    if (!of.delete(entry.row)) of.add(entry.row);
    setUnfolded({ rows, of });
  };
  const choose = (at: number) => {
    const row = rowOf(at);
    const chosen = row < 0 ? null : selectionOf(trace, rows, row);
    if (chosen) store.set({ selection: chosen });
  };
  const sort = (id: string) => set({ sort: { id, down: options.sort.id === id ? !options.sort.down : id !== "name" } });
  return (
    <Grid
      label="Profile"
      columns={columns}
      count={model.count}
      row={gridRow}
      sort={options.sort}
      onSort={sort}
      onChoose={choose}
      onUnfold={unfold}
      onOpen={(at) => {
        const row = rowOf(at);
        if (row >= 0 && rows.keyOf(row) >= 0) showLongest(store, rows.keyOf(row), profile.window);
      }}
      reveal={selected < 0 ? null : { at: model.find(selected), token: selection }}
      empty={options.filter ? "No row of the window has such a name." : "Nothing was called in this window."}
    />
  );
}

/** The colour that the timeline gives a row's spans. */
export function rowColour({ trace }: State, rows: Grouping, row: number): string | undefined {
  const key = row < 0 ? -1 : rows.keyOf(row);
  if (key < 0) return undefined;
  const methods = methodCount(trace);
  return key < methods ? spanColor(trace, "calls", key) : spanColor(trace, "slices", key - methods);
}
