// The details of what is selected: its figures, its thread's states inside of it, what encloses it, and where one can go
// from it.

import { useEffect, useMemo, useState } from "preact/hooks";

import { isFrames, type Trace } from "../data/trace";
import type { Selection, Store } from "../store";
import { details } from "../timeline/details";
import { periodOf } from "../timeline/layout";
import { stateColorOf } from "../timeline/colors";
import { modelOf } from "../timeline/model";
import { formatDuration, formatMoment } from "../timeline/time";
import { percentText, visibleName } from "../ui/text";
import { useStore } from "../ui/use_store";
import { hasCauses } from "../why/critical_path";
import { type Link, links, parents, statesWithin } from "./links";
import { ranMeanwhile } from "./meanwhile";

/** Longer texts are cut. */
const MAX_TEXT_CHARS = 20_000;
/** How many threads that ran meanwhile are listed. */
const MAX_RUNNERS = 20;

export function DetailsPanel({ store }: { store: Store }) {
  const { trace, selection } = useStore(store, "trace", "selection", "range");
  const found = useMemo(
    () => selection && details(modelOf(trace), selection, null, MAX_TEXT_CHARS),
    [trace, selection],
  );
  const related = useMemo(() => (selection ? links(modelOf(trace), selection) : []), [trace, selection]);
  const [copied, setCopied] = useState("Copy");
  useEffect(() => setCopied("Copy"), [selection]);
  if (!selection || !found) return null;
  const copy = () => {
    const around = parents(modelOf(trace), selection).map(({ name }) => visibleName(name));
    const inside = stateSums(store, selection)?.states ?? [];
    const lines = [
      ...found.lines.map(([name, value]) => `${name}: ${value}`),
      ...(around.length > 0 ? [`Inside of: ${around.join(" > ")}`] : []),
      ...inside.map(([state, ns]) => `${visibleName(state)}: ${formatDuration(ns)}`),
    ];
    navigator.clipboard.writeText([found.title, ...lines].join("\n")).then(
      () => setCopied("Copied"),
      () => setCopied("The browser refuses"),
    );
  };
  return (
    <aside class="details" aria-label="Details of the selection" tabIndex={0}>
      <div class="details-head">
        <h2>{found.title || "(no name)"}</h2>
        <button type="button" onClick={copy} title="Copy the name and the figures">
          {copied}
        </button>
        <button type="button" aria-label="Drop the selection" onClick={() => store.set({ selection: null })}>
          ✕
        </button>
      </div>
      <Actions store={store} selection={selection} />
      <dl>
        {found.lines.map(([name, value]) => (
          <div>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      <States store={store} selection={selection} />
      <Links title="Inside of" store={store} links={parents(modelOf(trace), selection)} />
      <Meanwhile store={store} trace={trace} selection={selection} />
      <Links title="Links" store={store} links={related} withRelation />
    </aside>
  );
}

/** What can be asked about a period with one click. */
function Actions({ store, selection }: { store: Store; selection: Selection }) {
  const { trace } = store.state;
  const period = periodOf(trace, selection);
  const thread = threadOf(trace, selection);
  if (!period || period.to <= period.from) return null;
  const isCounted = trace.tracks.some(
    (track) => track.thread === thread && track.spans !== undefined && track.role !== "running" && track.count > 0,
  );
  return (
    <div class="details-actions">
      <button
        type="button"
        title="Choose its period: all tables follow it (P)"
        onClick={() => store.set({ range: period })}
      >
        Choose period
      </button>
      {thread !== null && isCounted && (
        <button
          type="button"
          title="The profile of its thread in its period"
          onClick={() => store.set({ range: period, panel: "profile", profiled: { thread } })}
        >
          Profile it
        </button>
      )}
      {hasCauses(trace) && (
        <button type="button" title="Why it took so long" onClick={() => store.set({ panel: "why" })}>
          Why
        </button>
      )}
    </div>
  );
}

/** Whose states show, and how long each was within the selection. */
function stateSums(store: Store, selection: Selection) {
  const { trace, range } = store.state;
  const whole = range ?? { from: 0, to: trace.duration };
  const period = selection.kind === "thread" ? whole : periodOf(trace, selection);
  if (!period || selection.kind === "state" || period.to <= period.from) return null;
  const own = threadOf(trace, selection);
  const thread = own ?? mainThreadOfFrame(trace, selection);
  const states = thread === null ? [] : statesWithin(modelOf(trace), thread, period);
  return states.length === 0 ? null : { states, ns: period.to - period.from, isMain: own === null };
}

/** How long the selection's thread was in each state within it. */
function States({ store, selection }: { store: Store; selection: Selection }) {
  const sums = stateSums(store, selection);
  if (!sums) return null;
  const { states, ns: whole, isMain } = sums;
  const { range } = store.state;
  return (
    <section>
      <h3>
        States of the {isMain && "main "}thread{" "}
        {selection.kind !== "thread" ? "inside" : range ? "in the chosen period" : ""}
      </h3>
      <div class="states-bar" aria-hidden="true">
        {states.map(([state, ns]) => (
          <span style={{ width: `${(100 * ns) / whole}%`, background: stateColorOf(state) }} />
        ))}
      </div>
      <dl>
        {states.map(([state, ns]) => (
          <div>
            <dt>
              <span class="swatch" style={{ background: stateColorOf(state) }} /> {visibleName(state)}
            </dt>
            <dd>
              {formatDuration(ns)} · {percentText(ns, whole)} %
            </dd>
          </div>
        ))}
      </dl>
    </section>
  );
}

/** Who kept a ready thread from its CPU. */
function Meanwhile({ store, trace, selection }: { store: Store; trace: Trace; selection: Selection }) {
  const runners = useMemo(() => ranMeanwhile(trace, selection), [trace, selection]);
  if (runners.length === 0) return null;
  return (
    <section>
      <h3>Ran meanwhile on its CPU</h3>
      <ul>
        {runners.slice(0, MAX_RUNNERS).map(({ name, ns, selection }) => (
          <li>
            <span class="muted">{formatDuration(ns)} </span>
            <button type="button" class="link" onClick={() => store.set({ selection })}>
              {visibleName(name)}
            </button>
          </li>
        ))}
      </ul>
    </section>
  );
}

function Links({
  title,
  store,
  links: all,
  withRelation = false,
}: {
  title: string;
  store: Store;
  links: Link[];
  withRelation?: boolean;
}) {
  if (all.length === 0) return null;
  return (
    <section>
      <h3>{title}</h3>
      <ul>
        {all.map(({ relation, name, at, selection }) => (
          <li>
            {withRelation && <span class="muted">{relation} </span>}
            <button type="button" class="link" onClick={() => store.set({ selection })} title={formatMoment(at)}>
              {visibleName(name) || "(no name)"}
            </button>
          </li>
        ))}
      </ul>
    </section>
  );
}

/** The thread whose time a selection is. */
function threadOf(trace: Trace, selection: Selection): number | null {
  if (selection.kind === "thread") return selection.thread;
  if (selection.kind === "launch") return trace.index.launches.at(selection.launch)?.thread ?? null;
  if (!("track" in selection)) return null;
  const track = trace.track(selection.track);
  const runner = track?.role === "running" ? (track.spans?.thread?.[selection.item] ?? 0) : 0;
  return runner ? runner - 1 : (track?.thread ?? null);
}

/** The main thread of the app that did a frame. */
function mainThreadOfFrame(trace: Trace, selection: Selection): number | null {
  const track = "track" in selection ? trace.track(selection.track) : undefined;
  if (!track || !isFrames(track.role) || track.process === null) return null;
  const main = trace.threads.findIndex(({ process, main }) => main && process === track.process);
  return main < 0 ? null : main;
}
