// The late frames of an app and a layer, from the page's tracks.

import type { FrameSummary } from "../data/format";
import { hasSpans, type SpanTrack, type Trace } from "../data/trace";
import { FLAG_LATE } from "../data/track_columns";

/** Where a frame is: its track, and its number there. */
export interface FramePlace {
  track: SpanTrack;
  item: number;
}

/** The late frames of an app and a layer, those first that were latest. */
export function lateFrames(trace: Trace, { package: app, layer }: FrameSummary): FramePlace[] {
  const { processes } = trace.index;
  const found: FramePlace[] = [];
  for (const track of trace.tracks) {
    if (track.role !== "frames" || !hasSpans(track) || track.name !== (layer ?? "") || track.process === null) continue;
    if (processes[track.process].name !== app) continue;
    track.spans.flags?.forEach((flag, item) => {
      if (flag & FLAG_LATE) found.push({ track, item });
    });
  }
  const overrun = ({ track, item }: FramePlace) => track.spans.overrun?.[item] ?? 0;
  return found.sort((a, b) => overrun(b) - overrun(a));
}
