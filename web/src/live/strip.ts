// A row's picture as a strip: each column of pixels stands for a stretch of time, is painted once, and keeps its place while
// the view moves over it. The strip is a ring: the column of a later time takes the place of one that has left the view.

import { context2d } from "../timeline/canvas";
import { INK, mix, type Theme, unpack } from "../timeline/colors";
import { FONT, MIN_TICK_DISTANCE_PX } from "../timeline/draw";
import { rulerStep } from "../timeline/time";
import { DEADLINE_PARTS } from "./kept";
import type { LiveBand, LiveRow } from "./live_rows";
import { NAME_BITS, NAME_MASK, type Names } from "./names";

/** What all strips of a picture have in common. */
export interface StripScene {
  names: Names;
  theme: Theme;
  /** Device pixels to a CSS pixel. */
  ratio: number;
  /** ns to a device pixel. */
  quantum: number;
  /** Columns of a strip: more than the view has, so that it can be painted ahead. */
  columns: number;
}

/** Lines lower than this have no texts. */
const MIN_TEXT_HEIGHT_PX = 12;
const MIN_TEXT_PX = 22;
/** The sign of a cut name takes so much. */
const ELLIPSIS_PX = 10;
/** A frame of this many times its time has the whole height. */
const MOST_DEADLINES = 2;

let line = new Uint32Array(0);

export class Strip {
  readonly canvas = document.createElement("canvas");
  private readonly context: CanvasRenderingContext2D;
  private from = 0;
  private to = 0;

  constructor(
    readonly row: LiveRow,
    private readonly scene: StripScene,
  ) {
    this.canvas.width = scene.columns;
    this.canvas.height = Math.max(1, Math.round(row.height * scene.ratio));
    this.context = context2d(this.canvas, { alpha: false });
    this.context.textBaseline = "middle";
    this.context.font = FONT.replace(/^\d+/, (size) => String(Number(size) * scene.ratio));
  }

  /** Paints what is new, so that the columns `from` to `to` are there, of which the strip has room for. */
  paint(from: number, to: number): void {
    const { columns } = this.scene;
    if (from > this.to || to < this.from) this.from = this.to = from;
    const { from: hadFrom, to: hadTo } = this;
    this.to = Math.max(to, hadTo);
    this.from = Math.max(hadFrom, this.to - columns);
    if (from < this.from) {
      this.from = from;
      this.to = Math.min(this.to, from + columns);
    }
    for (const band of this.row.live) {
      let changed = Infinity;
      for (const lane of band.lanes) {
        changed = Math.min(changed, lane.changed);
        lane.changed = Infinity;
      }
      // The column in which something changed, and the one before: an item leaves its last one free.
      const first = Math.max(this.from, Math.min(hadTo, Math.floor(changed / this.scene.quantum) - 1));
      this.band(band, first, this.to);
      if (this.from < hadFrom) this.band(band, this.from, Math.min(hadFrom, first));
    }
    const edge = Math.max(this.from, Math.min(hadTo, this.to));
    this.ground(edge, this.to);
    if (this.from < hadFrom) this.ground(this.from, Math.min(hadFrom, this.to));
  }

  /** Copies the columns from `first` on to the top left of `y`. */
  copy(to: CanvasRenderingContext2D, first: number, width: number, y: number): void {
    this.pieces(first, first + width, (at, x, columns) => {
      const { canvas } = this;
      to.drawImage(canvas, x, 0, columns, canvas.height, at - first, y, columns, canvas.height);
    });
  }

  /** The pieces of the ring that columns lie in: the first column, where it lies, how many there are. */
  private pieces(from: number, to: number, each: (first: number, x: number, columns: number) => void): void {
    const { columns } = this.scene;
    for (let at = from; at < to;) {
      const x = ((at % columns) + columns) % columns;
      const count = Math.min(to - at, columns - x);
      each(at, x, count);
      at += count;
    }
  }

  /** Paints what lies between the bands. */
  private ground(from: number, to: number): void {
    const { ratio } = this.scene;
    let y = 0;
    const ends = [...this.row.live, { y: this.row.height, height: 0 }];
    for (const band of ends) {
      const top = Math.round(band.y * ratio);
      if (top > y) this.pieces(from, to, (first, x, columns) => this.clear(first, x, columns, y, top - y));
      y = Math.max(y, Math.round((band.y + band.height) * ratio));
    }
    this.context.fillStyle = this.scene.theme.line;
    this.pieces(from, to, (_, x, columns) => this.context.fillRect(x, this.canvas.height - 1, columns, 1));
  }

  private clear(first: number, x: number, columns: number, y: number, height: number): void {
    const { context } = this;
    const { theme, quantum, ratio } = this.scene;
    const isRow = this.row.kind === "row";
    context.fillStyle = isRow ? theme.bg : theme.panel;
    context.fillRect(x, y, columns, height);
    const step = rulerStep(MIN_TICK_DISTANCE_PX * ratio * quantum);
    context.fillStyle = unpack(mix(theme.bg, theme.line, 0.7));
    for (let tick = Math.ceil((first * quantum) / step); ; tick++) {
      const column = Math.floor((tick * step) / quantum);
      if (column >= first + columns) break;
      if (isRow && column >= first) context.fillRect(x + column - first, y, 1, height);
    }
  }

  private band(band: LiveBand, from: number, to: number): void {
    if (to <= from) return;
    const { ratio } = this.scene;
    const y = Math.round(band.y * ratio);
    const height = Math.max(1, Math.round((band.y + band.height) * ratio) - y);
    const { context } = this;
    this.pieces(from, to, (first, x, columns) => {
      this.clear(first, x, columns, y, height);
      context.save();
      context.beginPath();
      context.rect(x, y, columns, height);
      context.clip();
      // Column 0 of what follows is the first one of the piece.
      context.translate(x, y);
      if (band.kind === "counter") this.counter(band, first, columns, height);
      else if (band.kind === "frames") this.frames(band, first, columns, height);
      else this.items(band, first, columns, height);
      context.restore();
    });
  }

  /** Items as areas; where several share a pixel, the longest shows. */
  private items({ kind, lanes, height }: LiveBand, first: number, columns: number, tall: number): void {
    const { names, quantum, ratio } = this.scene;
    const busy = kind === "busy";
    const gap = busy || height < MIN_TEXT_HEIGHT_PX ? 0 : 1;
    if (line.length < columns) line = new Uint32Array(columns);
    line.fill(0, 0, columns);
    const texts: [name: number, x0: number, x1: number, isOpen: boolean][] = [];
    const base = first * quantum;
    for (const lane of lanes) {
      let taken = -1;
      let takenFor = 0;
      lane.between(base, base + columns * quantum, (start, end, key, isOpen) => {
        const name = key & NAME_MASK;
        if (busy && names.isIdle(name)) return;
        const begin = Math.floor((start - base) / quantum);
        let x1 = Math.floor((end - base) / quantum);
        if (x1 <= begin) x1 = begin + 1;
        const length = end - start;
        let x0 = Math.max(begin, 0);
        if (x0 <= taken && length < takenFor) x0 = taken + 1;
        if (x0 >= x1 || x0 >= columns) return;
        taken = x1 - 1;
        takenFor = x1 - x0 > 1 ? 0 : length;
        // The last pixel of a wide item stays free, so that neighbours of one colour can be told apart.
        const stop = !busy && !isOpen && x1 - begin > 3 ? x1 - 1 : x1;
        line.fill(names.colors[name], x0, Math.min(stop, columns));
        if (gap && x1 - begin >= MIN_TEXT_PX * ratio) texts.push([name, begin, stop, isOpen]);
      });
    }
    this.runs(columns, tall - gap);
    for (const [name, x0, x1, isOpen] of texts) this.text(name, x0, x1, tall, isOpen);
  }

  /** Fills the runs of equal pixels of the line. */
  private runs(columns: number, height: number): void {
    const { context } = this;
    for (let x = 0; x < columns;) {
      const color = line[x];
      let end = x + 1;
      while (end < columns && line[end] === color) end++;
      if (color !== 0) {
        context.fillStyle = unpack(color);
        context.fillRect(x, 0, end - x, height);
      }
      x = end;
    }
  }

  /** Draws a name; what of it is not over is cut where it ends at the moment. */
  private text(name: number, x0: number, x1: number, tall: number, isOpen: boolean): void {
    const { context, scene } = this;
    const { names, ratio } = scene;
    const shown = names.shown(name);
    const room = x1 - x0 - 6 * ratio;
    const width = names.width(name, context);
    let text = shown;
    if (width > room && !isOpen) {
      const letters = Math.floor((room - ELLIPSIS_PX * ratio) / (width / Math.max(1, shown.length)));
      text = letters >= 2 ? `${shown.slice(0, letters)}…` : "";
    }
    if (!text) return;
    context.fillStyle = INK;
    if (isOpen) {
      context.save();
      context.beginPath();
      context.rect(x0, 0, x1 - x0, tall);
      context.clip();
    }
    context.fillText(text, x0 + 3 * ratio, tall / 2);
    if (isOpen) context.restore();
  }

  /** Frames as bars: the line in the middle is their deadline, late ones reach over it in their own colour. */
  private frames({ lanes, track }: LiveBand, first: number, columns: number, tall: number): void {
    const { names, quantum, theme } = this.scene;
    const { context } = this;
    const base = first * quantum;
    for (const lane of lanes) {
      lane.between(base, base + columns * quantum, (start, end, key) => {
        const parts = key >>> NAME_BITS;
        const x0 = Math.floor((start - base) / quantum);
        const wide = Math.max(2, Math.floor((end - base) / quantum) - x0 - 1);
        const high = parts === 0 ? 0.5 : Math.min(1, parts / DEADLINE_PARTS / MOST_DEADLINES);
        context.fillStyle = unpack(names.colors[key & NAME_MASK]);
        context.fillRect(x0, Math.round(tall * (1 - high)), wide, tall);
      });
    }
    if (!track?.hasDeadlines) return;
    context.fillStyle = theme.muted;
    context.fillRect(0, Math.round(tall * (1 - 1 / MOST_DEADLINES)), columns, 1);
  }

  private counter({ lanes, track }: LiveBand, first: number, columns: number, tall: number): void {
    const { quantum, theme } = this.scene;
    const { context } = this;
    const low = track?.low ?? 0;
    const high = Math.max(track?.high ?? 1, low + Number.MIN_VALUE);
    const base = first * quantum;
    const placeOf = (value: number) => tall - ((value - low) / (high - low)) * tall;
    const zero = placeOf(0);
    context.fillStyle = theme.accent;
    for (const lane of lanes) {
      lane.valuesBetween(base, base + columns * quantum, (start, end, value) => {
        const x0 = Math.max(0, Math.floor((start - base) / quantum));
        const x1 = Math.max(x0 + 1, Math.floor((end - base) / quantum));
        const at = placeOf(value);
        context.globalAlpha = 0.3;
        context.fillRect(x0, Math.min(at, zero), x1 - x0, Math.abs(zero - at));
        context.globalAlpha = 1;
        context.fillRect(x0, Math.min(at, tall - 1), x1 - x0, 1);
      });
    }
  }
}
