// A batch: what a stretch of time completes, with all names and threads that it speaks of.

import { isCount, isIndex, isListOf, isNumber, isObject, isText, isTrack, type Json } from "../data/checked_index";
import type { TrackInfo } from "../data/format";

/** A track's part of a batch. */
export interface BatchTrack extends TrackInfo {
  /** Stands for the track over the whole recording. */
  key: number;
  /** So many of the last items are not over yet. */
  open: number;
}

export interface BatchThread {
  tid: number;
  pid: number | null;
  name: string;
  main: boolean;
}

/** Times are ns from the session's start. */
export interface Batch {
  number: number;
  from: number;
  to: number;
  /** The session's start on the recording's clock; null: not told. */
  start: string | null;
  strings: string[];
  processes: { pid: number; name: string }[];
  threads: BatchThread[];
  tracks: BatchTrack[];
  /** Tracks that are not as the format says; they are left out. */
  damaged: number;
  /** The columns. */
  bytes: Uint8Array;
}

/** What a track need not tell. */
const ABSENT = { name: "", thread: null, process: null, cpu: null, unit: "", depth: 0, open: 0, block: 0 };
const HEAD_BYTES = 4;

/** Reads a batch. Throws an Error with a sentence for people where it is damaged. */
export function readBatch(data: ArrayBuffer): Batch {
  const fail = (what: string) => new Error(`A part of the recording is damaged, and is missing here: ${what}.`);
  const length = data.byteLength < HEAD_BYTES ? 0 : new DataView(data).getUint32(0, true);
  if (length === 0 || length > data.byteLength - HEAD_BYTES) throw fail("it ends in its head");
  let head: unknown;
  try {
    head = JSON.parse(new TextDecoder().decode(new Uint8Array(data, HEAD_BYTES, length)));
  } catch {
    throw fail("its head cannot be read");
  }
  if (!isObject(head)) throw fail("its head is no object");
  const { batch, from_ns, to_ns, strings, processes, threads, tracks } = head;
  if (!isCount(batch) || !isNumber(from_ns) || !isNumber(to_ns) || to_ns < from_ns)
    throw fail("it has no number or times");
  if (!isListOf(strings, isText)) throw fail("its names are no texts");
  const isProcess = (one: unknown): one is Json => isObject(one) && isNumber(one.pid) && isText(one.name);
  const isThread = (one: unknown): one is Json => isObject(one) && isNumber(one.tid) && isText(one.name);
  if (!isListOf(processes, isProcess) || !isListOf(threads, isThread))
    throw fail("its threads or processes are no list");
  if (!isListOf(tracks, isObject)) throw fail("its tracks are no list");
  const whole = tracks.map((track): Json => ({ ...ABSENT, ...track }));
  const known = whole.filter(
    (track) =>
      isTrack(track)
      && isNumber(track.key)
      && isCount(track.open)
      && isIndex(track.thread, threads.length)
      && isIndex(track.process, processes.length),
  );
  return {
    number: batch,
    from: from_ns,
    to: to_ns,
    start: isText(head.start_ns) && /^\d{1,20}$/.test(head.start_ns) ? head.start_ns : null,
    strings,
    processes: processes as { pid: number; name: string }[],
    threads: threads.map(({ tid, pid, name, main }) => ({
      tid: tid as number,
      pid: isNumber(pid) ? pid : null,
      name: name as string,
      main: main === true,
    })),
    tracks: known as unknown as BatchTrack[],
    damaged: whole.length - known.length,
    bytes: new Uint8Array(data, HEAD_BYTES + length),
  };
}
