// The state in the URL's fragment, so that a link or a reload shows the same: by names where something is selected,
// because the numbers of tracks and methods belong to one file.

import { lowerBound } from "../data/search_sorted";
import { methodCount } from "../profile/span_source";
import type { Trace, Track } from "../data/trace";
import {
  ALL_ROWS,
  type Bookmark,
  type Panel,
  type Range,
  type RowChoice,
  type Selection,
  type State,
  type Store,
} from "../store";
import { FIRST_TABLE, parseTableChoice, tableChoiceText } from "../table/choice";

const PANELS: Panel[] = ["timeline", "launches", "why", "screen", "profile", "table", "comparison", "summary"];
const SORTS: RowChoice["sort"][] = ["activity", "name", "pid", "time"];
const THEMES: State["theme"][] = ["auto", "light", "dark"];

/** The fragment, without `#`. What is as in a page just opened, which shows the panel `first`, is left out. */
export function toFragment(state: State, traces: Trace[], first: Panel): string {
  const { trace, view, range, selection, panel, bookmarks, theme, query } = state;
  const parts = new URLSearchParams();
  if (trace !== traces[0]) parts.set("trace", trace.role);
  if (view.from > 0 || view.to < trace.duration) parts.set("view", rangeText(view));
  if (range) parts.set("range", rangeText(range));
  const selected = selection && selectionText(trace, selection);
  if (selected) parts.set("select", selected);
  if (panel !== first) parts.set("panel", panel);
  if (theme !== "auto") parts.set("theme", theme);
  if (query) parts.set("q", query);
  const { sort, filter, pinned, hidden } = state.rows;
  if (sort !== ALL_ROWS.sort) parts.set("sort", sort);
  if (filter) parts.set("rows", filter);
  const table = tableChoiceText(state.table);
  if (table) parts.set("table", table);
  for (const id of pinned) parts.append("pin", id);
  for (const id of hidden) parts.append("hide", id);
  for (const { at, label } of bookmarks) parts.append("mark", `${Math.round(at)} ${label}`);
  return parts.toString();
}

/** The state that a fragment tells. What it does not tell, or what does not fit the trace, is as at the opening. */
export function fromFragment(fragment: string, traces: Trace[], first: Panel): State {
  const parts = new URLSearchParams(fragment.replace(/^#/, ""));
  const trace = traces.find(({ role }) => role === parts.get("trace")) ?? traces[0];
  const one = <T extends string>(of: T[], name: string, otherwise: T): T => {
    const value = parts.get(name) as T;
    return of.includes(value) ? value : otherwise;
  };
  const selected = parts.get("select");
  return {
    trace,
    view: parseRange(parts.get("view"), trace) ?? { from: 0, to: Math.max(trace.duration, 1) },
    range: parseRange(parts.get("range"), trace),
    selection: selected ? parseSelection(trace, selected) : null,
    pointer: null,
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
    bookmarks: parts
      .getAll("mark")
      .map(parseBookmark)
      .filter((mark) => mark !== null),
  };
}

function rangeText({ from, to }: Range): string {
  return `${Math.round(from)}-${Math.round(to)}`;
}

function parseRange(text: string | null, trace: Trace): Range | null {
  const match = /^(\d{1,16})-(\d{1,16})$/.exec(text ?? "");
  if (!match) return null;
  const to = Math.min(Number(match[2]), Math.max(trace.duration, 1));
  const from = Number(match[1]);
  return from < to ? { from, to } : null;
}

function parseBookmark(text: string): Bookmark | null {
  const match = /^(\d{1,16}) ?([^]*)$/.exec(text);
  return match && { at: Number(match[1]), label: match[2] };
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
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return null;
  }
  if (!Array.isArray(value)) return null;
  const parts = value as unknown[];
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
  const whole = { from: 0, to: Math.max(trace.duration, 1) };
  const text = state.selection && selectionText(state.trace, state.selection);
  const selection = text ? parseSelection(trace, text) : null;
  store.set({
    trace,
    view: whole,
    range: null,
    selection,
    bookmarks: [],
    rows: ALL_ROWS,
    table: FIRST_TABLE,
    ...change,
  });
}
