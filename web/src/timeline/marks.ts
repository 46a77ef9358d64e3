// Marks items by their names: the calls of the selected method, and what the search finds.

import type { Intervals } from "./intervals";
import type { Model } from "./model";
import type { KeySpace, Stack } from "./stack";

export class Marks {
  private readonly flags: Record<KeySpace, Uint8Array>;
  private readonly rows = new Map<Stack, (Intervals | null)[]>();
  private readonly solid: { color: number; palettes: Partial<Record<KeySpace, Uint32Array>> } = {
    color: 0,
    palettes: {},
  };

  /** `names`, `methods` and `threads` hold 1 where a name, a method, or a thread (by index + 1) is marked. */
  constructor(names: Uint8Array, methods: Uint8Array, threads: Uint8Array) {
    const joint = new Uint8Array(names.length + methods.length);
    joint.set(names);
    joint.set(methods, names.length);
    this.flags = { names, methods, joint, threads };
  }

  static none(model: Model): [Uint8Array, Uint8Array, Uint8Array] {
    const { strings, methods, threads } = model.trace;
    return [
      new Uint8Array(strings.length),
      new Uint8Array(methods?.name.length ?? 0),
      new Uint8Array(threads.length + 1),
    ];
  }

  has(space: KeySpace, key: number): boolean {
    return this.flags[space][key] === 1;
  }

  of(space: KeySpace): Uint8Array {
    return this.flags[space];
  }

  /** The marked items of each level. */
  levels(stack: Stack): (Intervals | null)[] {
    let levels = this.rows.get(stack);
    if (!levels) this.rows.set(stack, (levels = stack.marked(this.flags[stack.space])));
    return levels;
  }

  /** A palette of one colour. */
  plain(space: KeySpace, color: number): Uint32Array {
    if (this.solid.color !== color) Object.assign(this.solid, { color, palettes: {} });
    return (this.solid.palettes[space] ??= new Uint32Array(this.flags[space].length).fill(color));
  }
}
