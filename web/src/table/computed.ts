// A table as it is shown: its items filtered, and sorted or grouped. It is computed in steps, between which the page
// answers.

import { compare, Groups } from "./groups";
import { type FigureColumn, type Items, type ItemSource, sourceOf, type TextColumn } from "./items";
import { type Filter, matching } from "./matching";
import { order } from "./sorted";

export interface Wanted {
  items: Items;
  filter: Filter;
  /** The column whose texts are rows; null: each item is a row. */
  by: TextColumn | null;
  /** The figure that groups sum up, and that columns of times take their unit from. */
  figure: FigureColumn;
  sort: { id: string; down: boolean };
}

export class Computed {
  /** The items in the order that is shown, where they are not grouped. */
  private shown: Uint32Array = new Uint32Array(0);

  private constructor(
    readonly wanted: Wanted,
    /** The numbers of the items that were found. */
    readonly found: Uint32Array,
    /** The figure of each of them. */
    readonly values: Float64Array,
    readonly groups: Groups | null,
    /** The largest time of an item. */
    readonly longest: number,
  ) {}

  static *of(wanted: Wanted): Generator<void, Computed> {
    const { items, by, sort } = wanted;
    const found = new Growing((size) => new Uint32Array(size));
    const values = new Growing((size) => new Float64Array(size));
    const groupOf = new Growing((size) => new Uint32Array(size));
    const sorting = by ? null : columnOf(items, sort.id);
    const keys = new Growing((size) => new Float64Array(size));
    const names = by ? new Names(by) : sorting?.kind === "text" ? new Names(sorting) : null;
    const timed = items.figures.find(({ unit }) => unit === "time") ?? null;
    let longest = 0;
    const { period } = wanted.filter;
    yield* matching(items, wanted.filter, (source) => {
      const value = wanted.figure.of(source, period);
      const time = timed && timed !== wanted.figure ? timed.of(source, period) : timed ? value : null;
      const key = sorting?.kind === "figure" ? (sorting === wanted.figure ? value : sorting.of(source, period)) : null;
      const name = names?.of(source) ?? null;
      return (item) => {
        found.push(source.base + item);
        const figure = value(item);
        values.push(figure);
        const took = time === value ? figure : time ? time(item) : 0;
        if (took > longest) longest = took;
        if (name) groupOf.push(name(item));
        else if (key) keys.push(key === value ? figure : key(item));
      };
    });
    yield;
    const taken = values.taken();
    const groups = by && names ? yield* Groups.of(names.texts, groupOf.taken(), taken) : null;
    groups?.sort(sort);
    const computed = new Computed(wanted, found.taken(), taken, groups, longest);
    if (groups) return computed;
    computed.shown = yield* order(names ? ranks(names.texts, groupOf.taken()) : keys.taken(), sort.down);
    return computed;
  }

  /** How many rows there are, without those that unfolded groups show. */
  get count(): number {
    return this.groups ? this.groups.names.length : this.found.length;
  }

  /** The item of a row, where items are not grouped. */
  item(row: number): number {
    return this.found[this.shown[row]];
  }

  /** The item of a group: the largest one first. */
  itemOf(group: number, rank: number): number {
    return this.groups ? this.found[this.groups.place(group, rank, this.values)] : -1;
  }

  /** The source of an item, and its number there. */
  place(number: number): { source: ItemSource; item: number } {
    const source = sourceOf(this.wanted.items.sources, number);
    return { source, item: number - source.base };
  }
}

export function columnOf(items: Items, id: string): TextColumn | FigureColumn {
  return items.texts.find((column) => column.id === id) ?? items.figures.find((f) => f.id === id) ?? items.figures[0];
}

/** The texts of a column that occur, each once. */
class Names {
  readonly texts: string[] = [];
  private readonly byText = new Map<string, number>();
  private readonly byKey: Int32Array;

  constructor(private readonly column: TextColumn) {
    this.byKey = new Int32Array(column.size).fill(-1);
  }

  of(source: ItemSource): (item: number) => number {
    const key = this.column.of(source);
    const { byKey } = this;
    return (item) => {
      const number = key(item);
      const known = byKey[number];
      return known >= 0 ? known : this.add(number);
    };
  }

  private add(key: number): number {
    const text = this.column.text(key);
    let at = this.byText.get(text);
    if (at === undefined) {
      this.byText.set(text, (at = this.texts.length));
      this.texts.push(text);
    }
    this.byKey[key] = at;
    return at;
  }
}

/** The place of each item's text among all of them. */
function ranks(texts: string[], of: Uint32Array): Float64Array {
  const sorted = Uint32Array.from(texts, (_, n) => n).sort((a, b) => compare(texts[a], texts[b]));
  const rank = new Float64Array(texts.length);
  sorted.forEach((text, at) => (rank[text] = at));
  return Float64Array.from(of, (text) => rank[text]);
}

/** An array that grows as it is filled. */
class Growing<T extends Uint32Array | Float64Array> {
  private array: T;
  private length = 0;

  constructor(private readonly make: (size: number) => T) {
    this.array = make(1024);
  }

  push(value: number): void {
    if (this.length === this.array.length) {
      const larger = this.make(this.length * 2);
      larger.set(this.array);
      this.array = larger;
    }
    this.array[this.length++] = value;
  }

  taken(): T {
    return this.array.subarray(0, this.length) as T;
  }
}
