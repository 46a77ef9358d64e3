// The rows of the method table: sorted and filtered, with the parents and children of the unfolded ones.

import { folded } from "../ui/text";
import { type FigureId, figureOf, type Figures } from "./columns";
import type { FlatProfile } from "./flat";
import type { Grouping } from "./grouping";
import type { Relation, Relations } from "./relations";

export type MethodEntry =
  | { kind: "row"; row: number }
  | { kind: "heading"; text: string; side: "parents" | "children" }
  | { kind: "relation"; relation: Relation; of: number; side: "parents" | "children" };

export function figuresOf(flat: FlatProfile, row: number): Figures {
  return {
    inclusive: flat.inclusive(row),
    exclusive: flat.exclusive(row),
    cpuInclusive: flat.cpuInclusive(row),
    cpuExclusive: flat.cpuExclusive(row),
    calls: flat.calls(row),
    recursive: flat.recursive(row),
  };
}

const foldedNames = new WeakMap<Grouping, string[]>();

function searchText(rows: Grouping, row: number): string {
  let names = foldedNames.get(rows);
  if (!names) foldedNames.set(rows, (names = []));
  return (names[row] ??= folded(`${rows.name(row)} ${rows.detail(row)}`));
}

/** The rows that were called and whose names contain `filter`, sorted; those that `left` marks only where one filters. */
export function sortedRows(
  flat: FlatProfile,
  rows: Grouping,
  filter: string,
  sort: { id: string; down: boolean },
  left: Uint8Array | null = null,
): Int32Array {
  const wanted = folded(filter.trim());
  const found: number[] = [];
  for (let row = 0; row < rows.count; row++) {
    if (flat.calls(row) === 0 || (wanted === "" && left?.[row] === 1)) continue;
    if (wanted === "" || searchText(rows, row).includes(wanted)) found.push(row);
  }
  const order = Int32Array.from(found);
  const direction = sort.down ? -1 : 1;
  const id = sort.id.replace("%", "") as FigureId;
  if (id === "name") {
    const text = (row: number) => searchText(rows, row);
    return order.sort((a, b) => direction * (text(a) < text(b) ? -1 : text(a) > text(b) ? 1 : a - b));
  }
  const values = new Float64Array(rows.count);
  for (const row of order) values[row] = figureOf(figuresOf(flat, row), id);
  return order.sort((a, b) => direction * (values[a] - values[b]) || a - b);
}

/** The sorted rows, and behind the unfolded ones their parents and children. */
export class MethodRows {
  readonly count: number;
  private readonly blocks: { at: number; entries: MethodEntry[] }[] = [];

  constructor(
    private readonly order: Int32Array,
    unfolded: Map<number, Relations>,
  ) {
    let count = order.length;
    if (unfolded.size > 0) {
      for (let n = 0, at = 0; n < order.length; n++, at++) {
        const found = unfolded.get(order[n]);
        if (!found) continue;
        const entries = entriesOf(order[n], found);
        this.blocks.push({ at, entries });
        at += entries.length;
        count += entries.length;
      }
    }
    this.count = count;
  }

  entry(at: number): MethodEntry {
    let inserted = 0;
    for (const block of this.blocks) {
      if (at <= block.at) break;
      if (at <= block.at + block.entries.length) return block.entries[at - block.at - 1];
      inserted += block.entries.length;
    }
    return { kind: "row", row: this.order[at - inserted] };
  }

  /** Where a row stands; -1 where the filter hides it. */
  find(row: number): number {
    const at = this.order.indexOf(row);
    if (at < 0) return -1;
    let moved = at;
    for (const block of this.blocks) if (block.at < moved) moved += block.entries.length;
    return moved;
  }
}

function entriesOf(of: number, found: Relations): MethodEntry[] {
  const entries: MethodEntry[] = [];
  const list = (text: string, side: "parents" | "children", relations: Relation[]) => {
    if (relations.length === 0) return;
    entries.push({ kind: "heading", text, side });
    for (const relation of relations) entries.push({ kind: "relation", relation, of, side });
  };
  list("Parents", "parents", found.parents);
  list("Children", "children", found.children);
  list("Parents while recursive", "parents", found.parentsWhileRecursive);
  list("Children while recursive", "children", found.childrenWhileRecursive);
  return entries;
}
