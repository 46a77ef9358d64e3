// The flame graph, drawn on a canvas: operated with the mouse or the arrow keys.

import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";

import { firstWhere } from "../data/search_sorted";
import { context2d } from "../timeline/canvas";
import { formatDuration } from "../timeline/time";
import { INK, readTheme } from "../timeline/colors";
import { mounted } from "../ui/mounted";
import { counted, percentText, visibleName } from "../ui/text";
import { hasCpu } from "./columns";
import { type FlameBox, layOut, timeOf } from "./flame_layout";
import { type ProfileViewProps, rowColour } from "./method_table";
import { selectedRow, selectionOf, showLongest } from "./select";
import { OTHER_THREADS, readableRoots, topDownRoots, type TreeRow } from "./tree_rows";

const BOX_PX = 19;

export function FlameGraph({ store, options, profile, focus }: ProfileViewProps & { focus: number }) {
  const { trace, selection, theme } = store.state;
  const { rows, flat } = profile;
  const tree = profile.tree();
  const frame = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const [width, setWidth] = useState(0);
  const [zoom, setZoom] = useState<string | null>(null);
  const [at, setAt] = useState(0);
  const [over, setOver] = useState<{ box: number; x: number; y: number } | null>(null);
  useLayoutEffect(() => {
    const observer = new ResizeObserver(() => setWidth(mounted(frame).clientWidth));
    observer.observe(mounted(frame));
    return () => observer.disconnect();
  }, []);

  // Slices have no CPU time of their own.
  const clock = hasCpu(trace, options.kind) ? options.clock : "wall";
  const whole = useMemo(
    () =>
      layOut(
        tree,
        readableRoots(topDownRoots(tree, focus), (row) => timeOf(row, clock)),
        Math.max(width, 1),
        clock,
      ),
    [tree, focus, width, clock],
  );
  const zoomed = zoom === null ? undefined : whole.find((box) => box.row.path === zoom);
  const boxes = useMemo(
    () => (zoomed ? layOut(tree, [zoomed.row], Math.max(width, 1), clock) : whole),
    [tree, whole, zoomed, width, clock],
  );
  const current = Math.min(at, boxes.length - 1);
  const selected = selectedRow(trace, rows, selection);
  const depth = boxes.reduce((most, box) => Math.max(most, box.depth), 0) + 1;
  const name = (row: TreeRow) => {
    if (row.row === OTHER_THREADS) return counted(row.nodes.length, "other thread");
    return visibleName(row.row < 0 ? trace.threadName(-1 - row.row) : rows.name(row.row));
  };
  const describe = (box: FlameBox) => {
    const { row } = box;
    const calls = row.row < 0 ? "" : `, ${counted(row.calls, "call")}`;
    const [all, own] = { wall: [row.wall, row.ownWall], cpu: [row.cpu, row.ownCpu], off: [0, 0] }[clock];
    if (clock === "off")
      return `${name(row)}: ${formatDuration(timeOf(row, clock))} without a CPU, of ${formatDuration(row.wall)}${calls}`;
    const total = clock === "cpu" ? flat.cpuTotal : flat.wallTotal;
    return (
      `${name(row)}: ${formatDuration(all)}${clock === "cpu" ? " of CPU time" : ""} `
      + `(${percentText(all, total)} % of the window), ${formatDuration(own)} of its own${calls}`
    );
  };

  useEffect(() => {
    const view = mounted(canvas);
    const scale = window.devicePixelRatio || 1;
    view.width = Math.max(1, Math.round(width * scale));
    view.height = Math.round(depth * BOX_PX * scale);
    const draw = context2d(view);
    draw.scale(scale, scale);
    const colours = readTheme(document.documentElement);
    draw.font = "12px system-ui, sans-serif";
    draw.textBaseline = "middle";
    boxes.forEach((box, n) => {
      const x = box.left * width;
      const y = box.depth * BOX_PX;
      const w = Math.max(box.width * width - 1, 0.6);
      draw.fillStyle = rowColour(store.state, rows, box.row.row) ?? colours.line;
      draw.fillRect(x, y, w, BOX_PX - 1);
      if (box.row.row === selected && box.row.row >= 0) {
        draw.fillStyle = colours.danger;
        draw.fillRect(x, y + BOX_PX - 4, w, 3);
      }
      if (w > 24) {
        draw.save();
        draw.beginPath();
        draw.rect(x, y, w - 3, BOX_PX);
        draw.clip();
        draw.fillStyle = box.row.row < 0 ? colours.fg : INK;
        draw.fillText(fitting(draw, name(box.row), w - 7), x + 4, y + BOX_PX / 2);
        draw.restore();
      }
      if (n === current) {
        draw.strokeStyle = colours.fg;
        draw.lineWidth = 2;
        draw.strokeRect(x + 1, y + 1, Math.max(w - 2, 1), BOX_PX - 3);
      }
    });
  }, [boxes, width, selected, current, theme, depth]);

  const boxAt = (event: MouseEvent) => {
    const x = event.offsetX / Math.max(width, 1);
    const level = Math.floor(event.offsetY / BOX_PX);
    return boxes.findIndex((box) => box.depth === level && x >= box.left && x < box.left + box.width);
  };
  const choose = (n: number) => {
    setAt(n);
    const { row } = boxes[n].row;
    if (row === OTHER_THREADS) return;
    store.set({ selection: row < 0 ? { kind: "thread", thread: -1 - row } : selectionOf(trace, rows, row) });
  };
  const zoomTo = (n: number) => {
    setZoom(boxes[n].row.path);
    setAt(0);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey || boxes.length === 0) return;
    const to = neighbour(boxes, current, event.key);
    if (to !== null) setAt(to);
    else if (event.key === "Enter" && event.shiftKey) {
      const { row } = boxes[current].row;
      if (row >= 0) showLongest(store, rows.keyOf(row), profile.window);
    } else if (event.key === "Enter") zoomTo(current);
    else if (event.key === " ") choose(current);
    else if (event.key === "Escape" && zoom !== null) setZoom(null);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  const current_box = boxes[current];
  return (
    <div class="flame" ref={frame} onMouseLeave={() => setOver(null)}>
      <p class="flame-line" aria-live="polite">
        {zoomed && (
          <button type="button" onClick={() => setZoom(null)}>
            Whole graph
          </button>
        )}
        {boxes.length === 0
          ? "Nothing was called in this window."
          : describe(over ? (boxes[over.box] ?? current_box) : current_box)}
      </p>
      <div class="flame-scroll">
        <canvas
          ref={canvas}
          tabIndex={0}
          role="application"
          class="flame-canvas"
          aria-label={
            "Flame graph. Arrow keys move, space selects, Enter zooms in, Escape shows all, "
            + "Shift+Enter shows the longest call in the timeline."
          }
          style={{ width: `${width}px`, height: `${depth * BOX_PX}px` }}
          onKeyDown={onKeyDown}
          onClick={(event) => {
            const n = boxAt(event);
            if (n >= 0) choose(n);
          }}
          onDblClick={(event) => {
            const n = boxAt(event);
            if (n >= 0) zoomTo(n);
          }}
          onMouseMove={(event) => {
            const box = boxAt(event);
            setOver(box < 0 ? null : { box, x: event.offsetX, y: event.offsetY });
          }}
        />
      </div>
    </div>
  );
}

/** A name, or where that is too wide its end: `android.os.Looper.loop`, `Looper.loop`, `loop`. */
function fitting(draw: CanvasRenderingContext2D, name: string, width: number): string {
  const text = name.slice(0, 200);
  const parts = /[\s/]/.test(text) ? [text] : text.split(".");
  for (let from = 0; from < parts.length - 1; from = from < parts.length - 2 ? parts.length - 2 : from + 1) {
    const shorter = parts.slice(from).join(".");
    if (draw.measureText(shorter).width <= width) return shorter;
  }
  return shortened(draw, parts[parts.length - 1] || text, width);
}

/** A text that ends with dots where it is too wide. */
function shortened(draw: CanvasRenderingContext2D, text: string, width: number): string {
  if (draw.measureText(text).width <= width) return text;
  const kept = firstWhere(0, text.length, (length) => draw.measureText(`${text.slice(0, length + 1)}…`).width > width);
  return kept === 0 ? "" : `${text.slice(0, kept)}…`;
}

/** Where an arrow key leads: down to the longest callee, up to the caller, sideways in the same level. */
function neighbour(boxes: FlameBox[], at: number, key: string): number | null {
  const box = boxes[at];
  const level = (step: number) => {
    for (let n = at + step; n >= 0 && n < boxes.length && boxes[n].depth === box.depth; n += step) return n;
    return at;
  };
  if (key === "ArrowUp") return box.caller >= 0 ? box.caller : at;
  if (key === "ArrowDown") {
    const callee = boxes.findIndex((other) => other.caller === at);
    return callee < 0 ? at : callee;
  }
  if (key === "ArrowRight") return level(1);
  if (key === "ArrowLeft") return level(-1);
  if (key === "Home") return 0;
  return null;
}
