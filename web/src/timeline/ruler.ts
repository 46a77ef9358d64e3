// The head of the timeline: the overview with the window of the view, and the ruler.

import { lowerBound } from "../data/search_sorted";
import type { State } from "../store";
import { context2d } from "./canvas";
import type { Theme } from "./colors";
import { MIN_TICK_DISTANCE_PX } from "./draw";
import type { Scale } from "./layout";
import type { Model } from "./model";
import { visibleName } from "../ui/text";
import { sharedMatches } from "./search";
import { formatDuration, formatTick, rulerStep } from "./time";

export interface HeadScene {
  model: Model;
  state: State;
  theme: Theme;
  scale: Scale;
  ratio: number;
}

const FONT = "11px system-ui, -apple-system, 'Segoe UI', sans-serif";

const TICKS_HEIGHT_PX = 25;
const MAX_MARKED_MATCHES = 200_000;
/** The line of launches, which only traces with launches have. */
const LAUNCHES_HEIGHT_PX = 17;

/** How high the ruler of a trace is. */
export function rulerHeight({ trace }: Model): number {
  return TICKS_HEIGHT_PX + (trace.index.launches.length > 0 ? LAUNCHES_HEIGHT_PX : 0);
}

/** The launch that lies at a place of the ruler; -1 where there is none. */
export function launchAt({ trace }: Model, { from, quantum }: Scale, x: number, y: number): number {
  if (y < TICKS_HEIGHT_PX) return -1;
  const time = from + x * quantum;
  const slack = 3 * quantum;
  return trace.index.launches.findIndex((launch) => time >= launch.begin_ns - slack && time <= launch.end_ns + slack);
}

/** Draws the ruler: ticks, the chosen period with its length, the launches, and the bookmarks. */
export function drawRuler(canvas: HTMLCanvasElement, scene: HeadScene): void {
  const { theme, scale, state } = scene;
  const all = rulerHeight(scene.model);
  const height = TICKS_HEIGHT_PX;
  const context = begin(canvas, scene, scale.width, all);
  const to = scale.from + scale.width * scale.quantum;
  const place = (time: number) => (time - scale.from) / scale.quantum;
  const step = rulerStep(MIN_TICK_DISTANCE_PX * scale.quantum);
  context.textBaseline = "top";
  for (let tick = Math.floor(scale.from / step); tick * step <= to; tick++) {
    const x = place(tick * step);
    context.fillStyle = theme.line;
    context.fillRect(Math.round(x), 0, 1, height);
    context.fillStyle = theme.muted;
    context.fillText(formatTick(tick * step, step, Math.max(to, 1)), x + 4, 3);
  }
  const { range, bookmarks } = state;
  if (range) {
    const [x0, x1] = [place(range.from), place(range.to)];
    context.fillStyle = theme.accent;
    context.globalAlpha = 0.25;
    context.fillRect(x0, 0, Math.max(1, x1 - x0), height);
    context.globalAlpha = 1;
    context.fillRect(x0, height - 3, Math.max(1, x1 - x0), 3);
    const text = formatDuration(range.to - range.from);
    const room = context.measureText(text).width;
    const middle = Math.min(
      Math.max((Math.max(x0, 0) + Math.min(x1, scale.width)) / 2 - room / 2, 2),
      scale.width - room - 2,
    );
    context.fillStyle = theme.panel;
    context.fillRect(middle - 3, 1, room + 6, 14);
    context.fillStyle = theme.fg;
    context.fillText(text, middle, 3);
  }
  drawMatches(context, scene, height);
  drawLaunches(context, scene);
  for (const { at, label } of bookmarks) {
    const x = place(at);
    if (x < -100 || x > scale.width) continue;
    context.fillStyle = theme.danger;
    context.beginPath();
    context.moveTo(x - 5, 0);
    context.lineTo(x + 5, 0);
    context.lineTo(x, 9);
    context.fill();
    context.fillText(label.slice(0, 40), x + 7, 13);
  }
}

/** Marks where the search finds something. */
function drawMatches(
  context: CanvasRenderingContext2D,
  { theme, scale, state, model }: HeadScene,
  height: number,
): void {
  if (!state.query.trim()) return;
  const matches = sharedMatches(model.trace, state.query);
  // So many would be one red bar.
  if (matches.count > MAX_MARKED_MATCHES) return;
  const times = matches.times();
  context.fillStyle = theme.danger;
  // One mark for each pixel that has a match.
  for (let i = lowerBound(times, scale.from); i < times.length;) {
    const x = Math.floor((times[i] - scale.from) / scale.quantum);
    if (x > scale.width) break;
    context.fillRect(x, height - 7, 2, 6);
    i = Math.max(i + 1, lowerBound(times, scale.from + (x + 1) * scale.quantum));
  }
}

/** Draws the launches below the ticks: from begin to end, with the times to initial and to full display. */
function drawLaunches(context: CanvasRenderingContext2D, { theme, scale, state, model }: HeadScene): void {
  const place = (time: number) => (time - scale.from) / scale.quantum;
  const { selection } = state;
  const top = TICKS_HEIGHT_PX;
  const tall = LAUNCHES_HEIGHT_PX - 3;
  model.trace.index.launches.forEach((launch, n) => {
    const displays: [string, number | null][] = [
      ["TTID", launch.ttid_ns],
      ["TTFD", launch.ttfd_ns],
    ];
    const known = displays.flatMap(([name, ns]) => (ns === null ? [] : [{ name, ns, x: place(launch.begin_ns + ns) }]));
    const x0 = place(launch.begin_ns);
    const x1 = Math.max(place(launch.end_ns), x0 + 2);
    const last = known.reduce((most, { x }) => Math.max(most, x), x1);
    if (last < 0 || x0 > scale.width) return;
    const chosen = selection?.kind === "launch" && selection.launch === n;
    context.fillStyle = theme.accent;
    context.globalAlpha = chosen ? 0.55 : 0.28;
    context.fillRect(x0, top, x1 - x0, tall);
    context.globalAlpha = 1;
    context.fillRect(x1, top + tall - 1, last - x1, 1);
    for (const { x } of known) context.fillRect(Math.round(x) - 1, top - 3, 2, tall + 5);
    // Texts from left to right, each where it has room.
    let free = Math.max(x0 + 4, 4);
    const say = (text: string, at: number, end: number) => {
      const from = Math.max(at, free);
      if (from + context.measureText(text).width > end) return;
      context.fillText(text, from, top + 2);
      free = from + context.measureText(text).width + 8;
    };
    context.fillStyle = theme.fg;
    const title = `${launch.type ? `${launch.type} launch` : "launch"} of ${visibleName(launch.package.slice(0, 100))}`;
    const stop = known.at(0)?.x ?? scale.width;
    say(title, x0 + 4, Math.min(stop > x0 + 60 ? stop - 4 : x1, scale.width));
    known.forEach(({ name, ns, x }, i) =>
      say(`${name} ${formatDuration(ns)}`, x + 4, Math.min(known[i + 1]?.x ?? scale.width, scale.width)),
    );
  });
}

/** Draws the overview: how busy the machine was, where events are missing, and what the view shows. */
export function drawOverview(canvas: HTMLCanvasElement, scene: HeadScene, height: number): void {
  const { theme, scale, model, state } = scene;
  const { width } = scale;
  const context = begin(canvas, scene, width, height);
  const duration = Math.max(model.trace.duration, 1);
  const { activity } = model;
  context.fillStyle = theme.muted;
  context.globalAlpha = 0.55;
  for (let x = 0; x < width; x++) {
    const first = Math.floor((x / width) * activity.length);
    const last = Math.max(first + 1, Math.floor(((x + 1) / width) * activity.length));
    let most = 0;
    for (let i = first; i < last && i < activity.length; i++) most = Math.max(most, activity[i]);
    context.fillRect(x, height - most * (height - 4), 1, most * (height - 4));
  }
  context.globalAlpha = 1;
  context.fillStyle = theme.danger;
  for (const { losses } of model.trace.tracks) {
    for (let i = 0, drawn = -1; losses && i < losses.start.length; i++) {
      const x = Math.floor((losses.start[i] / duration) * width);
      const to = Math.max(x + 2, (losses.end[i] / duration) * width);
      if (to <= drawn) continue;
      context.fillRect(x, 0, to - x, 4);
      drawn = to;
    }
  }
  const [x0, x1] = [(state.view.from / duration) * width, (state.view.to / duration) * width];
  context.fillStyle = theme.bg;
  context.globalAlpha = 0.6;
  context.fillRect(0, 0, x0, height);
  context.fillRect(x1, 0, width - x1, height);
  context.globalAlpha = 1;
  if (state.range) {
    context.fillStyle = theme.accent;
    context.globalAlpha = 0.3;
    const from = (state.range.from / duration) * width;
    context.fillRect(from, 0, Math.max(1, (state.range.to / duration) * width - from), height);
    context.globalAlpha = 1;
  }
  context.strokeStyle = theme.accent;
  context.lineWidth = 2;
  context.strokeRect(x0 + 1, 1, Math.max(x1 - x0 - 2, 2), height - 2);
}

function begin(
  canvas: HTMLCanvasElement,
  { ratio, theme }: HeadScene,
  width: number,
  height: number,
): CanvasRenderingContext2D {
  const [wide, tall] = [Math.max(1, Math.round(width * ratio)), Math.round(height * ratio)];
  if (canvas.width !== wide || canvas.height !== tall) {
    canvas.width = wide;
    canvas.height = tall;
  }
  const context = context2d(canvas);
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.fillStyle = theme.panel;
  context.fillRect(0, 0, width, height);
  context.font = FONT;
  return context;
}
