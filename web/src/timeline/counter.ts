// Counters as step plots: per column of pixels the least and the largest value.

import { upperBound } from "../data/search_sorted";
import type { CounterTrack } from "../data/trace";
import type { Theme } from "./colors";
import type { Scale } from "./layout";
import { formatValue } from "./time";

const BLOCK_VALUES = 64;

/** The least and largest value of each `BLOCK_VALUES` values, and of all. */
interface Summary {
  low: Float64Array;
  high: Float64Array;
  least: number;
  most: number;
}

const summaries = new WeakMap<Float64Array, Summary>();

function summaryOf(value: Float64Array): Summary {
  let summary = summaries.get(value);
  if (!summary) {
    const blocks = Math.ceil(value.length / BLOCK_VALUES);
    summary = {
      low: new Float64Array(blocks).fill(Infinity),
      high: new Float64Array(blocks).fill(-Infinity),
      least: Infinity,
      most: -Infinity,
    };
    for (let i = 0; i < value.length; i++) {
      const block = Math.floor(i / BLOCK_VALUES);
      if (value[i] < summary.low[block]) summary.low[block] = value[i];
      if (value[i] > summary.high[block]) summary.high[block] = value[i];
    }
    for (const low of summary.low) summary.least = Math.min(summary.least, low);
    for (const high of summary.high) summary.most = Math.max(summary.most, high);
    summaries.set(value, summary);
  }
  return summary;
}

/** The ends of a counter's axis: zero is on it where all values have one sign. */
export function axis(track: CounterTrack): { bottom: number; top: number } {
  const { least, most } = summaryOf(track.counter.value);
  const bottom = Math.min(0, least);
  const top = Math.max(0, most);
  return { bottom, top: top > bottom ? top : bottom + 1 };
}

/** Draws a counter's plot and the ends of its axis at `x`, `y`, in CSS pixels. */
export function drawCounter(
  context: CanvasRenderingContext2D,
  track: CounterTrack,
  scale: Scale,
  x: number,
  y: number,
  height: number,
  theme: Theme,
): void {
  const { time, value } = track.counter;
  const { low, high } = summaryOf(value);
  const { bottom, top } = axis(track);
  const place = (v: number) => y + height - ((v - bottom) / (top - bottom)) * height;
  const zero = place(0);
  context.fillStyle = theme.accent;
  context.globalAlpha = 0.3;
  let item = upperBound(time, scale.from) - 1;
  let runFrom = 0;
  let runLow = NaN;
  let runHigh = NaN;
  const flush = (column: number) => {
    if (column > runFrom && !Number.isNaN(runHigh)) {
      const upper = Math.min(place(runHigh), zero);
      const lower = Math.max(place(runLow), zero);
      context.fillRect(x + runFrom, upper, column - runFrom, lower - upper);
      context.globalAlpha = 1;
      context.fillRect(
        x + runFrom,
        place(runHigh) - 0.5,
        column - runFrom,
        Math.max(1, place(runLow) - place(runHigh)),
      );
      context.globalAlpha = 0.3;
    }
    runFrom = column;
  };
  for (let column = 0; column < scale.width; column++) {
    const until = scale.from + (column + 1) * scale.quantum;
    let least = item >= 0 ? value[item] : NaN;
    let most = least;
    const take = (a: number, b: number) => {
      least = Number.isNaN(least) || a < least ? a : least;
      most = Number.isNaN(most) || b > most ? b : most;
    };
    if (item + 1 < time.length && time[item + 1] < until) {
      const last = upperBound(time, until) - 1;
      for (let i = item + 1; i <= last;) {
        if (i % BLOCK_VALUES === 0 && i + BLOCK_VALUES <= last) {
          take(low[i / BLOCK_VALUES], high[i / BLOCK_VALUES]);
          i += BLOCK_VALUES;
        } else {
          take(value[i], value[i]);
          i++;
        }
      }
      item = last;
    }
    if (!Object.is(least, runLow) || !Object.is(most, runHigh)) {
      flush(column);
      runLow = least;
      runHigh = most;
    }
  }
  flush(scale.width);
  context.globalAlpha = 1;
  if (height < 24) return;
  context.fillStyle = theme.muted;
  context.textBaseline = "top";
  context.fillText(formatValue(top, track.unit), x + 4, y + 1);
  context.textBaseline = "bottom";
  if (bottom < 0) context.fillText(formatValue(bottom, track.unit), x + 4, y + height);
  context.textBaseline = "middle";
}
