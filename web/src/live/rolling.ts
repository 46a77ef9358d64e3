// The rolling picture: its elements, which moment and rows it shows, and its frames.

import { context2d } from "../timeline/canvas";
import { readTheme, type Theme } from "../timeline/colors";
import { FONT, MIN_TICK_DISTANCE_PX } from "../timeline/draw";
import { type Elements, makeElements } from "../timeline/elements";
import { Hatching } from "../timeline/hatching";
import { Labels } from "../timeline/labels";
import type { Folds } from "../timeline/rows";
import { formatDuration, formatTick, formatValue, rulerStep } from "../timeline/time";
import { countText, visibleName } from "../ui/text";
import type { Kept } from "./kept";
import type { LiveClock } from "./live_clock";
import { type LiveRow, liveRows } from "./live_rows";
import type { LiveLaunch, LiveMark } from "./messages";
import { Strip, type StripScene } from "./strip";

const FIRST_WINDOW_NS = 10e9;
const MIN_WINDOW_NS = 1e9;
export const ZOOM_STEP_FACTOR = 2;
const WHEEL_ZOOM_PER_PX = 0.003;
const WHEEL_LINE_PX = 18;
/** Strips are painted so far ahead of the view. */
const AHEAD_PX = 240;
const RULER_HEIGHT_PX = 26;
/** Rows are put into a new order no more often than this. */
const ORDER_MS = 10_000;
/** New rows come no more often than this. */
const ROWS_MS = 250;
/** A gap's text has room in this. */
const MIN_GAP_TEXT_PX = 40;
/** Lower counters have no text. */
const MIN_AXIS_PX = 24;
const MAX_LOSSES_DRAWN = 300;
/** The text of a launch or a marker takes no more. */
const MAX_FLAG_PX = 260;
const HATCHING_ALPHA = 0.45;

/** What the picture marks beside the items. */
export interface Marked {
  launches: readonly LiveLaunch[];
  marks: readonly LiveMark[];
  /** The package that is watched. */
  app: string | null;
}

export class Rolling {
  readonly elements: Elements = makeElements();
  /** The period that the picture shows, ns. */
  window = FIRST_WINDOW_NS;
  /** The shown moment where the picture is stopped; null: it rolls. */
  stoppedAt: number | null = null;
  /** When each of the last frames was drawn, and how long that took, ms. */
  readonly frames: { at: number; took: number }[] = [];
  rows: LiveRow[] = [];
  private readonly folds: Folds = new Map();
  private readonly canvas = document.createElement("canvas");
  private readonly ruler = document.createElement("canvas");
  private readonly labels: Labels;
  private readonly hatching = new Hatching();
  private strips = new Map<string, Strip>();
  private scene: StripScene | null = null;
  private theme!: Theme;
  private scrolled = 0;
  private width = 1;
  private height = 1;
  private requested = 0;
  private drawn = "";
  private made = { version: -1, at: -Infinity, ordered: -Infinity, app: "" };
  private readonly ended = new AbortController();

  constructor(
    container: HTMLElement,
    private readonly kept: Kept,
    private readonly clock: LiveClock,
    private readonly marked: () => Marked,
  ) {
    const { root, plot, ruler, labels, bar, overview, corner, grip } = this.elements;
    root.classList.add("live-picture");
    plot.setAttribute("aria-label", "The recording as it runs. Space stops the picture, question mark lists the keys.");
    plot.setAttribute("role", "img");
    overview.remove();
    corner.replaceChildren();
    grip.remove();
    plot.prepend(this.canvas);
    ruler.append(this.ruler);
    this.labels = new Labels(
      labels,
      (row) => {
        this.folds.set(row.id, !row.open);
        this.made.version = -1;
        this.makeRows(performance.now());
      },
      () => undefined,
      null,
      () => ({ sort: "activity", filter: "", pinned: [], hidden: [] }),
    );
    container.replaceChildren(root);
    const { signal } = this.ended;
    const sizes = new ResizeObserver(() => this.resize());
    sizes.observe(plot);
    const themes = new MutationObserver(() => this.retheme());
    themes.observe(document.documentElement, { attributes: true });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.retheme(), { signal });
    signal.addEventListener("abort", () => {
      sizes.disconnect();
      themes.disconnect();
      cancelAnimationFrame(this.requested);
    });
    bar.addEventListener("scroll", () => (this.scrolled = bar.scrollTop), { signal });
    root.addEventListener("wheel", (event) => this.wheel(event), { passive: false, signal });
    this.dragOn(plot, signal);
    this.retheme();
    this.resize();
    this.frame();
  }

  unmount(): void {
    this.ended.abort();
    this.elements.root.remove();
  }

  get isStopped(): boolean {
    return this.stoppedAt !== null;
  }

  /** The right edge of the picture, ns. */
  get edge(): number {
    return this.stoppedAt ?? this.clock.edge;
  }

  stop(): void {
    this.stoppedAt = this.clock.move(performance.now());
  }

  goOn(): void {
    this.stoppedAt = null;
  }

  zoom(factor: number): void {
    this.window = Math.min(Math.max(this.window * factor, MIN_WINDOW_NS), Math.max(MIN_WINDOW_NS, this.kept.keepNs));
    this.scene = null;
  }

  /** Moves a picture that is stopped, within what is kept. */
  pan(ns: number): void {
    if (this.stoppedAt === null) return;
    const least = Math.min(this.kept.horizon + this.window, this.kept.latest);
    this.stoppedAt = Math.min(Math.max(this.stoppedAt + ns, least), this.kept.latest);
  }

  scrollBy(px: number): void {
    this.elements.bar.scrollTop += px;
  }

  /** Draws now; for tests, which read pixels. */
  draw(): HTMLCanvasElement {
    this.drawn = "";
    this.picture(performance.now());
    return this.canvas;
  }

  private wheel(event: WheelEvent): void {
    event.preventDefault();
    const unit = event.deltaMode === 1 ? WHEEL_LINE_PX : 1;
    const [dx, dy] = [event.deltaX * unit, event.deltaY * unit];
    const isRuler = this.elements.ruler.contains(event.target as Node);
    if (event.ctrlKey || event.metaKey || isRuler)
      this.zoom(Math.exp(Math.max(-1, Math.min(1, dy * WHEEL_ZOOM_PER_PX))));
    else if (event.shiftKey || Math.abs(dx) > Math.abs(dy)) this.pan(((event.shiftKey && dy) || dx) * this.nsPerPx);
    else this.scrollBy(dy);
  }

  private get nsPerPx(): number {
    return this.window / this.width;
  }

  private dragOn(plot: HTMLElement, signal: AbortSignal): void {
    const options = { signal };
    plot.addEventListener(
      "pointerdown",
      (event) => event.button === 0 && plot.setPointerCapture(event.pointerId),
      options,
    );
    plot.addEventListener(
      "pointermove",
      (event) => {
        if (!plot.hasPointerCapture(event.pointerId)) return;
        this.pan(-event.movementX * this.nsPerPx);
        this.scrollBy(-event.movementY);
      },
      options,
    );
  }

  private resize(): void {
    const { root, plot } = this.elements;
    this.width = Math.max(1, plot.clientWidth);
    this.height = Math.max(1, plot.clientHeight);
    root.style.setProperty("--ruler", `${RULER_HEIGHT_PX}px`);
    this.scene = null;
  }

  private retheme(): void {
    this.theme = readTheme(this.elements.root);
    this.kept.names.setTheme(this.theme);
    this.scene = null;
  }

  private frame(): void {
    this.requested = requestAnimationFrame((now) => {
      this.clock.move(performance.now());
      if (!Number.isNaN(this.edge)) this.picture(now);
      this.frame();
    });
  }

  private makeRows(now: number): void {
    const { kept, made } = this;
    const app = this.marked().app ?? "";
    const isDue = now - made.at > ROWS_MS && (kept.version !== made.version || app !== made.app);
    if (made.version >= 0 && !isDue && now - made.ordered < ORDER_MS) return;
    if (made.version < 0 || now - made.ordered >= ORDER_MS) made.ordered = now;
    Object.assign(made, { version: kept.version, at: now, app });
    this.rows = liveRows(kept, this.folds, app || null);
    const last = this.rows.at(-1);
    this.elements.extent.style.height = `${last ? last.y + last.height : 0}px`;
    this.scrolled = this.elements.bar.scrollTop;
    this.drawn = "";
    const strips = this.strips;
    this.strips = new Map();
    for (const row of this.rows) {
      const strip = strips.get(row.id);
      if (strip && isSameRow(strip.row, row)) this.strips.set(row.id, strip);
    }
  }

  private sceneNow(): StripScene {
    const ratio = devicePixelRatio || 1;
    if (this.scene?.ratio === ratio) return this.scene;
    const columns = Math.max(1, Math.round(this.width * ratio));
    this.canvas.width = columns;
    this.canvas.height = Math.max(1, Math.round(this.height * ratio));
    this.strips.clear();
    this.drawn = "";
    const { theme, window } = this;
    const { names } = this.kept;
    this.scene = { names, theme, ratio, quantum: window / columns, columns: columns + Math.round(AHEAD_PX * ratio) };
    return this.scene;
  }

  private picture(now: number): void {
    const began = performance.now();
    this.makeRows(now);
    const scene = this.sceneNow();
    const { ratio, quantum } = scene;
    const { width } = this.canvas;
    const context = context2d(this.canvas, { alpha: false });
    const first = Math.floor(this.edge / quantum) - width;
    const latest = Math.floor(this.kept.latest / quantum);
    // A picture of which nothing has moved is there already.
    const state = [first, latest, this.scrolled, this.kept.gaps.length].join();
    if (state === this.drawn) return;
    this.drawn = state;
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.fillStyle = this.theme.bg;
    context.fillRect(0, 0, width, this.canvas.height);
    const seen = this.rowsInView(this.scrolled, this.height);
    for (const row of seen) {
      let strip = this.strips.get(row.id);
      if (!strip) this.strips.set(row.id, (strip = new Strip(row, scene)));
      strip.paint(first, Math.max(first, Math.min(latest, first + scene.columns)));
      strip.copy(context, first, width, Math.round((row.y - this.scrolled) * ratio));
    }
    // Those that are out of view are painted anew when they come back.
    if (this.strips.size > seen.length) {
      const ids = new Set(seen.map(({ id }) => id));
      for (const id of this.strips.keys()) if (!ids.has(id)) this.strips.delete(id);
    }
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    const from = first * quantum;
    this.decorate(context, from, seen);
    this.drawRuler(from);
    const places = { rowsInView: () => seen, inPicture: (y: number) => y - this.scrolled, pinnedHeight: 0 };
    this.labels.update(places, this.scrolled, this.height, null);
    this.frames.push({ at: now, took: performance.now() - began });
    if (this.frames.length > 5000) this.frames.shift();
  }

  private rowsInView(scrolled: number, height: number): LiveRow[] {
    return this.rows.filter((row) => row.y + row.height > scrolled && row.y < scrolled + height);
  }

  private xOf(time: number, from: number): number {
    return (time - from) / this.nsPerPx;
  }

  /** Draws gaps, marks and launches above the rows. */
  private decorate(context: CanvasRenderingContext2D, from: number, rows: LiveRow[]): void {
    const { width, height, theme } = this;
    const to = from + this.window;
    context.font = FONT;
    context.textBaseline = "middle";
    for (const row of rows) {
      let left = MAX_LOSSES_DRAWN;
      for (const lane of row.lost) {
        lane.between(from, to, (start, end, count) => {
          if (left-- <= 0) return;
          const text = count > 0 ? `${countText(count)} lost` : "lost";
          this.hatch(context, this.xOf(start, from), this.xOf(end, from), row.y - this.scrolled, row.height - 1, text);
        });
      }
    }
    context.fillStyle = theme.muted;
    for (const row of rows) {
      for (const { kind, y, height, track } of row.live) {
        if (kind !== "counter" || !track || height < MIN_AXIS_PX) continue;
        context.fillText(formatValue(track.high, track.unit), 4, row.y - this.scrolled + y + 7);
      }
    }
    for (const gap of this.kept.gaps) {
      const [x0, x1] = [this.xOf(gap.from, from), this.xOf(gap.to, from)];
      if (x1 > 0 && x0 < width) this.hatch(context, x0, x1, 0, height, gap.text);
    }
    const { launches, marks } = this.marked();
    const rule = (time: number, color: string) => {
      context.fillStyle = color;
      context.fillRect(Math.round(this.xOf(time, from)), 0, 1, height);
    };
    for (const { at_ns } of marks) rule(at_ns, theme.danger);
    for (const { begin_ns, ttid_ns } of launches) {
      rule(begin_ns, theme.accent);
      if (ttid_ns !== null) rule(begin_ns + ttid_ns, theme.accent);
    }
  }

  /** Hatches a period in which something is missing, and says how much where there is room. */
  private hatch(
    context: CanvasRenderingContext2D,
    x0: number,
    x1: number,
    y: number,
    height: number,
    text: string,
  ): void {
    const { theme } = this;
    const left = Math.max(0, x0);
    const wide = Math.max(2, Math.min(x1, this.width) - left);
    context.globalAlpha = HATCHING_ALPHA;
    context.fillStyle = this.hatching.of(context, theme.danger);
    context.fillRect(left, y, wide, height);
    context.globalAlpha = 1;
    const shown = visibleName(text.slice(0, 100));
    const room = context.measureText(shown).width + 6;
    if (wide < MIN_GAP_TEXT_PX && height < this.height) return;
    const at = Math.max(0, Math.min(left, this.width - room));
    const middle = y + Math.min(height, 2 * RULER_HEIGHT_PX) / 2;
    context.fillStyle = theme.bg;
    context.fillRect(at, middle - 8, room, 16);
    context.fillStyle = theme.danger;
    context.fillText(shown, at + 3, middle);
  }

  private drawRuler(from: number): void {
    const { theme, width, ruler } = this;
    const ratio = devicePixelRatio || 1;
    const [wide, tall] = [Math.round(width * ratio), Math.round(RULER_HEIGHT_PX * ratio)];
    if (ruler.width !== wide || ruler.height !== tall) Object.assign(ruler, { width: wide, height: tall });
    const context = context2d(ruler);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.fillStyle = theme.panel;
    context.fillRect(0, 0, width, RULER_HEIGHT_PX);
    context.font = FONT;
    context.textBaseline = "top";
    const step = rulerStep(MIN_TICK_DISTANCE_PX * this.nsPerPx);
    const to = from + this.window;
    for (let tick = Math.max(0, Math.floor(from / step)); tick * step <= to; tick++) {
      const x = this.xOf(tick * step, from);
      context.fillStyle = theme.line;
      context.fillRect(Math.round(x), 0, 1, RULER_HEIGHT_PX);
      context.fillStyle = theme.muted;
      context.fillText(formatTick(tick * step, step, to), x + 4, 1);
    }
    const { launches, marks } = this.marked();
    const flags: [time: number, text: string, color: string][] = marks.map(({ at_ns, name }) => [
      at_ns,
      name || "marker",
      theme.danger,
    ]);
    for (const { begin_ns, ttid_ns, package: name } of launches) {
      flags.push([begin_ns, `launch of ${name}`, theme.accent]);
      if (ttid_ns !== null) flags.push([begin_ns + ttid_ns, `TTID ${formatDuration(ttid_ns)}`, theme.accent]);
    }
    // Each text has the room until the next one.
    let end = width;
    for (const [time, text, color] of flags.sort(([a], [b]) => b - a)) {
      const x = this.xOf(time, from);
      if (x < -MAX_FLAG_PX || x > width) continue;
      context.fillStyle = color;
      context.fillRect(Math.round(x), 0, 2, RULER_HEIGHT_PX);
      context.save();
      context.beginPath();
      context.rect(x, 0, Math.min(end - x - 2, MAX_FLAG_PX), RULER_HEIGHT_PX);
      context.clip();
      context.fillText(visibleName(text.slice(0, 60)), x + 5, 13);
      context.restore();
      end = x;
    }
  }
}

/** Whether a row looks as it did: its strip can stay. */
function isSameRow(a: LiveRow, b: LiveRow): boolean {
  return (
    a.height === b.height
    && a.live.length === b.live.length
    && a.live.every(({ kind, y, lanes }, n) => {
      const other = b.live[n];
      return (
        kind === other.kind
        && y === other.y
        && lanes.length === other.lanes.length
        && lanes.every((lane, at) => lane === other.lanes[at])
      );
    })
  );
}
