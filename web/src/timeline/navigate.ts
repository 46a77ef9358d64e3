// Steps from the selection to its neighbours.

import type { Selection } from "../store";
import type { TimelineControl } from "./control";
import type { Band } from "./rows";
import type { Stack } from "./stack";

export class Navigator {
  constructor(private readonly timeline: TimelineControl) {}

  /** Selects the previous or next item of the row, or the one with the same name. */
  beside(by: 1 | -1, sameName: boolean): void {
    const { selection } = this.timeline.store.state;
    if (!selection || !("track" in selection)) {
      this.first();
      return;
    }
    const stack = this.stackOf(selection);
    if (stack) {
      const item = stack.find(selection.track, selection.item);
      this.go(stack, sameName ? stack.sameName(item, by) : stack.beside(item, by));
      return;
    }
    const track = this.timeline.model.trace.tracks[selection.track];
    const label = track.states?.state ?? track.instants?.label;
    let item = selection.item + by;
    while (sameName && label && item >= 0 && item < track.count && label[item] !== label[selection.item]) item += by;
    if (item >= 0 && item < track.count) this.timeline.select({ ...selection, item }, true);
  }

  /** Selects the parent or the first child; from a thread's state its outermost slice. */
  vertical(by: 1 | -1): void {
    const { selection } = this.timeline.store.state;
    if (!selection || !("track" in selection)) {
      this.first();
      return;
    }
    const stack = this.stackOf(selection);
    if (stack) this.go(stack, stack.vertical(stack.find(selection.track, selection.item), by));
  }

  /** Selects what lies at the same time in the next row above or below that has something there. */
  otherRow(by: 1 | -1): void {
    const { layout, store } = this.timeline;
    const { selection, view } = store.state;
    const box = selection && layout.box(selection);
    if (!box) {
      this.first();
      return;
    }
    const time = Math.min(Math.max((box.start + box.end) / 2, view.from), view.to);
    const bands = layout.rows.flatMap((row) => row.bands.map((band) => ({ row, band })));
    for (let at = bands.findIndex(({ band }) => band === box.band) + by; bands[at]; at += by) {
      const found = this.inBand(bands[at].row.y + bands[at].band.y, bands[at].band, time);
      if (found) {
        this.timeline.select(found, true);
        return;
      }
    }
  }

  private inBand(y: number, band: Band, time: number): Selection | null {
    const { layout, scale } = this.timeline;
    const hit = layout.hit((time - scale.from) / scale.quantum, y + Math.min(2, band.height / 2), scale);
    return hit?.selection ?? null;
  }

  /** Selects the first item in view. */
  private first(): void {
    const { layout, view } = this.timeline;
    const { selection } = this.timeline.store.state;
    const thread = selection?.kind === "thread" ? selection.thread : null;
    for (const row of layout.rows.slice(thread === null ? layout.firstRow(this.timeline.scrolled) : 0)) {
      if (thread !== null && row.thread !== thread) continue;
      for (const band of row.bands) {
        if (band.kind !== "stack") continue;
        const at = band.stack.row(0).after(view.from);
        if (at >= band.stack.row(0).count) continue;
        const item = band.stack.row(0).item(at);
        if (band.stack.start[item] > view.to) continue;
        this.go(band.stack, item);
        return;
      }
    }
  }

  private stackOf(selection: Selection & { track: number }): Stack | null {
    const place = this.timeline.layout.place(selection.track);
    return place?.band.kind === "stack" ? place.band.stack : null;
  }

  private go(stack: Stack, at: number): void {
    if (at < 0) return;
    const { track, item } = stack.source(at);
    this.timeline.select({ kind: "span", track: track.id, item }, true);
  }
}
