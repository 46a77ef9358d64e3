// The state that the panels share. A panel changes it with `set`, and is told of every change.

import type { Comparison } from "./data/format";
import type { Trace } from "./data/trace";
import type { TableChoice } from "./table/choice";
import type { CriticalPath } from "./why/critical_path";

/** A period, ns from the trace's start. */
export interface Range {
  from: number;
  to: number;
}

/** The selection. A click in one panel selects in all. */
export type Selection =
  | { kind: "span"; track: number; item: number }
  | { kind: "state"; track: number; item: number }
  | { kind: "instant"; track: number; item: number }
  | { kind: "counter"; track: number; item: number }
  | { kind: "method"; method: number }
  | { kind: "name"; name: string }
  | { kind: "thread"; thread: number }
  | { kind: "launch"; launch: number };

export type Panel = "timeline" | "launches" | "why" | "screen" | "profile" | "table" | "comparison" | "summary";

/** A text that the user has pinned to a moment of a trace, and perhaps to what was selected. */
export interface Note {
  trace: Trace;
  at: number;
  text: string;
  selection: Selection | null;
}

/** How the timelines of two traces lie under each other. */
export interface Alignment {
  /** What the two have at the same place, in words. */
  what: string;
  /** The moment of each trace that lies there. */
  anchors: ReadonlyMap<Trace, number>;
}

/** What only the timeline's elements know of a picture; it goes into links and copies. */
export interface Place {
  /** How far the rows are scrolled, CSS pixels. */
  scrolled: number;
  /** Rows that the user has opened or closed. */
  folds: [id: string, open: boolean][];
  /** The width of the names, CSS pixels; null: as at the opening. */
  names: number | null;
}

/** Which rows the timeline shows, and in which order. Rows are named by their ids. */
export interface RowChoice {
  sort: "activity" | "name" | "pid" | "time";
  /** Part of the name of a row or of its process. */
  filter: string;
  /** These rows come first. */
  pinned: readonly string[];
  hidden: readonly string[];
}

export const ALL_ROWS: RowChoice = { sort: "activity", filter: "", pinned: [], hidden: [] };

/** The critical path that the timeline shows. */
export interface ShownPath {
  trace: Trace;
  path: CriticalPath;
  /** The cause whose stretches are marked. */
  chosen: number | null;
  /** What was selected when the path was found, or since then by a click on a cause. */
  selection: Selection | null;
}

export interface State {
  /** The traces of the page: one, or a new and an old one. */
  traces: readonly Trace[];
  comparison: Comparison | null;
  /** How two timelines lie under each other; null: there is one. */
  alignment: Alignment | null;
  /** The name that the user gave the page; empty: it has that of its trace. */
  name: string;
  /** The trace whose profile, selection and summary show. */
  trace: Trace;
  /** The panel below the timeline (`timeline`: none, the timeline has the whole page). */
  panel: Panel;
  /** The period that the timeline shows. */
  view: Range;
  /** The period that the user has chosen or measured; the profile follows it. `null`: the profile follows `view`. */
  range: Range | null;
  selection: Selection | null;
  /** What is selected in the other one of two traces. */
  otherSelection: Selection | null;
  /** The time under the pointer, of a trace with videos; `null`: the pointer is not over the timeline. */
  pointer: number | null;
  /** The text of the search field. */
  query: string;
  notes: readonly Note[];
  /** The note that is being written; one that is not among the notes is new. */
  editing: Note | null;
  rows: RowChoice;
  /** What the panel "table" shows. */
  table: TableChoice;
  theme: "auto" | "light" | "dark";
  /** The thread whose profile was asked for last, outside of the profile's own controls. */
  profiled: { thread: number } | null;
  /** What the panel "why" has found. */
  path: ShownPath | null;
}

export class Store {
  /** What only the timeline's elements know; set while a timeline shows. */
  place: (() => Place) | null = null;
  /** The place to begin with. */
  firstPlace: Place | null = null;
  /** The text of the page that shows, where it is not the document's own: the kept part of a recording that runs. */
  pageText: string | null = null;
  private readonly listeners = new Set<(state: State, changed: Set<keyof State>) => void>();

  constructor(private current: State) {}

  get state(): State {
    return this.current;
  }

  set(change: Partial<State>): void {
    const changed = new Set<keyof State>();
    for (const key of Object.keys(change) as (keyof State)[]) {
      if (change[key] !== this.current[key]) changed.add(key);
    }
    if (changed.size === 0) return;
    this.current = { ...this.current, ...change };
    for (const listener of this.listeners) listener(this.current, changed);
  }

  /** Has `listener` called after every change; returns the function that ends this. */
  subscribe(listener: (state: State, changed: Set<keyof State>) => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }
}
