// A page of two launches with their comparison.

import { pageOf } from "./fixture.mjs";
import { KINDS } from "./fixture_traces.mjs";

const MS = 1e6;
const NO_CHANGE = { verdict: "no change", verdict_text: "no change larger than 6.1 %" };

const row = (name, kind, old_ns, new_ns, more = {}) => ({
  name,
  kind,
  old_ns,
  new_ns,
  delta_ns: (new_ns ?? 0) - (old_ns ?? 0),
  old_count: old_ns === null ? 0 : 3,
  new_count: new_ns === null ? 0 : 4,
  p: 0.000002,
  p_adjusted: 0.008,
  verdict: "slower",
  verdict_text: "slower",
  old_at_ns: null,
  new_at_ns: null,
  ...more,
});

/** The longest slice of the main thread with a name: `[name, start, duration]`. */
function longest(trace, thread) {
  const track = trace.tracks.find((t) => t.kind === "slices" && t.role === "atrace" && t.thread === thread);
  const { start, duration, name } = track.columns;
  let best = 0;
  for (let i = 0; i < start.length; i++) if (duration[i] > duration[best]) best = i;
  return { name: trace.strings[name[best]], start: start[best], duration: duration[best] };
}

/** `{ html, comparison, old, new }`, where old and new tell of one slice where it lies. */
export function comparisonPage(names = []) {
  const traces = { old: KINDS.launch(), new: KINDS.launch() };
  traces.old.title = "last-week.dat";
  traces.new.title = "today.dat";
  const thread = traces.new.threads.findIndex(({ main }) => main);
  const slice = longest(traces.new, thread);
  // The old launch began later, so that the two places differ.
  for (const track of traces.old.tracks) {
    for (const column of ["start", "time", "from"]) {
      if (track.columns[column]) track.columns[column] = track.columns[column].map((at) => at + 100 * MS);
    }
  }
  traces.old.duration_ns += 100 * MS;
  const old = { ...slice, start: slice.start + 100 * MS };
  const at = { old_at_ns: old.start, new_at_ns: slice.start };
  // What is measured is a part of the recording, at another place of each.
  const comparison = {
    old: { title: "last-week.dat", runs: 5, from_ns: 200 * MS, to_ns: 1012 * MS },
    new: { title: "today.dat", runs: 5, from_ns: 100 * MS, to_ns: 1104 * MS },
    // The total is a question of its own: its p-value is not corrected.
    total: row("launch of com.example.app", "total", 812 * MS, 1004 * MS, { p: 0.008 }),
    stages: [
      row(slice.name, "slice", 200 * MS, 391 * MS, at),
      row("activityResume", "stage", 180 * MS, 171 * MS, { p_adjusted: 0.42, ...NO_CHANGE }),
      row("activityStart", "stage", 252 * MS, 252 * MS + 300, {
        p: null,
        p_adjusted: null,
        verdict: "too few runs",
        verdict_text: "too few runs to tell (at least 5 a side)",
      }),
      ...names.map((name, i) => row(name, "stage", (i + 1) * MS, i % 2 ? null : (i + 2) * MS)),
      row("reportFullyDrawn", "stage", null, 12 * MS),
      row("oldStage", "stage", 12 * MS, null),
    ],
    states: [
      row("running", "state", 300 * MS, 320 * MS),
      row("runnable", "state", 20 * MS, 180 * MS, at),
      row("I/O", "state", 90 * MS, 60 * MS),
      row("sleeping", "state", 402 * MS, 444 * MS, { p_adjusted: 0.31, ...NO_CHANGE }),
    ],
    methods: [
      row("com.example.app.LayoutLayout.draw1", "method", 30 * MS, 96 * MS),
      ...names.map((name, i) => row(name, "method", 50_000 + i, 40_000)),
    ],
    slices: [row(slice.name, "slice", 200 * MS, 391 * MS, at), row("GC", "slice", 12 * MS, 9 * MS)],
    metrics: [row("timeToInitialDisplayMs", "metric", 600 * MS, 800 * MS)],
    rows_left_out: 12,
  };
  return {
    html: pageOf(
      [
        ["new", traces.new],
        ["old", traces.old],
      ],
      comparison,
    ),
    comparison,
    old,
    new: slice,
  };
}
