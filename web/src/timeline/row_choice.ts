// The rows that the user wants to see: filtered by name, without those that are hidden, and pinned ones first.

import type { RowChoice } from "../store";
import { folded } from "../ui/text";
import type { Model } from "./model";
import { buildRows, type Folds, type Row } from "./rows";

/** A heading with the rows below it. */
interface Group {
  heading: Row | null;
  rows: Row[];
}

/** The rows of a trace that are chosen, in their order. */
export function chosenRows(model: Model, folds: Folds, choice: RowChoice): Row[] {
  const all = buildRows(model, folds, choice);
  const { pinned, hidden } = choice;
  const filter = folded(choice.filter.trim());
  if (!filter && pinned.length + hidden.length === 0) return all;
  const rows: Row[] = [];
  for (const group of groupsOf(all)) {
    const { heading } = group;
    if (heading && hidden.includes(heading.id)) continue;
    const wanted = heading !== null && matches(heading, filter);
    const kept = group.rows.filter(
      (row) => !hidden.includes(row.id) && !pinned.includes(row.id) && (wanted || matches(row, filter)),
    );
    if (kept.length > 0 || wanted) rows.push(...(heading ? [heading] : []), ...kept);
  }
  const names = new Map(all.map((row) => [row.id, row]));
  const first = pinned.flatMap((id) => names.get(id) ?? []).map((row) => pinnedRow(model, row));
  return placed([...first, ...rows]);
}

/** A pinned row says which process it is of, because no heading stands above it. */
function pinnedRow(model: Model, row: Row): Row {
  const process = row.process === null ? null : model.trace.index.processes[row.process].name;
  const detail = process && process !== row.label ? `${row.detail} ${process}`.trim() : row.detail;
  return { ...row, detail, isPinned: true };
}

function matches(row: Row, filter: string): boolean {
  return row.kind !== "more" && (folded(row.label).includes(filter) || folded(row.detail) === filter);
}

function groupsOf(rows: Row[]): Group[] {
  const groups: Group[] = [];
  for (const row of rows) {
    const last = groups.at(-1);
    // A row of its own, which opens what is folded, ends the group before it.
    if (row.kind === "group") groups.push({ heading: row, rows: [] });
    else if (last && row.indent > 0) last.rows.push(row);
    else groups.push({ heading: null, rows: [row] });
  }
  return groups;
}

/** The rows one below the other. */
function placed(rows: Row[]): Row[] {
  let y = 0;
  return rows.map((row) => {
    const at = { ...row, y };
    y += row.height;
    return at;
  });
}
