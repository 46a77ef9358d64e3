// Draws the rows in view: areas as painted lines below, and text, plots and outlines on a canvas above them.

import { upperBound } from "../data/search_sorted";
import type { Selection } from "../store";
import { visibleName } from "../ui/text";
import { context2d, type Surface } from "./canvas";
import { INK, mix, pack, type Theme } from "./colors";
import { drawCounter } from "./counter";
import { Hatching } from "./hatching";
import type { Intervals } from "./intervals";
import type { Layout, Scale } from "./layout";
import type { Marks } from "./marks";
import type { Model } from "./model";
import type { Painter } from "./painter";
import { drawPathRow } from "./path_row";
import type { Band, Row } from "./rows";
import type { Stack } from "./stack";
import { rulerStep } from "./time";

/** All that a picture depends on. Lengths are CSS pixels. */
export interface Scene {
  model: Model;
  layout: Layout;
  theme: Theme;
  scale: Scale;
  /** Device pixels to a CSS pixel. */
  ratio: number;
  height: number;
  scrolled: number;
  selected: Marks | null;
  found: Marks | null;
  selection: Selection | null;
}

/** The font of what is drawn. */
export const FONT = "11px system-ui, -apple-system, 'Segoe UI', sans-serif";
/** Intervals narrower than this have no text. */
const MIN_TEXT_PX = 22;
/** VSYNC lines closer than this are not drawn. */
const MIN_VSYNC_PX = 6;
/** Distance of the ruler's ticks and the gridlines, at least. */
export const MIN_TICK_DISTANCE_PX = 110;
/** A longer name is cut before it is measured. */
const MAX_NAME_CHARS = 300;
const MAX_REMEMBERED_NAMES = 50000;
/** Hatching over threads is pale: not all that they did is missing. */
const THREAD_HATCHING_ALPHA = 0.45;
/** Room for the sign of a cut name. */
const ELLIPSIS_PX = 10;

const nothing = () => undefined;

/** The part of a picture that shows the trace: behind its end nothing is known. */
function withinTrace(scale: Scale, duration: number): Scale {
  return { ...scale, width: Math.max(0, Math.min(scale.width, (duration - scale.from) / scale.quantum)) };
}

export class Drawing {
  readonly context: CanvasRenderingContext2D;
  private template = new Uint32Array(0);
  private line = new Uint32Array(0);
  private readonly widths = new Map<string, number>();
  private readonly visible = new Map<string, string>();
  private readonly hatching = new Hatching();
  /** Above this, CSS pixels, nothing of the current row is drawn. */
  private top = 0;

  constructor(
    private readonly painter: Pick<Painter, "begin" | "line" | "end">,
    readonly overlay: Surface,
  ) {
    this.context = context2d(overlay);
  }

  draw(scene: Scene): void {
    const { scale, ratio, height, layout, scrolled, theme } = scene;
    const width = Math.max(1, Math.round(scale.width * ratio));
    const tall = Math.max(1, Math.round(height * ratio));
    if (this.overlay.width !== width || this.overlay.height !== tall) {
      this.overlay.width = width;
      this.overlay.height = tall;
    }
    if (this.line.length !== width) {
      this.line = new Uint32Array(width);
      this.template = new Uint32Array(width);
    }
    const { context } = this;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, scale.width, height);
    context.font = FONT;
    context.textBaseline = "middle";
    this.background(scene);
    this.painter.begin(width, tall);
    this.painter.line(this.template, 0, tall);
    const { pinnedHeight } = layout;
    for (const row of layout.rowsInView(scrolled, height)) {
      const y = layout.inPicture(row.y, scrolled);
      // Rows that scroll are not drawn over those that stay.
      this.top = row.y < pinnedHeight ? 0 : pinnedHeight;
      if (this.top > 0) {
        context.save();
        context.beginPath();
        context.rect(0, this.top, scale.width, height);
        context.clip();
      }
      if (row.kind !== "row") {
        this.line.fill(pack(theme.panel));
        this.put(y, row.height - 1, scene);
      }
      for (const band of row.bands) this.band(band, row, y + band.y, scene);
      if (row.losses) this.losses(row, row.losses, y, scene);
      context.fillStyle = theme.line;
      context.fillRect(0, y + row.height - 1, scale.width, 0.5);
      if (this.top > 0) context.restore();
    }
    if (pinnedHeight > 0) {
      context.fillStyle = theme.muted;
      context.fillRect(0, pinnedHeight - 1, scale.width, 1.5);
    }
    this.painter.end();
  }

  /** The background's line: gridlines, and VSYNC lines where they are far enough from each other. */
  private background({ scale, ratio, theme, model }: Scene): void {
    this.template.fill(pack(theme.bg));
    const put = (time: number, color: number) => {
      const x = Math.round(((time - scale.from) / scale.quantum) * ratio);
      if (x >= 0 && x < this.template.length) this.template[x] = color;
    };
    const to = scale.from + scale.width * scale.quantum;
    const { vsync } = model;
    if (vsync.length > 1 && model.frameNs / scale.quantum >= MIN_VSYNC_PX) {
      const color = mix(theme.bg, theme.accent, 0.3);
      for (const time of vsync) if (time >= scale.from && time <= to) put(time, color);
    }
    const step = rulerStep(MIN_TICK_DISTANCE_PX * scale.quantum);
    const color = mix(theme.bg, theme.line, 0.7);
    for (let tick = Math.ceil(scale.from / step); tick * step <= to; tick++) put(tick * step, color);
  }

  /** Puts the current line at `y`, CSS pixels. */
  private put(y: number, height: number, { ratio }: Scene): void {
    const top = Math.round(Math.max(y, this.top) * ratio);
    const end = Math.max(top + 1, Math.round((y + height) * ratio));
    if (y + height > this.top) this.painter.line(this.line, top, end - top);
  }

  private band(band: Band, row: Row, y: number, scene: Scene): void {
    if (y > scene.height || y + band.height < 0) return;
    const { scale, theme, model } = scene;
    switch (band.kind) {
      case "stack":
        this.stack(band.stack, band.lineHeight, band.height, row, y, scene);
        break;
      case "states":
        this.strip(model.strip(band.track), band.track.states.state, model.palette("states"), y, band.height, scene);
        break;
      case "ticks": {
        const { label } = band.track.instants ?? { label: new Uint32Array(band.track.count) };
        this.strip(model.strip(band.track), label, model.palette("names", scene.found !== null), y, band.height, scene);
        break;
      }
      case "counter":
        drawCounter(this.context, band.track, withinTrace(scale, model.trace.duration), 0, y, band.height, theme);
        break;
      case "path":
        drawPathRow(this.context, scene, y, band.height);
        break;
    }
  }

  private strip(row: Intervals, key: Uint32Array, palette: Uint32Array, y: number, height: number, scene: Scene): void {
    const { from, quantum } = scene.scale;
    this.line.set(this.template);
    row.paint(this.line, from, quantum / scene.ratio, key, palette, Infinity, nothing);
    this.put(y, height, scene);
  }

  private stack(stack: Stack, lineHeight: number, height: number, row: Row, y: number, scene: Scene): void {
    const { ratio, model, found, selected, theme } = scene;
    const { from, quantum } = scene.scale;
    const pixel = quantum / ratio;
    const tall = lineHeight >= 12;
    const marked = found?.levels(stack) ?? null;
    const underlined = selected?.levels(stack) ?? null;
    const palette =
      stack.isFrames && found === null ? model.framePalettes.other() : model.palette(stack.space, found !== null);
    const first = Math.max(0, Math.floor(-y / lineHeight));
    const last = Math.min(Math.ceil(height / lineHeight), Math.ceil((scene.height - y) / lineHeight), stack.levels);
    for (let level = first; level < last; level++) {
      const top = y + level * lineHeight;
      const text = (item: number, x0: number, x1: number) =>
        this.text(stack, item, x0 / ratio, x1 / ratio, top, lineHeight, scene);
      this.line.set(this.template);
      stack.row(level).paint(this.line, from, pixel, stack.key, palette, tall ? MIN_TEXT_PX * ratio : Infinity, text);
      const late = stack.late?.[level];
      if (late && found === null) {
        late.paint(this.line, from, pixel, stack.key, model.framePalettes.late(), Infinity, nothing);
      }
      marked?.[level]?.paint(this.line, from, pixel, stack.key, model.palette(stack.space), Infinity, nothing);
      this.put(top, tall ? lineHeight - 1 : lineHeight, scene);
      const marks = underlined?.[level];
      if (!marks || !selected) continue;
      marks.paint(this.line, from, pixel, stack.key, selected.plain(stack.space, pack(theme.fg)), Infinity, nothing);
      this.put(top + lineHeight - (tall ? 4 : 2), tall ? 3 : 2, scene);
    }
    if (row.process !== null && tall) this.lateFrames(stack, row.process, y, lineHeight, scene);
  }

  /** Marks the top of the main thread's part of late frames. */
  private lateFrames(
    stack: Stack,
    process: number,
    y: number,
    lineHeight: number,
    { model, scale, theme }: Scene,
  ): void {
    const frames = model.lateFramesOf(process);
    if (!frames || model.frameNs / scale.quantum < 2) return;
    const { start, end, track, item } = frames;
    const to = scale.from + scale.width * scale.quantum;
    this.context.fillStyle = theme.danger;
    for (let i = upperBound(end, scale.from); i < start.length && start[i] <= to; i++) {
      const at = stack.find(track[i], item[i]);
      if (at < 0) continue;
      const x = (start[i] - scale.from) / scale.quantum;
      this.context.fillRect(x, y + stack.level[at] * lineHeight, (end[i] - start[i]) / scale.quantum, 3);
    }
  }

  private text(stack: Stack, item: number, x0: number, x1: number, y: number, height: number, scene: Scene): void {
    const key = stack.key[item];
    const name = scene.model.name(stack.space, key);
    // A marker may have dots, too: those of a file's name in a lock's text.
    const isMethod = stack.space === "methods" || (stack.space === "joint" && key >= scene.model.trace.strings.length);
    const text = this.fitted(this.shown(name), x1 - x0 - 6, isMethod);
    if (!text) return;
    const dim = scene.found !== null && !scene.found.has(stack.space, key);
    this.context.fillStyle = dim ? scene.theme.muted : INK;
    this.context.fillText(text, x0 + 3, y + height / 2);
  }

  /** `text`, or what of it fits into `room`: of a method's name first the class, then the method alone. */
  private fitted(text: string, room: number, isMethod: boolean): string {
    const width = this.width(text);
    if (width <= room) return text;
    if (isMethod) {
      const dot = text.lastIndexOf(".");
      const before = text.lastIndexOf(".", dot - 1);
      if (dot > 0) return this.fitted(text.slice((before >= 0 ? before : dot) + 1), room, before >= 0);
    }
    const letters = Math.floor((room - ELLIPSIS_PX) / (width / text.length));
    return letters >= 2 ? `${text.slice(0, letters)}…` : "";
  }

  private shown(name: string): string {
    let text = this.visible.get(name);
    if (text === undefined) {
      if (this.visible.size > MAX_REMEMBERED_NAMES) this.visible.clear();
      this.visible.set(name, (text = visibleName(name.slice(0, MAX_NAME_CHARS))));
    }
    return text;
  }

  private width(text: string): number {
    let width = this.widths.get(text);
    if (width === undefined) {
      if (this.widths.size > MAX_REMEMBERED_NAMES) this.widths.clear();
      this.widths.set(text, (width = this.context.measureText(text).width));
    }
    return width;
  }

  /** Hatches the periods in which events are missing. */
  private losses(row: Row, periods: Intervals, y: number, { scale, theme }: Scene): void {
    const { context } = this;
    const height = row.height - 1;
    context.globalAlpha = row.thread === null ? 1 : THREAD_HATCHING_ALPHA;
    context.fillStyle = this.hatching.of(context, theme.danger);
    let drawn = -1;
    for (let i = periods.after(scale.from); i < periods.count; i++) {
      const x0 = Math.max((periods.start[i] - scale.from) / scale.quantum, drawn, 0);
      if (x0 >= scale.width) break;
      const x1 = Math.min(Math.max((periods.end[i] - scale.from) / scale.quantum, x0 + 2), scale.width);
      context.fillRect(x0, y, x1 - x0, height);
      drawn = x1;
    }
    context.globalAlpha = 1;
  }
}
