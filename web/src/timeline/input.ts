// Wheel, mouse, pen and fingers.

import type { TimelineControl } from "./control";
import { MAX_NAMES_PX, MIN_NAMES_PX } from "./elements";

/** A press that moves less is a click. */
export const CLICK_MAX_MOVE_PX = 4;
/** The height of a line, for wheels that turn by lines. */
const WHEEL_LINE_PX = 18;
/** The exponent of the zoom for each pixel that the wheel turns. */
const WHEEL_ZOOM_PER_PX = 0.003;
/** A key makes the names so much wider. */
const NAMES_STEP_PX = 20;
/** Two fingers count as no closer than this. */
const MIN_PINCH_PX = 8;
/** A finger that rests so long asks what lies under it. */
const LONG_PRESS_MS = 500;

interface Drag {
  kind: "pan" | "range" | "zoom";
  x: number;
  y: number;
  from: number;
  scrolled: number;
  moved: boolean;
}

/** Has the elements of the timeline obey pointer and wheel; returns the function that ends this. */
export function attachInput(timeline: TimelineControl): () => void {
  const { plot, root, overview, ruler } = timeline.elements;
  const fingers = new Map<number, { x: number; y: number }>();
  let drag: Drag | null = null;
  let resting = 0;
  /** Whether the finger that is down has rested: it then selects nothing when it leaves. */
  let hasRested = false;
  const ended = new AbortController();
  const { signal } = ended;
  const at = (event: MouseEvent) => {
    const box = plot.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  };
  const timeAt = (x: number) => timeline.scale.from + x * timeline.scale.quantum;

  root.addEventListener(
    "wheel",
    (event) => {
      event.preventDefault();
      const unit = event.deltaMode === 1 ? WHEEL_LINE_PX : event.deltaMode === 2 ? timeline.bodyHeight : 1;
      const [dx, dy] = [event.deltaX * unit, event.deltaY * unit];
      if (event.ctrlKey || event.metaKey)
        timeline.zoom(Math.exp(Math.max(-1, Math.min(1, dy * WHEEL_ZOOM_PER_PX))), timeAt(at(event).x));
      else if (event.shiftKey) timeline.pan((dy || dx) * timeline.scale.quantum);
      else if (Math.abs(dx) > Math.abs(dy)) timeline.pan(dx * timeline.scale.quantum);
      else timeline.scrollBy(dy);
    },
    { passive: false, signal },
  );

  plot.addEventListener(
    "pointerdown",
    (event) => {
      if (event.button !== 0 && event.button !== 1) return;
      plot.setPointerCapture(event.pointerId);
      const { x, y } = at(event);
      if (event.pointerType === "touch") {
        fingers.set(event.pointerId, { x, y });
        timeline.hoverAt(-1, -1);
        clearTimeout(resting);
        hasRested = false;
        resting = setTimeout(() => {
          if (drag?.moved !== false || fingers.size !== 1) return;
          hasRested = true;
          timeline.hoverAt(x, y);
        }, LONG_PRESS_MS) as unknown as number;
      }
      const kind = event.shiftKey ? "range" : event.altKey ? "zoom" : "pan";
      drag = { kind, x, y, from: timeline.view.from, scrolled: timeline.scrolled, moved: false };
      if (event.button === 1) event.preventDefault();
    },
    { signal },
  );

  plot.addEventListener(
    "pointermove",
    (event) => {
      const { x, y } = at(event);
      const other = [...fingers].find(([id]) => id !== event.pointerId)?.[1];
      const before = fingers.get(event.pointerId);
      if (other && before) {
        pinch(timeline, before, { x, y }, other);
        fingers.set(event.pointerId, { x, y });
        if (drag) drag.moved = true;
        return;
      }
      if (!drag) {
        timeline.hoverAt(x, y);
        return;
      }
      if (!drag.moved && Math.hypot(x - drag.x, y - drag.y) < CLICK_MAX_MOVE_PX) return;
      if (!drag.moved && event.pointerType === "touch") timeline.hoverAt(-1, -1);
      drag.moved = true;
      if (drag.kind === "pan") {
        plot.classList.add("tl-dragging");
        timeline.panTo(drag.from - (x - drag.x) * timeline.scale.quantum);
        timeline.scrollTo(drag.scrolled - (y - drag.y));
      } else {
        const [a, b] = [timeAt(drag.x), timeAt(x)];
        timeline.dragPeriod(drag.kind, Math.min(a, b), Math.max(a, b));
      }
      if (event.pointerType !== "touch") timeline.hoverAt(x, y);
    },
    { signal },
  );

  const release = (event: PointerEvent) => {
    fingers.delete(event.pointerId);
    clearTimeout(resting);
    plot.classList.remove("tl-dragging");
    const done = drag;
    drag = null;
    // The finger that stays goes on from here.
    const rest = [...fingers.values()].at(0);
    if (rest) drag = { kind: "pan", ...rest, from: timeline.view.from, scrolled: timeline.scrolled, moved: true };
    if (!done || event.type === "pointercancel") {
      timeline.dragPeriod(null, 0, 0);
      return;
    }
    const { x, y } = at(event);
    if (done.moved) {
      if (done.kind === "zoom")
        timeline.setView(Math.min(timeAt(done.x), timeAt(x)), Math.max(timeAt(done.x), timeAt(x)));
      timeline.dragPeriod(null, 0, 0);
      return;
    }
    if (!hasRested || event.pointerType !== "touch") timeline.click(x, y, event.shiftKey);
  };
  plot.addEventListener("pointerup", release, { signal });
  plot.addEventListener("pointercancel", release, { signal });
  plot.addEventListener(
    "pointerleave",
    (event) => {
      // A finger always leaves, and what it has asked for stays to be read.
      if (event.pointerType !== "touch") timeline.hoverAt(-1, -1);
    },
    { signal },
  );
  plot.addEventListener("dblclick", () => timeline.zoomToSelection(), { signal });

  // The grip beside the names makes them wider.
  const { grip, labels } = timeline.elements;
  const widen = (to: number) => {
    const most = Math.min(MAX_NAMES_PX, root.clientWidth * 0.7);
    const width = Math.round(Math.min(Math.max(to, MIN_NAMES_PX), most));
    root.style.setProperty("--names", `${width}px`);
    grip.setAttribute("aria-valuenow", String(width));
  };
  const toGrip = (event: PointerEvent) => widen(event.clientX - root.getBoundingClientRect().left);
  dragOn(grip, () => undefined, toGrip, signal);
  grip.addEventListener(
    "keydown",
    (event) => {
      const step = { ArrowLeft: -NAMES_STEP_PX, ArrowRight: NAMES_STEP_PX }[event.key];
      if (step === undefined) return;
      widen(labels.clientWidth + step);
      event.preventDefault();
    },
    { signal },
  );

  // In the overview a press puts the view there, and a drag moves it.
  const toOverview = (event: PointerEvent) => {
    const box = overview.getBoundingClientRect();
    const { from, to } = timeline.view;
    const part = (event.clientX - box.left) / box.width;
    timeline.panTo(part * timeline.model.trace.duration - (to - from) / 2);
  };
  dragOn(overview, toOverview, toOverview, signal);

  // On the ruler a drag chooses a period.
  let began = 0;
  dragOn(
    ruler,
    (event) => (began = timeAt(at(event).x)),
    (event) => {
      const now = timeAt(at(event).x);
      timeline.dragPeriod("range", Math.min(began, now), Math.max(began, now));
    },
    signal,
  );
  return () => ended.abort();
}

function dragOn(
  element: HTMLElement,
  press: (event: PointerEvent) => void,
  move: (event: PointerEvent) => void,
  signal: AbortSignal,
): void {
  element.addEventListener(
    "pointerdown",
    (event) => {
      if (event.button !== 0) return;
      element.setPointerCapture(event.pointerId);
      press(event);
    },
    { signal },
  );
  element.addEventListener(
    "pointermove",
    (event) => {
      if (element.hasPointerCapture(event.pointerId)) move(event);
    },
    { signal },
  );
}

interface Place {
  x: number;
  y: number;
}

/** One of two fingers moved: zooms by their distance, and pans and scrolls with what lies between them. */
function pinch(timeline: TimelineControl, before: Place, now: Place, other: Place): void {
  const { from, quantum, width } = timeline.scale;
  const spread = Math.max(MIN_PINCH_PX, Math.abs(now.x - other.x));
  const factor = Math.max(MIN_PINCH_PX, Math.abs(before.x - other.x)) / spread;
  const fixed = from + other.x * quantum;
  timeline.setView(fixed - other.x * quantum * factor, fixed + (width - other.x) * quantum * factor);
  timeline.scrollBy((before.y - now.y) / 2);
}
