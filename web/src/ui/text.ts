// Numbers and times as text.

const WHOLE = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });
const MILLISECONDS = new Intl.NumberFormat("en-US", { minimumFractionDigits: 3, maximumFractionDigits: 3 });
const SHARE = new Intl.NumberFormat("en-US", { minimumFractionDigits: 1, maximumFractionDigits: 1 });

/** A number with separators of thousands. */
export function countText(count: number): string {
  return WHOLE.format(count);
}

/** `count` things, with the noun in the form that fits. */
export function counted(count: number, one: string, many = `${one}s`): string {
  return `${countText(count)} ${count === 1 ? one : many}`;
}

/** Nanoseconds as milliseconds, with the microseconds behind the point. */
export function milliseconds(ns: number): string {
  return MILLISECONDS.format(ns / 1e6);
}

/** `part` of `whole` as a number of percent, without the sign. */
export function percentText(part: number, whole: number): string {
  return whole > 0 ? SHARE.format((100 * part) / whole) : "–";
}

/** A size in bytes with its binary unit. */
export function bytesText(bytes: number): string {
  const units = ["bytes", "KiB", "MiB", "GiB"];
  let unit = 0;
  while (bytes >= 1024 && unit < units.length - 1) {
    bytes /= 1024;
    unit++;
  }
  return unit === 0 ? `${WHOLE.format(bytes)} bytes` : `${bytes.toFixed(bytes < 10 ? 2 : 1)} ${units[unit]}`;
}

/** Makes text comparable without regard to case. */
export function folded(text: string): string {
  return text.toLowerCase();
}

/** A name as people can see it: control characters and invisible direction marks by their code points. */
export function visibleName(name: string): string {
  if (!UNSEEN.test(name)) return name;
  return name.replace(UNSEEN_ALL, (c) => `\\u{${c.charCodeAt(0).toString(16)}}`);
}

const UNSEEN_SET = "[\\u0000-\\u001f\\u007f-\\u009f\\u200b\\u200e\\u200f\\u2028-\\u202e\\u2060-\\u2069\\ufeff]";
const UNSEEN = new RegExp(UNSEEN_SET);
const UNSEEN_ALL = new RegExp(UNSEEN_SET, "g");
