// The losses of a trace, in sentences for the banner and the summary.

import type { TraceIndex } from "../data/format";
import type { Trace } from "../data/trace";
import { counted, countText } from "./text";

/** The members of `merge --json` that tell what is missing, as far as the page reads them. */
export interface Report {
  cpus?: Record<string, { events: number; lost: number; gaps: number }>;
  /** The account of missing data. The losses of CPUs are among it, each with its CPU. */
  losses?: { kind: string; text: string }[];
  damage?: { offset?: number; what?: string }[];
  /** Packets of a Perfetto trace by kind, which only Perfetto outputs can hold. */
  unread?: Record<string, number>;
  irregular?: string[];
  notes?: string[];
}

export function reportOf(index: TraceIndex): Report {
  return (index.summary.report ?? {}) as Report;
}

/** Losses and damage of the recording, each in one sentence; empty where nothing is missing. */
export function missing(trace: Trace): string[] {
  const report = reportOf(trace.index);
  const sentences: string[] = [];
  const cpus = Object.values(report.cpus ?? {});
  const lost = cpus.reduce((sum, cpu) => sum + (cpu.lost || 0), 0);
  const gaps = cpus.reduce((sum, cpu) => sum + (cpu.gaps || 0), 0);
  if (lost > 0) sentences.push(`The kernel lost ${counted(lost, "event")}.`);
  if (gaps > 0) sentences.push(`${counted(gaps, "gap")}, whose lost events the kernel did not count.`);
  const others = (report.losses ?? []).filter(({ kind }) => kind !== "cpu_events");
  sentences.push(...others.map(({ text }) => `Lost: ${text}.`));
  const periods = trace.tracks.reduce((sum, { kind, count }) => sum + (kind === "losses" ? count : 0), 0);
  if (lost + gaps + others.length === 0 && periods > 0)
    sentences.push(`Events are missing in ${counted(periods, "period")}.`);
  const damage = damageOf(trace.index);
  if (damage.length === 1) sentences.push(`Damaged data: ${damage[0]}`);
  if (damage.length > 1) sentences.push(`${counted(damage.length, "damaged place")}; the first: ${damage[0]}`);
  return sentences;
}

/** The contents that the page does not show, in one sentence, or null. The trace itself lacks nothing because of it. */
export function notShown(index: TraceIndex): string | null {
  const left = [kinds(index.summary.not_written), kinds(reportOf(index).unread)].filter(Boolean).join(", ");
  return left === "" ? null : `The page has no rows for ${left}.`;
}

/** The damaged places, each with what is missing there. */
export function damageOf(index: TraceIndex): string[] {
  return (reportOf(index).damage ?? []).map(
    ({ offset, what }) => `${offset === undefined ? "" : `at byte ${offset}: `}${what ?? "damaged data"}`,
  );
}

/** Kinds of data with their counts; empty where there are none. */
function kinds(counts: unknown): string {
  return Object.entries((counts ?? {}) as Record<string, number>)
    .filter(([, count]) => count > 0)
    .map(([kind, count]) => `${countText(count)} ${kind.replace(/_/g, " ")}`)
    .join(", ");
}
