// The 2D contexts of canvases.

/** What is drawn on: a canvas, or what writes down what is drawn. */
export interface Surface {
  width: number;
  height: number;
  getContext(kind: "2d", settings?: CanvasRenderingContext2DSettings): CanvasRenderingContext2D | null;
}

/** The 2D context of a canvas. Browsers refuse it only to a canvas that has a context of another kind. */
export function context2d(canvas: Surface, settings?: CanvasRenderingContext2DSettings): CanvasRenderingContext2D {
  const context = canvas.getContext("2d", settings);
  if (!context) throw new Error("This browser has no 2D canvas to draw on.");
  return context;
}
