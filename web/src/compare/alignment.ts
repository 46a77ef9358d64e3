// Where two timelines lie under each other: a moment of each is at the same place.

import type { Comparison } from "../data/format";
import type { Trace } from "../data/trace";
import type { Alignment, Range, State } from "../store";

type Aligned = Pick<State, "trace" | "traces" | "alignment">;

/** The alignment of traces at one moment of each. */
export function alignedAt(traces: readonly Trace[], what: string, moments: readonly number[]): Alignment {
  return { what, anchors: new Map(traces.map((trace, n) => [trace, moments[n]])) };
}

/** What is measured of a trace for a comparison, in the trace's times; null where nothing tells. */
export function measuredPart(comparison: Comparison | null, trace: Trace): Range | null {
  const side = trace.role === "new" || trace.role === "old" ? comparison?.[trace.role] : null;
  const [from, to] = [side?.from_ns ?? null, side?.to_ns ?? null];
  return from !== null && to !== null && from < to ? { from, to } : null;
}

/** The alignment that a page opens with; null where it has one trace. */
export function firstAlignment(traces: readonly Trace[], comparison: Comparison | null): Alignment | null {
  if (traces.length < 2) return null;
  const launches = traces.map(({ launched }) => launched?.begin_ns);
  if (launches.every((begin) => begin !== undefined)) return alignedAt(traces, "the begin of the launch", launches);
  const parts = traces.map((trace) => measuredPart(comparison, trace)?.from);
  if (parts.every((begin) => begin !== undefined)) return alignedAt(traces, "the begin of what is measured", parts);
  return alignedAt(
    traces,
    "their begins",
    traces.map(() => 0),
  );
}

/** What is to be added to a time of the trace that is shown, to get that of `other`. */
export function offsetTo({ trace, alignment }: Pick<State, "trace" | "alignment">, other: Trace): number {
  return (alignment?.anchors.get(other) ?? 0) - (alignment?.anchors.get(trace) ?? 0);
}

export function shifted({ from, to }: Range, by: number): Range {
  return { from: from + by, to: to + by };
}

/** All that can come into view, in the shown trace's times: of two aligned traces both. */
export function boundsOf(state: Aligned): Range {
  const { trace, traces, alignment } = state;
  const whole = { from: 0, to: Math.max(trace.duration, 1) };
  if (!alignment) return whole;
  for (const other of traces) {
    const by = offsetTo(state, other);
    whole.from = Math.min(whole.from, -by);
    whole.to = Math.max(whole.to, other.duration - by);
  }
  return whole;
}
