// The launches of apps, with the stages of their main threads, and the frames of apps in numbers, with those that were
// late. A click selects, and the timeline goes there.

import { useMemo, useState } from "preact/hooks";

import type { FrameSummary, Launch } from "../data/format";
import { lowerBound } from "../data/search_sorted";
import { hasSpans, type Trace } from "../data/trace";
import { FLAG_NO_WORK } from "../data/track_columns";
import type { Selection, Store } from "../store";
import { formatDuration, formatMoment } from "../timeline/time";
import { Grid, type GridCell, type GridColumn, type GridRow } from "../ui/grid";
import { counted, countText, percentText, visibleName } from "../ui/text";
import { useStore } from "../ui/use_store";
import { lateFrames } from "./late_frames";

const number = (id: string, title: string, meaning: string, width: number): GridColumn => ({
  id,
  title,
  meaning,
  width,
});

const LAUNCH_COLUMNS: GridColumn[] = [
  { id: "name", title: "App, stages of its main thread", least: 150, meaning: "The package, as Android names it" },
  number("type", "Type", "cold: without a process; warm: with one; hot: with its activity", 52),
  number("at", "Begins at", "Since the trace's begin", 84),
  number("total", "Total", "How long Android says that the launch took; of a stage its length", 80),
  number("ttid", "TTID", "Time to initial display: the first frame is drawn", 80),
  number("ttfd", "TTFD", "Time to full display: the app has said that it is fully drawn", 80),
];

const FRAME_COLUMNS: GridColumn[] = [
  { id: "name", title: "App and layer", least: 110, meaning: "The app, and the surface where FrameTimeline names it" },
  number("count", "Frames", "Frames that the main thread and the RenderThread did, else those of FrameTimeline", 60),
  number("p50", "p50 ms", "androidx's frameDurationCpuMs: the median", 62),
  number("p90", "p90 ms", "androidx's frameDurationCpuMs at 90 %", 62),
  number("p95", "p95 ms", "androidx's frameDurationCpuMs at 95 %", 62),
  number("p99", "p99 ms", "androidx's frameDurationCpuMs at 99 %", 62),
  number("overrun", "Over ms", "androidx's frameOverrunMs at 99 %: less than 0 is before the deadline", 70),
  number("janky", "Janky", "Frames that ended after their deadline, of those whose deadline is known", 94),
  number("slow", "Slow", "Frames with more than 20 ms of CPU time, by Perfetto's definition", 50),
];

const LATE_COLUMNS: GridColumn[] = [
  { id: "name", title: "Frame", least: 150, meaning: "Its number, and SurfaceFlinger's word for the reason" },
  number("at", "Begins at", "Since the trace's begin", 84),
  number("cpu", "CPU", "androidx's frameDurationCpuMs", 80),
  number("overrun", "Overrun", "By how much it ended after its deadline", 80),
];

const NOTHING: GridCell = { text: "" };
const time = (ns: number | null): GridCell => ({
  text: ns === null ? "–" : formatDuration(ns),
  exact: ns === null ? undefined : `${Math.round(ns)} ns`,
  className: "number",
});
const moment = (ns: number): GridCell => ({
  text: `${(ns / 1e9).toFixed(3)} s`,
  exact: formatMoment(ns),
  className: "number",
});
/** A time in a column of milliseconds. */
const inMs = (ns: number | null): GridCell => ({
  text: ns === null ? "–" : (ns / 1e6).toFixed(2),
  exact: ns === null ? "not known" : `${Math.round(ns)} ns`,
  className: "number",
});

/** A row of the list of launches: a launch, or a stage of it. */
interface LaunchEntry {
  launch: number;
  /** -1: the launch itself. */
  stage: number;
}

export function LaunchesPanel({ store }: { store: Store }) {
  const { trace } = useStore(store, "trace", "selection");
  const { launches, frames } = trace.index;
  return (
    <div class="launches">
      {launches.length > 0 && <Launches key={trace.role} store={store} trace={trace} launches={launches} />}
      {frames.length > 0 && <Frames key={trace.role} store={store} trace={trace} summaries={frames} />}
    </div>
  );
}

function Launches({ store, trace, launches }: { store: Store; trace: Trace; launches: Launch[] }) {
  const { selection } = store.state;
  const [open, setOpen] = useState(() => new Set([trace.launched ? launches.indexOf(trace.launched) : 0]));
  const entries = useMemo(() => {
    const all: LaunchEntry[] = [];
    launches.forEach(({ stages }, launch) => {
      all.push({ launch, stage: -1 });
      if (open.has(launch)) stages.forEach((_, stage) => all.push({ launch, stage }));
    });
    return all;
  }, [launches, open]);
  const row = (at: number): GridRow => {
    const { launch: n, stage } = entries[at];
    const launch = launches[n];
    if (stage >= 0) {
      const { name, start_ns: from, end_ns: to } = launch.stages[stage];
      const selected = selection !== null && same(selection, stageSelection(trace, launch, stage));
      return {
        id: `${n} ${stage}`,
        level: 1,
        selected,
        cells: [{ text: visibleName(name), exact: name }, NOTHING, moment(from), time(to - from), NOTHING, NOTHING],
      };
    }
    return {
      id: String(n),
      level: 0,
      unfolded: launch.stages.length > 0 ? open.has(n) : undefined,
      selected: selection?.kind === "launch" && selection.launch === n,
      cells: [
        { text: visibleName(launch.package) || "(not named)", exact: `${launch.package}: ${launch.rule}` },
        { text: launch.type ?? "–", className: "number" },
        moment(launch.begin_ns),
        launch.cut
          ? { text: "cut", exact: `The recording does not hold its ${launch.cut}`, className: "number" }
          : time(launch.end_ns - launch.begin_ns),
        time(launch.ttid_ns),
        time(launch.ttfd_ns),
      ],
    };
  };
  const choose = (at: number) => {
    const { launch, stage } = entries[at];
    const chosen: Selection | null =
      stage < 0 ? { kind: "launch", launch } : stageSelection(trace, launches[launch], stage);
    if (chosen) store.set({ selection: chosen });
  };
  const unfold = (at: number) => {
    const now = new Set(open);
    if (!now.delete(entries[at].launch)) now.add(entries[at].launch);
    setOpen(now);
  };
  const rules = [...new Set(launches.map(({ rule }) => rule))];
  return (
    <section>
      <p class="window-line">
        <b>{counted(launches.length, "launch", "launches")}</b>, found {rules.join("; ")}
      </p>
      <Grid
        label="Launches"
        columns={LAUNCH_COLUMNS}
        count={entries.length}
        row={row}
        onChoose={choose}
        onOpen={choose}
        onUnfold={unfold}
        empty=""
      />
    </section>
  );
}

function Frames({ store, trace, summaries }: { store: Store; trace: Trace; summaries: FrameSummary[] }) {
  const { selection } = store.state;
  const [chosen, setChosen] = useState(() =>
    summaries.reduce((most, { janky }, at) => (janky > summaries[most].janky ? at : most), 0),
  );
  const summary = summaries[chosen];
  const late = useMemo(() => lateFrames(trace, summary), [trace, summary]);
  const isTimed = summary.with_deadline > 0;
  const row = (at: number): GridRow => {
    const { package: app, layer, count, with_deadline, janky, slow, duration_cpu_ns: cpu, overrun_ns } = summaries[at];
    const name = [visibleName(app) || "(not named)", layer && visibleName(layer)].filter(Boolean).join(" · ");
    return {
      id: String(at),
      level: 0,
      selected: at === chosen,
      cells: [
        { text: name, exact: name },
        { text: countText(count), className: "number" },
        ...(["p50", "p90", "p95", "p99"] as const).map((percent) => inMs(cpu?.[percent] ?? null)),
        inMs(overrun_ns?.p99 ?? null),
        {
          text: with_deadline > 0 ? `${countText(janky)} · ${percentText(janky, with_deadline)} %` : "not known",
          exact: `${janky} of ${with_deadline}`,
          className: "number",
        },
        { text: countText(slow), className: "number" },
      ],
    };
  };
  const lateRow = (at: number): GridRow => {
    const { track, item } = late[at];
    const { start, cpu, flags, overrun } = track.spans;
    const isWorkKnown = ((flags?.[item] ?? 0) & FLAG_NO_WORK) === 0;
    const name = `Frame ${trace.spanName(track, item)}`;
    return {
      id: String(at),
      level: 0,
      selected: selection?.kind === "span" && selection.track === track.id && selection.item === item,
      cells: [
        { text: visibleName(name), exact: name },
        moment(start[item]),
        time(isWorkKnown ? (cpu?.[item] ?? null) : null),
        time(isTimed ? (overrun?.[item] ?? null) : null),
      ],
    };
  };
  const goTo = (at: number) => {
    const { track, item } = late[at];
    store.set({ selection: { kind: "span", track: track.id, item } });
  };
  return (
    <section>
      <p class="window-line">
        <b>Frames</b>
        {deadlineText(summaries)}
      </p>
      <Grid
        label="Frames of apps"
        columns={FRAME_COLUMNS}
        count={summaries.length}
        row={row}
        onChoose={setChosen}
        empty=""
      />
      <p class="window-line">
        <b>{counted(late.length, isTimed ? "late frame" : "slow frame")}</b> of {visibleName(summary.package)}
        {isTimed ? ", the latest first" : ` (more than 20 ms of CPU time), the longest first`}
      </p>
      <Grid
        label="Late frames"
        columns={LATE_COLUMNS}
        count={late.length}
        row={lateRow}
        onChoose={goTo}
        onOpen={goTo}
        empty={isTimed ? "No frame was late." : "No deadline is known, and no frame was slow."}
      />
    </section>
  );
}

/** Where the deadlines come from. */
function deadlineText(summaries: FrameSummary[]): string {
  const from = new Set(summaries.map(({ deadline }) => deadline).filter(Boolean));
  if (from.has("frame-timeline")) return ", deadlines by SurfaceFlinger's FrameTimeline";
  if (from.has("vsync")) return ", deadlines by the period of VSYNC in the trace";
  return ": the trace tells no deadlines";
}

/** The slice that a stage is, where the page has it. */
function stageSelection(trace: Trace, { thread, stages }: Launch, at: number): Selection | null {
  return thread === null ? null : sliceAt(trace, thread, stages[at].name, stages[at].start_ns);
}

/** The slice of a thread that begins at a time and has a name. */
function sliceAt(trace: Trace, thread: number, name: string, from: number): Selection | null {
  for (const track of trace.tracks) {
    if (track.thread !== thread || track.role !== "atrace" || !hasSpans(track)) continue;
    const { start } = track.spans;
    for (let item = lowerBound(start, from); item < start.length && start[item] === from; item++) {
      if (trace.spanName(track, item).startsWith(name)) return { kind: "span", track: track.id, item };
    }
  }
  return null;
}

function same(a: Selection, b: Selection | null): boolean {
  return a.kind === "span" && b?.kind === "span" && a.track === b.track && a.item === b.item;
}
