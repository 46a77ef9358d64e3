// Where each row and each item lies, and what lies at a place.

import { firstWhere, upperBound } from "../data/search_sorted";
import type { Trace, Track } from "../data/trace";
import type { Range, RowChoice, Selection } from "../store";
import type { Model } from "./model";
import { chosenRows } from "./row_choice";
import { type Band, type Folds, hiding, type Row } from "./rows";

/** The part of the trace that a picture shows: `quantum` ns to a CSS pixel, from `from` on. */
export interface Scale {
  from: number;
  quantum: number;
  width: number;
}

/** The item at a place. */
export interface Hit {
  row: Row;
  band: Band;
  selection: Selection;
  start: number;
  end: number;
  y: number;
  height: number;
}

/** How far from a thin item the pointer may be. */
const SLACK_PX = 3;

export class Layout {
  rows: Row[] = [];
  height = 0;
  /** The height of the rows on top that do not scroll with the others. */
  pinnedHeight = 0;
  private maxPinnedHeight = Infinity;
  readonly folds: Folds = new Map();
  private places = new Map<number, { row: Row; band: Band }>();
  private threads = new Map<number, Row>();

  constructor(
    readonly model: Model,
    private choice: RowChoice,
  ) {
    this.rebuild();
  }

  rebuild(): void {
    this.rows = chosenRows(this.model, this.folds, this.choice);
    const last = this.rows.at(-1);
    this.height = last ? last.y + last.height : 0;
    this.measurePinned();
    this.places = new Map();
    this.threads = new Map();
    for (const row of this.rows) {
      if (row.thread !== null && !this.threads.has(row.thread)) this.threads.set(row.thread, row);
      for (const band of row.bands) {
        const tracks = band.kind === "stack" ? band.stack.tracks : band.kind === "path" ? [] : [band.track];
        for (const { id } of tracks) this.places.set(id, { row, band });
      }
    }
  }

  /** Shows the rows that are chosen; true where that changes them. */
  choose(choice: RowChoice): boolean {
    if (choice === this.choice) return false;
    this.choice = choice;
    this.rebuild();
    return true;
  }

  /** Keeps pinned rows from taking more of the picture than this; those that do not fit scroll with the others. */
  limitPinned(height: number): void {
    this.maxPinnedHeight = height;
    this.measurePinned();
  }

  private measurePinned(): void {
    this.pinnedHeight = 0;
    for (const { isPinned, y, height } of this.rows) {
      if (!isPinned || y + height > this.maxPinnedHeight) break;
      this.pinnedHeight = y + height;
    }
  }

  /** Where `y` of the rows is in the picture when they are scrolled so far. */
  inPicture(y: number, scrolled: number): number {
    return y < this.pinnedHeight ? y : y - scrolled;
  }

  /** Which `y` of the rows is at this place of the picture. */
  inRows(y: number, scrolled: number): number {
    return y < this.pinnedHeight ? y : y + scrolled;
  }

  /** The rows that are in a picture of this height: those that stay, and the scrolled ones. */
  rowsInView(scrolled: number, height: number): Row[] {
    const pinned = this.rows.slice(
      0,
      firstWhere(0, this.rows.length, (at) => this.rows[at].y >= this.pinnedHeight),
    );
    const first = Math.max(pinned.length, this.firstRow(scrolled + this.pinnedHeight));
    let last = first;
    while (last < this.rows.length && this.rows[last].y < scrolled + height) last++;
    return [...pinned, ...this.rows.slice(first, last)];
  }

  toggle(row: Row): void {
    if (row.open === null) return;
    this.folds.set(row.id, !row.open);
    this.rebuild();
  }

  /** The number of the first row that ends below `y`. */
  firstRow(y: number): number {
    return firstWhere(0, this.rows.length, (at) => this.rows[at].y + this.rows[at].height > y);
  }

  place(track: number): { row: Row; band: Band } | undefined {
    return this.places.get(track);
  }

  threadRow(thread: number): Row | undefined {
    return this.threads.get(thread);
  }

  /** Opens what hides a track's row; true where rows changed. */
  unfold(track: Pick<Track, "id" | "thread" | "process" | "cpu" | "kind">): boolean {
    let changed = false;
    for (const id of hiding(this.model, track)) {
      if (track.id < 0 ? track.thread !== null && this.threads.has(track.thread) : this.places.has(track.id)) break;
      if (this.folds.get(id) === true) continue;
      this.folds.set(id, true);
      this.rebuild();
      changed = true;
    }
    return changed;
  }

  /** Where an item lies: rows' coordinates, and its times; null where its row is folded or it is no item. */
  box(selection: Selection): Omit<Hit, "selection"> | null {
    if (!("track" in selection)) return null;
    const { track: id, item } = selection;
    const place = this.places.get(id);
    const track = this.model.trace.track(id);
    if (!place || !track || item >= track.count) return null;
    const { row, band } = place;
    const y = row.y + band.y;
    if (band.kind === "stack") {
      const at = band.stack.find(id, item);
      const top = band.stack.level[at] * band.lineHeight;
      if (top >= band.height) return null;
      return { row, band, start: band.stack.start[at], end: band.stack.end[at], y: y + top, height: band.lineHeight };
    }
    const [start, end] = itemTimes(track, item);
    return { row, band, start, end, y, height: band.height };
  }

  /** The item that is drawn at `x` in the picture and `y` in the rows. */
  hit(x: number, y: number, scale: Scale): Hit | null {
    const row = this.rows.at(this.firstRow(y));
    if (!row || y < row.y) return null;
    const band = row.bands.find((one) => y >= row.y + one.y && y < row.y + one.y + one.height);
    if (!band) return null;
    const time = scale.from + x * scale.quantum;
    const slack = SLACK_PX * scale.quantum;
    const top = row.y + band.y;
    const inner = { row, band, y: top, height: band.height };
    switch (band.kind) {
      case "stack": {
        const { stack, lineHeight } = band;
        const level = Math.floor((y - top) / lineHeight);
        if (level >= stack.levels) return null;
        const at = stack.row(level).at(time, scale.quantum, slack);
        if (at < 0) return null;
        const { track, item } = stack.source(at);
        return {
          row,
          band,
          selection: { kind: "span", track: track.id, item },
          start: stack.start[at],
          end: stack.end[at],
          y: top + level * lineHeight,
          height: lineHeight,
        };
      }
      case "counter": {
        const item = upperBound(band.track.counter.time, time) - 1;
        if (item < 0) return null;
        const [start, end] = itemTimes(band.track, item);
        return { ...inner, selection: { kind: "counter", track: band.track.id, item }, start, end };
      }
      case "path": {
        const step = this.model.path?.path.steps.find(({ from, to }) => from <= time && time < to);
        if (!step) return null;
        return { ...inner, selection: { kind: "thread", thread: step.thread }, start: step.from, end: step.to };
      }
      default: {
        const item = this.model.strip(band.track).at(time, scale.quantum, slack);
        if (item < 0) return null;
        const kind = band.kind === "states" ? "state" : "instant";
        const [start, end] = itemTimes(band.track, item);
        return { ...inner, selection: { kind, track: band.track.id, item }, start, end };
      }
    }
  }
}

/** From when to when an item of a track is; a counter's value holds until the next one. */
export function itemTimes(track: Track, item: number): [number, number] {
  const { spans, states, losses, counter, instants } = track;
  const columns = spans ?? states ?? losses;
  if (columns) return [columns.start[item], columns.end[item]];
  if (counter) return [counter.time[item], counter.time[item + 1] ?? counter.time[item]];
  // Arrows are the only tracks without any of these, and an arrow is no item.
  const time = instants?.time[item] ?? 0;
  return [time, time];
}

/** The period of a selection, or null where it has none. */
export function periodOf(trace: Trace, selection: Selection | null): Range | null {
  if (selection?.kind === "launch") {
    const launch = trace.index.launches.at(selection.launch);
    return launch ? { from: launch.begin_ns, to: launch.end_ns } : null;
  }
  if (!selection || !("track" in selection)) return null;
  const track = trace.track(selection.track);
  if (!track || selection.item >= track.count) return null;
  const [from, to] = itemTimes(track, selection.item);
  return { from, to };
}
