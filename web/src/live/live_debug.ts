// The view of the rolling picture that the tests have.

import { context2d } from "../timeline/canvas";
import { NAME_MASK } from "./names";
import type { Rolling } from "./rolling";
import type { Session } from "./session";

/** Puts the picture where tests find it; returns what takes it away. */
export function exposeLive(rolling: Rolling, session: Session): () => void {
  const page = window as { __tracebridge?: Record<string, unknown> };
  const plot = () => rolling.elements.plot.getBoundingClientRect();
  const live = {
    frames: rolling.frames,
    rows: () =>
      rolling.rows.map(({ id, kind, label, detail, y, height, open, live }) => ({
        id,
        kind,
        label,
        detail,
        y,
        height,
        open,
        bands: live.map((band) => ({ kind: band.kind, y: band.y, height: band.height })),
      })),
    /** The names and begins of what has begun in a row since a time. */
    begun: (id: string, since: number) => {
      const found: [name: string, start: number][] = [];
      for (const { lanes } of rolling.rows.find((row) => row.id === id)?.live ?? []) {
        for (const lane of lanes) {
          lane.between(since, Infinity, (start, _, key) =>
            found.push([session.kept.names.shown(key & NAME_MASK), start]),
          );
        }
      }
      return found;
    },
    edge: () => rolling.edge,
    latest: () => session.kept.latest,
    window: () => rolling.window,
    isStopped: () => rolling.isStopped,
    gaps: () => session.kept.gaps,
    items: () => session.kept.items,
    tracks: () => session.kept.tracks.size,
    processes: () => session.kept.processes.size,
    threads: () => session.kept.threads.size,
    names: () => session.kept.names.texts.length,
    /** Where a moment is, in pixels from the left edge of the picture. */
    xOf: (time: number) => plot().width - ((rolling.edge - time) / rolling.window) * plot().width,
    /** The drawn colour at a place of the picture, as red, green, blue. */
    pixel: (x: number, y: number) => {
      const ratio = devicePixelRatio || 1;
      const spot = document.createElement("canvas");
      const pen = context2d(spot, { willReadFrequently: true });
      pen.drawImage(rolling.draw(), -Math.floor(x * ratio), -Math.floor(y * ratio));
      const { data } = pen.getImageData(0, 0, 1, 1);
      return [...data.subarray(0, 3)];
    },
  };
  page.__tracebridge = { ...page.__tracebridge, live };
  return () => delete page.__tracebridge?.live;
}
