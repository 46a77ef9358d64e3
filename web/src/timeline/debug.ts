// The view of the timeline that the tests have.

import type { Selection, Store } from "../store";
import type { TimelineControl } from "./control";
import type { Painter } from "./painter";
import { searchMatches } from "./search";

/** A timeline whose pictures can be measured, and made at once. */
interface MeasuredTimeline extends TimelineControl {
  readonly painter: Painter;
  /** How long each of the last pictures took, ms of the processor. */
  readonly frameTimes: number[];
  draw(): void;
}

/** Puts the timeline where tests find it by `name`, with the page's store; returns what takes it away. */
export function exposeToTests(timeline: MeasuredTimeline, name: string, store: Store): () => void {
  const page = window as { __tracebridge?: Record<string, unknown> };
  page.__tracebridge = {
    ...page.__tracebridge,
    [name]: {
      painter: timeline.painter.kind,
      store,
      view: () => timeline.view,
      selection: () => timeline.store.state.selection,
      fit: () => timeline.fit(),
      frameTimes: timeline.frameTimes,
      rows: () =>
        timeline.layout.rows.map(({ id, kind, label, detail, y, height, open, bands }) => ({
          id,
          kind,
          label,
          detail,
          y,
          height,
          open,
          bands: bands.map((band) => band.kind),
        })),
      /** Where an item is in the page's coordinates; null where it is not in view. */
      box: (selection: Selection) => {
        const box = timeline.layout.box(selection);
        if (!box) return null;
        const { left, top } = timeline.elements.plot.getBoundingClientRect();
        const { from, quantum } = timeline.scale;
        return {
          x: left + (box.start - from) / quantum,
          y: top + timeline.layout.inPicture(box.y, timeline.scrolled),
          width: (box.end - box.start) / quantum,
          height: box.height,
        };
      },
      /** The drawn colour at the page's coordinates, as red, green, blue. */
      pixel: (x: number, y: number) => {
        timeline.draw();
        const { left, top } = timeline.elements.plot.getBoundingClientRect();
        const ratio = devicePixelRatio || 1;
        const color = timeline.painter.pixel(Math.floor((x - left) * ratio), Math.floor((y - top) * ratio));
        return [color & 255, (color >> 8) & 255, (color >> 16) & 255];
      },
      draw: () => timeline.draw(),
      search: (query: string) => {
        const found = searchMatches(timeline.model.trace, query);
        return { count: found.count, first: found.next() };
      },
      scrolled: () => timeline.scrolled,
      scrollTo: (y: number) => timeline.scrollTo(y),
    },
  };
  return () => delete page.__tracebridge?.[name];
}
