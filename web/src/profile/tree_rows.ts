// The rows of a call tree: from the threads down, from one method down, or from the methods up to their callers.

import type { CallTree } from "./call_tree";

/** One or several nodes of the tree with the same row. */
export interface TreeRow {
  row: number;
  level: number;
  /** The rows from the root to this one, to find it again in another window's tree. */
  path: string;
  /** Top down the nodes; bottom up the callers of `origins`. */
  nodes: ArrayLike<number>;
  /** Bottom up: the nodes whose own time the row has. */
  origins: ArrayLike<number> | null;
  calls: number;
  wall: number;
  cpu: number;
  ownWall: number;
  ownCpu: number;
}

/** The rows without parents: the threads, or the calls of `focus`, where that is not -1. */
export function topDownRoots(tree: CallTree, focus: number): TreeRow[] {
  if (focus < 0) return group(tree, tree.children(-1), null, 0, "");
  const outermost: number[] = [];
  const below = new Uint8Array(tree.size);
  for (let node = 0; node < tree.size; node++) {
    const parent = tree.parent[node];
    const inside = parent >= 0 && (below[parent] === 1 || tree.row[parent] === focus);
    below[node] = inside ? 1 : 0;
    if (!inside && tree.row[node] === focus) outermost.push(node);
  }
  return group(tree, outermost, null, 0, "");
}

/** Each method by its own time, or `focus` alone, where that is not -1. */
export function bottomUpRoots(tree: CallTree, focus: number): TreeRow[] {
  const nodes: number[] = [];
  for (let node = 0; node < tree.size; node++) {
    if (!tree.isThread(node) && (focus < 0 || tree.row[node] === focus)) nodes.push(node);
  }
  return group(tree, nodes, nodes, 0, "");
}

/** The children of a row, those with the longest time first. */
export function childRows(tree: CallTree, row: TreeRow): TreeRow[] {
  const { nodes, origins, level, path } = row;
  if (origins) {
    const callers: number[] = [];
    const from: number[] = [];
    for (let n = 0; n < nodes.length; n++) {
      const caller = tree.parent[nodes[n]];
      if (caller < 0 || tree.isThread(caller)) continue;
      callers.push(caller);
      from.push(origins[n]);
    }
    return group(tree, callers, from, level + 1, path);
  }
  if (nodes.length === 1) return group(tree, tree.children(nodes[0]), null, level + 1, path);
  const children: number[] = [];
  for (let n = 0; n < nodes.length; n++) for (const child of tree.children(nodes[n])) children.push(child);
  return group(tree, children, null, level + 1, path);
}

export function hasChildren(tree: CallTree, { nodes, origins }: TreeRow): boolean {
  for (let n = 0; n < nodes.length; n++) {
    if (!origins && tree.children(nodes[n]).length > 0) return true;
    if (origins && tree.parent[nodes[n]] >= 0 && !tree.isThread(tree.parent[nodes[n]])) return true;
  }
  return false;
}

function group(
  tree: CallTree, nodes: ArrayLike<number>, origins: ArrayLike<number> | null, level: number, path: string,
): TreeRow[] {
  const rows = new Map<number, TreeRow & { nodes: number[]; origins: number[] | null }>();
  for (let n = 0; n < nodes.length; n++) {
    const node = nodes[n];
    let row = rows.get(tree.row[node]);
    if (!row) {
      row = { row: tree.row[node], level, path: `${path}/${tree.row[node]}`, nodes: [],
        origins: origins ? [] : null, calls: 0, wall: 0, cpu: 0, ownWall: 0, ownCpu: 0 };
      rows.set(row.row, row);
    }
    row.nodes.push(node);
    const from = origins ? origins[n] : node;
    row.origins?.push(from);
    row.calls += tree.calls[from];
    row.wall += origins ? tree.ownWall[from] : tree.wall[from];
    row.cpu += origins ? tree.ownCpu[from] : tree.cpu[from];
    row.ownWall += tree.ownWall[from];
    row.ownCpu += tree.ownCpu[from];
  }
  return [...rows.values()].sort((a, b) => b.wall - a.wall || b.cpu - a.cpu);
}
