// The head of the timeline: the overview with the window of the view, and the ruler.

import { lowerBound } from "../data/search_sorted";
import { measuredPart } from "../compare/alignment";
import type { Note, State } from "../store";
import { context2d, type Surface } from "./canvas";
import type { Theme } from "./colors";
import { MIN_TICK_DISTANCE_PX } from "./draw";
import type { Scale } from "./layout";
import type { Measured, Model } from "./model";
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
/** More of a note's text is not drawn. */
const MAX_NOTE_CHARS = 60;
const MAX_NOTE_PX = 260;
const MAX_MARKED_MATCHES = 200_000;
/** The line of launches, which only traces with launches have. */
const LAUNCHES_HEIGHT_PX = 17;

/** How high the ruler of a trace is. */
export function rulerHeight(model: Model): number {
  return measuredTop(model) + (model.measured ? LAUNCHES_HEIGHT_PX : 0);
}

/** Where the line of what is measured begins: below that of the launches. */
function measuredTop({ trace }: Model): number {
  return TICKS_HEIGHT_PX + (trace.index.launches.length > 0 ? LAUNCHES_HEIGHT_PX : 0);
}

/** What the comparison measures of the shown trace, for the ruler. */
export function measuredText({ comparison, trace }: State): Measured | null {
  const part = measuredPart(comparison, trace);
  if (!part || !comparison) return null;
  return { ...part, text: `compared: ${visibleName(comparison.total.name)}, ${formatDuration(part.to - part.from)}` };
}

/** How far from a note's flag a press may be. */
const FLAG_REACH_PX = 7;

/** The note whose flag lies at a place of the ruler. */
export function noteAt({ notes, trace }: State, { from, quantum }: Scale, x: number, y: number): Note | null {
  if (y > TICKS_HEIGHT_PX) return null;
  const away = (note: Note) => Math.abs((note.at - from) / quantum - x);
  const near = notes.filter((note) => note.trace === trace && away(note) <= FLAG_REACH_PX);
  return near.sort((a, b) => away(a) - away(b)).at(0) ?? null;
}

/** The launch that lies at a place of the ruler; -1 where there is none. */
export function launchAt({ trace }: Model, { from, quantum }: Scale, x: number, y: number): number {
  if (y < TICKS_HEIGHT_PX) return -1;
  const time = from + x * quantum;
  const slack = 3 * quantum;
  return trace.index.launches.findIndex((launch) => time >= launch.begin_ns - slack && time <= launch.end_ns + slack);
}

/** Draws the ruler: ticks, the chosen period with its length, the launches, what is measured, and the notes. */
export function drawRuler(canvas: Surface, scene: HeadScene): void {
  const { theme, scale, state } = scene;
  const all = rulerHeight(scene.model);
  const height = TICKS_HEIGHT_PX;
  const context = begin(canvas, scene, scale.width, all);
  const to = scale.from + scale.width * scale.quantum;
  const place = (time: number) => (time - scale.from) / scale.quantum;
  const step = rulerStep(MIN_TICK_DISTANCE_PX * scale.quantum);
  context.textBaseline = "top";
  // Behind the ends of the trace, where another one may go on, there are no times.
  const end = Math.min(to, scene.model.trace.duration + step);
  for (let tick = Math.max(0, Math.floor(scale.from / step)); tick * step <= end; tick++) {
    const x = place(tick * step);
    context.fillStyle = theme.line;
    context.fillRect(Math.round(x), 0, 1, height);
    context.fillStyle = theme.muted;
    context.fillText(formatTick(tick * step, step, Math.max(to, 1)), x + 4, 3);
  }
  const { range } = state;
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
  drawMeasured(context, scene);
  drawNotes(context, scene);
}

/** Draws what the comparison measures: from begin to end, with what it is. */
function drawMeasured(context: CanvasRenderingContext2D, { theme, scale, model }: HeadScene): void {
  const { measured } = model;
  if (!measured) return;
  const place = (time: number) => (time - scale.from) / scale.quantum;
  const [x0, x1] = [place(measured.from), Math.max(place(measured.to), place(measured.from) + 2)];
  if (x1 < 0 || x0 > scale.width) return;
  const top = measuredTop(model);
  const tall = LAUNCHES_HEIGHT_PX - 3;
  context.fillStyle = theme.fg;
  context.fillRect(x0, top + tall / 2, x1 - x0, 1);
  for (const x of [x0, x1 - 1]) context.fillRect(x, top + 1, 1, tall - 2);
  const room = context.measureText(measured.text).width;
  const [left, right] = [Math.max(x0, 0), Math.min(x1, scale.width)];
  // Beside the line where it is shorter than its text.
  const beside = right + room + 12 < scale.width ? right + 8 : left - room - 8;
  const at = right - left > room + 20 ? (left + right - room) / 2 : Math.max(beside, 4);
  context.fillStyle = theme.panel;
  context.fillRect(at - 3, top, room + 6, tall);
  context.fillStyle = theme.fg;
  context.fillText(measured.text, at, top + 1);
}

/** Draws a flag for each note, with so much of its text as has room before the next one. */
function drawNotes(context: CanvasRenderingContext2D, { theme, scale, state }: HeadScene): void {
  const place = (time: number) => (time - scale.from) / scale.quantum;
  const own = state.notes.filter(({ trace }) => trace === state.trace).sort((a, b) => a.at - b.at);
  own.forEach(({ at, text }, n) => {
    const x = place(at);
    if (x < -MAX_NOTE_PX || x > scale.width) return;
    context.fillStyle = theme.danger;
    context.beginPath();
    context.moveTo(x - 5, 0);
    context.lineTo(x + 5, 0);
    context.lineTo(x, 9);
    context.fill();
    const next = n + 1 < own.length ? place(own[n + 1].at) - 8 : Infinity;
    const room = Math.min(next - x - 7, MAX_NOTE_PX);
    let shown = visibleName(text.slice(0, MAX_NOTE_CHARS).replaceAll("\n", " "));
    if (shown.length < text.length || context.measureText(shown).width > room) {
      while (shown && context.measureText(`${shown}…`).width > room) shown = shown.slice(0, -1);
      shown = shown && `${shown}…`;
    }
    if (!shown) return;
    context.fillStyle = theme.panel;
    context.fillRect(x + 6, 12, context.measureText(shown).width + 3, 12);
    context.fillStyle = theme.danger;
    context.fillText(shown, x + 7, 13);
  });
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

function begin(canvas: Surface, { ratio, theme }: HeadScene, width: number, height: number): CanvasRenderingContext2D {
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
