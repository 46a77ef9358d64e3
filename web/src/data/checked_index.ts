// Checks the data of a page that somebody else may have written. The page's own data needs none of this: it has the
// same author as the page's script.

import type { FrameSummary, Launch, MethodTable, Summary, ThreadInfo, TraceIndex, TrackInfo } from "./format";
import type { TrackColumns } from "./track_columns";

/** All tracks together have no more items: this many take some 2 GB. */
const MAX_ITEMS = 40_000_000;
const MAX_DEPTH = 65_537;
const KINDS = ["slices", "calls", "states", "instants", "counter", "losses", "causes", "arrows"];

export type Json = Record<string, unknown>;

function need(isSo: boolean, what: string): asserts isSo {
  if (!isSo) throw new Error(`The trace data of this page is damaged, or none of tracebridge's: ${what}.`);
}

export const isObject = (value: unknown): value is Json =>
  typeof value === "object" && value !== null && !Array.isArray(value);
export const isText = (value: unknown): value is string => typeof value === "string";
export const isNumber = (value: unknown): value is number => typeof value === "number" && Number.isFinite(value);
export const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0;
export const isIndex = (value: unknown, length: number) => value === null || (isCount(value) && value < length);
export const orNull = (value: unknown, is: (value: unknown) => boolean) => value === null || is(value);
const isClock = (value: unknown) => isText(value) && /^\d{1,20}$/.test(value);
export const isListOf = <T>(value: unknown, is: (one: unknown) => one is T): value is T[] =>
  Array.isArray(value) && value.every(is);

/** The index, when everything in it is what docs/report-format.md says. */
export function checkedIndex(index: unknown): TraceIndex {
  need(isObject(index), "its index is no object");
  const { processes, threads, tracks, launches, frames } = index;
  need(isText(index.title) && isText(index.clock), "its title or clock is no text");
  need(isClock(index.start_ns) && orNull(index.wall_start_ns, isClock), "its start is no time");
  need(isCount(index.duration_ns), "its duration is no time");
  for (const name of ["machine", "device"]) need(orNull(index[name], isText), `${name} is no text`);
  need(orNull(index.cpus, isCount), "the number of CPUs is none");
  need(["wall", "cpu", "ticks"].includes(index.times as string), "what its times are is not known");
  need(isCount(index.strings) && orNull(index.methods, isCount), "its tables are missing");
  need(isListOf(processes, isObject), "its processes are no list");
  need(
    processes.every(({ pid, name }) => isNumber(pid) && isText(name)),
    "a process has no name or number",
  );
  const ofProcess = (value: unknown) => isIndex(value, processes.length);
  need(isListOf(threads, isObject), "its threads are no list");
  need(
    threads.every(
      (thread) =>
        orNull(thread.tid, isNumber)
        && ofProcess(thread.process)
        && isText(thread.name)
        && typeof thread.main === "boolean"
        && isNumber(thread.busy_ns)
        && orNull(thread.doubt ?? null, isText),
    ),
    "a thread is damaged",
  );
  const ofThread = (value: unknown) => isIndex(value, threads.length);
  need(isListOf(tracks, isObject), "its tracks are no list");
  need(
    tracks.every((track) => isTrack(track) && ofThread(track.thread) && ofProcess(track.process)),
    "a track is damaged",
  );
  const items = tracks.reduce((sum, { count }) => sum + (count as number), 0);
  need(items <= MAX_ITEMS, `it claims to have ${items} items, and no more than ${MAX_ITEMS} are opened`);
  need(isListOf(launches, isObject) && isListOf(frames, isObject), "its launches or frames are no list");
  need(
    launches.every((one) => isLaunch(one) && ofThread(one.thread) && ofProcess(one.process)),
    "a launch is damaged",
  );
  need(frames.every(isFrameSummary), "a table of frames is damaged");
  const { window } = index;
  need(window === null || (isObject(window) && isCount(window.from_ns) && isCount(window.to_ns)), "its part is none");
  return {
    ...(index as unknown as TraceIndex),
    has_cpu_time: index.has_cpu_time === true,
    threads: threads.map((thread) => ({
      ...(thread as unknown as ThreadInfo),
      doubt: (thread.doubt as string | undefined) ?? null,
    })),
    launches: launches as unknown as Launch[],
    frames: frames as unknown as FrameSummary[],
    summary: checkedSummary(index.summary),
    // A comparison shows no videos.
    videos: [],
  };
}

/** Whether a track is as the format says, but for its owner. */
export function isTrack(track: Json): boolean {
  const { columns } = track;
  return (
    KINDS.includes(track.kind as string)
    && isText(track.role)
    && isText(track.name)
    && orNull(track.cpu, isCount)
    && isText(track.unit)
    && isCount(track.depth)
    && [track.count, track.block, track.offset].every(isCount)
    && Array.isArray(columns)
    && columns.every(
      (column: unknown) =>
        Array.isArray(column)
        && isText(column[0])
        && isText(column[1])
        && (column[2] === undefined || isNumber(column[2])),
    )
  );
}

function isLaunch(launch: Json): boolean {
  const { stages } = launch;
  return (
    isText(launch.package)
    && orNull(launch.type, isText)
    && isText(launch.rule)
    && isCount(launch.begin_ns)
    && isCount(launch.end_ns)
    && [null, "begin", "end"].includes(launch.cut as string | null)
    && orNull(launch.ttid_ns, isNumber)
    && orNull(launch.ttfd_ns, isNumber)
    && isListOf(stages, isObject)
    && stages.every(({ name, start_ns, end_ns }) => isText(name) && isCount(start_ns) && isCount(end_ns))
  );
}

function isFrameSummary(frames: Json): boolean {
  const isPercentiles = (value: unknown) =>
    isObject(value) && ["p50", "p90", "p95", "p99"].every((name) => isNumber(value[name]));
  return (
    isText(frames.package)
    && orNull(frames.layer, isText)
    && [frames.count, frames.with_deadline, frames.janky, frames.slow].every(isCount)
    && orNull(frames.deadline, isText)
    && orNull(frames.duration_cpu_ns, isPercentiles)
    && orNull(frames.overrun_ns, isPercentiles)
  );
}

/** The members of a summary that are what the page takes them for; the others are left out. */
function checkedSummary(summary: unknown): Summary {
  if (!isObject(summary)) return {};
  const { inputs, report, not_written, problems, markers, methods } = summary;
  const counts = (value: unknown) =>
    isObject(value) ? Object.fromEntries(Object.entries(value).filter(([, count]) => isNumber(count))) : {};
  const texts = (value: unknown) => (Array.isArray(value) ? value.filter(isText) : []);
  const told = isObject(report) ? report : {};
  const cpus = Object.entries(isObject(told.cpus) ? told.cpus : {}).filter(
    ([, cpu]) => isObject(cpu) && [cpu.events, cpu.lost, cpu.gaps].every(isNumber),
  );
  return {
    inputs: isListOf(inputs, isObject) ? inputs : [],
    not_written: counts(not_written),
    problems: counts(problems),
    markers: isCount(markers) ? markers : 0,
    methods: isCount(methods) ? methods : 0,
    report: {
      cpus: Object.fromEntries(cpus),
      losses: isListOf(told.losses, isObject)
        ? told.losses.filter(({ kind, text }) => isText(kind) && isText(text))
        : [],
      damage: isListOf(told.damage, isObject)
        ? told.damage.map(({ offset, what }) => ({
            offset: isNumber(offset) ? offset : undefined,
            what: isText(what) ? what : undefined,
          }))
        : [],
      unread: counts(told.unread),
      irregular: texts(told.irregular),
      notes: texts(told.notes),
    },
  };
}

/** Checks that every name, thread and state that an item refers to is there, and that its times are times. */
export function checkItems(
  { threads }: TraceIndex,
  strings: unknown,
  methods: MethodTable | null,
  tracks: (TrackInfo & TrackColumns)[],
): void {
  need(isListOf(strings, isText), "its names are no texts");
  const methodCount = methods === null ? 0 : checkMethods(methods, strings.length);
  const below = (column: ArrayLike<number> | undefined, limit: number, name: string) => {
    for (let i = 0; column && i < column.length; i++) {
      need(column[i] < limit, `an item of the track "${name.slice(0, 80)}" refers to nothing`);
    }
  };
  const timely = (column: Float64Array | undefined, name: string) => {
    for (let i = 0; column && i < column.length; i++) {
      const isTime = Math.abs(column[i]) <= Number.MAX_SAFE_INTEGER;
      need(isTime, `an item of the track "${name.slice(0, 80)}" has no time`);
    }
  };
  for (const { kind, name, spans, states, instants, counter, losses, causes, arrows } of tracks) {
    below(spans?.label, kind === "calls" ? methodCount : strings.length, name);
    below(spans?.depth, MAX_DEPTH, name);
    below(spans?.args, strings.length + 1, name);
    below(spans?.thread, threads.length + 1, name);
    below(states?.state, strings.length, name);
    below(states?.waker, threads.length + 1, name);
    below(instants?.label, strings.length, name);
    below(instants?.args, strings.length + 1, name);
    below(causes?.cause, strings.length, name);
    below(causes?.subject, strings.length + 1, name);
    below(causes?.follow, threads.length + 1, name);
    below(arrows?.fromTrack, tracks.length, name);
    below(arrows?.toTrack, tracks.length, name);
    for (const columns of [spans, states, losses, causes]) {
      timely(columns?.start, name);
      timely(columns?.end, name);
    }
    for (const times of [instants?.time, counter?.time, arrows?.from, arrows?.to]) timely(times, name);
  }
}

function checkMethods(methods: unknown, strings: number): number {
  need(isObject(methods), "its methods are no table");
  const { class: owner, name, signature, file, inclusive } = methods;
  const isId = (id: unknown): id is number => isCount(id) && id < strings;
  const ids = [owner, name, signature, file];
  need(ids.every((column) => isListOf(column, isId)) && isListOf(inclusive, isNumber), "its methods are damaged");
  const lengths = new Set([...ids, inclusive].map((column) => (column as unknown[]).length));
  need(lengths.size === 1, "its table of methods has columns of several lengths");
  return (name as number[]).length;
}
