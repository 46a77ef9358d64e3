// Arrows of wake-ups, binder calls and flows: those of the selection, or all in view.

import { upperBound } from "../data/search_sorted";
import type { ArrowColumns } from "../data/track_columns";
import type { Selection } from "../store";
import type { Theme } from "./colors";
import type { Scene } from "./draw";
import { itemTimes } from "./layout";

/** More arrows than this at once are a black cloud. */
const MAX_ARROWS = 1500;

const longest = new WeakMap<ArrowColumns, number>();

/** The longest distance, in ns, between the two ends of an arrow of a track. */
function reach(arrows: ArrowColumns): number {
  let most = longest.get(arrows);
  if (most === undefined) {
    most = 0;
    const { from, to } = arrows;
    for (let i = 0; i < from.length; i++) most = Math.max(most, Math.abs(to[i] - from[i]));
    longest.set(arrows, most);
  }
  return most;
}

/** What an arrow must touch to be drawn: a period, and one of some tracks (null: any). */
interface Wanted {
  from: number;
  to: number;
  tracks: Set<number> | null;
}

function wantedOf(selection: Selection | null, scene: Scene, all: boolean): Wanted | null {
  const { scale, model } = scene;
  if (all) return { from: scale.from, to: scale.from + scale.width * scale.quantum, tracks: null };
  if (!selection || !("track" in selection)) return null;
  const track = model.trace.tracks[selection.track];
  const [from, to] = itemTimes(track, selection.item);
  // A thread's arrows hold on to its states, or where it has none to its slices.
  const mine = track.thread === null ? [track] : model.byThread[track.thread];
  return { from, to, tracks: new Set([track, ...mine].map(({ id }) => id)) };
}

/** Draws the arrows; returns how many there are, and whether some were left out. */
export function drawArrows(
  context: CanvasRenderingContext2D,
  scene: Scene,
  all: boolean,
): { drawn: number; left: number } {
  const wanted = wantedOf(scene.selection, scene, all);
  let drawn = 0;
  let left = 0;
  if (!wanted) return { drawn, left };
  const colors: Record<string, string> = arrowColors(scene.theme);
  for (const track of scene.model.trace.tracks) {
    if (!track.arrows) continue;
    const { from, to, fromTrack, toTrack } = track.arrows;
    const furthest = reach(track.arrows);
    context.strokeStyle = context.fillStyle = colors[track.role] ?? scene.theme.fg;
    for (let i = upperBound(from, wanted.from - furthest - 1); i < from.length; i++) {
      if (from[i] > wanted.to && Math.min(from[i], to[i]) > wanted.to + furthest) break;
      const begins = from[i] >= wanted.from && from[i] <= wanted.to && (wanted.tracks?.has(fromTrack[i]) ?? true);
      const ends = to[i] >= wanted.from && to[i] <= wanted.to && (wanted.tracks?.has(toTrack[i]) ?? true);
      if (!begins && !ends) continue;
      const a = middle(scene, fromTrack[i]);
      const b = middle(scene, toTrack[i]);
      if (a === null || b === null || Math.max(a, b) < 0 || Math.min(a, b) > scene.height) continue;
      if (drawn === MAX_ARROWS) {
        left++;
        continue;
      }
      drawn++;
      arrow(
        context,
        (from[i] - scene.scale.from) / scene.scale.quantum,
        a,
        (to[i] - scene.scale.from) / scene.scale.quantum,
        b,
      );
    }
  }
  return { drawn, left };
}

export const arrowColors = (theme: Theme) => ({ wakeup: theme.accent, binder: "#cc5599", flow: "#aa7700" });

/** The height of the middle of a track's band in the picture; of the process's heading where it is folded. */
function middle({ layout, model, scrolled }: Scene, id: number): number | null {
  const place = layout.place(id);
  if (place) {
    const { row, band } = place;
    return row.y + band.y + Math.min(band.height, 16) / 2 - scrolled;
  }
  const track = model.trace.track(id);
  if (!track) return null;
  const process = track.thread === null ? track.process : model.trace.threads[track.thread].process;
  const heading = layout.rows.find(({ id }) => id === `process ${process}`);
  return heading ? heading.y + heading.height / 2 - scrolled : null;
}

function arrow(context: CanvasRenderingContext2D, x0: number, y0: number, x1: number, y1: number): void {
  const bend = Math.max(8, Math.min(60, Math.abs(x1 - x0) / 2));
  context.lineWidth = 1.3;
  context.beginPath();
  context.moveTo(x0, y0);
  context.bezierCurveTo(x0 + bend, y0, x1 - bend, y1, x1 - 5, y1);
  context.stroke();
  context.beginPath();
  context.moveTo(x1, y1);
  context.lineTo(x1 - 6, y1 - 3.5);
  context.lineTo(x1 - 6, y1 + 3.5);
  context.fill();
}
