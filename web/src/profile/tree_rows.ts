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
  /** Bottom up: the nodes whose own time the row has. Null top down. */
  origins: ArrayLike<number> | null;
  calls: number;
  /** Top down the time with the callees, bottom up the own time. */
  wall: number;
  cpu: number;
  /** Top down the time without the callees. */
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

/** The row of the threads that share one box. */
export const OTHER_THREADS = -(2 ** 30);
/** So many threads have a box of their own, where they have this part of the time. */
const MAX_THREADS = 12;
const MIN_THREAD_PART = 0.03;

/** The threads as roots, those with little of the time as one: many narrow boxes could not be read. */
export function readableRoots(roots: TreeRow[], time: (row: TreeRow) => number): TreeRow[] {
  const total = roots.reduce((sum, row) => sum + time(row), 0);
  const isLarge = (row: TreeRow, at: number) => at < MAX_THREADS && time(row) >= MIN_THREAD_PART * total;
  const sorted = [...roots].sort((a, b) => time(b) - time(a));
  const small = sorted.filter((row, at) => row.row < 0 && !isLarge(row, at) && time(row) > 0);
  if (small.length < 2) return roots;
  const others: TreeRow = {
    row: OTHER_THREADS,
    level: 0,
    path: `/${OTHER_THREADS}`,
    nodes: small.flatMap(({ nodes }) => Array.from(nodes)),
    origins: null,
    calls: 0,
    wall: 0,
    cpu: 0,
    ownWall: 0,
    ownCpu: 0,
  };
  for (const { wall, cpu, ownWall, ownCpu } of small) {
    others.wall += wall;
    others.cpu += cpu;
    others.ownWall += ownWall;
    others.ownCpu += ownCpu;
  }
  return [...sorted.filter((row) => !small.includes(row)), others];
}

/** Each of `count` rows by its own time, or `focus` alone, where that is not -1. */
export function bottomUpRoots(tree: CallTree, count: number, focus: number): TreeRow[] {
  const rows = new Array<TreeRow | undefined>(count);
  for (let node = 0; node < tree.size; node++) {
    const number = tree.row[node];
    if (number < 0 || (focus >= 0 && number !== focus)) continue;
    const row = (rows[number] ??= {
      row: number,
      level: 0,
      path: `/${number}`,
      nodes: NOT_YET,
      origins: NOT_YET,
      calls: 0,
      wall: 0,
      cpu: 0,
      ownWall: 0,
      ownCpu: 0,
    });
    row.calls += tree.calls[node];
    row.wall += tree.ownWall[node];
    row.cpu += tree.ownCpu[node];
  }
  return rows.filter((row) => row !== undefined).sort((a, b) => b.wall - a.wall || b.cpu - a.cpu);
}

/** Stands for the nodes of a root bottom up: they are looked for when the root is unfolded. */
const NOT_YET: number[] = [];

function findNodes(tree: CallTree, row: TreeRow): void {
  if (row.nodes !== NOT_YET) return;
  const nodes: number[] = [];
  for (let node = 0; node < tree.size; node++) if (tree.row[node] === row.row) nodes.push(node);
  row.nodes = row.origins = nodes;
}

/** The children of a row, those with the longest time first. */
export function childRows(tree: CallTree, row: TreeRow): TreeRow[] {
  findNodes(tree, row);
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

/** Whether a row can be unfolded. Of a root bottom up that is known only then. */
export function hasChildren(tree: CallTree, { nodes, origins }: TreeRow): boolean {
  if (nodes === NOT_YET) return true;
  for (let n = 0; n < nodes.length; n++) {
    if (!origins && tree.children(nodes[n]).length > 0) return true;
    if (origins && tree.parent[nodes[n]] >= 0 && !tree.isThread(tree.parent[nodes[n]])) return true;
  }
  return false;
}

function group(
  tree: CallTree,
  nodes: ArrayLike<number>,
  origins: ArrayLike<number> | null,
  level: number,
  path: string,
): TreeRow[] {
  const rows = new Map<number, TreeRow & { nodes: number[]; origins: number[] | null }>();
  for (let n = 0; n < nodes.length; n++) {
    const node = nodes[n];
    let row = rows.get(tree.row[node]);
    if (!row) {
      row = {
        row: tree.row[node],
        level,
        path: `${path}/${tree.row[node]}`,
        nodes: [],
        origins: origins ? [] : null,
        calls: 0,
        wall: 0,
        cpu: 0,
        ownWall: 0,
        ownCpu: 0,
      };
      rows.set(row.row, row);
    }
    row.nodes.push(node);
    if (origins) {
      row.origins?.push(origins[n]);
      row.calls += tree.calls[origins[n]];
      row.wall += tree.ownWall[origins[n]];
      row.cpu += tree.ownCpu[origins[n]];
    } else {
      row.calls += tree.calls[node];
      row.wall += tree.wall[node];
      row.cpu += tree.cpu[node];
      row.ownWall += tree.ownWall[node];
      row.ownCpu += tree.ownCpu[node];
    }
  }
  return [...rows.values()].sort((a, b) => b.wall - a.wall || b.cpu - a.cpu);
}
