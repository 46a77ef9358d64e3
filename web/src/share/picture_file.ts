// Pictures of what the timelines show, as PNG and as SVG: with the ruler, the names of rows, and what the picture is of.

import { context2d } from "../timeline/canvas";
import { Drawing, type Scene } from "../timeline/draw";
import { memoryPainter } from "../timeline/painter";
import type { Picture } from "../timeline/picture";
import { drawRuler } from "../timeline/ruler";
import { formatDuration, formatMoment } from "../timeline/time";
import { visibleName } from "../ui/text";
import { SvgContext, SvgPainter, type SvgPart } from "./svg_context";

const FONT = "11px system-ui, -apple-system, 'Segoe UI', sans-serif";
const BOLD = `600 ${FONT}`;
const TITLE_HEIGHT_PX = 22;
const GAP_PX = 10;
/** Letters of a cut name's end that stay. */
const TAIL_CHARS = 10;
/** A PNG has so many pixels to a CSS pixel, so that its letters stay sharp when it is enlarged. */
const PNG_RATIO = 2;

/** A picture's place on the sheet. */
interface Placed {
  picture: Picture;
  top: number;
}

function placed(pictures: Picture[]): { all: Placed[]; width: number; height: number } {
  let top = 0;
  const all = pictures.map((picture) => {
    const at = { picture, top };
    top += TITLE_HEIGHT_PX + picture.rulerHeight + picture.scene.height + GAP_PX;
    return at;
  });
  const width = Math.max(1, ...pictures.map(({ namesWidth, scene }) => namesWidth + scene.scale.width));
  return { all, width: Math.ceil(width), height: Math.max(1, Math.ceil(top - GAP_PX)) };
}

/** The file of a PNG of the pictures, from top to bottom. */
export async function pngOf(pictures: Picture[]): Promise<Blob> {
  const { all, width, height } = placed(pictures);
  const sheet = document.createElement("canvas");
  sheet.width = width * PNG_RATIO;
  sheet.height = height * PNG_RATIO;
  const context = context2d(sheet);
  context.scale(PNG_RATIO, PNG_RATIO);
  for (const { picture, top } of all) {
    const scene = { ...picture.scene, ratio: PNG_RATIO };
    const { width: wide } = scene.scale;
    const painter = memoryPainter();
    const overlay = document.createElement("canvas");
    const ruler = document.createElement("canvas");
    const drawing = new Drawing(painter, overlay);
    drawing.draw(scene);
    picture.decorate(drawing.context);
    drawRuler(ruler, { ...picture.head, ratio: PNG_RATIO });
    context.fillStyle = scene.theme.bg;
    context.fillRect(0, top, width, TITLE_HEIGHT_PX + picture.rulerHeight + scene.height + GAP_PX);
    const body = top + TITLE_HEIGHT_PX + picture.rulerHeight;
    context.save();
    context.translate(0, top);
    drawTitle(context, picture, width);
    context.restore();
    context.drawImage(ruler, picture.namesWidth, top + TITLE_HEIGHT_PX, wide, picture.rulerHeight);
    for (const canvas of [painter.canvas, overlay])
      context.drawImage(canvas, picture.namesWidth, body, wide, scene.height);
    context.save();
    context.translate(0, body);
    context.beginPath();
    context.rect(0, 0, picture.namesWidth, scene.height);
    context.clip();
    drawNames(context, scene, picture.namesWidth);
    context.restore();
  }
  return new Promise((done, refuse) =>
    sheet.toBlob(
      (blob) => (blob ? done(blob) : refuse(new Error("The browser makes no PNG of this size."))),
      "image/png",
    ),
  );
}

/** The file of an SVG of the pictures, from top to bottom; its texts are texts. */
export function svgOf(pictures: Picture[]): Blob {
  const { all, width, height } = placed(pictures);
  const defs: string[] = [];
  const body: string[] = [];
  /** Puts a part at a place, cut to its size. */
  const put = (part: SvgPart, x: number, y: number, wide: number, tall: number) => {
    defs.push(...part.defs);
    body.push(`<svg x="${x}" y="${y}" width="${wide}" height="${tall}" overflow="hidden">`, ...part.body, "</svg>");
  };
  for (const { picture, top } of all) {
    const scene = { ...picture.scene, ratio: 1 };
    const { width: wide } = scene.scale;
    const painter = new SvgPainter();
    const overlay = new SvgContext();
    const drawing = new Drawing(painter, overlay.surface);
    drawing.draw(scene);
    picture.decorate(drawing.context);
    const ruler = new SvgContext();
    drawRuler(ruler.surface, { ...picture.head, ratio: 1 });
    const title = new SvgContext();
    drawTitle(title.context, picture, width);
    const names = new SvgContext();
    drawNames(names.context, scene, picture.namesWidth);
    const below = top + TITLE_HEIGHT_PX + picture.rulerHeight;
    put(title.part(), 0, top, width, TITLE_HEIGHT_PX + picture.rulerHeight);
    put(ruler.part(), picture.namesWidth, top + TITLE_HEIGHT_PX, wide, picture.rulerHeight);
    put(painter.part(), picture.namesWidth, below, wide, scene.height);
    put(overlay.part(), picture.namesWidth, below, wide, scene.height);
    put(names.part(), 0, below, picture.namesWidth, scene.height);
  }
  const text = [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}"`,
    ` font-family="system-ui, -apple-system, 'Segoe UI', sans-serif">`,
    "<defs>",
    ...defs,
    "</defs>",
    `<rect width="${width}" height="${height}" fill="${pictures.at(0)?.scene.theme.bg ?? "#fff"}"/>`,
    ...body,
    "</svg>\n",
  ].join("\n");
  return new Blob([text], { type: "image/svg+xml" });
}

/** What the picture is of: the trace, and its part. */
function drawTitle(context: CanvasRenderingContext2D, { scene, head, rulerHeight }: Picture, width: number): void {
  const { theme } = scene;
  const { view, trace, name } = head.state;
  context.fillStyle = theme.panel;
  context.fillRect(0, 0, width, TITLE_HEIGHT_PX + rulerHeight);
  context.textBaseline = "middle";
  context.font = BOLD;
  context.fillStyle = theme.fg;
  const role = trace.role === "trace" ? "" : `${trace.role}: `;
  const from = Math.max(view.from, 0);
  const to = Math.min(view.to, trace.duration);
  const part = `${formatMoment(from)} + ${formatDuration(Math.max(to - from, 0))} of ${formatDuration(trace.duration)}`;
  context.font = FONT;
  const room = context.measureText(part).width;
  context.fillStyle = theme.muted;
  context.fillText(part, width - room - 6, TITLE_HEIGHT_PX / 2);
  context.font = BOLD;
  context.fillStyle = theme.fg;
  context.fillText(
    middleCut(context, `${role}${visibleName(name || trace.index.title)}`, width - room - 24),
    6,
    TITLE_HEIGHT_PX / 2,
  );
}

/** The names of the rows in view, as the labels beside the timeline have them. */
function drawNames(context: CanvasRenderingContext2D, scene: Scene, width: number): void {
  const { layout, scrolled, height, theme } = scene;
  context.fillStyle = theme.bg;
  context.fillRect(0, 0, width, height);
  context.textBaseline = "middle";
  for (const row of layout.rowsInView(scrolled, height)) {
    const y = layout.inPicture(row.y, scrolled);
    const tall = row.kind === "row" ? Math.min(row.height, 22) : row.height;
    const free = row.y < layout.pinnedHeight ? 0 : layout.pinnedHeight;
    const top = Math.max(y, Math.min(free, y + row.height - tall));
    if (row.kind !== "row") {
      context.fillStyle = theme.panel;
      context.fillRect(0, top, width, row.height);
    }
    context.fillStyle = theme.line;
    context.fillRect(0, y + row.height - 1, width, 0.5);
    const left = 6 + row.indent * 12;
    context.font = row.kind === "group" ? BOLD : FONT;
    context.fillStyle = theme.fg;
    const name = middleCut(context, visibleName(row.label.slice(0, 200)) || "(no name)", width - left - 8);
    context.fillText(name, left, top + tall / 2);
    const used = left + context.measureText(name).width + 6;
    context.font = FONT;
    context.fillStyle = theme.muted;
    const detail = visibleName(row.detail.slice(0, 200));
    context.fillText(endCut(context, detail, width - used - 4), used, top + tall / 2);
  }
}

/** A text, or its begin where it has no room. */
function endCut(context: CanvasRenderingContext2D, text: string, room: number): string {
  if (context.measureText(text).width <= room) return text;
  let shown = text;
  while (shown && context.measureText(`${shown}…`).width > room) shown = shown.slice(0, -1);
  return shown && `${shown}…`;
}

/** A text, or its begin and its end where it has no room. */
function middleCut(context: CanvasRenderingContext2D, text: string, room: number): string {
  if (context.measureText(text).width <= room) return text;
  const letters = Array.from(text);
  const tail = letters.slice(-TAIL_CHARS).join("");
  let head = letters.slice(0, -TAIL_CHARS);
  while (head.length > 0 && context.measureText(`${head.join("")}…${tail}`).width > room) head = head.slice(0, -1);
  return `${head.join("")}…${tail}`;
}
