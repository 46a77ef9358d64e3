// The timeline panel: its elements, what it shows, and what changes that.

import type { Trace } from "../data/trace";
import type { Range, Selection, State, Store } from "../store";
import { ARROW_STEPS, drawArrows } from "./arrows";
import { type Theme, veilOf } from "./colors";
import type { TimelineControl } from "./control";
import { exposeToTests } from "./debug";
import { announcement, details } from "./details";
import { Drawing, type Scene } from "./draw";
import { type Elements, makeElements, showTip } from "./elements";
import { attachInput, CLICK_MAX_MOVE_PX } from "./input";
import { handleKey } from "./keys";
import { Labels } from "./labels";
import { type Hit, Layout, periodOf, type Scale } from "./layout";
import { Marks } from "./marks";
import { type Model, modelOf } from "./model";
import { Navigator } from "./navigate";
import { makePainter, type Painter } from "./painter";
import { drawPath } from "./path";
import type { Row } from "./rows";
import { offerPicture, type Picture } from "./picture";
import { drawOverview, drawRuler, type HeadScene, launchAt, measuredText, noteAt, rulerHeight } from "./ruler";
import { matchFlags } from "./search";
import { boundsOf } from "../compare/alignment";
import { draftNote, inOrder, nextNumber, noteNear } from "../notes/notes";
import { counted, visibleName } from "../ui/text";
import { formatClock, formatDuration, formatMoment, formatWall } from "./time";

/** No zoom shows less than this. */
const MIN_VIEW_NS = 20;
/** Work that can wait is done when nothing was drawn for so long. */
const REST_MS = 300;
/** So much is shown before and behind an instant to which somebody goes. */
const MOMENT_NS = 1e6;
/** Pinned rows take no more of the height than this. */
const MAX_PINNED_PART = 0.6;
const OVERVIEW_HEIGHT_PX = 34;
/** A numbered note that is no further away is removed, and none is set beside it. */
const NOTE_REACH_PX = 6;

/** The state of a trace while another one is shown. */
interface Shown {
  model: Model;
  layout: Layout;
  scrolled: number;
}

/** The first timeline of a page has this name for tests. */
const FIRST = "timeline";

/**
 * Mounts the timeline in `container`. Of two timelines each has its own store; `shared` is that of the page, and
 * `name` what tests call it.
 */
export function mountTimeline(container: HTMLElement, store: Store, shared = store, name = FIRST): Timeline {
  return new Timeline(container, store, shared, name);
}

export class Timeline implements TimelineControl {
  readonly elements: Elements;
  private readonly navigator = new Navigator(this);
  /** How long each of the last pictures took, ms of the processor. */
  readonly frameTimes: number[] = [];
  readonly painter: Painter;
  private readonly shown = new WeakMap<Trace, Shown>();
  private current: Shown;
  private theme!: Theme;
  private readonly drawing: Drawing;
  private readonly labels: Labels;
  private readonly overviewCanvas = document.createElement("canvas");
  private readonly rulerCanvas = document.createElement("canvas");
  private readonly undo: (() => void)[] = [];
  private width = 1;
  private height = 1;
  private requested = 0;
  private lastDrawn = 0;
  /** Where the pointer is in the plot, CSS pixels from its left; -1: elsewhere. */
  private pointer = -1;
  /** How often more arrows were asked for. */
  private arrowStep = 0;
  private marks: { of: Selection | null; marks: Marks | null } = { of: null, marks: null };
  private found: { query: string; model: Model | null; marks: Marks | null } = { query: "", model: null, marks: null };
  private ownSelection: Selection | null = null;
  private zoomPeriod: Range | null = null;
  /** Called when the rows were scrolled. */
  onScroll: (() => void) | null = null;

  constructor(
    container: HTMLElement,
    readonly store: Store,
    private readonly shared: Store,
    name: string,
  ) {
    this.elements = makeElements();
    const { root, plot, overview, ruler, labels, bar } = this.elements;
    this.current = this.open(store.state.trace);
    this.model.measured = measuredText(store.state);
    this.painter = makePainter(() => this.request());
    const overlay = document.createElement("canvas");
    this.drawing = new Drawing(this.painter, overlay);
    plot.prepend(this.painter.canvas, overlay);
    overview.append(this.overviewCanvas);
    ruler.append(this.rulerCanvas);
    this.labels = new Labels(
      labels,
      (row) => this.toggle(row),
      (thread) => this.select({ kind: "thread", thread }, false),
      (row, list) => this.chooseRow(row, list),
      () => store.state.rows,
    );
    container.replaceChildren(root);
    this.retheme();
    const sizes = new ResizeObserver(() => this.resize());
    sizes.observe(plot);
    const themes = new MutationObserver(() => this.retheme());
    themes.observe(document.documentElement, { attributes: true });
    const scheme = matchMedia("(prefers-color-scheme: dark)");
    const retheme = () => this.retheme();
    scheme.addEventListener("change", retheme);
    let pressed = 0;
    ruler.addEventListener("pointerdown", (event) => (pressed = event.offsetX));
    ruler.addEventListener("click", (event) => {
      if (Math.abs(event.offsetX - pressed) > CLICK_MAX_MOVE_PX) return;
      const note = noteAt(this.store.state, this.scale, event.offsetX, event.offsetY);
      if (note) {
        this.store.set({ editing: note });
        return;
      }
      const launch = launchAt(this.model, this.scale, event.offsetX, event.offsetY);
      if (launch >= 0) this.select({ kind: "launch", launch }, false);
    });
    bar.addEventListener("scroll", () => this.scrollTo(bar.scrollTop));
    plot.addEventListener("keydown", (event) => {
      if (handleKey(this, this.navigator, event)) {
        event.preventDefault();
        event.stopPropagation();
      }
    });
    this.undo.push(
      attachInput(this),
      store.subscribe((state, changed) => this.changed(state, changed)),
      () => sizes.disconnect(),
      () => themes.disconnect(),
      () => scheme.removeEventListener("change", retheme),
      exposeToTests(this, name, shared),
      offerPicture(shared, () => this.picture()),
    );
    this.resize();
    this.prepare();
    if (store.state.selection) this.reveal(store.state.selection);
    if (name === FIRST) this.takePlace();
  }

  /** Makes the picture that a link or a copy tells of, and tells them of this one. */
  private takePlace(): void {
    const { shared, elements } = this;
    const { firstPlace } = shared;
    shared.firstPlace = null;
    if (firstPlace) {
      for (const [id, open] of firstPlace.folds) this.layout.folds.set(id, open);
      if (firstPlace.names !== null) elements.root.style.setProperty("--names", `${firstPlace.names}px`);
      this.layout.rebuild();
      this.resize();
      this.scrollTo(firstPlace.scrolled);
    }
    const place = () => {
      const names = /^(\d+)px$/.exec(elements.root.style.getPropertyValue("--names"));
      return { scrolled: this.scrolled, folds: [...this.layout.folds], names: names && Number(names[1]) };
    };
    shared.place = place;
    this.undo.push(() => {
      if (shared.place === place) shared.place = null;
    });
  }

  unmount(): void {
    cancelAnimationFrame(this.requested);
    for (const undo of this.undo) undo();
    this.elements.root.remove();
  }

  get model(): Model {
    return this.current.model;
  }

  get layout(): Layout {
    return this.current.layout;
  }

  get scrolled(): number {
    return this.current.scrolled;
  }

  get view(): Range {
    return this.store.state.view;
  }

  get bodyHeight(): number {
    return this.height;
  }

  get scale(): Scale {
    const { from, to } = this.view;
    return { from, quantum: Math.max(to - from, 1) / this.width, width: this.width };
  }

  setView(from: number, to: number): void {
    const bounds = boundsOf(this.store.state);
    const most = bounds.to - bounds.from;
    const span = Math.min(Math.max(to - from, Math.min(MIN_VIEW_NS, most)), most);
    const begin = Math.min(Math.max(from + (to - from - span) / 2, bounds.from), bounds.to - span);
    if (begin === this.view.from && begin + span === this.view.to) return;
    this.store.set({ view: { from: begin, to: begin + span } });
  }

  /** Zooms by `factor` (less than 1: in); `at`, or else the pointer or the middle, stays where it is. */
  zoom(factor: number, at = this.hoverTime ?? (this.view.from + this.view.to) / 2): void {
    const { from, to } = this.view;
    const bounds = boundsOf(this.store.state);
    const most = bounds.to - bounds.from;
    const wanted = Math.min(Math.max((to - from) * factor, Math.min(MIN_VIEW_NS, most)), most);
    const begin = at - ((at - from) / (to - from)) * wanted;
    this.setView(begin, begin + wanted);
  }

  pan(by: number): void {
    this.panTo(this.view.from + by);
  }

  panTo(from: number): void {
    const span = this.view.to - this.view.from;
    const bounds = boundsOf(this.store.state);
    const begin = Math.min(Math.max(from, bounds.from), bounds.to - span);
    this.setView(begin, begin + span);
  }

  fit(): void {
    const { from, to } = boundsOf(this.store.state);
    this.setView(from, to);
  }

  scrollBy(by: number): void {
    this.scrollTo(this.scrolled + by);
  }

  scrollTo(y: number): void {
    const scrolled = Math.round(Math.min(Math.max(y, 0), Math.max(0, this.layout.height - this.height)));
    if (scrolled === this.scrolled) return;
    this.current.scrolled = scrolled;
    this.elements.bar.scrollTop = scrolled;
    this.forgetHover();
    this.request();
    this.onScroll?.();
  }

  click(x: number, y: number, asRange: boolean): void {
    const hit = this.hitAt(x, y);
    if (asRange && hit) this.store.set({ range: { from: hit.start, to: hit.end } });
    else this.select(hit?.selection ?? null, false);
  }

  /** Selects; with `reveal`, brings the selection into view. */
  select(selection: Selection | null, reveal: boolean): void {
    this.ownSelection = selection;
    this.store.set({ selection });
    if (reveal && selection) this.reveal(selection);
  }

  zoomToSelection(): void {
    const period = periodOf(this.model.trace, this.store.state.selection) ?? this.store.state.range;
    if (!period) return;
    const margin = Math.max((period.to - period.from) * 0.1, MIN_VIEW_NS);
    this.setView(period.from - margin, period.to + margin);
  }

  rangeOfSelection(): void {
    const period = periodOf(this.model.trace, this.store.state.selection);
    if (period && period.to > period.from) this.store.set({ range: period });
  }

  toggleNumber(): void {
    const { state } = this.store;
    const { notes } = state;
    const draft = { ...draftNote(state, this.hoverTime), selection: null };
    const numbered = notes.filter(({ text }) => /^\d+$/.test(text));
    const near = noteNear({ ...state, notes: numbered }, draft.at, NOTE_REACH_PX * this.scale.quantum);
    const text = nextNumber(notes);
    this.store.set({ notes: near ? notes.filter((one) => one !== near) : inOrder([...notes, { ...draft, text }]) });
    this.say(near ? `Note ${near.text} removed` : `Note ${text} set at ${formatMoment(draft.at)}`);
  }

  writeNote(): void {
    this.store.set({ editing: draftNote(this.store.state, this.hoverTime) });
  }

  toggleArrows(): void {
    this.arrowStep = (this.arrowStep + 1) % ARROW_STEPS;
    this.request();
  }

  /** Drops the chosen period, or where none is chosen the selection. */
  drop(): void {
    if (this.store.state.range) this.store.set({ range: null });
    else this.select(null, false);
  }

  /** While a drag chooses a period, to keep (`range`) or to zoom into; null when it is over. */
  dragPeriod(kind: "range" | "zoom" | null, from: number, to: number): void {
    if (kind === "range") {
      const duration = Math.max(this.model.trace.duration, 1);
      this.store.set({ range: { from: Math.max(0, Math.round(from)), to: Math.min(duration, Math.round(to)) } });
      return;
    }
    this.zoomPeriod = kind === "zoom" ? { from, to } : null;
    this.request();
  }

  /** The time under the pointer; null where the pointer is elsewhere. */
  private get hoverTime(): number | null {
    return this.pointer < 0 ? null : this.scale.from + this.pointer * this.scale.quantum;
  }

  /** Says what lies under the pointer; `x` less than 0: the pointer left. */
  hoverAt(x: number, y: number): void {
    const { cursor, hover, tip } = this.elements;
    const inside = x >= 0 && x < this.width && y >= 0;
    this.pointer = inside ? x : -1;
    cursor.style.display = inside ? "block" : "none";
    cursor.style.transform = `translateX(${x}px)`;
    this.corner();
    if (this.model.trace.videos.length > 0) this.store.set({ pointer: this.hoverTime });
    const hit = inside ? this.hitAt(x, y) : null;
    const found = hit && details(this.model, hit.selection, this.hoverTime);
    hover.style.display = tip.style.display = found ? "block" : "none";
    if (!hit || !found) return;
    const x0 = Math.max((hit.start - this.scale.from) / this.scale.quantum, -2);
    const x1 = Math.min((hit.end - this.scale.from) / this.scale.quantum, this.width + 2);
    hover.style.transform = `translate(${x0}px, ${this.layout.inPicture(hit.y, this.scrolled)}px)`;
    hover.style.width = `${Math.max(x1 - x0, 3)}px`;
    hover.style.height = `${hit.height}px`;
    showTip(tip, found);
    const { offsetLeft, offsetTop } = this.elements.plot;
    const [wide, tall] = [tip.offsetWidth, tip.offsetHeight];
    const left =
      offsetLeft + x + 16 + wide > offsetLeft + this.width ? offsetLeft + x - wide - 12 : offsetLeft + x + 16;
    const top = Math.min(offsetTop + y + 18, this.elements.root.clientHeight - tall - 4);
    tip.style.transform = `translate(${Math.max(left, 4)}px, ${Math.max(top, 4)}px)`;
  }

  /** The item under the pointer has moved away; the next movement of the pointer says what is there now. */
  private forgetHover(): void {
    this.elements.hover.style.display = this.elements.tip.style.display = "none";
  }

  private hitAt(x: number, y: number): Hit | null {
    return this.layout.hit(x, this.layout.inRows(y, this.scrolled), this.scale);
  }

  /** Draws at once; for tests, which read pixels right after it. */
  draw(): void {
    cancelAnimationFrame(this.requested);
    this.requested = 0;
    const began = performance.now();
    const { state } = this.store;
    const scene = this.scene(state);
    this.drawing.draw(scene);
    this.decorate(scene, state);
    const head = this.head(scene, state);
    drawOverview(this.overviewCanvas, head, OVERVIEW_HEIGHT_PX);
    drawRuler(this.rulerCanvas, head);
    const { selection } = state;
    this.labels.update(this.layout, this.scrolled, this.height, selection?.kind === "thread" ? selection.thread : null);
    this.lastDrawn = performance.now();
    this.frameTimes.push(this.lastDrawn - began);
    if (this.frameTimes.length > 2000) this.frameTimes.shift();
  }

  private head(scene: Scene, state: State): HeadScene {
    return { model: this.model, state, theme: this.theme, scale: scene.scale, ratio: scene.ratio };
  }

  /** What is seen, for a file. */
  picture(): Picture {
    const { state } = this.store;
    const scene = this.scene(state);
    return {
      scene,
      head: this.head(scene, state),
      rulerHeight: rulerHeight(this.model),
      namesWidth: this.elements.labels.clientWidth,
      decorate: (context) => this.decorate(scene, state, context),
    };
  }

  private scene(state: State): Scene {
    return {
      model: this.model,
      layout: this.layout,
      theme: this.theme,
      scale: this.scale,
      ratio: devicePixelRatio || 1,
      height: this.height,
      scrolled: this.scrolled,
      selected: this.selectedMarks(state.selection),
      found: this.foundMarks(state.query),
      selection: state.selection,
    };
  }

  /** Periods, notes, arrows, and the selection's outline, above all rows. */
  private decorate(scene: Scene, state: State, context = this.drawing.context): void {
    const { scale, theme, height } = scene;
    const place = (time: number) => (time - scale.from) / scale.quantum;
    for (const period of [state.range, this.zoomPeriod]) {
      if (!period) continue;
      const [x0, x1] = [place(period.from), place(period.to)];
      // The veil lies over the areas and below the texts, which stay as easy to read as they are.
      const veil = veilOf(theme);
      context.globalCompositeOperation = "destination-over";
      context.globalAlpha = veil.alpha;
      context.fillStyle = veil.color;
      context.fillRect(0, 0, Math.max(0, x0), height);
      context.fillRect(Math.min(x1, scale.width), 0, Math.max(0, scale.width - x1), height);
      context.globalAlpha = 1;
      context.globalCompositeOperation = "source-over";
      context.fillStyle = theme.accent;
      context.fillRect(x0 - 1, 0, 1, height);
      context.fillRect(x1, 0, 1, height);
    }
    context.fillStyle = theme.danger;
    for (const { at, trace } of state.notes) if (trace === state.trace) context.fillRect(place(at), 0, 1, height);
    drawPath(context, scene);
    const { drawn, left } = drawArrows(context, scene, this.arrowStep);
    this.elements.note.textContent =
      this.layout.rows.length === 0
        ? "This trace holds nothing to draw."
        : left > 0
          ? `the nearest ${drawn} arrows of ${drawn + left}; R shows more`
          : this.arrowStep > 0
            ? `${drawn} ${drawn === 1 ? "arrow" : "arrows"}`
            : "";
    const box = state.selection && this.layout.box(state.selection);
    if (!box) return;
    const x0 = Math.max(place(box.start), -4);
    const x1 = Math.min(place(box.end), scale.width + 4);
    context.strokeStyle = theme.fg;
    context.lineWidth = 2;
    context.strokeRect(x0, this.layout.inPicture(box.y, this.scrolled), Math.max(x1 - x0, 3), box.height - 1);
  }

  /** Computes the levels of detail of all rows, piece by piece, while nothing moves. */
  private prepare(): void {
    const { layout } = this;
    const steps = preparations(layout);
    const work = () => {
      if (!this.elements.root.isConnected || this.layout !== layout) return;
      const resting = performance.now() - this.lastDrawn > REST_MS;
      if (resting && steps.next().done) return;
      setTimeout(work, resting ? 1 : REST_MS);
    };
    setTimeout(work, REST_MS);
  }

  private request(): void {
    this.requested ||= requestAnimationFrame(() => this.draw());
  }

  private changed(state: State, changed: Set<keyof State>): void {
    // The pointer moves many times a second, and has an element of its own.
    if (changed.size === 1 && changed.has("pointer")) return;
    if (changed.has("comparison") || changed.has("trace")) {
      this.current = this.open(state.trace);
      this.model.measured = measuredText(state);
      this.resize();
    }
    if (changed.has("trace")) {
      this.marks = { of: null, marks: null };
      this.model.setTheme(this.elements.root);
      this.prepare();
    }
    if (changed.has("path") || changed.has("trace")) this.showPath(state);
    if (this.layout.choose(state.rows)) {
      this.current.scrolled = Math.min(this.current.scrolled, Math.max(0, this.layout.height - this.height));
      this.resize();
      this.prepare();
    }
    if (changed.has("selection")) {
      // Of two timelines the one whose details show moves the view, and the other one goes with it.
      if (state.selection && this.shared.state.trace !== state.trace) this.unfold(state.selection);
      else if (state.selection) {
        this.say(announcement(this.model, state.selection));
        // Who sets the view too has chosen it; else the selection becomes the middle of the picture.
        if (state.selection !== this.ownSelection) this.reveal(state.selection, !changed.has("view"));
      }
      this.ownSelection = null;
    }
    if (changed.has("range") && state.range) {
      const { from, to } = state.range;
      this.say(`Period of ${formatDuration(to - from)} chosen, from ${formatMoment(from)}`);
    }
    if (changed.has("notes")) this.say(`${counted(state.notes.length, "note")} on this page`);
    if (changed.has("view")) {
      this.forgetHover();
      this.corner();
    }
    this.request();
  }

  /** Shows the row of the critical path where there is one. */
  private showPath({ path, trace }: State): void {
    const shown = path?.trace === trace ? path : null;
    const isNewRow = (shown === null) !== (this.model.path === null) || shown?.path !== this.model.path?.path;
    this.model.path = shown;
    if (!isNewRow) return;
    this.layout.rebuild();
    this.resize();
  }

  /**
   * Opens the row of a selection, scrolls to it, and moves the view to it; with `focus` both so that it is the middle of
   * the picture and takes a third of its width.
   */
  private reveal(selection: Selection, focus = false): void {
    if (selection.kind === "method" || selection.kind === "name") return;
    const period = focus ? periodOf(this.model.trace, selection) : null;
    if (period) this.focus(period);
    if (selection.kind === "thread" || selection.kind === "launch") {
      const thread =
        selection.kind === "thread" ? selection.thread : this.model.trace.index.launches.at(selection.launch)?.thread;
      if (thread !== null && thread !== undefined) this.revealThread(thread);
      return;
    }
    const track = this.model.trace.track(selection.track);
    if (!track || selection.item >= track.count) return;
    if (this.layout.unfold(track)) this.resize();
    const box = this.layout.box(selection);
    if (!box) return;
    if (focus) {
      if (box.y >= this.layout.pinnedHeight) this.scrollTo(box.y + box.height / 2 - this.height / 2);
      return;
    }
    this.scrollIntoView(box.y, box.height);
    const { from, to } = this.view;
    const length = box.end - box.start;
    const tooSmall = length < (to - from) / this.width && length > 0;
    if (tooSmall) this.setView(box.start - length * 20, box.end + length * 20);
    else if (box.end < from || box.start > to || (length < to - from && (box.start < from || box.end > to))) {
      const span = Math.max(to - from, length);
      const begin = length > span * 0.8 ? box.start - span * 0.1 : (box.start + box.end - span) / 2;
      this.setView(begin, begin + span);
    }
  }

  /** Opens the row of a selection. */
  private unfold(selection: Selection): void {
    const track = "track" in selection ? this.model.trace.track(selection.track) : undefined;
    if (track && this.layout.unfold(track)) this.resize();
  }

  private revealThread(thread: number): void {
    if (this.layout.unfold({ id: -1, thread, process: null, cpu: null, kind: "slices" })) this.resize();
    const row = this.layout.threadRow(thread);
    if (row) this.scrollIntoView(row.y, Math.min(row.height, 60));
  }

  /** Shows a period in the middle third of the picture; a moment with what is around it. */
  private focus({ from, to }: Range): void {
    const length = to - from;
    const around = length > 0 ? length : Math.min(this.view.to - this.view.from, MOMENT_NS);
    this.setView(from - around, to + around);
  }

  private scrollIntoView(y: number, height: number): void {
    const { pinnedHeight } = this.layout;
    if (y < pinnedHeight) return;
    if (y < this.scrolled + pinnedHeight) this.scrollTo(y - pinnedHeight - 30);
    else if (y + height > this.scrolled + this.height) this.scrollTo(y + height - this.height + 30);
  }

  /** Pins or hides a row, or takes that back. */
  private chooseRow({ id, label }: Row, list: "pinned" | "hidden"): void {
    const { rows } = this.store.state;
    const isIn = rows[list].includes(id);
    this.store.set({
      rows: { ...rows, [list]: isIn ? rows[list].filter((other) => other !== id) : [...rows[list], id] },
    });
    this.say(`${visibleName(label)} ${isIn ? "no longer " : ""}${list}`);
  }

  private toggle(row: Row): void {
    this.layout.toggle(row);
    this.resize();
  }

  private open(trace: Trace): Shown {
    let shown = this.shown.get(trace);
    if (!shown) {
      const model = modelOf(trace);
      shown = { model, layout: new Layout(model, this.store.state.rows), scrolled: 0 };
      this.shown.set(trace, shown);
    }
    return shown;
  }

  private selectedMarks(selection: Selection | null): Marks | null {
    if (this.marks.of === selection) return this.marks.marks;
    const { trace } = this.model;
    const [names, methods, threads] = Marks.none(this.model);
    let any = true;
    if (selection?.kind === "method") methods[selection.method] = 1;
    else if (selection?.kind === "name") {
      trace.strings.forEach((name, id) => (names[id] = name === selection.name ? 1 : 0));
    } else if (selection?.kind === "span" && trace.track(selection.track)?.role !== "running") {
      const track = trace.track(selection.track);
      if (track?.spans) (track.kind === "calls" ? methods : names)[track.spans.label[selection.item]] = 1;
    } else any = false;
    this.marks = { of: selection, marks: any ? new Marks(names, methods, threads) : null };
    return this.marks.marks;
  }

  private foundMarks(query: string): Marks | null {
    if (this.found.query !== query || this.found.model !== this.model) {
      const flags = matchFlags(this.model.trace, query);
      const marks = flags && new Marks(flags.names, flags.methods, flags.threads);
      this.found = { query, model: this.model, marks };
    }
    return this.found.marks;
  }

  private resize(): void {
    const { root, plot, bar, extent } = this.elements;
    this.width = Math.max(1, plot.clientWidth);
    this.height = Math.max(1, plot.clientHeight);
    this.layout.limitPinned(this.height * MAX_PINNED_PART);
    root.style.setProperty("--ruler", `${rulerHeight(this.model) + 1}px`);
    extent.style.height = `${this.layout.height}px`;
    this.current.scrolled = Math.min(this.scrolled, Math.max(0, this.layout.height - this.height));
    bar.scrollTop = this.scrolled;
    this.corner();
    this.request();
  }

  private retheme(): void {
    this.theme = this.model.setTheme(this.elements.root);
    this.request();
  }

  /** Says in the corner where the pointer is, on all clocks; without a pointer, what the view shows. */
  private corner(): void {
    const { index } = this.model.trace;
    const at = this.hoverTime;
    const lines =
      at !== null
        ? [formatMoment(at), `${index.clock} ${formatClock(index, at)}`, formatWall(index, at) ?? ""]
        : [
            formatDuration(this.view.to - this.view.from),
            `from ${formatMoment(this.view.from)}`,
            `of ${formatDuration(this.model.trace.duration)}`,
          ];
    const [first, ...rest] = this.elements.corner.children;
    first.textContent = lines[0];
    rest.forEach((element, i) => (element.textContent = lines[i + 1]));
  }

  private say(text: string): void {
    this.elements.live.textContent = text;
  }
}

/** Prepares one row at a time for its first picture. */
function* preparations({ rows, model }: Layout): Generator<undefined> {
  for (const band of rows.flatMap(({ bands }) => bands)) {
    if (band.kind === "states") {
      model.strip(band.track).prepare();
      yield;
    }
    if (band.kind !== "stack") continue;
    for (let level = 0; level < band.stack.levels; level++) {
      band.stack.row(level).prepare();
      yield;
    }
  }
}
