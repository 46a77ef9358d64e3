// Percentiles, as the program computes them: src/measure/frame_figures.rs.

/** The percentiles of the tables. */
export const PERCENTILES = [50, 90, 95, 99] as const;

/**
 * The percentile of `count` numbers in order, of which `at` tells each: between the two nearest ranks in proportion;
 * null for no numbers.
 */
export function percentile(count: number, at: (rank: number) => number, percent: number): number | null {
  if (count === 0) return null;
  const rank = ((count - 1) * percent) / 100;
  const lower = Math.floor(rank);
  const low = at(lower);
  return low + (at(Math.min(lower + 1, count - 1)) - low) * (rank - lower);
}
