// Arrows of wake-ups, binder calls and flows: those of the selection, the nearest first.

import { upperBound } from "../data/search_sorted";
import type { ArrowColumns } from "../data/track_columns";
import type { Selection } from "../store";
import type { Theme } from "./colors";
import type { Scene } from "./draw";
import { itemTimes } from "./layout";

/** How many arrows show: at first, when more are asked for, and at most. More would be a wall. */
const SELECTED_ARROWS = [20, 200, 1500];
/** The same where nothing is selected: then none at first. */
const OTHER_ARROWS = [0, 20, 1500];
/** How often more can be asked for. */
export const ARROW_STEPS = SELECTED_ARROWS.length;

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

/** The things that an arrow must touch to be drawn: a period, and one of some tracks (null: any). */
interface Wanted {
  from: number;
  to: number;
  tracks: Set<number> | null;
}

function wantedOf(selection: Selection | null, scene: Scene): Wanted {
  const { scale, model } = scene;
  if (!selection || !("track" in selection))
    return { from: scale.from, to: scale.from + scale.width * scale.quantum, tracks: null };
  const track = model.trace.tracks[selection.track];
  const [from, to] = itemTimes(track, selection.item);
  // A thread's arrows hold on to its states, or where it has none to its slices.
  const mine = track.thread === null ? [track] : model.byThread[track.thread];
  return { from, to, tracks: new Set([track, ...mine].map(({ id }) => id)) };
}

/** An arrow that may be drawn: its times, its ends in the picture, and how far it is from the middle of it. */
interface Arrow {
  from: number;
  to: number;
  y0: number;
  y1: number;
  role: string;
  away: number;
}

/**
 * Draws the arrows that are nearest to the middle of the selection, or of the view where nothing is selected; `step`
 * says how often more were asked for. Returns how many are drawn, and how many more there are.
 */
export function drawArrows(
  context: CanvasRenderingContext2D,
  scene: Scene,
  step: number,
): { drawn: number; left: number } {
  const { selection, scale, theme, height, model } = scene;
  const wanted = wantedOf(selection, scene);
  const limit = (wanted.tracks ? SELECTED_ARROWS : OTHER_ARROWS)[step];
  if (limit === 0) return { drawn: 0, left: 0 };
  const [low, high] = [scale.from, scale.from + scale.width * scale.quantum];
  const centre = (Math.max(wanted.from, low) + Math.min(wanted.to, high)) / 2;
  const found: Arrow[] = [];
  for (const track of model.trace.tracks) {
    if (!track.arrows) continue;
    const { from, to, fromTrack, toTrack } = track.arrows;
    const furthest = reach(track.arrows);
    for (let i = upperBound(from, wanted.from - furthest - 1); i < from.length; i++) {
      if (from[i] > wanted.to && Math.min(from[i], to[i]) > wanted.to + furthest) break;
      const begins = from[i] >= wanted.from && from[i] <= wanted.to && (wanted.tracks?.has(fromTrack[i]) ?? true);
      const ends = to[i] >= wanted.from && to[i] <= wanted.to && (wanted.tracks?.has(toTrack[i]) ?? true);
      if (!begins && !ends) continue;
      const y0 = middle(scene, fromTrack[i]);
      const y1 = middle(scene, toTrack[i]);
      if (y0 === null || y1 === null || Math.max(y0, y1) < 0 || Math.min(y0, y1) > height) continue;
      const away = Math.min(Math.abs(from[i] - centre), Math.abs(to[i] - centre));
      found.push({ from: from[i], to: to[i], y0, y1, role: track.role, away });
    }
  }
  if (found.length > limit) found.sort((a, b) => a.away - b.away);
  const drawn = found.slice(0, limit);
  const colors: Record<string, string> = arrowColors(theme);
  const place = (time: number) => (time - scale.from) / scale.quantum;
  for (const { from, to, y0, y1, role } of drawn) {
    context.strokeStyle = context.fillStyle = colors[role] ?? theme.fg;
    arrow(context, place(from), y0, place(to), y1);
  }
  return { drawn: drawn.length, left: found.length - drawn.length };
}

export const arrowColors = (theme: Theme) => ({ wakeup: theme.accent, binder: "#cc5599", flow: "#aa7700" });

/** The height of the middle of a track's band in the picture; of the process's heading where it is folded. */
function middle({ layout, model, scrolled }: Scene, id: number): number | null {
  const place = layout.place(id);
  if (place) {
    const { row, band } = place;
    return layout.inPicture(row.y, scrolled) + band.y + Math.min(band.height, 16) / 2;
  }
  const track = model.trace.track(id);
  if (!track) return null;
  const process = track.thread === null ? track.process : model.trace.threads[track.thread].process;
  const heading = layout.rows.find(({ id }) => id === `process ${process}`);
  return heading ? layout.inPicture(heading.y, scrolled) + heading.height / 2 : null;
}

export function arrow(context: CanvasRenderingContext2D, x0: number, y0: number, x1: number, y1: number): void {
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
