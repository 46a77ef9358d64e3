// The search over slices, methods, threads and processes: what it marks, how much it finds, and where the
// next is.

import { lowerBound, upperBound } from "../data/search_sorted";
import type { Trace, Track } from "../data/trace";
import type { Selection } from "../store";

/** The matches of a query; its cursor begins before the first match. */
export interface Matches {
  readonly count: number;
  next(): Selection | null;
  previous(): Selection | null;
  /** When the matches begin, in order; of threads nothing. */
  times(): Float64Array;
}

/** 1 for each name, method and thread (by index + 1) that holds the query. */
export interface MatchFlags {
  names: Uint8Array;
  methods: Uint8Array;
  threads: Uint8Array;
}

/** Which names, methods and threads hold `query`,
  letters of either case alike; null where nothing is asked. */
export function matchFlags(trace: Trace, query: string): MatchFlags | null {
  const wanted = query.trim().toLowerCase();
  if (!wanted) return null;
  const { processes } = trace.index;
  const has = (text: string) => (text.toLowerCase().includes(wanted) ? 1 : 0);
  const names = Uint8Array.from(trace.strings, has);
  const methods = Uint8Array.from(trace.methods?.name ?? [], (_, method) => has(trace.methodName(method)));
  const ofProcess = processes.map(({ name, pid }) => has(name) || String(pid) === wanted);
  const threads = Uint8Array.from([null, ...trace.threads], (thread) =>
    thread !== null
    && (has(thread.name) || String(thread.tid) === wanted || (thread.process !== null && ofProcess[thread.process]))
      ? 1
      : 0,
  );
  return { names, methods, threads };
}

/** A track that holds matches: its times and names, and which names match. */
interface Searched {
  track: Track;
  times: Float64Array;
  labels: Uint32Array;
  flags: Uint8Array;
}

interface Candidate {
  time: number;
  track: Track;
  item: number;
}

class Found implements Matches {
  readonly count: number;
  private readonly tracks: Searched[] = [];
  private readonly threads: number[] = [];
  /** Where the cursor is: -1 stands before the first thread; threads come before items. */
  private thread = -1;
  private at: Candidate | null = null;

  constructor(trace: Trace, flags: MatchFlags) {
    let count = 0;
    flags.threads.forEach((marked, i) => {
      if (marked) this.threads.push(i - 1);
    });
    for (const track of trace.tracks) {
      const { spans, instants, kind, role } = track;
      const times = spans?.start ?? instants?.time;
      const labels = spans?.label ?? instants?.label;
      if (!times || !labels || role === "running") continue;
      const marked = kind === "calls" ? flags.methods : flags.names;
      let found = 0;
      for (let i = 0; i < labels.length; i++) found += marked[labels[i]];
      if (found === 0) continue;
      count += found;
      this.tracks.push({ track, times, labels, flags: marked });
    }
    this.count = count + this.threads.length;
  }

  times(): Float64Array {
    if (this.sorted) return this.sorted;
    const found = new Float64Array(this.count - this.threads.length);
    let at = 0;
    for (const { times, labels, flags } of this.tracks) {
      for (let i = 0; i < labels.length; i++) if (flags[labels[i]]) found[at++] = times[i];
    }
    return (this.sorted = found.sort());
  }
  private sorted: Float64Array | null = null;

  next(): Selection | null {
    return this.step(1);
  }

  previous(): Selection | null {
    return this.step(-1);
  }

  /** Threads come first, then items by time; after the last match comes the first again. */
  private step(by: 1 | -1): Selection | null {
    if (this.count === 0) return null;
    const last = this.threads.length - 1;
    if (this.at)
      return (
        this.toItem(this.beyond(this.at, by))
        ?? (last < 0 ? this.toItem(this.beyond(null, by)) : this.toThread(by > 0 ? 0 : last))
      );
    const thread = this.thread + by;
    if (thread >= 0 && thread <= last) return this.toThread(thread);
    return this.toItem(this.beyond(null, by)) ?? this.toThread(by > 0 ? 0 : last);
  }

  private toThread(thread: number): Selection {
    this.thread = thread;
    this.at = null;
    return { kind: "thread", thread: this.threads[thread] };
  }

  private toItem(found: Candidate | null): Selection | null {
    if (!found) return null;
    this.at = found;
    const { track, item } = found;
    return { kind: track.instants ? "instant" : "span", track: track.id, item };
  }

  /** The next match in order of time (and of tracks,
    where times are equal); from null: the first or the last. */
  private beyond(from: Candidate | null, by: 1 | -1): Candidate | null {
    let best: Candidate | null = null;
    for (const { track, times, labels, flags } of this.tracks) {
      let item = by > 0 ? 0 : times.length - 1;
      if (from) {
        // Among equal times the matches are ordered by their tracks.
        item =
          track === from.track
            ? from.item + by
            : (track.id < from.track.id ? upperBound : lowerBound)(times, from.time) - (by < 0 ? 1 : 0);
      }
      while (item >= 0 && item < times.length && !flags[labels[item]]) item += by;
      if (item < 0 || item >= times.length) continue;
      const time = times[item];
      const better =
        !best || (by > 0 ? time < best.time : time > best.time || (time === best.time && track.id > best.track.id));
      if (better) best = { time, track, item };
    }
    return best;
  }
}

const NOTHING: Matches = { count: 0, next: () => null, previous: () => null, times: () => new Float64Array(0) };
let last: { trace: Trace; query: string; matches: Matches } | null = null;

/** The matches of `query` in `trace`, whoever asks for it: the search field, its keys, and the marks on the ruler. */
export function sharedMatches(trace: Trace, query: string): Matches {
  if (last?.trace !== trace || last.query !== query) last = { trace, query, matches: searchMatches(trace, query) };
  return last.matches;
}

/** Searches `trace` for `query`: slices, calls and instants by name, and threads by name,
  number and process. */
export function searchMatches(trace: Trace, query: string): Matches {
  const flags = matchFlags(trace, query);
  if (!flags) return NOTHING;
  return new Found(trace, flags);
}
