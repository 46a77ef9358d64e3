// The moment whose picture the page shows, and steps from frame to frame.

import type { ScreenVideo } from "../data/screen_video";
import { lowerBound } from "../data/search_sorted";
import type { Trace } from "../data/trace";
import type { Range, Selection, State, Store } from "../store";
import { periodOf } from "../timeline/layout";

/** The time under the pointer, or else where the selection, the chosen period or the period in view begins. */
export function momentOf({ trace, pointer, selection, range, view }: State): number {
  return pointer ?? periodOf(trace, selection)?.from ?? range?.from ?? view.from;
}

/** Goes to the frame that is so many frames further on, and selects it. */
export function stepFrame(store: Store, video: ScreenVideo, by: number): void {
  const frame = Math.min(Math.max(video.frameAt(momentOf(store.state)) + by, 0), video.count - 1);
  const selection = selectionOf(store.state.trace, video, frame);
  const view = viewWith(store.state, video.at[frame]);
  store.set(selection ? { selection, pointer: null, view } : { pointer: video.at[frame] });
}

/** A period as long as the one in view that holds a time: the same one, or one with the time in its middle. */
function viewWith({ trace, view }: State, time: number): Range {
  const { from, to } = view;
  if (time >= from && time <= to) return { from, to };
  const begin = Math.min(Math.max(time - (to - from) / 2, 0), Math.max(0, trace.duration - (to - from)));
  return { from: begin, to: begin + to - from };
}

/** The instant of a frame; null where it is not in the trace's part. */
function selectionOf(trace: Trace, video: ScreenVideo, frame: number): Selection | null {
  const track = video.track === null ? undefined : trace.track(video.track);
  const times = track?.instants?.time;
  if (!track || !times) return null;
  // The track has the frames of the trace's part, one behind the other.
  const item = frame - lowerBound(video.at, times[0]);
  return item >= 0 && item < times.length ? { kind: "instant", track: track.id, item } : null;
}
