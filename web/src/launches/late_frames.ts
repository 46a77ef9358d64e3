// The late frames of an app and a layer, from the page's tracks; the slow ones where no deadline is known.

import type { FrameSummary } from "../data/format";
import { hasSpans, type SpanTrack, type Trace } from "../data/trace";
import { FLAG_LATE } from "../data/track_columns";

/** Where a frame is: its track, and its number there. */
export interface FramePlace {
  track: SpanTrack;
  item: number;
}

/** Frames that take longer are slow: Perfetto's limit of CPU time. */
export const SLOW_NS = 20e6;

/**
 * The late frames of an app and a layer, those first that were latest. Where the trace tells no deadlines, those that
 * took longer than `SLOW_NS`, the longest first.
 */
export function lateFrames(trace: Trace, { package: app, layer, with_deadline }: FrameSummary): FramePlace[] {
  const { processes } = trace.index;
  const found: FramePlace[] = [];
  for (const track of trace.tracks) {
    if (track.role !== "frames" || !hasSpans(track) || track.name !== (layer ?? "") || track.process === null) continue;
    if (processes[track.process].name !== app) continue;
    const { flags, cpu } = track.spans;
    for (let item = 0; item < track.count; item++) {
      const isWanted = with_deadline > 0 ? ((flags?.[item] ?? 0) & FLAG_LATE) !== 0 : (cpu?.[item] ?? 0) > SLOW_NS;
      if (isWanted) found.push({ track, item });
    }
  }
  const key = with_deadline > 0 ? "overrun" : "cpu";
  const size = ({ track, item }: FramePlace) => track.spans[key]?.[item] ?? 0;
  return found.sort((a, b) => size(b) - size(a));
}
