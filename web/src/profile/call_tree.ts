// The call tree of a window: calls with the same callers are one node. Columns instead of objects, because a trace
// may have millions of nodes.

import type { Grouping } from "./grouping";
import { grown, type SpanSource, type Window } from "./span_source";
import { SpanWalk } from "./span_walk";

/** A node of a thread has the row -1 - thread index. */
export class CallTree {
  size = 0;
  parent = new Int32Array(1024);
  row = new Int32Array(1024);
  calls = new Float64Array(1024);
  wall = new Float64Array(1024);
  cpu = new Float64Array(1024);
  /** The time outside of the node's children. */
  ownWall = new Float64Array(1024);
  ownCpu = new Float64Array(1024);
  private slots = new Int32Array(4096);
  /** The nodes by their parents, and for each parent where its nodes begin. */
  private byParent: { nodes: Int32Array; from: Int32Array } | null = null;

  /** `left` marks keys whose calls, and all in them, are left out, also of the times of their callers. */
  static of(sources: SpanSource[], rows: Grouping, window: Window, left: Uint8Array | null = null): CallTree {
    const tree = new CallTree();
    let open = new Int32Array(1024);
    for (const source of sources) {
      const { label, base } = source;
      const root = tree.node(-1, -1 - source.thread);
      const walk = new SpanWalk(source, window);
      let leftDepth = Infinity;
      while (walk.next()) {
        const { item, depth, wall, wallInParent, cpu } = walk;
        if (depth > leftDepth) continue;
        leftDepth = Infinity;
        const above = depth > 0 ? open[depth - 1] : root;
        if (left?.[base + label[item]] === 1) {
          leftDepth = depth;
          tree.leave(above, root, wallInParent, cpu);
          continue;
        }
        const node = tree.node(above, rows.rowOf[base + label[item]]);
        tree.calls[node]++;
        tree.wall[node] += wall;
        tree.cpu[node] += cpu;
        tree.ownWall[node] += wall;
        tree.ownCpu[node] += cpu;
        if (above === root) {
          tree.wall[root] += wall;
          tree.cpu[root] += cpu;
        } else {
          tree.ownWall[above] -= wallInParent;
          tree.ownCpu[above] -= cpu;
        }
        if (depth === open.length) open = grown(open);
        open[depth] = node;
      }
    }
    return tree;
  }

  /** Takes the time of a call that is left out from all its callers. */
  private leave(above: number, root: number, wall: number, cpu: number): void {
    if (above === root) return;
    this.ownWall[above] -= wall;
    this.ownCpu[above] -= cpu;
    for (let node = above; node >= 0; node = this.parent[node]) {
      this.wall[node] -= wall;
      this.cpu[node] -= cpu;
    }
  }

  isThread(node: number): boolean {
    return this.row[node] < 0;
  }

  /** The nodes below `node` (-1: the threads), in the order of their first calls. */
  children(node: number): Int32Array {
    const { nodes, from } = (this.byParent ??= this.index());
    return nodes.subarray(from[node + 1], from[node + 2]);
  }

  private index(): { nodes: Int32Array; from: Int32Array } {
    const from = new Int32Array(this.size + 2);
    for (let node = 0; node < this.size; node++) from[this.parent[node] + 2]++;
    for (let n = 1; n < from.length; n++) from[n] += from[n - 1];
    const next = from.slice();
    const nodes = new Int32Array(this.size);
    for (let node = 0; node < this.size; node++) nodes[next[this.parent[node] + 1]++] = node;
    return { nodes, from };
  }

  /** The child of `parent` with the row; made where it is new. */
  private node(parent: number, row: number): number {
    const mask = this.slots.length - 1;
    let slot = hash(parent, row) & mask;
    for (;;) {
      const node = this.slots[slot] - 1;
      if (node < 0) break;
      if (this.parent[node] === parent && this.row[node] === row) return node;
      slot = (slot + 1) & mask;
    }
    if (this.size === this.parent.length) this.grow();
    const node = this.size++;
    this.parent[node] = parent;
    this.row[node] = row;
    this.slots[slot] = node + 1;
    if (this.size * 2 > this.slots.length) this.rehash();
    return node;
  }

  private rehash(): void {
    const slots = new Int32Array(this.slots.length * 4);
    const mask = slots.length - 1;
    for (let node = 0; node < this.size; node++) {
      let slot = hash(this.parent[node], this.row[node]) & mask;
      while (slots[slot] !== 0) slot = (slot + 1) & mask;
      slots[slot] = node + 1;
    }
    this.slots = slots;
  }

  private grow(): void {
    const floats = (old: Float64Array) => {
      const larger = new Float64Array(old.length * 2);
      larger.set(old);
      return larger;
    };
    this.parent = grown(this.parent);
    this.row = grown(this.row);
    this.calls = floats(this.calls);
    this.wall = floats(this.wall);
    this.cpu = floats(this.cpu);
    this.ownWall = floats(this.ownWall);
    this.ownCpu = floats(this.ownCpu);
  }
}

function hash(parent: number, row: number): number {
  const mixed = Math.imul(parent + 1, 0x9e3779b1) ^ Math.imul(row + 1, 0x85ebca6b);
  return (mixed ^ (mixed >>> 15)) >>> 0;
}
