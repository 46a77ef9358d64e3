// The late frames of an app and a layer, from the page's tracks; the slow ones where no deadline is known.

import type { FrameSummary } from "../data/format";
import { hasSpans, type SpanTrack, type Trace } from "../data/trace";
import { FLAG_LATE, FLAG_SLOW } from "../data/track_columns";

/** Where a frame is: its track, and its number there. */
export interface FramePlace {
  track: SpanTrack;
  item: number;
}

/**
 * The late frames of an app and a layer, those first that were latest. Where the trace tells no deadlines, the
 * slow ones, the longest first.
 */
export function lateFrames(trace: Trace, { package: app, layer, with_deadline }: FrameSummary): FramePlace[] {
  const { processes } = trace.index;
  const found: FramePlace[] = [];
  for (const track of trace.tracks) {
    if (track.role !== "frames" || !hasSpans(track) || track.name !== (layer ?? "") || track.process === null) continue;
    if (processes[track.process].name !== app) continue;
    const { flags } = track.spans;
    for (let item = 0; item < track.count; item++) {
      if ((flags?.[item] ?? 0) & (with_deadline > 0 ? FLAG_LATE : FLAG_SLOW)) found.push({ track, item });
    }
  }
  const key = with_deadline > 0 ? "overrun" : "cpu";
  const size = ({ track, item }: FramePlace) => track.spans[key]?.[item] ?? 0;
  return found.sort((a, b) => size(b) - size(a));
}
