// One unit for a whole column of times.

import { countText } from "./text";

export interface ColumnUnit {
  name: string;
  /** ns in one of it. */
  scale: number;
  digits: number;
}

const NANOSECONDS: ColumnUnit = { name: "ns", scale: 1, digits: 0 };
const MICROSECONDS: ColumnUnit = { name: "µs", scale: 1e3, digits: 3 };
const MILLISECONDS: ColumnUnit = { name: "ms", scale: 1e6, digits: 3 };
const SECONDS: ColumnUnit = { name: "s", scale: 1e9, digits: 3 };
const LONG_NS = 1e12;

/** The unit in which a column whose largest time is `most` ns is short and still exact enough. */
export function columnUnit(most: number): ColumnUnit {
  if (most >= LONG_NS) return SECONDS;
  if (most >= MILLISECONDS.scale) return MILLISECONDS;
  return most >= MICROSECONDS.scale ? MICROSECONDS : NANOSECONDS;
}

const formats = new Map<number, Intl.NumberFormat>();

/** A time in a column's unit, without the unit. */
export function inUnit(ns: number, { scale, digits }: ColumnUnit): string {
  if (digits === 0) return countText(ns / scale);
  let format = formats.get(digits);
  if (!format) {
    format = new Intl.NumberFormat("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits });
    formats.set(digits, format);
  }
  return format.format(ns / scale);
}
