// Scrolls two timelines together: the row on top of one comes to the top of the other, where that has such a row.

import type { TimelineControl } from "../timeline/control";
import type { Row } from "../timeline/rows";

/** Has each of two timelines follow the other; returns the function that ends this. */
export function scrollTogether(timelines: readonly TimelineControl[]): () => void {
  let moving = false;
  for (const [n, timeline] of timelines.entries()) {
    timeline.onScroll = () => {
      if (moving) return;
      moving = true;
      for (const other of timelines) if (other !== timelines[n]) follow(timeline, other);
      moving = false;
    };
  }
  return () => {
    for (const timeline of timelines) timeline.onScroll = null;
  };
}

function follow(from: TimelineControl, to: TimelineControl): void {
  const { layout, scrolled } = from;
  const top = layout.pinnedHeight + scrolled;
  const places = placesOf(to);
  // A row that the other one lacks stands for the nearest one above it that both have.
  for (let at = layout.firstRow(top); at >= 0; at--) {
    const row = layout.rows.at(at);
    const found = row && places.get(nameOf(from, layout.rows, at));
    if (!row || !found) continue;
    const within = Math.min(top - row.y, found.height);
    to.scrollTo(found.y + within - to.layout.pinnedHeight);
    return;
  }
  to.scrollTo(0);
}

const known = new WeakMap<Row[], Map<string, Row>>();

/** The rows by names that mean the same in both timelines. */
function placesOf(timeline: TimelineControl): Map<string, Row> {
  const { rows } = timeline.layout;
  let places = known.get(rows);
  if (!places) {
    places = new Map();
    // Of rows with one name the first counts.
    for (let at = rows.length - 1; at >= 0; at--) places.set(nameOf(timeline, rows, at), rows[at]);
    known.set(rows, places);
  }
  return places;
}

function nameOf({ model }: TimelineControl, rows: Row[], at: number): string {
  const { kind, process, label } = rows[at];
  const owner = process === null ? "" : model.trace.index.processes[process].name;
  return `${kind}|${owner}|${kind === "more" ? "" : label}`;
}
