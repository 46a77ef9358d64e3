// The flat profile: calls, inclusive and exclusive times of each row. The rules are those of `tracebridge profile`:
// of a recursion only the outermost call counts for the inclusive time, and a call is recursive while another call
// of the same row is open in its thread.

import type { Grouping } from "./grouping";
import { type SpanSource, walk, type Window } from "./spans";

export interface FlatProfile {
  /** By row; times in ns. */
  calls: Float64Array;
  recursive: Float64Array;
  inclusive: Float64Array;
  exclusive: Float64Array;
  cpuInclusive: Float64Array;
  cpuExclusive: Float64Array;
  /** The sums of the exclusive times. */
  wallTotal: number;
  cpuTotal: number;
}

export function flatProfile(sources: SpanSource[], rows: Grouping, window: Window): FlatProfile {
  const zeros = () => new Float64Array(rows.count);
  const flat: FlatProfile = {
    calls: zeros(), recursive: zeros(), inclusive: zeros(), exclusive: zeros(), cpuInclusive: zeros(),
    cpuExclusive: zeros(), wallTotal: 0, cpuTotal: 0,
  };
  const { calls, recursive, inclusive, exclusive, cpuInclusive, cpuExclusive } = flat;
  const { rowOf } = rows;
  const openOfRow = new Int32Array(rows.count);
  const open: number[] = [];
  for (const source of sources) {
    const { label, base, thread } = source;
    const byThread = rows.by === "thread";
    walk(source, window, (item, depth, wall, cpu) => {
      while (open.length > depth) openOfRow[open.pop()!]--;
      const row = byThread ? thread : rowOf[base + label[item]];
      if (openOfRow[row] === 0) {
        calls[row]++;
        inclusive[row] += wall;
        cpuInclusive[row] += cpu;
      } else {
        recursive[row]++;
      }
      exclusive[row] += wall;
      cpuExclusive[row] += cpu;
      if (depth > 0) {
        const caller = open[depth - 1];
        exclusive[caller] -= wall;
        cpuExclusive[caller] -= cpu;
      } else {
        flat.wallTotal += wall;
        flat.cpuTotal += cpu;
      }
      openOfRow[row]++;
      open.push(row);
    });
    while (open.length > 0) openOfRow[open.pop()!]--;
  }
  return flat;
}
