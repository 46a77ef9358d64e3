// How much a trace's tracks take in memory, known before they are decoded.

import type { TraceIndex, TrackInfo, TrackKind } from "./format";

/** Bytes of an item's columns that are always there, and of what the timeline makes of it. */
const ITEM_BYTES: Record<TrackKind, number> = {
  slices: 22 + 8,
  calls: 22 + 8,
  states: 22 + 8,
  instants: 12,
  counter: 16,
  losses: 24,
  causes: 28,
  arrows: 24,
};
/** The same for columns that some tracks have. */
const COLUMN_BYTES: Partial<Record<string, number>> = { cpu: 8, overrun: 8, flags: 1, args: 4, waker: 4, thread: 4 };

/** More than this and the page asks before it opens the trace. */
const MAX_BYTES = 700e6;

export interface Held {
  calls: number;
  events: number;
  bytes: number;
  /** The threads with most items, largest first. */
  largest: { name: string; items: number }[];
}

const MAX_THREADS = 8;

/** What the tracks of some traces hold. */
export function held(indices: TraceIndex[]): Held {
  const sums: Held = { calls: 0, events: 0, bytes: 0, largest: [] };
  for (const { tracks, threads } of indices) {
    const items = new Float64Array(threads.length);
    for (const track of tracks) {
      if (track.kind === "calls") sums.calls += track.count;
      else sums.events += track.count;
      sums.bytes += track.count * bytesOf(track);
      if (track.thread !== null) items[track.thread] += track.count;
    }
    items.forEach((count, thread) => {
      const { name, tid } = threads[thread];
      sums.largest.push({ name: tid === null ? name : `${name} (${tid})`, items: count });
    });
  }
  sums.largest = sums.largest.sort((a, b) => b.items - a.items).slice(0, MAX_THREADS);
  return sums;
}

function bytesOf({ kind, columns }: TrackInfo): number {
  return columns.reduce((sum, [name]) => sum + (COLUMN_BYTES[name] ?? 0), ITEM_BYTES[kind]);
}

/** Whether the page asks before it opens so much. Tests lower the limit. */
export function isTooMuch({ bytes }: Held): boolean {
  const { __tracebridgeMaxBytes: limit } = globalThis as { __tracebridgeMaxBytes?: number };
  return bytes > (limit ?? MAX_BYTES);
}

/** The part of the trace that fits, 0 to 1. */
export const fittingPart = ({ bytes }: Held): number => Math.min(1, MAX_BYTES / 2 / Math.max(bytes, 1));
