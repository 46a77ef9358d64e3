// Counts for the summary: tracks and items by kind, and the memory that the decoded data takes.

import type { TrackRole } from "../data/format";
import type { Trace } from "../data/trace";

const NAMES: Record<TrackRole, string> = {
  atrace: "atrace slices",
  async: "Asynchronous slices",
  own: "Programs' own tracks",
  methods: "Method calls",
  samples: "Stacks of samples",
  running: "CPU slices: who ran",
  irq: "Interrupts",
  states: "Thread states",
  markers: "Instant markers",
  events: "Other kernel events",
  counter: "Counter values",
  frequency: "CPU frequency changes",
  idle: "CPU idle changes",
  vsync: "VSYNC",
  expected_frames: "Expected frames",
  actual_frames: "Actual frames",
  frames: "Frames of apps",
  losses: "Losses",
  causes: "Causes of thread states",
  wakeup: "Wake-ups",
  binder: "Binder transactions",
  flow: "Flows",
};

export interface TrackCount {
  name: string;
  tracks: number;
  items: number;
}

/** Tracks and items by role, in the order of the list above. */
export function trackCounts(trace: Trace): TrackCount[] {
  const counts = new Map<string, TrackCount>();
  for (const { role, count } of trace.tracks) {
    const name = (NAMES as Partial<Record<string, string>>)[role] ?? role;
    const sum = counts.get(name) ?? { name, tracks: 0, items: 0 };
    sum.tracks++;
    sum.items += count;
    counts.set(name, sum);
  }
  const order = Object.values(NAMES);
  return [...counts.values()].sort((a, b) => order.indexOf(a.name) - order.indexOf(b.name));
}

/** Bytes of all decoded columns. */
export function pageMemory(traces: readonly Trace[]): number {
  let bytes = 0;
  for (const trace of traces) {
    for (const track of trace.tracks) {
      const { spans, states, instants, counter, losses, causes, arrows } = track;
      for (const columns of [spans, states, instants, counter, losses, causes, arrows]) {
        for (const column of Object.values(columns ?? {})) {
          if (ArrayBuffer.isView(column)) bytes += column.byteLength;
        }
      }
    }
  }
  return bytes;
}
