// The call tree as a table: top down from the threads, or bottom up from the methods to their callers.

import { useMemo, useState } from "preact/hooks";

import { Grid, type GridRow } from "../ui/grid";
import { countText, visibleName } from "../ui/text";
import type { CallTree } from "./call_tree";
import { figureCells, hasCpu, profileColumns } from "./columns";
import { type ProfileViewProps, rowColour } from "./method_table";
import { selectedRow, selectionOf, showLongest } from "./select";
import { bottomUpRoots, childRows, hasChildren, topDownRoots, type TreeRow } from "./tree_rows";

export function TreeTable({ store, options, profile, focus }: ProfileViewProps & { focus: number }) {
  const { trace, selection } = store.state;
  const { rows, flat } = profile;
  const upward = options.view === "bottom-up";
  const tree = profile.tree();
  const roots = useMemo(
    () => (upward ? bottomUpRoots(tree, rows.count, focus) : topDownRoots(tree, focus)),
    [tree, upward, focus],
  );
  const [unfolded, setUnfolded] = useState<Set<string> | null>(null);
  const open = unfolded ?? heaviest(tree, roots, upward);
  const visible = useMemo(() => visibleRows(tree, roots, open), [tree, roots, unfolded]);
  const columns = profileColumns(trace, hasCpu(trace, options.kind))
    .map((column) => ({ ...column, sortable: false, title: titleOf(column.id, column.title, upward) }))
    .filter((column) => !upward || !column.id.includes("xclusive"));
  const selected = selectedRow(trace, rows, selection);
  const totals = { wall: flat.wallTotal, cpu: flat.cpuTotal };
  const gridRow = (at: number): GridRow => {
    const row = visible[at];
    const thread = row.row < 0;
    const name = thread ? trace.threadName(-1 - row.row) : rows.name(row.row);
    const figures = {
      inclusive: row.wall,
      exclusive: row.ownWall,
      cpuInclusive: row.cpu,
      cpuExclusive: row.ownCpu,
      ...(thread ? {} : { calls: row.calls, recursive: 0 }),
    };
    return {
      id: row.path,
      level: row.level,
      selected: row.row === selected && !thread,
      unfolded: hasChildren(tree, row) ? open.has(row.path) : undefined,
      className: thread ? "thread" : undefined,
      colour: thread ? undefined : rowColour(store.state, rows, row.row),
      cells: [
        { text: visibleName(name), exact: name },
        ...figureCells(trace, columns, figures, totals, thread ? "" : countText(row.calls)),
      ],
    };
  };
  const unfold = (at: number) => {
    const now = new Set(open);
    if (!now.delete(visible[at].path)) now.add(visible[at].path);
    setUnfolded(now);
  };
  const choose = (at: number) => {
    const { row } = visible[at];
    store.set({ selection: row < 0 ? { kind: "thread", thread: -1 - row } : selectionOf(trace, rows, row) });
  };
  return (
    <Grid
      label={upward ? "Callers, bottom up" : "Call tree, top down"}
      columns={columns}
      count={visible.length}
      row={gridRow}
      onChoose={choose}
      onUnfold={unfold}
      empty="Nothing was called in this window."
      onOpen={(at) => {
        const { row } = visible[at];
        if (row >= 0) showLongest(store, rows.keyOf(row), profile.window);
      }}
    />
  );
}

/** Bottom up there is one time for each caller: the part of the method's own time that is spent for it. */
function titleOf(id: string, title: string, upward: boolean): string {
  if (id === "calls") return "Calls";
  return upward ? title.replace("Incl", "Excl") : title;
}

function visibleRows(tree: CallTree, roots: TreeRow[], open: Set<string>): TreeRow[] {
  const visible: TreeRow[] = [];
  const add = (row: TreeRow) => {
    visible.push(row);
    if (open.has(row.path)) childRows(tree, row).forEach(add);
  };
  roots.forEach(add);
  return visible;
}

/** The rows that are unfolded at first: the path that has most of the time, until it divides. */
function heaviest(tree: CallTree, roots: TreeRow[], upward: boolean): Set<string> {
  const open = new Set<string>();
  if (upward) return open;
  let row = roots.at(0);
  while (row && open.size < 12) {
    open.add(row.path);
    const below: TreeRow | undefined = childRows(tree, row).at(0);
    row = below && below.wall > 0.5 * row.wall ? below : undefined;
  }
  return open;
}
