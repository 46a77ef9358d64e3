// Binary searches.

/** The first number from `low` on for which `holds` is true, or `high`; `holds` is true for all behind it. */
export function firstWhere(low: number, high: number, holds: (at: number) => boolean): number {
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    if (holds(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** The first index at or behind `low` whose value is at least `value`. */
export function lowerBound(sorted: Float64Array, value: number, low = 0): number {
  return firstWhere(low, sorted.length, (at) => sorted[at] >= value);
}

/** The first index whose value is greater than `value`: the one before it is the last that is not. */
export function upperBound(sorted: Float64Array, value: number): number {
  return firstWhere(0, sorted.length, (at) => sorted[at] > value);
}
