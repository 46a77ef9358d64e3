// The boxes of a flame graph: calls with the same callers merged, the longest on the left.

import type { CallTree } from "./call_tree";
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

/** The boxes of `roots` that are wide enough to be seen in `pixels`. */
export function layOut(tree: CallTree, roots: TreeRow[], pixels: number): FlameBox[] {
  const boxes: FlameBox[] = [];
  const total = roots.reduce((sum, row) => sum + row.wall, 0);
  if (total <= 0) return boxes;
  let left = 0;
  for (const row of roots) {
    const width = row.wall / total;
    if (width * pixels >= MIN_WIDTH_PX) boxes.push({ row, left, width, depth: 0, caller: -1 });
    left += width;
  }
  for (let at = 0; at < boxes.length; at++) {
    const box = boxes[at];
    if (box.depth >= MAX_DEPTH) continue;
    let from = box.left;
    for (const row of childRows(tree, box.row)) {
      const width = (box.width * row.wall) / box.row.wall;
      if (width * pixels < MIN_WIDTH_PX) break;
      boxes.push({ row, left: from, width, depth: box.depth + 1, caller: at });
      from += width;
    }
  }
  return boxes;
}
