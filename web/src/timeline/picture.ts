// What a timeline shows, as something that can be drawn once more: into a file.

import type { Store } from "../store";
import type { Scene } from "./draw";
import type { HeadScene } from "./ruler";

export interface Picture {
  scene: Scene;
  head: HeadScene;
  /** Lengths are CSS pixels. */
  rulerHeight: number;
  namesWidth: number;
  /** Draws what lies above the rows: periods, notes, arrows, and the selection's outline. */
  decorate(context: CanvasRenderingContext2D): void;
}

const shown = new WeakMap<Store, (() => Picture)[]>();

/** Has `picturesOf` give the picture of a timeline of the page, until the answer is called. */
export function offerPicture(store: Store, picture: () => Picture): () => void {
  const all = shown.get(store) ?? [];
  shown.set(store, [...all, picture]);
  return () => {
    shown.set(
      store,
      (shown.get(store) ?? []).filter((one) => one !== picture),
    );
  };
}

/** The pictures of the timelines of a page, from top to bottom. */
export function picturesOf(store: Store): Picture[] {
  return (shown.get(store) ?? []).map((picture) => picture());
}
