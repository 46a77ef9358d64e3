// What the page keeps of a recording that runs: the items of the last seconds, by track and depth.

import { decodeTrack } from "../data/decode";
import type { TrackKind, TrackRole } from "../data/format";
import { isFrames } from "../data/trace";
import { FLAG_LATE, FLAG_NO_DEADLINE, type TrackColumns } from "../data/track_columns";
import { threadColor, UNKNOWN_THREAD } from "../timeline/colors";
import { counted } from "../ui/text";
import type { Batch, BatchTrack } from "./batch";
import { Lane } from "./lane";
import { NAME_BITS, NAME_MASK, Names } from "./names";

export interface LiveProcess {
  pid: number | null;
  name: string;
  /** By when it was first seen. */
  rank: number;
  threads: LiveThread[];
  tracks: LiveTrack[];
  /** How long its threads have run lately, ns: what is longer ago counts less. */
  busy: number;
}

export interface LiveThread {
  tid: number;
  name: string;
  main: boolean;
  process: LiveProcess;
  rank: number;
  tracks: LiveTrack[];
  busy: number;
}

export interface LiveTrack {
  key: number;
  kind: TrackKind;
  role: TrackRole;
  name: string;
  unit: string;
  cpu: number | null;
  thread: LiveThread | null;
  process: LiveProcess | null;
  lanes: Lane[];
  /** The least and the largest value of a counter. */
  low: number;
  high: number;
  /** Whether the deadline of any of its frames is known. */
  hasDeadlines: boolean;
}

/** A period in which something is missing for all rows. */
export interface Gap {
  from: number;
  to: number;
  text: string;
}

/** Of more tracks, those that have been quiet for the longest time give up their place, and are counted. */
const MAX_TRACKS = 6000;
/** So many of them at once. */
const TRACKS_GIVEN_UP = 500;
/** Deeper slices are not in the picture. */
const MAX_LANES = 16;
/** So many items take some 200 MB. */
const MAX_ITEMS = 14_000_000;
const MAX_GAPS = 200;
/** Old items are dropped this often. */
const PRUNE_NS = 1e9;
/** A second ago counts so much of now in how busy a thread is: half of it after seven seconds. */
const BUSY_KEPT = 0.9;
const STEP_NS = 1e9;
/** What the picture has no rows for. */
const LEFT_OUT = ["events", "irq", "idle", "vsync", "expected_frames", "causes"];
/** Frames have a length in 64ths of the time until their deadline. */
export const DEADLINE_PARTS = 64;
const MAX_PARTS = 255;

/** What becomes of tracks while a batch is taken that begins at `from`. */
interface Room {
  from: number;
  /** Whether none can give up its place any more. */
  isFull: boolean;
  /** Those that had no room, or gave it up. */
  left: number;
}

export class Kept {
  readonly names = new Names();
  readonly processes = new Map<number | null, LiveProcess>();
  readonly threads = new Map<number, LiveThread>();
  readonly tracks = new Map<number, LiveTrack>();
  gaps: Gap[] = [];
  /** The most tracks for which there was no room in a batch, since old items were dropped last. */
  left = 0;
  /** Changes where rows may have come, gone or got other names. */
  version = 0;
  /** Nothing from before this moment is kept; ns. */
  horizon = -Infinity;
  latest = NaN;
  items = 0;
  /** Whether less is kept than was asked for. */
  isFull = false;
  /** Whether switches are recorded: without them nobody knows how long a state lasts that is not over. */
  hasSwitches = true;
  private pruned = -Infinity;
  /** Processes that have been here. */
  private seen = 0;

  constructor(public keepNs: number) {}

  /** Takes a batch; answers a sentence where tracks of it are damaged. */
  take(batch: Batch): string | null {
    const { bytes, to } = batch;
    let { damaged } = batch;
    const threads = batch.threads.map((thread) => this.thread(thread, batch));
    const processes = batch.processes.map(({ pid, name }) => this.process(pid, name));
    const room = { from: batch.from, isFull: false, left: 0 };
    for (const track of batch.tracks) {
      if (LEFT_OUT.includes(track.role) || track.kind === "arrows" || track.kind === "causes") continue;
      const own = this.track(track, threads, processes, room);
      if (!own) continue;
      try {
        this.fill(own, track, decodeTrack(track, bytes), batch, threads);
      } catch {
        damaged++;
      }
    }
    for (const { kind, lanes } of this.tracks.values()) {
      for (const lane of lanes) {
        if (!lane.isOpen || lane.end >= to) continue;
        // A state that is not told again goes on: a thread may sleep for hours.
        if (kind === "states" && this.hasSwitches) this.names.use(lane.grow(to) & NAME_MASK, to);
        else lane.isOpen = false;
      }
    }
    if (room.left > this.left) {
      this.left = room.left;
      this.version++;
    }
    this.latest = Number.isNaN(this.latest) ? to : Math.max(this.latest, to);
    if (this.latest - this.pruned > PRUNE_NS) this.prune();
    return damaged === 0
      ? null
      : `${counted(damaged, "track")} of a part of the recording ${damaged === 1 ? "is" : "are"} damaged, and missing here.`;
  }

  addGap(gap: Gap): void {
    this.gaps.push(gap);
    if (this.gaps.length > MAX_GAPS) this.gaps.shift();
  }

  private process(pid: number | null, name: string): LiveProcess {
    let process = this.processes.get(pid);
    if (!process) {
      process = { pid, name, rank: this.seen++, threads: [], tracks: [], busy: 0 };
      this.processes.set(pid, process);
    }
    if (name && process.name !== name) {
      process.name = name;
      this.version++;
    }
    return process;
  }

  /** A thread of a batch; it joins the process's threads when it gets a track. */
  private thread({ tid, pid, name, main }: Batch["threads"][number], { to }: Batch): LiveThread {
    let thread = this.threads.get(tid);
    if (thread?.process.pid !== pid) {
      const process = this.process(pid, "");
      const before = thread?.tracks ?? [];
      if (thread) {
        const { process: left } = thread;
        left.threads = left.threads.filter((one) => one !== thread);
      }
      thread = { tid, name, main, process, rank: 0, tracks: before, busy: 0 };
      for (const track of before) track.thread = thread;
      if (before.length > 0) this.join(thread);
    }
    if (thread.name !== name || thread.main !== main) {
      Object.assign(thread, { name, main });
      this.version++;
      this.names.number("thread", name, to, { tid, color: this.colorOf(thread) });
    }
    return thread;
  }

  private join(thread: LiveThread): void {
    thread.rank = thread.process.threads.length;
    thread.process.threads.push(thread);
    this.threads.set(thread.tid, thread);
    this.version++;
  }

  private colorOf({ process, rank }: LiveThread): number {
    return process.pid === null ? UNKNOWN_THREAD : threadColor(process.rank, rank);
  }

  /** The track of a batch; null where there is no room for it. */
  private track(of: BatchTrack, threads: LiveThread[], processes: LiveProcess[], room: Room): LiveTrack | null {
    let track = this.tracks.get(of.key);
    if (track) return track;
    if (this.tracks.size >= MAX_TRACKS) this.makeRoom(room);
    if (this.tracks.size >= MAX_TRACKS) {
      room.left++;
      return null;
    }
    const { key, kind, role, name, unit, cpu } = of;
    const thread = of.thread === null ? null : threads[of.thread];
    const process = of.process === null ? null : processes[of.process];
    track = { key, kind, role, name, unit, cpu, thread, process, lanes: [], low: 0, high: 0, hasDeadlines: false };
    this.tracks.set(key, track);
    if (thread) {
      if (thread.tracks.length === 0) this.join(thread);
      thread.tracks.push(track);
    } else if (process) process.tracks.push(track);
    this.version++;
    return track;
  }

  /** Gives up tracks that have been quiet, those for the longest time first. */
  private makeRoom(room: Room): void {
    if (room.isFull) return;
    const quiet = [...this.tracks.values()]
      .map((track) => ({ track, end: Math.max(...track.lanes.map(({ end }) => end)) }))
      .filter(({ track, end }) => end < room.from && !track.lanes.some(({ isOpen }) => isOpen))
      .sort((a, b) => a.end - b.end)
      .slice(0, TRACKS_GIVEN_UP);
    for (const { track } of quiet) this.forget(track);
    room.left += quiet.length;
    room.isFull = quiet.length === 0;
  }

  /** A track's lane at a depth; null where it lies too deep for the picture. */
  private lane(track: LiveTrack, depth: number): Lane | null {
    if (depth >= MAX_LANES) return null;
    while (track.lanes.length <= depth) {
      track.lanes.push(new Lane());
      this.version++;
    }
    return track.lanes[depth];
  }

  private fill(own: LiveTrack, track: BatchTrack, columns: TrackColumns, batch: Batch, threads: LiveThread[]): void {
    const { strings, from, to } = batch;
    const { spans, states, instants, counter, losses } = columns;
    const firstOpen = track.count - track.open;
    const known = new Map<number, number>();
    const name = (kind: "slice" | "state" | "frame" | "late", label: number): number => {
      const at = kind === "late" ? -label - 1 : label;
      let number = known.get(at);
      if (number === undefined) {
        if (label >= strings.length) throw new Error("a name is missing");
        known.set(at, (number = this.names.number(kind, strings[label], to)));
      }
      return number;
    };
    // Nothing begins long before what is kept, nor behind the batch, but what is damaged.
    const isTimely = (start: number, end: number) =>
      start <= end && end <= to + STEP_NS && start > -Number.MAX_SAFE_INTEGER;
    const isGuessed = !this.hasSwitches && (track.kind === "states" || track.role === "running");
    const add = (depth: number, item: number, start: number, end: number, key: number): boolean => {
      if (isGuessed && item >= firstOpen) return false;
      if (!isTimely(start, end)) throw new Error("a time is damaged");
      this.lane(own, depth)?.push(start, end, key, item >= firstOpen);
      return true;
    };
    if (spans) {
      const frames = isFrames(track.role);
      const running = track.role === "running" ? spans.thread : undefined;
      for (let i = 0; i < spans.start.length; i++) {
        const [start, end] = [spans.start[i], spans.end[i]];
        let key: number;
        if (running)
          key = this.runner(
            running[i],
            strings[spans.label[i]] ?? "",
            threads,
            to,
            Math.max(0, end - Math.max(start, from)),
          );
        else if (frames) {
          const flags = spans.flags?.[i] ?? 0;
          const parts = flags & FLAG_NO_DEADLINE || !spans.overrun ? 0 : deadlineParts(end - start, spans.overrun[i]);
          if (parts > 0 && !own.hasDeadlines) {
            own.hasDeadlines = true;
            this.version++;
          }
          key = name(flags & FLAG_LATE ? "late" : "frame", spans.label[i]) + parts * 2 ** NAME_BITS;
        } else key = name("slice", spans.label[i]);
        add(spans.depth[i], i, start, end, key);
      }
    }
    if (states)
      for (let i = 0; i < states.start.length; i++)
        add(0, i, states.start[i], states.end[i], name("state", states.state[i]));
    if (instants)
      for (let i = 0; i < instants.time.length; i++)
        add(0, 0, instants.time[i], instants.time[i], name("slice", instants.label[i]));
    if (losses)
      for (let i = 0; i < losses.start.length; i++)
        add(0, i, losses.start[i], losses.end[i], Math.min(losses.count[i], 2 ** 32 - 1));
    if (counter) {
      const lane = this.lane(own, 0);
      for (let i = 0; i < counter.time.length; i++) {
        const value = counter.value[i];
        if (!isTimely(counter.time[i], counter.time[i])) throw new Error("a time is damaged");
        if (!Number.isFinite(value)) continue;
        if (value < own.low || value > own.high) {
          own.low = Math.min(own.low, value);
          own.high = Math.max(own.high, value);
          if (lane) lane.changed = -Infinity;
        }
        lane?.pushValue(counter.time[i], value);
      }
    }
  }

  /** The name of who runs on a CPU, whose time is counted. */
  private runner(index: number, name: string, threads: LiveThread[], time: number, ns: number): number {
    const thread = index > 0 && index <= threads.length ? threads[index - 1] : null;
    if (!thread) return this.names.number("thread", name, time, { tid: -1, color: UNKNOWN_THREAD });
    thread.busy += ns;
    thread.process.busy += ns;
    return this.names.number("thread", thread.name || name, time, { tid: thread.tid, color: this.colorOf(thread) });
  }

  /** Drops what is older than what is to be kept, or than what there is room for. */
  private prune(): void {
    this.pruned = this.latest;
    this.horizon = Math.max(this.horizon, this.latest - this.keepNs);
    this.isFull = false;
    this.left = 0;
    this.drop();
    while (this.items > MAX_ITEMS && this.horizon < this.latest) {
      this.horizon += STEP_NS;
      this.isFull = true;
      this.drop();
    }
    this.names.prune(this.horizon);
    for (const [pid, process] of this.processes) {
      if (process.threads.length + process.tracks.length === 0) this.processes.delete(pid);
      process.busy *= BUSY_KEPT;
      for (const thread of process.threads) thread.busy *= BUSY_KEPT;
    }
    this.gaps = this.gaps.filter(({ to }) => to >= this.horizon);
  }

  private drop(): void {
    this.items = 0;
    for (const track of this.tracks.values()) {
      let kept = 0;
      for (const lane of track.lanes) {
        lane.prune(this.horizon, track.kind === "counter");
        kept += lane.count;
      }
      // Depths that slices reach no more give up their lines.
      while (track.lanes.at(-1)?.count === 0) {
        track.lanes.pop();
        this.version++;
      }
      this.items += kept;
      if (kept === 0) this.forget(track);
    }
  }

  /** A track of which nothing is kept gives up its place. */
  private forget(track: LiveTrack): void {
    const { thread, process } = track;
    this.version++;
    this.tracks.delete(track.key);
    const without = (tracks: LiveTrack[]) => tracks.filter((one) => one !== track);
    if (process) process.tracks = without(process.tracks);
    if (!thread) return;
    thread.tracks = without(thread.tracks);
    if (thread.tracks.length > 0) return;
    this.threads.delete(thread.tid);
    thread.process.threads = thread.process.threads.filter((one) => one !== thread);
  }
}

/** How long a frame took, in parts of the time that it had. */
function deadlineParts(length: number, overrun: number): number {
  const had = length - overrun;
  return had <= 0 ? MAX_PARTS : Math.min(MAX_PARTS, Math.max(1, Math.round((length / had) * DEADLINE_PARTS)));
}
