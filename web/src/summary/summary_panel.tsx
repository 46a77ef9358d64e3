// The summary: what the trace is made of, what is missing, and how its clocks were aligned.

import type { Trace } from "../data/trace";
import { NotesCard } from "../notes/notes_card";
import type { Store } from "../store";
import { formatDuration, formatMoment, formatWall } from "../timeline/time";
import { Facts, List, Table } from "../ui/facts";
import { damageOf, missing, notShown, reportOf } from "../ui/losses";
import { bytesText, counted, countText, visibleName } from "../ui/text";
import { pageMemory, trackCounts } from "./counts";
import { Inputs } from "./inputs";

export interface SummaryProps {
  store: Store;
  trace: Trace;
  traces: readonly Trace[];
  generator: string;
}

export function SummaryPanel({ store, trace, traces, generator }: SummaryProps) {
  const { index, launched: launch } = trace;
  const report = reportOf(index);
  const gaps = missing(trace);
  const others = notShown(index);
  const damage = damageOf(index);
  return (
    <div class="summary" tabIndex={0} role="region" aria-label="Summary">
      <div class="cards">
        <section class={gaps.length > 0 ? "wrong" : undefined}>
          <h2>{gaps.length > 0 ? "Missing" : "Nothing is missing"}</h2>
          {gaps.length === 0 && <p>No lost events and no damage are known.</p>}
          {gaps.length > 0 && (
            <ul>
              {gaps.map((sentence) => (
                <li>{visibleName(sentence)}</li>
              ))}
            </ul>
          )}
          {others && <p class="muted not-shown">{visibleName(others)}</p>}
          <Losses trace={trace} />
          {damage.length > 1 && <List title="Damaged places" lines={damage} />}
        </section>
        <NotesCard store={store} />
        <section>
          <h2>Trace</h2>
          <Facts
            facts={[
              ["Title", index.title],
              ["Start", startText(trace)],
              ["Duration", formatDuration(index.duration_ns)],
              ["Clock", clockText(trace)],
              ["Part", index.window && `${formatMoment(index.window.from_ns)} – ${formatMoment(index.window.to_ns)}`],
              ["Device", index.device],
              ["Kernel", index.machine],
              ["CPUs", index.cpus === null ? null : String(index.cpus)],
              ["Processes, threads", `${countText(index.processes.length)}, ${countText(index.threads.length)}`],
              ["Events", eventCount(report)],
              ["atrace markers", index.summary.markers ? countText(index.summary.markers) : null],
              ["Method calls", index.summary.methods ? countText(index.summary.methods) : null],
              ["Written by", generator],
              ["Memory of this page", `${bytesText(pageMemory(traces))} of decoded data`],
            ]}
          />
        </section>
        {launch && (
          <section>
            <h2>Launch of {visibleName(launch.package)}</h2>
            <Table
              head={["Stage", "Start", "Duration"]}
              rows={launch.stages.map((stage) => [
                stage.name,
                formatMoment(stage.start_ns),
                formatDuration(stage.end_ns - stage.start_ns),
              ])}
            />
          </section>
        )}
        <Inputs index={index} />
        <section>
          <h2>Tracks</h2>
          <Table
            head={["Kind", "Tracks", "Items"]}
            rows={trackCounts(trace).map(({ name, tracks, items }) => [name, countText(tracks), countText(items)])}
          />
        </section>
        <Problems trace={trace} />
      </div>
    </div>
  );
}

function startText(trace: Trace): string | null {
  return formatWall(trace.index, 0)?.replace(/\.\d+ UTC$/, " UTC") ?? null;
}

function clockText({ index }: Trace): string {
  const at = `${index.clock}, starts at ${index.start_ns} ns`;
  if (index.times === "cpu") return `${at}; times are CPU times of each thread`;
  return index.times === "ticks" ? `${at}; times are ticks of a counter of unknown rate` : at;
}

function eventCount(report: { cpus?: Record<string, { events: number }> }): string | null {
  const events = Object.values(report.cpus ?? {}).reduce((sum, cpu) => sum + (cpu.events || 0), 0);
  return events > 0 ? countText(events) : null;
}

function Losses({ trace }: { trace: Trace }) {
  const report = reportOf(trace.index);
  const cpus = Object.entries(report.cpus ?? {}).filter(([, { lost, gaps }]) => lost > 0 || gaps > 0);
  if (cpus.length === 0) return null;
  return (
    <Table
      caption="Losses by CPU"
      head={["CPU", "Events read", "Events lost", "Gaps not counted"]}
      rows={cpus.map(([cpu, { events, lost, gaps }]) => [cpu, countText(events), countText(lost), countText(gaps)])}
    />
  );
}

function Problems({ trace }: { trace: Trace }) {
  const { summary, threads } = trace.index;
  const report = reportOf(trace.index);
  const doubts = threads.filter(({ doubt }) => doubt).map(({ name, tid, doubt }) => `${name} (${tid}): ${doubt}`);
  const problems = Object.entries(summary.problems ?? {})
    .filter(([, count]) => Number(count) > 0)
    .map(([kind, count]) => `${countText(Number(count))} ${kind.replace(/_/g, " ")}`);
  const irregular = report.irregular ?? [];
  if (doubts.length + problems.length + irregular.length + (report.notes ?? []).length === 0) return null;
  return (
    <section>
      <h2>Notes</h2>
      <List title="" lines={report.notes ?? []} />
      <List title="Worked out; nothing is missing because of it" lines={irregular} />
      <List title="Method records" lines={problems} />
      <List title={counted(doubts.length, "thread name in doubt", "thread names in doubt")} lines={doubts} />
    </section>
  );
}
