// The boxes of a flame graph: calls with the same callers merged, the longest on the left.

import type { CallTree } from "./call_tree";
import type { ProfileClock } from "./options";
import { childRows, type TreeRow } from "./tree_rows";

export interface FlameBox {
  row: TreeRow;
  /** From 0 to 1 of the graph's width. */
  left: number;
  width: number;
  depth: number;
  /** Index of the box that calls it; -1 at the bottom of the stack. */
  caller: number;
}

/** Narrower boxes are not drawn, nor what they call. */
const MIN_WIDTH_PX = 0.6;
const MAX_DEPTH = 400;

/** The time of a row by a clock. */
export function timeOf({ wall, cpu }: TreeRow, clock: ProfileClock): number {
  return clock === "wall" ? wall : clock === "cpu" ? cpu : Math.max(0, wall - cpu);
}

/** The boxes of `roots` that are wide enough to be seen in `pixels`. */
export function layOut(tree: CallTree, roots: TreeRow[], pixels: number, clock: ProfileClock = "wall"): FlameBox[] {
  const boxes: FlameBox[] = [];
  const time = (row: TreeRow) => timeOf(row, clock);
  // Rows come ordered by their wall time.
  const ordered = (rows: TreeRow[]) => (clock === "wall" ? rows : [...rows].sort((a, b) => time(b) - time(a)));
  const total = roots.reduce((sum, row) => sum + time(row), 0);
  if (total <= 0) return boxes;
  let left = 0;
  for (const row of ordered(roots)) {
    const width = time(row) / total;
    if (width * pixels >= MIN_WIDTH_PX) boxes.push({ row, left, width, depth: 0, caller: -1 });
    left += width;
  }
  for (let at = 0; at < boxes.length; at++) {
    const box = boxes[at];
    if (box.depth >= MAX_DEPTH) continue;
    let from = box.left;
    const whole = time(box.row);
    for (const row of whole > 0 ? ordered(childRows(tree, box.row)) : []) {
      // A CPU's clock is read at other moments than the wall's: callees may have a little more than their caller.
      const width = Math.min((box.width * time(row)) / whole, box.left + box.width - from);
      if (width * pixels < MIN_WIDTH_PX) break;
      boxes.push({ row, left: from, width, depth: box.depth + 1, caller: at });
      from += width;
    }
  }
  return boxes;
}
