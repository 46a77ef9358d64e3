// A shown table as CSV, with exact figures: times in ns.

import { csvField } from "../ui/csv";
import { groupFigures } from "./cells";
import type { Computed } from "./computed";
import type { FigureColumn } from "./items";

/** Rows of one piece of the file. */
const PIECE_ROWS = 5_000;

/** The pieces of the file: all rows of the table, in their order. */
export function* csvPieces(computed: Computed): Generator<void, string[]> {
  const { groups, wanted } = computed;
  const pieces = [`${head(computed).map(csvField).join(",")}\n`];
  let lines: string[] = [];
  for (let row = 0; row < computed.count; row++) {
    const fields = groups ? groupFields(computed, groups.order[row]) : itemFields(computed, computed.item(row));
    lines.push(`${fields.join(",")}\n`);
    if (lines.length < PIECE_ROWS) continue;
    pieces.push(lines.join(""));
    lines = [];
    yield;
  }
  pieces.push(lines.join(""));
  if (wanted.items.count > 0) yield;
  return pieces;
}

function head({ wanted }: Computed): string[] {
  const { by, figure, items } = wanted;
  const unit = (one: FigureColumn) => (one.unit === "number" ? one.title : `${one.title} ns`);
  if (!by) return [...items.texts.map(({ title }) => title), ...items.figures.map(unit)];
  const of = unit(figure).toLowerCase();
  return [by.title, ...groupFigures(figure).map((id) => (id === "count" || id === "share" ? id : `${id} of ${of}`))];
}

function groupFields({ groups, wanted }: Computed, group: number): string[] {
  if (!groups) return [];
  const figures = groupFigures(wanted.figure).map((id) => numberField(groups.figures[id][group]));
  return [csvField(groups.names[group]), ...figures];
}

function itemFields(computed: Computed, number: number): string[] {
  const { source, item } = computed.place(number);
  const { items, filter } = computed.wanted;
  return [
    ...items.texts.map((column) => csvField(column.text(column.of(source)(item)))),
    ...items.figures.map((one) => numberField(one.of(source, filter.period)(item))),
  ];
}

function numberField(value: number): string {
  return Number.isNaN(value) ? "" : String(+value.toFixed(6));
}
