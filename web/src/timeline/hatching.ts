// The pattern over periods in which events are missing.

import { context2d } from "./canvas";

/** Hatches in the colour that was asked for last. */
export class Hatching {
  private pattern: CanvasPattern | null = null;
  private color = "";

  of(context: CanvasRenderingContext2D, color: string): CanvasPattern | string {
    if (this.pattern && this.color === color) return this.pattern;
    const tile = document.createElement("canvas");
    tile.width = tile.height = 8;
    const pen = context2d(tile);
    pen.strokeStyle = color;
    pen.lineWidth = 1.5;
    for (const x of [-8, 0, 8]) {
      pen.moveTo(x, 8);
      pen.lineTo(x + 8, 0);
    }
    pen.stroke();
    this.color = color;
    this.pattern = context.createPattern(tile, "repeat");
    return this.pattern ?? color;
  }
}
