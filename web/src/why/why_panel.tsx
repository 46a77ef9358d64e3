// Why the selection took as long as it did: its causes, largest first. A click on one marks its stretches in the
// timeline, and goes to the longest.

import { useEffect, useMemo, useState } from "preact/hooks";

import { upperBound } from "../data/search_sorted";
import { hasStates, type Trace } from "../data/trace";
import type { Selection, State, Store } from "../store";
import { formatDuration } from "../timeline/time";
import { Grid, type GridCell, type GridColumn, type GridRow } from "../ui/grid";
import { countText, percentText, visibleName } from "../ui/text";
import { useStore } from "../ui/use_store";
import { criticalPath, type PathCause } from "./critical_path";
import { type Explained, explained } from "./span_times";
import { about, causeColor, sentence } from "./words";

const COLUMNS: GridColumn[] = [
  { id: "cause", title: "Cause", least: 260, meaning: "What the time was spent on, and over which threads that leads" },
  { id: "time", title: "Time", width: 84, meaning: "The causes share no moment: their times add up to the whole" },
  { id: "share", title: "Share", width: 64, meaning: "Of the whole" },
  { id: "count", title: "Times", width: 64, meaning: "How often" },
];

/** Names below a cause. */
const MAX_SUBJECTS = 50;

/** A row: a cause, or a part of it by what it is about. */
interface Entry {
  cause: number;
  /** -1: the cause itself. */
  subject: number;
}

export function WhyPanel({ store }: { store: Store }) {
  const { trace } = useStore(store, "trace", "selection", "range");
  const [asked, setAsked] = useState<Explained | null>(() => explained(store.state));
  const { selection, range } = store.state;
  const chosen = store.state.path?.chosen ?? null;
  // A selection that a click on a cause has made is no new question.
  useEffect(() => {
    const { path } = store.state;
    if (path?.selection !== selection || path.trace !== trace) setAsked(explained(store.state));
  }, [trace, selection, range]);
  return asked ? (
    <Causes key={asked.name} store={store} trace={trace} asked={asked} chosen={chosen} />
  ) : (
    <p class="empty">
      Select a launch, a frame, a slice, a call or a thread, or choose a period, to see why it took so long.
    </p>
  );
}

interface CausesProps {
  store: Store;
  trace: Trace;
  asked: Explained;
  chosen: number | null;
}

function Causes({ store, trace, asked, chosen }: CausesProps) {
  const path = useMemo(() => criticalPath(trace, asked.times), [trace, asked]);
  const [open, setOpen] = useState<ReadonlySet<number>>(new Set());
  useEffect(() => {
    store.set({ path: { trace, path, chosen: null, selection: store.state.selection } });
    return () => store.set({ path: null });
  }, [path]);
  const entries = useMemo(() => {
    const all: Entry[] = [];
    path.causes.forEach((cause, at) => {
      all.push({ cause: at, subject: -1 });
      if (open.has(at)) named(cause).forEach((_, subject) => all.push({ cause: at, subject }));
    });
    return all;
  }, [path, open]);
  const row = (at: number): GridRow => {
    const { cause: n, subject } = entries[at];
    const cause = path.causes[n];
    const last = cause.hops.at(-1)?.cause ?? "";
    if (subject >= 0) {
      const { name, ns } = named(cause)[subject];
      const cells = [{ text: visibleName(name), exact: name }, time(ns), share(ns, path.ns), { text: "" }];
      return { id: `${n} ${subject}`, level: 1, cells };
    }
    const sentenceText = `${sentence(trace, cause.hops)}${about(cause)}`;
    const names = named(cause);
    return {
      id: String(n),
      level: 0,
      unfolded: names.length > 0 ? open.has(n) : undefined,
      colour: causeColor(last),
      selected: chosen === n,
      cells: [
        { text: sentenceText, exact: sentenceText },
        { ...time(cause.ns), bar: cause.ns / Math.max(path.ns, 1) },
        share(cause.ns, path.ns),
        { text: countText(cause.count), className: "number" },
      ],
    };
  };
  const choose = (at: number) => {
    const { cause } = entries[at];
    const selection = longest(store.state, path.steps, cause);
    store.set({ path: { trace, path, chosen: cause, selection }, selection });
  };
  const unfold = (at: number) => {
    const now = new Set(open);
    if (!now.delete(entries[at].cause)) now.add(entries[at].cause);
    setOpen(now);
  };
  return (
    <div class="profile why">
      <p class="window-line">
        <b>{asked.name}</b>, {formatDuration(path.ns)}: the causes add up to it. The row <i>Critical path</i> of the
        timeline shows when each holds.
      </p>
      <Grid
        label="Causes"
        columns={COLUMNS}
        count={entries.length}
        row={row}
        onChoose={choose}
        onOpen={choose}
        onUnfold={unfold}
        empty="It takes no time."
      />
    </div>
  );
}

const named = ({ subjects }: PathCause) => subjects.filter(({ name }) => name !== "").slice(0, MAX_SUBJECTS);
const time = (ns: number): GridCell => ({
  text: formatDuration(ns),
  exact: `${Math.round(ns)} ns`,
  className: "number",
});
const share = (ns: number, whole: number): GridCell => ({ text: `${percentText(ns, whole)} %`, className: "number" });

/** The state of a thread in which the longest stretch of a cause lies; what is selected now where there is none. */
function longest(state: State, steps: { cause: number; thread: number; from: number; to: number }[], cause: number) {
  const { trace } = state;
  let most = null;
  for (const step of steps)
    if (step.cause === cause && (!most || step.to - step.from > most.to - most.from)) most = step;
  if (!most) return state.selection;
  const { thread, from } = most;
  const track = trace.tracks.find((track) => track.thread === thread && hasStates(track));
  if (!track || !hasStates(track)) return { kind: "thread", thread } satisfies Selection;
  const item = Math.max(0, upperBound(track.states.start, from) - 1);
  return { kind: "state", track: track.id, item } satisfies Selection;
}
