// The parents and children of one row of the profile, as Traceview showed them.

import type { Grouping } from "./grouping";
import { grown, type SpanSource, type Window } from "./span_source";
import { SpanWalk } from "./span_walk";

/** Calls between a row and one of its parents or children. */
export interface Relation {
  /** The other row; -1 outside of all calls, or the row's own time (`self`). */
  row: number;
  self: boolean;
  calls: number;
  wall: number;
  cpu: number;
}

/** The time of parents and of children adds up to the row's inclusive time; that of recursive calls is apart. */
export interface Relations {
  parents: Relation[];
  children: Relation[];
  /** The parents and children of the row's recursive calls. */
  parentsWhileRecursive: Relation[];
  childrenWhileRecursive: Relation[];
}

export function relations(sources: SpanSource[], rows: Grouping, window: Window, row: number): Relations {
  const parents = [new Map<number, Relation>(), new Map<number, Relation>()];
  const children = [new Map<number, Relation>(), new Map<number, Relation>()];
  const self: Relation = { row: -1, self: true, calls: 0, wall: 0, cpu: 0 };
  let open = new Int32Array(1024);
  for (const source of sources) {
    const { label, base } = source;
    const thread = rows.by === "thread" ? source.thread : -1;
    const walk = new SpanWalk(source, window);
    let openOfRow = 0;
    let top = 0;
    while (walk.next()) {
      const { item, depth, wall, wallInParent, cpu } = walk;
      while (top > depth) if (open[--top] === row) openOfRow--;
      const callee = thread >= 0 ? thread : rows.rowOf[base + label[item]];
      const caller = depth > 0 ? open[depth - 1] : -1;
      if (caller === row) {
        count(children[openOfRow > 1 ? 1 : 0], callee, wall, cpu);
        if (openOfRow === 1) {
          self.wall -= wallInParent;
          self.cpu -= cpu;
        }
      }
      if (callee === row) {
        count(parents[openOfRow > 0 ? 1 : 0], caller, wall, cpu);
        if (openOfRow === 0) {
          self.wall += wall;
          self.cpu += cpu;
        }
        openOfRow++;
      }
      if (top === open.length) open = grown(open);
      open[top++] = callee;
    }
  }
  const sorted = (of: Map<number, Relation>) => [...of.values()].sort((a, b) => b.wall - a.wall);
  return {
    parents: sorted(parents[0]),
    children: [self, ...sorted(children[0])],
    parentsWhileRecursive: sorted(parents[1]),
    childrenWhileRecursive: sorted(children[1]),
  };
}

function count(of: Map<number, Relation>, row: number, wall: number, cpu: number): void {
  let relation = of.get(row);
  if (!relation) of.set(row, (relation = { row, self: false, calls: 0, wall: 0, cpu: 0 }));
  relation.calls++;
  relation.wall += wall;
  relation.cpu += cpu;
}
