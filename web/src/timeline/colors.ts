// Colours: palettes that people with colour-blindness can tell apart, and which colour a name has.
//
// A packed colour is a number whose bytes in memory are red, green, blue, alpha (as ImageData and WebGL have
// them).

import { context2d } from "./canvas";

/** Paul Tol's "light" scheme: made for filled areas with dark text on them. */
const FILLS = ["#77aadd", "#ee8866", "#44bb99", "#eedd88", "#ffaabb", "#99ddff", "#bbcc33", "#cc99cc", "#aaaa00"];

/** Text on any of the fills. */
export const INK = "#10141a";

export interface Theme {
  bg: string;
  fg: string;
  muted: string;
  line: string;
  accent: string;
  danger: string;
  panel: string;
}

const FALLBACK: Theme = {
  bg: "#ffffff",
  fg: "#1b1f24",
  muted: "#5c6570",
  line: "#dde1e6",
  accent: "#0b62c4",
  danger: "#b3261e",
  panel: "#f4f6f8",
};

/** The document's colours, as its style sheet gives them at this moment. */
export function readTheme(element: Element): Theme {
  const style = getComputedStyle(element);
  const probe = context2d(document.createElement("canvas"));
  const read = (name: keyof Theme): string => {
    const value = style.getPropertyValue(`--${name}`).trim();
    probe.fillStyle = FALLBACK[name];
    if (value) probe.fillStyle = value;
    return probe.fillStyle;
  };
  return {
    bg: read("bg"),
    fg: read("fg"),
    muted: read("muted"),
    line: read("line"),
    accent: read("accent"),
    danger: read("danger"),
    panel: read("panel"),
  };
}

type Rgb = [number, number, number];

function rgb(color: string): Rgb {
  const hex = /^#([0-9a-f]{6})/i.exec(color);
  if (hex) return [0, 2, 4].map((at) => parseInt(hex[1].slice(at, at + 2), 16)) as Rgb;
  const parts = color.match(/[\d.]+/g)?.map(Number) ?? [0, 0, 0];
  return [parts[0], parts[1], parts[2]];
}

const packRgb = ([r, g, b]: Rgb): number =>
  ((255 << 24) | (Math.round(b) << 16) | (Math.round(g) << 8) | Math.round(r)) >>> 0;
const blend = (a: Rgb, b: Rgb, part: number): Rgb => a.map((v, i) => v + (b[i] - v) * part) as Rgb;

export const pack = (color: string): number => packRgb(rgb(color));

/** A late frame: a red that dark text can be read on. */
export const LATE_FRAME = pack("#e8505b");
/** A frame that was not late. */
export const OTHER_FRAME = pack("#9ccbe8");

/** A packed colour for a style sheet. */
export const unpack = (color: number): string => `rgb(${color & 255} ${(color >> 8) & 255} ${(color >> 16) & 255})`;

/** `part` of the way from one colour to the other. */
export const mix = (from: string, to: string, part: number): number => packRgb(blend(rgb(from), rgb(to), part));

/** The fills in turn, then lighter, then darker. */
const SHADES: Rgb[] = [
  ...FILLS.map(rgb),
  ...FILLS.map((color) => blend(rgb(color), [255, 255, 255], 0.4)),
  ...FILLS.map((color) => blend(rgb(color), [0, 0, 0], 0.16)),
];
const PACKED_SHADES = SHADES.map(packRgb);

/** The fill of rank `rank`. */
const fill = (rank: number): Rgb => SHADES[rank % SHADES.length];

/** Letters of a name that its colour depends on. */
const HASHED_LETTERS = 200;
const isDigit = (letter: number): boolean => letter >= 48 && letter <= 57;

/**
 * A colour by the name alone, so that a name looks the same in every file and in both halves of a comparison. Names
 * that differ in their numbers alone have one colour.
 */
export function colorOfName(name: string): number {
  // FNV-1a, with MurmurHash3's last step: without it, the few shades would depend on the last letter most.
  let hash = 0x811c9dc5;
  for (let i = 0; i < name.length && i < HASHED_LETTERS; i++) {
    const letter = name.charCodeAt(i);
    if (isDigit(letter) && i > 0 && isDigit(name.charCodeAt(i - 1))) continue;
    hash = Math.imul(hash ^ (isDigit(letter) ? 48 : letter), 0x01000193);
  }
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return PACKED_SHADES[((hash ^ (hash >>> 16)) >>> 0) % PACKED_SHADES.length];
}

/** A colour per thread index + 1: that of its process, a little lighter or darker by thread. */
export function threadColors(threads: { process: number | null; name: string }[]): Uint32Array {
  const colors = new Uint32Array(threads.length + 1).fill(UNKNOWN_THREAD);
  const ranks = new Map<number | string, [number, number]>();
  threads.forEach(({ process, name }, i) => {
    // Where the process is not known, threads of one name have one colour.
    const owner = process ?? name;
    const rank = ranks.get(owner) ?? [ranks.size, 0];
    ranks.set(owner, [rank[0], rank[1] + 1]);
    colors[i + 1] = threadColor(rank[0], rank[1]);
  });
  return colors;
}

/** The colour of a thread, by the rank of its process and its own rank there. */
export function threadColor(process: number, thread: number): number {
  const shade = thread % 4;
  return packRgb(blend(fill(process), shade % 2 ? [255, 255, 255] : [0, 0, 0], 0.08 * shade));
}

/** The colour of a thread that is not known. */
export const UNKNOWN_THREAD = packRgb([170, 170, 170]);

/** The same colours, faded into the background: what does not match a search. */
export function faded(colors: Uint32Array, theme: Theme): Uint32Array {
  const back = rgb(theme.bg);
  return colors.map((color) => {
    const [r, g, b] = [color & 255, (color >> 8) & 255, (color >> 16) & 255];
    const grey = (r + g + b) / 3;
    return packRgb(blend([grey, grey, grey], back, 0.75));
  });
}

/** The colour of a thread state, by its text. */
export function stateColor(state: string, theme: Theme): number {
  return knownStateColor(state) ?? mix(theme.bg, theme.muted, 0.22);
}

/** The colour of a state of a thread that runs, wants to or cannot; null for one that sleeps. */
export function knownStateColor(state: string): number | null {
  if (state === "Running") return pack("#009e73");
  if (state.startsWith("Runnable (")) return pack("#0072b2");
  if (state === "Runnable" || state === "Waking") return pack("#56b4e9");
  if (state.includes("(IO)")) return pack("#d55e00");
  if (state.startsWith("Uninterruptible")) return pack("#e69f00");
  return null;
}

/** The colour of a thread state for a style sheet. */
export function stateColorOf(state: string): string {
  const known = knownStateColor(state);
  return known === null ? "var(--line)" : unpack(known);
}

/** The veil over the areas outside of a chosen period: it pales them, and leaves them bright enough for dark text. */
export function veilOf(theme: Theme): { color: string; alpha: number } {
  const isDark = rgb(theme.bg).reduce((sum, part) => sum + part, 0) < 3 * 128;
  return isDark ? { color: "#a3abb3", alpha: 0.3 } : { color: theme.bg, alpha: 0.45 };
}
