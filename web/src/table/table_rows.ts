// The rows of the table panel: groups, and behind the unfolded ones their items; or items alone.

import type { Computed } from "./computed";

/** A row: a group, or an item by its number; an item may lie in an unfolded group. */
export interface TableEntry {
  /** -1: items are not grouped. */
  group: number;
  /** -1: the group itself. */
  item: number;
}

export class TableRows {
  readonly count: number;
  /** The unfolded groups by the places of their rows. */
  private readonly blocks: { at: number; group: number; size: number }[] = [];

  constructor(
    private readonly computed: Computed,
    isUnfolded: (group: number) => boolean,
  ) {
    let { count } = computed;
    const { groups } = computed;
    let inserted = 0;
    groups?.order.forEach((group, nth) => {
      if (!isUnfolded(group)) return;
      const size = groups.count(group);
      this.blocks.push({ at: nth + inserted, group, size });
      inserted += size;
    });
    count += inserted;
    this.count = count;
  }

  entry(at: number): TableEntry {
    const { groups } = this.computed;
    if (!groups) return { group: -1, item: this.computed.item(at) };
    let inserted = 0;
    for (const { at: begin, group, size } of this.blocks) {
      if (at <= begin) break;
      if (at <= begin + size) return { group, item: this.computed.itemOf(group, at - begin - 1) };
      inserted += size;
    }
    return { group: groups.order[at - inserted], item: -1 };
  }
}
