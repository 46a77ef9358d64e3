// The timeline as its helpers see it: keys, pointer and wheel, steps between items, and tests.

import type { Range, Selection, Store } from "../store";
import type { Elements } from "./elements";
import type { Layout, Scale } from "./layout";
import type { Model } from "./model";

/** Times are ns from the trace's start; lengths and places are CSS pixels. */
export interface TimelineControl {
  readonly store: Store;
  readonly elements: Elements;
  readonly model: Model;
  readonly layout: Layout;
  /** The period in view. */
  readonly view: Range;
  readonly scale: Scale;
  /** How far the rows are scrolled. */
  readonly scrolled: number;
  /** Height of the part of the rows that is in view. */
  readonly bodyHeight: number;

  /** Shows a period, within the trace, and no shorter one than the timeline can show. */
  setView(from: number, to: number): void;
  /** Zooms by `factor` (less than 1: in); `at`, or else the pointer or the middle, stays where it is. */
  zoom(factor: number, at?: number): void;
  pan(by: number): void;
  panTo(from: number): void;
  /** Shows the whole trace. */
  fit(): void;
  scrollBy(by: number): void;
  scrollTo(y: number): void;

  /** Selects what lies at a place of the plot; with `asRange`, chooses its period instead. */
  click(x: number, y: number, asRange: boolean): void;
  /** Selects; with `reveal`, brings the selection into view. */
  select(selection: Selection | null, reveal: boolean): void;
  zoomToSelection(): void;
  /** Chooses the selection's period. */
  rangeOfSelection(): void;
  /** Called when the rows were scrolled. */
  onScroll: (() => void) | null;

  /** Pins a note with a number to the selection, the pointer or the middle, or removes the one there. */
  toggleNumber(): void;
  /** Begins a note at the selection, the pointer or the middle. */
  writeNote(): void;
  /** Shows more arrows of the selection, or of what is in view; after the most of them the fewest again. */
  toggleArrows(): void;
  /** Drops the chosen period, or where none is chosen the selection. */
  drop(): void;
  /** While a drag chooses a period, to keep (`range`) or to zoom into; null when it is over. */
  dragPeriod(kind: "range" | "zoom" | null, from: number, to: number): void;
  /** Says what lies under the pointer; `x` less than 0: the pointer left. */
  hoverAt(x: number, y: number): void;
}
