// The rows of the timeline, from top to bottom: CPUs, processes with their threads and tracks, and the
// machine's own tracks. What is less busy is folded behind rows that open.

import {
  type CounterTrack,
  hasCounter,
  hasSpans,
  hasStates,
  isFrames,
  type SpanTrack,
  type StateTrack,
  type Track,
} from "../data/trace";
import { FLAG_LATE, FLAG_NO_DEADLINE } from "../data/track_columns";
import type { RowChoice } from "../store";
import { counted, folded } from "../ui/text";
import type { Intervals } from "./intervals";
import type { Model } from "./model";
import type { Stack } from "./stack";
import { formatDuration } from "./time";

/** A part of a row: what is drawn, and how high. */
export type Band = { y: number; height: number } & (
  | { kind: "stack"; stack: Stack; lineHeight: number }
  | { kind: "states"; track: StateTrack }
  | { kind: "ticks"; track: Track }
  | { kind: "counter"; track: CounterTrack }
  | { kind: "path" }
);

type NewBand = Band extends infer B ? (B extends Band ? Omit<B, "y"> : never) : never;

export interface Row {
  /** Stands for the row wherever it is folded. */
  id: string;
  /** `group` has a heading's looks; `more` opens what is folded. */
  kind: "group" | "row" | "more";
  label: string;
  detail: string;
  /** Levels of indentation. */
  indent: number;
  y: number;
  height: number;
  bands: Band[];
  /** Whether the row's contents show; null where there is nothing to open. */
  open: boolean | null;
  thread: number | null;
  process: number | null;
  /** The periods in which events of this row may be missing. */
  losses: Intervals | null;
  /** Whether the user has put it before all others, where it stays while they scroll. */
  isPinned: boolean;
}

export const GROUP_HEIGHT_PX = 24;
export const MORE_HEIGHT_PX = 22;
export const LEVEL_HEIGHT_PX = 18;
const FLAT_LEVEL_HEIGHT_PX = 4;
const MAX_FLAT_LEVELS = 8;
export const STATE_HEIGHT_PX = 8;
export const TICK_HEIGHT_PX = 9;
export const COUNTER_HEIGHT_PX = 34;
export const GAP_PX = 2;
export const MIN_ROW_HEIGHT_PX = 20;
export const CPU_HEIGHT_PX = 11;
const CPU_COUNTER_HEIGHT_PX = 7;

/** Threads and counters of a process that show before the rest is folded. */
const THREADS_SHOWN = 8;
const COUNTERS_SHOWN = 3;
/** A thread that has less than this part of its process's busiest thread is quiet. */
const QUIET_PART = 0.01;
const PROCESSES_OPEN = 2;
const PROCESSES_SHOWN = 16;
/** Folding fewer rows than this is not worth a row. */
const MIN_FOLDED_ROWS = 3;

/** A process, or `null` for threads of none that is known. The smaller its rank, the earlier it comes. */
interface Member {
  process: number | null;
  threads: number[];
  rank: number;
}

/** Which rows the user has opened or closed; all others are as they were made. */
export type Folds = Map<string, boolean>;

/** All rows of a trace, in the order that `choice` wants; a filter opens what is folded. */
export function buildRows(model: Model, folds: Folds, { sort, filter }: Pick<RowChoice, "sort" | "filter">): Row[] {
  return new RowBuilder(model, folds, sort, filter.trim() !== "").build();
}

class RowBuilder {
  private readonly rows: Row[] = [];
  private y = 0;

  constructor(
    private readonly model: Model,
    private readonly folds: Folds,
    private readonly sort: RowChoice["sort"],
    private readonly isFiltered: boolean,
  ) {}

  build(): Row[] {
    if (this.model.path) {
      const detail = formatDuration(this.model.path.path.ns);
      this.add({ id: "path", kind: "row", label: "Critical path", detail, indent: 0 }, [
        { kind: "path", height: LEVEL_HEIGHT_PX },
      ]);
    }
    const order = this.processOrder();
    // The launched app stands above all.
    const first = order.slice(0, this.sort === "activity" && order[0]?.rank < 0 ? 1 : 0);
    this.processes(first, 0);
    this.cpus();
    this.processes(order.slice(first.length), first.length);
    this.machine();
    return this.rows;
  }

  private isOpen(id: string, byDefault: boolean): boolean {
    // What is a heading or stands for rows is open where rows are looked for.
    const holdsRows = !/^(cpu|thread|track) /.test(id);
    return (this.isFiltered && holdsRows) || (this.folds.get(id) ?? byDefault);
  }

  private add(row: Partial<Row> & Pick<Row, "id" | "kind" | "label">, bands: NewBand[] = []): void {
    let y = row.kind === "row" ? GAP_PX : 0;
    const placed = bands.map((band) => {
      const at = { ...band, y } as Band;
      y += band.height + (band.kind === "stack" ? 0 : 1);
      return at;
    });
    const least = row.kind === "group" ? GROUP_HEIGHT_PX : row.kind === "more" ? MORE_HEIGHT_PX : MIN_ROW_HEIGHT_PX;
    const height = Math.max(least, y + GAP_PX);
    this.rows.push({
      detail: "",
      indent: 1,
      open: null,
      thread: null,
      process: null,
      losses: null,
      isPinned: false,
      ...row,
      y: this.y,
      height,
      bands: placed,
    });
    this.y += height;
  }

  private stack(tracks: SpanTrack[], open = true, lineHeight = LEVEL_HEIGHT_PX): NewBand {
    const stack = this.model.stack(tracks);
    if (open) return { kind: "stack", stack, lineHeight, height: stack.levels * lineHeight };
    return {
      kind: "stack",
      stack,
      lineHeight: FLAT_LEVEL_HEIGHT_PX,
      height: Math.min(stack.levels, MAX_FLAT_LEVELS) * FLAT_LEVEL_HEIGHT_PX,
    };
  }

  private cpus(): void {
    const cpus = [...this.model.byCpu].sort(([a], [b]) => a - b);
    if (cpus.length === 0) return;
    const open = this.isOpen("cpus", true);
    this.add({ id: "cpus", kind: "group", label: "CPUs", detail: String(cpus.length), indent: 0, open });
    if (!open) return;
    for (const [cpu, tracks] of cpus) {
      const id = `cpu ${cpu}`;
      const wide = this.isOpen(id, false);
      const bands: NewBand[] = [];
      for (const track of tracks) {
        const band = this.cpuBand(track, wide);
        if (band) bands.push(band);
      }
      this.add({ id, kind: "row", label: `CPU ${cpu}`, open: wide, losses: this.model.lossesOf(tracks) }, bands);
    }
  }

  /** The band of a track in its CPU's row; null where the row does not show the track. */
  private cpuBand(track: Track, wide: boolean): NewBand | null {
    if (track.role === "running" && hasSpans(track)) {
      return this.stack([track], true, wide ? LEVEL_HEIGHT_PX : CPU_HEIGHT_PX);
    }
    if (track.role === "frequency" && hasCounter(track)) {
      return { kind: "counter", track, height: wide ? COUNTER_HEIGHT_PX : CPU_COUNTER_HEIGHT_PX };
    }
    if (!wide || track.kind === "losses") return null;
    if (track.role === "irq" && hasSpans(track)) return this.stack([track], true, 14);
    if (track.role === "idle" && hasCounter(track)) return { kind: "counter", track, height: 18 };
    return this.plain(track);
  }

  /** The band of a track that has a row to itself. */
  private plain(track: Track): NewBand {
    if (hasSpans(track)) return this.stack([track]);
    if (hasCounter(track)) return { kind: "counter", track, height: COUNTER_HEIGHT_PX };
    if (hasStates(track)) return { kind: "states", track, height: STATE_HEIGHT_PX };
    return { kind: "ticks", track, height: TICK_HEIGHT_PX };
  }

  /** The processes whose launches the trace holds, in the order of the launches. */
  private get launched(): (number | null)[] {
    const { index, launched } = this.model.trace;
    const first = launched ? [launched.process] : [];
    return [...first, ...index.launches.map(({ process }) => process)].filter((process) => process !== null);
  }

  /** The processes with their threads: launched apps first, then those whose methods were traced, the busiest first. */
  private processOrder(): Member[] {
    const { trace, byThread, byProcess } = this.model;
    const members = new Map<number | null, Member>();
    trace.threads.forEach(({ process }, thread) => {
      if (byThread[thread].length === 0) return;
      const member = members.get(process) ?? { process, threads: [], rank: 2 };
      if (byThread[thread].some(({ kind }) => kind === "calls")) member.rank = 1;
      member.threads.push(thread);
      members.set(process, member);
    });
    // The threads are ordered by process, the busiest first; processes with tracks alone come after them.
    trace.index.processes.forEach((_, process) => {
      if (!members.has(process) && byProcess[process].length > 0)
        members.set(process, { process, threads: [], rank: 2 });
    });
    const launched = this.launched;
    for (const member of members.values()) {
      const at = launched.indexOf(member.process);
      if (at >= 0) member.rank = at - launched.length;
      member.threads.sort((a, b) => this.threadRank(a) - this.threadRank(b));
    }
    const all = [...members.values()].sort((a, b) => a.rank - b.rank);
    if (this.sort === "activity") return all;
    const key = this.sortKey(this.sort);
    return all.sort((a, b) => (key(a) < key(b) ? -1 : key(a) > key(b) ? 1 : 0));
  }

  /** The key that processes are ordered by, where that is not how busy they are. */
  private sortKey(sort: "name" | "pid" | "time"): (member: Member) => string | number {
    const { trace, byThread, byProcess } = this.model;
    const info = (process: number | null) => (process === null ? null : trace.index.processes[process]);
    if (sort === "name") return ({ process }) => folded(info(process)?.name ?? "\uffff");
    if (sort === "pid") return ({ process }) => info(process)?.pid ?? Infinity;
    const first = new Map<number | null, number>();
    return ({ process, threads }) => {
      let time = first.get(process);
      if (time === undefined) {
        const tracks = [
          ...threads.flatMap((thread) => byThread[thread]),
          ...(process === null ? [] : byProcess[process]),
        ];
        const begins = tracks.map(({ spans, states, instants, counter }) => {
          return spans?.start[0] ?? states?.start[0] ?? instants?.time[0] ?? counter?.time[0] ?? Infinity;
        });
        first.set(process, (time = Math.min(...begins, Infinity)));
      }
      return time;
    };
  }

  /** Main threads come first, then what draws; all others are as busy as their order says. */
  private threadRank(thread: number): number {
    const { main, name } = this.model.trace.threads[thread];
    return main ? 0 : name === "RenderThread" ? 1 : 2;
  }

  private processes(order: Member[], before: number): void {
    const fold = order.length > PROCESSES_SHOWN + MIN_FOLDED_ROWS;
    const shown = this.isOpen("processes", false) || !fold ? order.length : PROCESSES_SHOWN;
    order.slice(0, shown).forEach(({ process, threads }, rank) => this.process(process, threads, before + rank));
    if (fold) this.more("processes", order.length - PROCESSES_SHOWN, "quieter processes", 0);
  }

  private more(id: string, count: number, what: string, indent: number): void {
    const open = this.isOpen(id, false);
    this.add({ id, kind: "more", indent, open, label: open ? `Fold ${count} ${what}` : `… and ${count} ${what}` });
  }

  private process(process: number | null, threads: number[], rank: number): void {
    const { trace } = this.model;
    const id = `process ${process}`;
    const info = process === null ? null : trace.index.processes[process];
    const hasCalls = threads.some((thread) => this.model.byThread[thread].some(({ kind }) => kind === "calls"));
    const open = this.isOpen(
      id,
      rank < PROCESSES_OPEN || hasCalls || (process !== null && this.launched.includes(process)),
    );
    const busy = threads.reduce((sum, thread) => sum + trace.threads[thread].busy_ns, 0);
    const share = trace.duration > 0 ? (100 * busy) / trace.duration : 0;
    // Without switches nothing tells CPU time: `busy_ns` is then the time in calls and slices, waiting and all.
    const hasCpuTime = threads.some((thread) => this.model.byThread[thread].some(({ kind }) => kind === "states"));
    this.add({
      id,
      kind: "group",
      indent: 0,
      open,
      process,
      label: info?.name ?? "Threads of no known process",
      detail:
        (info ? `pid ${info.pid} · ` : "")
        + counted(threads.length, "thread")
        + (hasCpuTime ? ` · ${share < 10 ? share.toFixed(1) : share.toFixed(0)} % of a CPU` : ""),
    });
    if (!open) return;
    const tracks = process === null ? [] : this.model.byProcess[process];
    // What was expected stands above what was.
    for (const track of tracks) if (isFrames(track.role)) this.track(track, process);
    this.threads(id, threads);
    if (process === null) return;
    for (const track of tracks) if (!track.counter && !isFrames(track.role)) this.track(track, process);
    this.counters(
      id,
      tracks.filter((track) => track.counter),
      process,
    );
  }

  private threads(id: string, threads: number[]): void {
    const { trace } = this.model;
    const most = Math.max(...threads.map((thread) => trace.threads[thread].busy_ns), 1);
    const quiet = threads.filter(
      (thread, rank) =>
        !this.model.byThread[thread].some(({ kind }) => kind === "calls")
        && this.threadRank(thread) > 1
        && (rank >= THREADS_SHOWN || trace.threads[thread].busy_ns < most * QUIET_PART),
    );
    const folded = new Set(quiet.length < MIN_FOLDED_ROWS ? [] : quiet);
    const all = this.isOpen(`${id} threads`, false);
    for (const thread of threads) if (!folded.has(thread)) this.thread(thread);
    if (folded.size === 0) return;
    if (all) for (const thread of quiet) this.thread(thread);
    this.more(`${id} threads`, folded.size, "quieter threads", 1);
  }

  private thread(thread: number): void {
    const { trace } = this.model;
    const info = trace.threads[thread];
    const tracks = this.model.byThread[thread];
    const id = `thread ${thread}`;
    const nested = this.model.nested(thread);
    const open = this.isOpen(id, true);
    const bands: NewBand[] = [];
    for (const track of tracks) if (hasStates(track)) bands.push({ kind: "states", track, height: STATE_HEIGHT_PX });
    if (nested.length > 0) bands.push(this.stack(nested, open));
    for (const track of tracks) {
      if (track.role === "markers") bands.push({ kind: "ticks", track, height: TICK_HEIGHT_PX });
      else if (track.role === "events" && open) bands.push({ kind: "ticks", track, height: TICK_HEIGHT_PX });
    }
    // Which CPU a thread had while events were lost is not known, so that the losses of all concern it. Method
    // traces are recorded by the runtime, which the kernel's losses do not touch.
    const fromKernel = tracks.some(({ role }) => role !== "methods" && role !== "own");
    this.add(
      {
        id,
        kind: "row",
        label: info.name || trace.threadName(thread),
        detail: info.tid === null ? "" : String(info.tid),
        open: nested.length > 0 ? open : null,
        thread,
        process: info.process,
        losses: fromKernel ? this.model.losses : null,
      },
      bands,
    );
    const inStack = new Set<Track>(nested);
    for (const track of tracks) {
      if (!inStack.has(track) && !track.states && track.role !== "markers" && track.role !== "events") {
        this.track(track, info.process, 2);
      }
    }
  }

  private track(track: Track, process: number | null, indent = 1): void {
    const id = `track ${track.id}`;
    const nested = hasSpans(track) && track.depth > 1 ? track : null;
    const open = this.isOpen(id, true);
    const layer = track.role === "frames" && track.name ? `Frames of ${track.name}` : track.name;
    const name =
      layer
      || { markers: "Markers", irq: "Interrupts", vsync: "VSYNC", frames: "Frames", own: "Track events" }[
        track.role as string
      ];
    this.add(
      {
        id,
        kind: "row",
        label: name || track.role,
        indent,
        detail: this.trackDetail(track),
        open: nested ? open : null,
        thread: track.thread,
        process,
        losses: this.model.lossesOf([track]),
      },
      [nested ? this.stack([nested], open) : this.plain(track)],
    );
  }

  private trackDetail(track: Track): string {
    if (track.counter) return track.unit;
    if (!isFrames(track.role) || track.role === "expected_frames" || !hasSpans(track)) return "";
    const { flags } = track.spans;
    if (flags?.every((flag) => flag & FLAG_NO_DEADLINE)) return `${track.count}, no deadline known`;
    const late = flags?.reduce((sum, flag) => sum + (flag & FLAG_LATE ? 1 : 0), 0) ?? 0;
    return `${late} of ${track.count} late`;
  }

  private counters(id: string, counters: Track[], process: number | null): void {
    const fold = counters.length >= COUNTERS_SHOWN + MIN_FOLDED_ROWS;
    const all = this.isOpen(`${id} counters`, false);
    for (const track of fold && !all ? counters.slice(0, COUNTERS_SHOWN) : counters) this.track(track, process);
    if (fold) this.more(`${id} counters`, counters.length - COUNTERS_SHOWN, "more counters", 1);
  }

  private machine(): void {
    const { machine } = this.model;
    if (machine.length === 0) return;
    const open = this.isOpen("machine", machine.length <= 6);
    this.add({
      id: "machine",
      kind: "group",
      indent: 0,
      open,
      label: "Machine",
      detail: `${machine.length} ${machine.length === 1 ? "track" : "tracks"}`,
    });
    if (!open) return;
    for (const track of machine) if (!track.counter) this.track(track, null);
    this.counters(
      "machine",
      machine.filter((track) => track.counter),
      null,
    );
  }
}

/** The rows that may hide the row of a track's owner, the outermost first. */
export function hiding(model: Model, track: Pick<Track, "thread" | "process" | "cpu" | "kind">): string[] {
  if (track.cpu !== null) return ["cpus", `cpu ${track.cpu}`];
  const process = track.thread === null ? track.process : model.trace.threads[track.thread].process;
  const group = track.thread === null && process === null ? "machine" : `process ${process}`;
  return ["processes", group, `${group} threads`, `${group} counters`, `thread ${track.thread}`];
}
