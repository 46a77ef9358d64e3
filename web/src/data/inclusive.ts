// How long each method of a track took.

import type { SpanColumns } from "./trace";

/** The inclusive time of each method that a track calls; a recursive call does not count again. */
export function inclusiveTimes({ start, end, depth, label }: SpanColumns): SpanColumns["inclusive"] {
  let most = -1;
  let deepest = 0;
  for (let i = 0; i < label.length; i++) {
    if (label[i] > most) most = label[i];
    if (depth[i] > deepest) deepest = depth[i];
  }
  const totals = new Float64Array(most + 1);
  const open = new Uint32Array(most + 1);
  const stack = new Uint32Array(deepest + 1);
  let height = 0;
  for (let i = 0; i < label.length; i++) {
    const level = depth[i];
    while (height > level) open[stack[--height]]--;
    const method = label[i];
    if (open[method]++ === 0) totals[method] += end[i] - start[i];
    stack[height++] = method;
  }
  const methods = Uint32Array.from(totals.keys()).filter((method) => totals[method] > 0);
  return { methods, times: Float64Array.from(methods, (method) => totals[method]) };
}
