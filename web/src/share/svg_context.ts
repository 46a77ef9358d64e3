// Writes down as SVG what the timeline draws: a 2D context as far as the timeline needs one, with texts as texts.

import { context2d, type Surface } from "../timeline/canvas";
import { unpack } from "../timeline/colors";
import type { Painter } from "../timeline/painter";

/** The elements of a drawing, and the definitions that they refer to. */
export interface SvgPart {
  defs: string[];
  body: string[];
}

// XML has no control characters, and no halves of characters.
const NO_XML = new RegExp(
  "[\\0-\\x08\\x0b\\x0c\\x0e-\\x1f\\ufffe\\uffff]"
    + "|[\\ud800-\\udbff](?![\\udc00-\\udfff])|(?<![\\ud800-\\udbff])[\\udc00-\\udfff]",
  "g",
);
const ENTITIES: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };

/** A text as XML holds it, also in an attribute. */
export function xmlText(text: string): string {
  return text.replace(NO_XML, "\ufffd").replace(/[&<>"]/g, (sign) => ENTITIES[sign]);
}

const n = (value: number) => String(Math.round(value * 100) / 100);

/** The distance of a text's base line from the place that it is drawn at, as a part of its size. */
const BASE_LINES: Record<string, number> = { top: 0.84, middle: 0.35, bottom: -0.2, alphabetic: 0 };

interface Paints {
  fillStyle: string | SvgPattern;
  strokeStyle: string;
  globalAlpha: number;
  lineWidth: number;
  font: string;
  textBaseline: string;
  globalCompositeOperation: string;
}

/** A pattern that a fill refers to. */
class SvgPattern {
  constructor(readonly id: string) {}
}

/** How many definitions all parts have, so that each has a name of its own. */
let defined = 0;

/** What is drawn on it becomes SVG. Transformations are left out: the timeline has none but that of its pixels. */
export class SvgContext implements Paints {
  fillStyle: string | SvgPattern = "#000";
  strokeStyle = "#000";
  globalAlpha = 1;
  lineWidth = 1;
  font = "11px sans-serif";
  textBaseline = "alphabetic";
  globalCompositeOperation = "source-over";
  private readonly defs: string[] = [];
  private readonly below: string[] = [];
  private readonly above: string[] = [];
  private readonly saved: { paints: Paints; groups: number }[] = [];
  private groups = 0;
  private path = "";
  private clipRect = "";
  private readonly measure = context2d(document.createElement("canvas"));

  /** Itself, as the type that the timeline draws on. */
  get context(): CanvasRenderingContext2D {
    return this as unknown as CanvasRenderingContext2D;
  }

  get surface(): Surface {
    return { width: 0, height: 0, getContext: () => this.context };
  }

  part(): SvgPart {
    return { defs: this.defs, body: [...this.below, ...this.above] };
  }

  setTransform(): void {
    // The picture has the size of CSS pixels.
  }

  clearRect(): void {
    // It begins empty.
  }

  save(): void {
    const { fillStyle, strokeStyle, globalAlpha, lineWidth, font, textBaseline, globalCompositeOperation } = this;
    const paints = { fillStyle, strokeStyle, globalAlpha, lineWidth, font, textBaseline, globalCompositeOperation };
    this.saved.push({ paints, groups: this.groups });
  }

  restore(): void {
    const before = this.saved.pop();
    if (!before) return;
    for (; this.groups > before.groups; this.groups--) this.above.push("</g>");
    Object.assign(this, before.paints);
  }

  beginPath(): void {
    this.path = "";
    this.clipRect = "";
  }

  moveTo(x: number, y: number): void {
    this.path += `M${n(x)} ${n(y)}`;
  }

  lineTo(x: number, y: number): void {
    this.path += `L${n(x)} ${n(y)}`;
  }

  bezierCurveTo(a: number, b: number, c: number, d: number, x: number, y: number): void {
    this.path += `C${n(a)} ${n(b)} ${n(c)} ${n(d)} ${n(x)} ${n(y)}`;
  }

  rect(x: number, y: number, width: number, height: number): void {
    this.clipRect = `<rect x="${n(x)}" y="${n(y)}" width="${n(width)}" height="${n(height)}"/>`;
  }

  clip(): void {
    const id = `clip${++defined}`;
    this.defs.push(`<clipPath id="${id}">${this.clipRect}</clipPath>`);
    this.above.push(`<g clip-path="url(#${id})">`);
    this.groups++;
  }

  stroke(): void {
    this.put(`<path d="${this.path}" fill="none" ${this.strokes}/>`);
  }

  fill(): void {
    this.put(`<path d="${this.path}" ${this.fills}/>`);
  }

  fillRect(x: number, y: number, width: number, height: number): void {
    const [left, top] = [Math.min(x, x + width), Math.min(y, y + height)];
    const [wide, tall] = [Math.abs(width), Math.abs(height)];
    if (!(wide > 0) || !(tall > 0)) return;
    this.put(`<rect x="${n(left)}" y="${n(top)}" width="${n(wide)}" height="${n(tall)}" ${this.fills}/>`);
  }

  strokeRect(x: number, y: number, width: number, height: number): void {
    this.put(`<rect x="${n(x)}" y="${n(y)}" width="${n(width)}" height="${n(height)}" fill="none" ${this.strokes}/>`);
  }

  fillText(text: string, x: number, y: number): void {
    if (!text) return;
    const size = Number(/(\d+(\.\d+)?)px/.exec(this.font)?.[1] ?? 11);
    const bold = /^(bold|600)/.test(this.font) ? ' font-weight="600"' : "";
    const base = y + size * (BASE_LINES[this.textBaseline] ?? 0);
    this.put(`<text x="${n(x)}" y="${n(base)}" font-size="${size}"${bold} ${this.fills}>${xmlText(text)}</text>`);
  }

  measureText(text: string): TextMetrics {
    this.measure.font = this.font;
    return this.measure.measureText(text);
  }

  createPattern(image: HTMLCanvasElement): CanvasPattern {
    const id = `pattern${++defined}`;
    const size = `width="${image.width}" height="${image.height}"`;
    this.defs.push(
      `<pattern id="${id}" ${size} patternUnits="userSpaceOnUse"><image href="${image.toDataURL()}" ${size}/></pattern>`,
    );
    return new SvgPattern(id) as unknown as CanvasPattern;
  }

  private get fills(): string {
    const { fillStyle } = this;
    const paint = fillStyle instanceof SvgPattern ? `url(#${fillStyle.id})` : xmlText(fillStyle);
    return `fill="${paint}"${this.globalAlpha < 1 ? ` fill-opacity="${n(this.globalAlpha)}"` : ""}`;
  }

  private get strokes(): string {
    const opacity = this.globalAlpha < 1 ? ` stroke-opacity="${n(this.globalAlpha)}"` : "";
    return `stroke="${xmlText(this.strokeStyle)}" stroke-width="${n(this.lineWidth)}"${opacity}`;
  }

  private put(element: string): void {
    (this.globalCompositeOperation === "destination-over" ? this.below : this.above).push(element);
  }
}

/** Writes painted lines down as rectangles: stretches of one colour, in one path for each colour of a line. */
export class SvgPainter implements Pick<Painter, "begin" | "line" | "end"> {
  private readonly body: string[] = [];
  private background: number | null = null;

  begin(width: number, height: number): void {
    void [width, height];
  }

  line(pixels: Uint32Array, y: number, height: number): void {
    // The first line is the ground of all, whose commonest colour needs no rectangle of its own in the others.
    const isGround = this.background === null;
    this.background ??= commonest(pixels);
    const paths = new Map<number, string>();
    for (let from = 0; from < pixels.length;) {
      const color = pixels[from];
      let to = from + 1;
      while (to < pixels.length && pixels[to] === color) to++;
      if (color !== this.background) {
        paths.set(color, `${paths.get(color) ?? ""}M${from} ${y}h${to - from}v${height}h${from - to}z`);
      }
      from = to;
    }
    if (isGround) {
      this.body.push(`<rect y="${y}" width="${pixels.length}" height="${height}" fill="${unpack(this.background)}"/>`);
    }
    for (const [color, path] of paths) this.body.push(`<path fill="${unpack(color)}" d="${path}"/>`);
  }

  end(): void {
    // Nothing waits to be written.
  }

  part(): SvgPart {
    return { defs: [], body: [`<g shape-rendering="crispEdges">`, ...this.body, "</g>"] };
  }
}

function commonest(pixels: Uint32Array): number {
  const counts = new Map<number, number>();
  for (const color of pixels) counts.set(color, (counts.get(color) ?? 0) + 1);
  return [...counts].sort((a, b) => b[1] - a[1])[0]?.[0] ?? 0;
}
