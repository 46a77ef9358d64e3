// The columns of the profile's tables, in Traceview's order: name, inclusive and exclusive times, calls, per call.

import type { Trace } from "../data/trace";
import { formatDuration } from "../timeline/time";
import type { GridCell, GridColumn } from "../ui/grid";
import { countText, milliseconds, percentText } from "../ui/text";

/** The figures of one row; times in ns. */
export interface Figures {
  inclusive: number;
  exclusive: number;
  cpuInclusive: number;
  cpuExclusive: number;
  calls: number;
  recursive: number;
}

export type FigureId =
  "name" | "inclusive" | "exclusive" | "cpuInclusive" | "cpuExclusive" | "calls" | "perCall" | "cpuPerCall";

interface ProfileColumn extends GridColumn {
  /** The value that the column sorts by. */
  figure: FigureId;
  percent?: boolean;
}

/** Whether the profile has wall and CPU times apart. */
export function hasCpu(trace: Trace, kind: string): boolean {
  return trace.index.has_cpu_time && kind === "calls";
}

export function profileColumns(trace: Trace, cpu: boolean): ProfileColumn[] {
  const clock = trace.index.times === "cpu" ? "CPU" : "wall";
  const unit = trace.index.times === "ticks" ? "ticks" : "ms";
  const columns: ProfileColumn[] = [
    {
      id: "name",
      figure: "name",
      title: "Name",
      sortable: true,
      meaning: "The method or slice; unfold it to see its parents and children",
    },
  ];
  const pair = (figure: FigureId, short: string, of: string, meaning: string) =>
    columns.push(
      {
        id: `${figure}%`,
        figure,
        percent: true,
        title: `${short} ${of} %`,
        width: 86,
        sortable: true,
        meaning: `${meaning}, percent of the ${of} time of all calls in the window`,
      },
      {
        id: figure,
        figure,
        title: `${short} ${of} ${unit}`,
        width: 98,
        sortable: true,
        meaning: `${meaning}, ${unit}`,
      },
    );
  const inclusive = (of: string) => `Inclusive ${of} time: with the callees; of a recursion only the outermost call`;
  const exclusive = (of: string) => `Exclusive ${of} time: without the callees`;
  pair("inclusive", "Incl", clock, inclusive(clock));
  pair("exclusive", "Excl", clock, exclusive(clock));
  if (cpu) {
    pair("cpuInclusive", "Incl", "CPU", inclusive("CPU"));
    pair("cpuExclusive", "Excl", "CPU", exclusive("CPU"));
  }
  columns.push({
    id: "calls",
    figure: "calls",
    title: "Calls+recur",
    width: 118,
    sortable: true,
    meaning: "Calls that overlap the window, and recursive calls; of parents and children: calls / all calls",
  });
  columns.push({
    id: "perCall",
    figure: "perCall",
    title: `${clock === "CPU" ? "CPU" : "Wall"}/call`,
    width: 80,
    sortable: true,
    meaning: `Inclusive ${clock} time per call`,
  });
  if (cpu) {
    columns.push({
      id: "cpuPerCall",
      figure: "cpuPerCall",
      title: "CPU/call",
      width: 80,
      sortable: true,
      meaning: "Inclusive CPU time per call",
    });
  }
  return columns;
}

/** The figure of a column. */
export function figureOf(figures: Figures, id: Exclude<FigureId, "name">): number {
  const calls = figures.calls + figures.recursive;
  if (id === "calls") return calls;
  if (id === "perCall") return calls > 0 ? figures.inclusive / calls : 0;
  if (id === "cpuPerCall") return calls > 0 ? figures.cpuInclusive / calls : 0;
  return figures[id];
}

export interface Totals {
  wall: number;
  cpu: number;
}

/** The cells of a row behind its name. A figure that is null is left empty. */
export function figureCells(
  trace: Trace,
  columns: ProfileColumn[],
  figures: Partial<Figures>,
  totals: Totals,
  callsText?: string,
): GridCell[] {
  const ticks = trace.index.times === "ticks";
  return columns.slice(1).map((column) => {
    const id = column.figure as Exclude<FigureId, "name">;
    if (id === "calls") {
      const { calls = 0, recursive = 0 } = figures;
      const exact = `${calls} calls and ${recursive} recursive calls`;
      return { text: callsText ?? `${countText(calls)}+${countText(recursive)}`, exact, className: "number" };
    }
    const perCall = id === "perCall" || id === "cpuPerCall";
    if (!perCall && figures[id] === undefined) return { text: "", className: "number" };
    if (perCall && figures.calls === undefined) return { text: "", className: "number" };
    const value = figureOf(figures as Figures, id);
    const exact = `${Math.round(value)} ${ticks ? "ticks" : "ns"}`;
    if (perCall) return { text: ticks ? countText(value) : formatDuration(value), exact, className: "number" };
    const total = id.startsWith("cpu") ? totals.cpu : totals.wall;
    if (!column.percent) return { text: ticks ? countText(value) : milliseconds(value), exact, className: "number" };
    return { text: percentText(value, total), exact, bar: total > 0 ? value / total : 0, className: "number" };
  });
}
