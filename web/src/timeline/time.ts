// Times, durations and values as text.

import type { TraceIndex } from "../data/format";

const UNITS: [number, string][] = [
  [1e9, "s"],
  [1e6, "ms"],
  [1e3, "µs"],
  [1, "ns"],
];

/** A duration of `ns` with at most four significant digits, as in "12.35 ms". */
export function formatDuration(ns: number): string {
  const size = Math.abs(ns);
  const [scale, unit] = UNITS.find(([scale]) => size >= scale) ?? UNITS[3];
  const value = ns / scale;
  const digits = scale === 1 ? 0 : Math.max(0, 3 - Math.floor(Math.log10(Math.abs(value) || 1)));
  return `${value.toFixed(Math.min(digits, 3))} ${unit}`;
}

/** A moment counted from the trace's start, to the nanosecond, as in "1.250 003 417 s". */
export function formatMoment(ns: number): string {
  const text = Math.abs(Math.round(ns)).toString().padStart(10, "0");
  const [whole, part] = [text.slice(0, -9), text.slice(-9)];
  return `${ns < 0 ? "-" : ""}${whole}.${part.slice(0, 3)} ${part.slice(3, 6)} ${part.slice(6)} s`;
}

/** The moment on the trace's own clock, in seconds. */
export function formatClock(index: TraceIndex, ns: number): string {
  const text = (BigInt(index.start_ns) + BigInt(Math.round(ns))).toString().padStart(10, "0");
  return `${text.slice(0, -9)}.${text.slice(-9)} s`;
}

/** The moment as date and time of day in UTC, or null where the trace does not know it. */
export function formatWall(index: TraceIndex, ns: number): string | null {
  if (index.wall_start_ns === null) return null;
  const wall = BigInt(index.wall_start_ns) + BigInt(Math.round(ns));
  const date = new Date(Number(wall / 1000000n));
  if (Number.isNaN(date.getTime())) return null;
  const micros = ((wall / 1000n) % 1000000n).toString().padStart(6, "0");
  return `${date.toISOString().slice(0, 19).replace("T", " ")}.${micros} UTC`;
}

/** A step for a ruler: 1, 2 or 5 times a power of ten, at least `least` ns. */
export function rulerStep(least: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(least, 1)));
  return [1, 2, 5, 10].map((n) => n * power).find((step) => step >= least) ?? power * 10;
}

/** The label of a ruler's tick: one unit for the whole ruler, as many digits as `step` needs. */
export function formatTick(ns: number, step: number, longest: number): string {
  const [scale, unit] = UNITS.find(([scale]) => longest >= scale) ?? UNITS[3];
  const digits = Math.max(0, Math.ceil(Math.log10(scale / step) - 1e-9));
  const text = (ns / scale).toFixed(digits);
  const [whole, part] = text.split(".");
  return `${whole}${part ? `.${part.replace(/(\d{3})(?=\d)/g, "$1\u2009")}` : ""} ${unit}`;
}

const PREFIXES: [number, string][] = [
  [1e9, "G"],
  [1e6, "M"],
  [1e3, "k"],
];

/** A counter's value with its unit; frequencies and sizes get the unit's usual prefix. */
export function formatValue(value: number, unit: string): string {
  if (/^k?Hz$/.test(unit)) {
    const hertz = unit === "kHz" ? value * 1000 : value;
    const [scale, prefix] = PREFIXES.find(([scale]) => Math.abs(hertz) >= scale) ?? [1, ""];
    return `${+(hertz / scale).toFixed(3)} ${prefix}Hz`;
  }
  const text = Number.isInteger(value) ? value.toLocaleString("en") : String(+value.toPrecision(6));
  return unit ? `${text} ${unit}` : text;
}
