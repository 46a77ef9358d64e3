// Draws the critical path over the rows of threads: the arrows from thread to thread, and the stretches of the chosen
// cause.

import { arrow } from "./arrows";
import type { Scene } from "./draw";
import { stepsInView } from "./path_row";

/** More arrows would be a wall. */
const MAX_ARROWS = 200;
/** The height of the mark on a thread's row: that of its states, so that the names below it can be read. */
const MARK_PX = 11;

/** The arrows of the path, and the chosen cause's stretches on the rows of their threads. */
export function drawPath(context: CanvasRenderingContext2D, scene: Scene): void {
  const { model, layout, scale, scrolled, theme, height } = scene;
  if (!model.path) return;
  const { path, chosen } = model.path;
  const [first, last] = stepsInView(scene);
  const place = (time: number) => (time - scale.from) / scale.quantum;
  const rowOf = (thread: number) => {
    const row = layout.threadRow(thread);
    if (!row) return null;
    const y = layout.inPicture(row.y, scrolled);
    return y + row.height < layout.pinnedHeight || y > height ? null : { y, height: row.height };
  };
  context.strokeStyle = context.fillStyle = theme.accent;
  let arrows = 0;
  let lastX = -Infinity;
  for (let at = Math.max(first, 1); at < last && arrows < MAX_ARROWS; at++) {
    const step = path.steps[at];
    const before = path.steps[at - 1];
    const x = place(step.from);
    if (step.thread === before.thread || x - lastX < 3) continue;
    const [from, to] = [rowOf(before.thread), rowOf(step.thread)];
    if (!from || !to) continue;
    arrow(context, x - 1, from.y + 6, x + 5, to.y + 6);
    arrows++;
    lastX = x;
  }
  if (chosen === null) return;
  context.lineWidth = 2;
  context.strokeStyle = theme.danger;
  for (let at = first; at < last; at++) {
    const step = path.steps[at];
    if (step.cause !== chosen) continue;
    const row = rowOf(step.thread);
    if (row)
      context.strokeRect(
        place(step.from),
        row.y + 1,
        Math.max(1, (step.to - step.from) / scale.quantum),
        Math.min(row.height - 3, MARK_PX),
      );
  }
}
