// The details of what is selected: its figures, its thread's states inside of it, what encloses it, and where one can go
// from it.

import { useEffect, useMemo, useState } from "preact/hooks";

import type { Trace } from "../data/trace";
import type { Selection, Store } from "../store";
import { details } from "../timeline/details";
import { periodOf } from "../timeline/layout";
import { stateColorOf } from "../timeline/colors";
import { modelOf } from "../timeline/model";
import { formatDuration, formatMoment } from "../timeline/time";
import { percentText, visibleName } from "../ui/text";
import { useStore } from "../ui/use_store";
import { type Link, links, parents, statesWithin } from "./links";

export function DetailsPanel({ store }: { store: Store }) {
  const { trace, selection } = useStore(store, "trace", "selection", "range");
  const found = useMemo(() => selection && details(modelOf(trace), selection, null), [trace, selection]);
  const [copied, setCopied] = useState("Copy");
  useEffect(() => setCopied("Copy"), [selection]);
  if (!selection || !found) return null;
  const copy = () => {
    const lines = found.lines.map(([name, value]) => `${name}: ${value}`);
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
      <dl>
        {found.lines.map(([name, value]) => (
          <div>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      <States store={store} trace={trace} selection={selection} />
      <Links title="Inside of" store={store} links={parents(modelOf(trace), selection)} />
      <Links title="Links" store={store} links={links(modelOf(trace), selection)} withRelation />
    </aside>
  );
}

/** How long the selection's thread was in each state within it. */
function States({ store, trace, selection }: { store: Store; trace: Trace; selection: Selection }) {
  const model = modelOf(trace);
  const thread = threadOf(trace, selection);
  const { range } = store.state;
  // Of a thread those of the chosen period, or of the whole trace.
  const ofThread = range ?? { from: 0, to: trace.duration };
  const period = selection.kind === "thread" ? ofThread : periodOf(trace, selection);
  if (thread === null || !period || selection.kind === "state" || period.to <= period.from) return null;
  const states = statesWithin(model, thread, period);
  if (states.length === 0) return null;
  const whole = period.to - period.from;
  return (
    <section>
      <h3>States of the thread {selection.kind !== "thread" ? "inside" : range ? "in the chosen period" : ""}</h3>
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
  return "track" in selection ? (trace.track(selection.track)?.thread ?? null) : null;
}
