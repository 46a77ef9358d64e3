// The columns of the table panel, and the texts in them.

import { formatMoment } from "../timeline/time";
import type { GridCell, GridColumn } from "../ui/grid";
import { countText, percentText, visibleName } from "../ui/text";
import { columnUnit, type ColumnUnit, inUnit } from "../ui/units";
import type { Computed } from "./computed";
import { GROUP_FIGURES, type GroupFigure } from "./groups";
import type { FigureColumn, TextColumn } from "./items";

const EMPTY: GridCell = { text: "" };
const NAMELESS = "(none)";

const MEANINGS: Record<GroupFigure, [title: string, meaning: string]> = {
  count: ["Count", "How many there are"],
  sum: ["Sum", "All together"],
  share: ["Share %", "Of the sum of all rows"],
  min: ["Min", "The smallest"],
  mean: ["Mean", "The sum through the count"],
  p50: ["p50", "The median; percentiles lie between the two nearest ranks in proportion"],
  p90: ["p90", "90 % are not larger"],
  p95: ["p95", "95 % are not larger"],
  p99: ["p99", "99 % are not larger"],
  max: ["Max", "The largest"],
};

/** The figures that groups have: sums of moments or of a counter's values say nothing. */
export function groupFigures({ unit }: FigureColumn): GroupFigure[] {
  if (unit === "moment") return ["count"];
  return GROUP_FIGURES.filter((id) => unit === "time" || (id !== "sum" && id !== "share"));
}

/** Shows the rows of a table as cells. */
export class Cells {
  readonly columns: GridColumn[];
  private readonly figures: GroupFigure[];
  private readonly units = new Map<GroupFigure, ColumnUnit>();
  private readonly itemUnit: ColumnUnit;

  constructor(private readonly computed: Computed) {
    const { groups, wanted, longest } = computed;
    const { by, figure, items } = wanted;
    this.figures = by ? groupFigures(figure) : [];
    this.itemUnit = columnUnit(longest);
    if (groups && figure.unit === "time") {
      for (const id of this.figures) {
        const most = groups.figures[id].reduce((most, value) => (value > most ? value : most), 0);
        if (id !== "count" && id !== "share") this.units.set(id, columnUnit(most));
      }
    }
    this.columns = by
      ? [name(by), ...this.figures.map((id) => this.groupColumn(id, figure))]
      : [
          name(items.texts[0]),
          ...items.figures.map((one) => figureColumn(one, this.itemUnit)),
          ...items.texts.slice(1).map(textColumn),
        ];
  }

  private groupColumn(id: GroupFigure, { title: of, meaning: about, unit }: FigureColumn): GridColumn {
    const [title, meaning] = MEANINGS[id];
    const of_unit = unit === "time" ? this.units.get(id)?.name : undefined;
    return {
      id,
      title: of_unit ? `${title} ${of_unit}` : title,
      meaning: id === "count" ? meaning : `${meaning}. ${of}: ${about}`,
      width: id === "share" ? 84 : 72,
      sortable: true,
    };
  }

  group(group: number): GridCell[] {
    const { groups } = this.computed;
    if (!groups) return [];
    const text = visibleName(groups.names[group]) || NAMELESS;
    return [
      { text, exact: text },
      ...this.figures.map((id): GridCell => {
        const value = groups.figures[id][group];
        if (Number.isNaN(value)) return { text: "–", exact: "not known", className: "number" };
        if (id === "count") return { text: countText(value), className: "number" };
        if (id === "share") return { text: percentText(value, 1), bar: value, className: "number" };
        const unit = this.units.get(id);
        return unit
          ? { text: inUnit(value, unit), exact: `${+value.toFixed(3)} ns`, className: "number" }
          : { text: numberText(value), exact: String(value), className: "number" };
      }),
    ];
  }

  /** An item as a row of its own; in a group its name says where it is. */
  item(number: number, isInGroup: boolean): GridCell[] {
    const { source, item } = this.computed.place(number);
    const { items, filter, figure } = this.computed.wanted;
    const texts = items.texts.map((column) => visibleName(column.text(column.of(source)(item))));
    if (!isInGroup) {
      const [named, ...others] = texts;
      return [
        { text: named || NAMELESS, exact: named },
        ...items.figures.map((one) => this.figure(one, one.of(source, filter.period)(item), this.itemUnit)),
        ...others.map((text): GridCell => ({ text, exact: text })),
      ];
    }
    const text = [...texts.slice(0, 3).filter(Boolean), `at ${formatMoment(source.start[item])}`].join(" · ");
    const value = figure.of(source, filter.period)(item);
    return [
      { text, exact: text },
      ...this.figures.map((id) => {
        const isShown = id === "max" && figure.unit !== "moment";
        return isShown ? this.figure(figure, value, this.units.get("max") ?? this.itemUnit) : EMPTY;
      }),
    ];
  }

  private figure({ unit }: FigureColumn, value: number, times: ColumnUnit): GridCell {
    if (Number.isNaN(value)) return { text: "–", exact: "not known", className: "number" };
    if (unit === "moment") return { text: (value / 1e9).toFixed(6), exact: formatMoment(value), className: "number" };
    if (unit === "number") return { text: numberText(value), exact: String(value), className: "number" };
    return { text: inUnit(value, times), exact: `${Math.round(value)} ns`, className: "number" };
  }
}

function name({ id, title, meaning }: TextColumn): GridColumn {
  return { id, title, meaning, sortable: true, least: 120 };
}

function textColumn({ id, title, meaning }: TextColumn): GridColumn {
  const width = id === "cpu" || id === "type" || id === "late" || id === "unit" || id === "role" ? 70 : 170;
  return { id, title, meaning, width, cut: true, sortable: true };
}

function figureColumn({ id, title, meaning, unit }: FigureColumn, times: ColumnUnit): GridColumn {
  const of_unit = unit === "time" ? ` ${times.name}` : unit === "moment" ? " s" : "";
  return { id, title: `${title}${of_unit}`, meaning, width: 96, sortable: true };
}

function numberText(value: number): string {
  return Number.isInteger(value) ? countText(value) : String(+value.toPrecision(7));
}
