// The head of the timeline: the overview with the window of the view, and the ruler.

import type { State } from "../store";
import { context2d } from "./canvas";
import type { Theme } from "./colors";
import { MIN_TICK_DISTANCE_PX } from "./draw";
import type { Scale } from "./layout";
import type { Model } from "./model";
import { formatDuration, formatTick, rulerStep } from "./time";

export interface HeadScene {
  model: Model;
  state: State;
  theme: Theme;
  scale: Scale;
  ratio: number;
}

const FONT = "11px system-ui, -apple-system, 'Segoe UI', sans-serif";

/** Draws the ruler: ticks, the chosen period with its length, and the bookmarks. */
export function drawRuler(canvas: HTMLCanvasElement, scene: HeadScene, height: number): void {
  const { theme, scale, state } = scene;
  const context = begin(canvas, scene, scale.width, height);
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
