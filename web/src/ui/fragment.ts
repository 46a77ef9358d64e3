// The state in the URL's fragment, so that a link or a reload shows the same: by names where something is selected,
// because the numbers of tracks and methods belong to one file.

import { lowerBound } from "../data/search_sorted";
import { methodCount } from "../profile/span_source";
import { alignedAt, boundsOf, firstAlignment, offsetTo, shifted } from "../compare/alignment";
import type { Trace, Track } from "../data/trace";
import { MAX_NOTE_CHARS, MAX_NOTES } from "../notes/notes";
import {
  ALL_ROWS,
  type Note,
  type Panel,
  type Place,
  type Range,
  type RowChoice,
  type Selection,
  type State,
  type Store,
} from "../store";
import { FIRST_TABLE, parseTableChoice, tableChoiceText } from "../table/choice";

/** Said of two timelines that are aligned at what somebody has chosen. */
export const CHOSEN = "the chosen row's longest ones";
const MAX_NAME_CHARS = 200;
const PANELS: Panel[] = ["timeline", "launches", "why", "screen", "profile", "table", "comparison", "summary"];
const SORTS: RowChoice["sort"][] = ["activity", "name", "pid", "time"];
const THEMES: State["theme"][] = ["auto", "light", "dark"];

/** What a page shows, however it is opened. */
export type Opened = Pick<State, "traces" | "comparison">;

/** The fragment, without `#`. What is as in a page just opened, which shows the panel `first`, is left out. */
export function toFragment(state: State, first: Panel, place: Place | null = null): string {
  const { trace, traces, view, range, selection, panel, notes, theme, query, name } = state;
  const parts = new URLSearchParams();
  if (trace !== traces[0]) parts.set("trace", trace.role);
  const bounds = boundsOf(state);
  if (view.from > bounds.from || view.to < bounds.to) parts.set("view", rangeText(view));
  if (range) parts.set("range", rangeText(range));
  const selected = selection && selectionText(trace, selection);
  if (selected) parts.set("select", selected);
  if (panel !== first) parts.set("panel", panel);
  const other = traces.find((one) => one !== trace);
  const selectedThere = other && state.otherSelection && selectionText(other, state.otherSelection);
  if (selectedThere) parts.set("other", selectedThere);
  if (state.alignment?.what === CHOSEN) parts.set("align", traces.map((one) => anchorOf(state, one)).join("-"));
  if (name) parts.set("name", name);
  if (theme !== "auto") parts.set("theme", theme);
  if (query) parts.set("q", query);
  const { sort, filter, pinned, hidden } = state.rows;
  if (sort !== ALL_ROWS.sort) parts.set("sort", sort);
  if (filter) parts.set("rows", filter);
  const table = tableChoiceText(state.table);
  if (table) parts.set("table", table);
  for (const id of pinned) parts.append("pin", id);
  for (const id of hidden) parts.append("hide", id);
  for (const note of notes) {
    const at = Math.round(note.at);
    const about = note.selection && selectionText(note.trace, note.selection);
    if (!about && note.trace === traces[0]) parts.append("mark", `${at} ${note.text}`);
    else parts.append("note", JSON.stringify([at, note.text, about, note.trace.role]));
  }
  if (place) {
    if (place.scrolled > 0) parts.set("top", String(place.scrolled));
    if (place.names !== null) parts.set("names", String(place.names));
    for (const [id, open] of place.folds) parts.append(open ? "open" : "fold", id);
  }
  return parts.toString();
}

const anchorOf = ({ alignment }: State, trace: Trace) => Math.round(alignment?.anchors.get(trace) ?? 0);

/** What a fragment tells of a timeline's elements. */
export function placeFrom(fragment: string): Place | null {
  const parts = new URLSearchParams(fragment.replace(/^#/, ""));
  const number = (name: string) => {
    const text = parts.get(name) ?? "";
    return /^\d{1,7}$/.test(text) ? Number(text) : null;
  };
  const folds = [
    ...parts.getAll("open").map((id): [string, boolean] => [id, true]),
    ...parts.getAll("fold").map((id): [string, boolean] => [id, false]),
  ];
  const [scrolled, names] = [number("top"), number("names")];
  return scrolled === null && names === null && folds.length === 0 ? null : { scrolled: scrolled ?? 0, names, folds };
}

/** The state that a fragment tells. What it does not tell, or what does not fit the trace, is as at the opening. */
export function fromFragment(fragment: string, { traces, comparison }: Opened, first: Panel): State {
  const parts = new URLSearchParams(fragment.replace(/^#/, ""));
  const trace = traces.find(({ role }) => role === parts.get("trace")) ?? traces[0];
  const anchors = /^(\d{1,16})-(\d{1,16})$/.exec(parts.get("align") ?? "");
  const alignment =
    anchors && traces.length > 1
      ? alignedAt(traces, CHOSEN, [Number(anchors[1]), Number(anchors[2])])
      : firstAlignment(traces, comparison);
  const bounds = boundsOf({ trace, traces, alignment });
  const other = traces.find((one) => one !== trace);
  const selectedThere = parts.get("other");
  const one = <T extends string>(of: T[], name: string, otherwise: T): T => {
    const value = parts.get(name) as T;
    return of.includes(value) ? value : otherwise;
  };
  const selected = parts.get("select");
  return {
    traces,
    comparison,
    alignment,
    name: (parts.get("name") ?? "").slice(0, MAX_NAME_CHARS),
    trace,
    view: parseRange(parts.get("view"), bounds) ?? bounds,
    range: parseRange(parts.get("range"), bounds),
    selection: selected ? parseSelection(trace, selected) : null,
    otherSelection: other && selectedThere ? parseSelection(other, selectedThere) : null,
    pointer: null,
    editing: null,
    panel: one(PANELS, "panel", first),
    theme: one(THEMES, "theme", "auto"),
    query: parts.get("q") ?? "",
    path: null,
    profiled: null,
    table: parseTableChoice(parts.get("table")),
    rows: {
      sort: one(SORTS, "sort", ALL_ROWS.sort),
      filter: parts.get("rows") ?? "",
      pinned: parts.getAll("pin"),
      hidden: parts.getAll("hide"),
    },
    notes: [
      ...parts.getAll("mark").map((text) => parseMark(traces[0], text)),
      ...parts.getAll("note").map((text) => parseNote(traces, text)),
    ]
      .filter((note) => note !== null)
      .slice(0, MAX_NOTES),
  };
}

function rangeText({ from, to }: Range): string {
  return `${Math.round(from)}-${Math.round(to)}`;
}

function parseRange(text: string | null, bounds: Range): Range | null {
  const match = /^(-?\d{1,16})-(-?\d{1,16})$/.exec(text ?? "");
  if (!match) return null;
  const to = Math.min(Number(match[2]), bounds.to);
  const from = Math.max(Number(match[1]), bounds.from);
  return from < to ? { from, to } : null;
}

/** A note at a moment of the first trace: the moment, and its text. */
function parseMark(trace: Trace, text: string): Note | null {
  const match = /^(\d{1,16}) ?([^]*)$/.exec(text);
  return match && { trace, at: Number(match[1]), text: match[2].slice(0, MAX_NOTE_CHARS), selection: null };
}

/** A note about a selection, or in another trace. */
function parseNote(traces: readonly Trace[], text: string): Note | null {
  const parts = parsedList(text);
  const trace = traces.find(({ role }) => role === parts?.[3]);
  const [at, words, about] = parts ?? [];
  if (!trace || !Number.isSafeInteger(at) || Number(at) < 0 || typeof words !== "string") return null;
  const selection = typeof about === "string" ? parseSelection(trace, about) : null;
  return { trace, at: Number(at), text: words.slice(0, MAX_NOTE_CHARS), selection };
}

function parsedList(text: string): unknown[] | null {
  try {
    const value: unknown = JSON.parse(text);
    return Array.isArray(value) ? (value as unknown[]) : null;
  } catch {
    return null;
  }
}

/** A selection by names, as JSON of a few strings and numbers; null where it has none. */
export function selectionText(trace: Trace, selection: Selection): string | null {
  switch (selection.kind) {
    case "method": {
      const { methods, strings } = trace;
      if (!methods || selection.method >= methodCount(trace)) return null;
      const text = (column: number[]) => strings[column[selection.method]];
      return JSON.stringify(["method", text(methods.class), text(methods.name), text(methods.signature)]);
    }
    case "name":
      return JSON.stringify(["name", selection.name]);
    case "thread": {
      if (selection.thread >= trace.threads.length) return null;
      const { tid, name } = trace.threads[selection.thread];
      return JSON.stringify(["thread", tid, name]);
    }
    case "launch": {
      const launch = trace.index.launches.at(selection.launch);
      return launch ? JSON.stringify(["launch", launch.package, launch.begin_ns]) : null;
    }
    default: {
      const track = trace.track(selection.track);
      const times = track && timesOf(track);
      if (!times) return null;
      const at = times[selection.item];
      const nth = selection.item - lowerBound(times, at);
      return JSON.stringify([
        selection.kind,
        track.kind,
        track.role,
        track.name,
        track.thread === null ? null : trace.threads[track.thread].tid,
        track.process === null ? null : trace.index.processes[track.process].pid,
        track.cpu,
        at,
        nth,
      ]);
    }
  }
}

/** The selection that a text tells; null where the trace has nothing like it. */
export function parseSelection(trace: Trace, text: string): Selection | null {
  const parts = parsedList(text);
  if (!parts) return null;
  const [kind] = parts;
  if (kind === "name") return typeof parts[1] === "string" ? { kind, name: parts[1] } : null;
  if (kind === "thread") {
    const thread = trace.threads.findIndex(({ tid, name }) => tid === parts[1] && name === parts[2]);
    return thread < 0 ? null : { kind, thread };
  }
  if (kind === "launch") {
    const launch = trace.index.launches.findIndex((one) => one.package === parts[1] && one.begin_ns === parts[2]);
    return launch < 0 ? null : { kind, launch };
  }
  if (kind === "method") return findMethod(trace, parts[1], parts[2], parts[3]);
  if (kind !== "span" && kind !== "state" && kind !== "instant" && kind !== "counter") return null;
  const track = trace.tracks.find(
    (t) =>
      t.kind === parts[1]
      && t.role === parts[2]
      && t.name === parts[3]
      && (t.thread === null ? null : trace.threads[t.thread].tid) === parts[4]
      && (t.process === null ? null : trace.index.processes[t.process].pid) === parts[5]
      && t.cpu === parts[6],
  );
  const times = track && timesOf(track);
  const at = parts[7];
  if (!times || typeof at !== "number") return null;
  const item = lowerBound(times, at) + Number(parts[8]);
  return times[item] === at ? { kind, track: track.id, item } : null;
}

function findMethod(trace: Trace, owner: unknown, name: unknown, signature: unknown): Selection | null {
  const { methods, strings } = trace;
  if (!methods) return null;
  const method = methods.name.findIndex(
    (id, at) =>
      strings[id] === name && strings[methods.class[at]] === owner && strings[methods.signature[at]] === signature,
  );
  return method < 0 ? null : { kind: "method", method };
}

/** The times of a track's items, in order. */
function timesOf(track: Track): Float64Array | undefined {
  return track.spans?.start ?? track.states?.start ?? track.instants?.time ?? track.counter?.time;
}

/** Shows another trace of the page. What is selected is selected there too, where that trace has it. */
export function switchTrace(store: Store, trace: Trace, change: Partial<State> = {}): void {
  const { state } = store;
  if (trace === state.trace) {
    store.set(change);
    return;
  }
  const text = state.selection && selectionText(state.trace, state.selection);
  const selection = state.otherSelection ?? (text ? parseSelection(trace, text) : null);
  const by = offsetTo(state, trace);
  const view = shifted(state.view, by);
  const range = state.range && shifted(state.range, by);
  const { sort, filter } = state.rows;
  const rows = { ...ALL_ROWS, sort, filter };
  store.set({ trace, view, range, selection, otherSelection: state.selection, rows, table: FIRST_TABLE, ...change });
}
