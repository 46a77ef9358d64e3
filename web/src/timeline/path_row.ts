// Draws the row of the critical path, above the threads.

import { firstWhere } from "../data/search_sorted";
import { causeColor, sentence } from "../why/words";
import { INK } from "./colors";
import type { Scale } from "./layout";
import type { Model } from "./model";

/** Narrower stretches have no text. */
const MIN_TEXT_PX = 40;
/** What is not of the chosen cause is pale. */
const PALE = 0.25;

/** The model whose path is drawn, and the part of the trace that the picture shows. */
interface PathView {
  model: Model;
  scale: Scale;
}

/** The numbers of the steps that are in view: the first, and the one behind the last. */
export function stepsInView({ model, scale }: PathView): [number, number] {
  const steps = model.path?.path.steps ?? [];
  const end = scale.from + scale.width * scale.quantum;
  const first = firstWhere(0, steps.length, (at) => steps[at].to > scale.from);
  return [first, firstWhere(first, steps.length, (at) => steps[at].from >= end)];
}

export function drawPathRow(context: CanvasRenderingContext2D, view: PathView, y: number, height: number): void {
  const { model, scale } = view;
  const shown = model.path;
  if (!shown) return;
  const { path, chosen, trace } = shown;
  const [first, last] = stepsInView(view);
  let drawn = -1;
  for (let at = first; at < last; at++) {
    const { from, to, cause } = path.steps[at];
    const x0 = Math.max((from - scale.from) / scale.quantum, 0);
    const x1 = Math.min((to - scale.from) / scale.quantum, scale.width);
    // Of stretches that share a pixel the first one shows.
    if (Math.floor(x1) <= drawn && x1 - x0 < 1) continue;
    drawn = Math.floor(x1);
    const { hops } = path.causes[cause];
    context.globalAlpha = chosen === null || chosen === cause ? 1 : PALE;
    context.fillStyle = causeColor(hops.at(-1)?.cause ?? "");
    context.fillRect(x0, y, Math.max(x1 - x0 - (x1 - x0 > 3 ? 1 : 0), 1), height - 1);
    if (x1 - x0 < MIN_TEXT_PX) continue;
    context.save();
    context.beginPath();
    context.rect(x0, y, x1 - x0 - 4, height);
    context.clip();
    context.fillStyle = INK;
    context.fillText(sentence(trace, hops), x0 + 3, y + height / 2);
    context.restore();
  }
  context.globalAlpha = 1;
}
