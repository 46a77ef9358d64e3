// The rows of the rolling picture, from top to bottom: the app that is watched, the CPUs, all other processes as a line each
// that opens, and the machine's own counters.

import { isFrames } from "../data/trace";
import {
  COUNTER_HEIGHT_PX,
  CPU_HEIGHT_PX,
  type Folds,
  GAP_PX,
  GROUP_HEIGHT_PX,
  LEVEL_HEIGHT_PX,
  MIN_ROW_HEIGHT_PX,
  MORE_HEIGHT_PX,
  type Row,
  STATE_HEIGHT_PX,
  TICK_HEIGHT_PX,
} from "../timeline/rows";
import { counted } from "../ui/text";
import type { Kept, LiveProcess, LiveThread, LiveTrack } from "./kept";
import type { Lane } from "./lane";

/** A part of a row: what is drawn, and how high. `busy`: when any of some threads ran. */
export interface LiveBand {
  kind: "items" | "frames" | "counter" | "busy";
  y: number;
  height: number;
  lanes: Lane[];
  /** Of a counter, or of the process that is busy. */
  track: LiveTrack | null;
}

export interface LiveRow extends Row {
  live: LiveBand[];
  /** Where events of the row's CPU were lost. */
  lost: Lane[];
}

const THREADS_SHOWN = 8;
const COUNTERS_SHOWN = 6;
const PROCESSES_SHOWN = 16;
/** More rows than these are not made. */
const MAX_ROWS = 500;
const MAX_BUSY_LANES = 200;
/** A process that has ended is shown as such for so long. */
const ENDED_NS = 10e9;
/** The kernel keeps so many characters of a name: Android gives it the last ones. */
const COMM_CHARS = 15;

/** The rows of what is kept; `app` is the package that is watched. */
export function liveRows(kept: Kept, folds: Folds, app: string | null): LiveRow[] {
  const rows: LiveRow[] = [];
  let y = 0;
  let untold = 0;
  const isOpen = (id: string, byDefault: boolean) => folds.get(id) ?? byDefault;
  const add = (row: Partial<LiveRow> & Pick<Row, "id" | "kind" | "label">, bands: Omit<LiveBand, "y">[] = []) => {
    if (rows.length >= MAX_ROWS) {
      untold++;
      return;
    }
    let top = row.kind === "row" ? GAP_PX : 0;
    const live = bands.map((band) => {
      const placed = { ...band, y: top };
      top += band.height + (band.kind === "items" ? 0 : 1);
      return placed;
    });
    const least = row.kind === "group" ? GROUP_HEIGHT_PX : row.kind === "more" ? MORE_HEIGHT_PX : MIN_ROW_HEIGHT_PX;
    const height = Math.max(least, top + GAP_PX);
    rows.push({
      detail: "",
      indent: 1,
      open: null,
      thread: null,
      process: null,
      losses: null,
      isPinned: false,
      bands: [],
      lost: [],
      ...row,
      y,
      height,
      live,
    });
    y += height;
  };
  const more = (id: string, count: number, what: string, many?: string) => {
    const open = isOpen(id, false);
    add({ id, kind: "more", open, label: `${open ? "Fold" : "… and"} ${counted(count, what, many)}` });
  };

  const addTrack = (track: LiveTrack) => {
    const label =
      track.role === "frames" && track.name
        ? `Frames of ${track.name}`
        : track.name || (isFrames(track.role) ? "Frames" : track.role);
    const detail = isFrames(track.role) && !track.hasDeadlines ? "no deadline known" : track.unit;
    add({ id: `track ${track.key}`, kind: "row", label, detail }, bandsOf(track));
  };
  const some = (id: string, tracks: LiveTrack[], shown: number, what: string) => {
    tracks.slice(0, isOpen(id, false) ? undefined : shown).forEach(addTrack);
    if (tracks.length > shown) more(id, tracks.length - shown, what);
  };
  const addThread = (thread: LiveThread) => {
    const bands = [...thread.tracks].sort((a, b) => place(a) - place(b)).flatMap(bandsOf);
    add(
      {
        id: `thread ${thread.tid}`,
        kind: "row",
        label: thread.name || `thread ${thread.tid}`,
        detail: String(thread.tid),
      },
      bands,
    );
  };
  const addProcess = (process: LiveProcess, byDefault: boolean) => {
    const id = `process ${process.pid ?? ""}`;
    const open = isOpen(id, byDefault);
    const { pid, threads, tracks } = process;
    const detail = `${pid === null ? "" : `pid ${pid} · `}${counted(threads.length, "thread")}`;
    const label =
      (app && isCut(app, process.name) ? app : process.name)
      || (pid === null ? "Threads of no known process" : `process ${pid}`);
    add({ id, kind: "group", indent: 0, open, label, detail }, open ? [] : [busyBand(process)]);
    if (!open) return;
    for (const track of tracks) if (isFrames(track.role)) addTrack(track);
    const order = [...threads].sort((a, b) => rankOf(a) - rankOf(b) || b.busy - a.busy || a.rank - b.rank);
    order.slice(0, isOpen(`${id} threads`, false) ? undefined : THREADS_SHOWN).forEach(addThread);
    if (order.length > THREADS_SHOWN) more(`${id} threads`, order.length - THREADS_SHOWN, "more thread");
    for (const track of tracks) if (!isFrames(track.role) && track.kind !== "counter") addTrack(track);
    some(
      `${id} counters`,
      tracks.filter(({ kind }) => kind === "counter"),
      COUNTERS_SHOWN,
      "more counter",
    );
  };

  const { watched, others } = inOrder(kept, app);
  for (const process of watched) addProcess(process, true);
  const cpus = new Map<number, LiveTrack[]>();
  const machine: LiveTrack[] = [];
  for (const track of kept.tracks.values()) {
    if (track.cpu !== null) cpus.set(track.cpu, [...(cpus.get(track.cpu) ?? []), track]);
    else if (!track.thread && !track.process) machine.push(track);
  }
  if (cpus.size > 0) {
    const open = isOpen("cpus", true);
    add({ id: "cpus", kind: "group", indent: 0, label: "CPUs", detail: String(cpus.size), open });
    for (const [cpu, tracks] of open ? [...cpus].sort(([a], [b]) => a - b) : []) {
      const lost = tracks.filter(({ kind }) => kind === "losses").flatMap(({ lanes }) => lanes);
      const shown = tracks.filter(({ kind }) => kind !== "losses").sort((a, b) => place(a) - place(b));
      add({ id: `cpu ${cpu}`, kind: "row", label: `CPU ${cpu}`, lost }, shown.flatMap(bandsOf));
    }
  }
  others.slice(0, isOpen("processes", false) ? undefined : PROCESSES_SHOWN).forEach((one) => addProcess(one, false));
  if (others.length > PROCESSES_SHOWN)
    more("processes", others.length - PROCESSES_SHOWN, "quieter process", "quieter processes");
  if (machine.length > 0) {
    const open = isOpen("machine", machine.length <= COUNTERS_SHOWN);
    add({ id: "machine", kind: "group", indent: 0, label: "Machine", detail: counted(machine.length, "track"), open });
    if (open) some("machine more", machine, COUNTERS_SHOWN, "more track");
  }
  if (untold + kept.left > 0) {
    const text = [
      untold > 0 && `${counted(untold, "row")} more`,
      kept.left > 0 && `${counted(kept.left, "track")} for which there is no room`,
    ];
    rows.push({
      ...rows[0],
      id: "untold",
      kind: "row",
      open: null,
      live: [],
      lost: [],
      y,
      height: MIN_ROW_HEIGHT_PX,
      label: "Not shown",
      detail: text.filter(Boolean).join(", "),
      indent: 0,
    });
  }
  return rows;
}

/** The processes that are watched, and all others, the busiest first. */
function inOrder(kept: Kept, app: string | null): { watched: LiveProcess[]; others: LiveProcess[] } {
  const all = [...kept.processes.values()].filter(({ threads, tracks }) => threads.length + tracks.length > 0);
  const isWatched = ({ name }: LiveProcess) =>
    app !== null && (name === app || name.startsWith(`${app}:`) || isCut(app, name));
  const byBusy = (a: LiveProcess, b: LiveProcess) => b.busy - a.busy || a.rank - b.rank;
  // Of an app that was started once more, the new process comes first.
  const parts = ({ name }: LiveProcess) => (name.includes(":") ? 1 : 0);
  const byPart = (a: LiveProcess, b: LiveProcess) => parts(a) - parts(b) || b.rank - a.rank;
  const ended = new Set(all.filter((one) => hasEnded(one, kept.latest)));
  const byEnd = (a: LiveProcess, b: LiveProcess) => Number(ended.has(a)) - Number(ended.has(b)) || byBusy(a, b);
  const isOther = (one: LiveProcess) => !isWatched(one) || ended.has(one);
  return { watched: all.filter((one) => !isOther(one)).sort(byPart), others: all.filter(isOther).sort(byEnd) };
}

/** Whether a process's threads have all ended, and not only just now. Without states nobody knows. */
function hasEnded({ threads }: LiveProcess, latest: number): boolean {
  const states = threads.flatMap(({ tracks }) => tracks.filter(({ kind }) => kind === "states"));
  const lanes = states.flatMap((track) => track.lanes);
  return lanes.length > 0 && lanes.every(({ isOpen, end }) => !isOpen && end < latest - ENDED_NS);
}

/** Whether a name is what the kernel leaves of a longer one. */
const isCut = (whole: string, name: string): boolean =>
  name.length === COMM_CHARS && whole.length > COMM_CHARS && (whole.endsWith(name) || whole.startsWith(name));

/** Main threads come first, then what draws. */
const rankOf = ({ main, name }: LiveThread): number => (main ? 0 : name === "RenderThread" ? 1 : 2);

const ROLES = ["running", "states", "atrace", "methods", "samples", "own", "markers"];
const place = ({ role }: LiveTrack): number => (ROLES.indexOf(role) + ROLES.length + 1) % (ROLES.length + 1);

/** The bands of a track, a line for each depth. */
function bandsOf(track: LiveTrack): Omit<LiveBand, "y">[] {
  const { kind, role, lanes } = track;
  const all = { lanes, track };
  if (kind === "counter") return [{ kind, ...all, height: role === "frequency" ? TICK_HEIGHT_PX : COUNTER_HEIGHT_PX }];
  if (isFrames(role)) return [{ kind: "frames", ...all, height: COUNTER_HEIGHT_PX }];
  const height =
    { states: STATE_HEIGHT_PX, instants: TICK_HEIGHT_PX }[kind as string]
    ?? (role === "running" ? CPU_HEIGHT_PX : LEVEL_HEIGHT_PX);
  return lanes.map((lane) => ({ kind: "items", lanes: [lane], track, height }));
}

/** When a process had a CPU; without switches, when it was in slices. */
function busyBand({ threads }: LiveProcess): Omit<LiveBand, "y"> {
  const lanes = (role: string) =>
    threads.flatMap(({ tracks }) => tracks.flatMap((track) => (track.role === role ? track.lanes.slice(0, 1) : [])));
  const states = lanes("states");
  const shown = states.length > 0 ? states : lanes("atrace");
  return { kind: "busy", lanes: shown.slice(0, MAX_BUSY_LANES), track: null, height: GROUP_HEIGHT_PX - 1 };
}
