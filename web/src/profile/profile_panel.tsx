// The profile panel: what was called in the time window, as a table, a tree or a flame graph.

import type { ComponentChildren } from "preact";
import { useMemo } from "preact/hooks";

import type { State, Store } from "../store";
import { formatDuration, formatMoment } from "../timeline/time";
import { Choice, Field } from "../ui/controls";
import { Later } from "../ui/later";
import { counted, visibleName } from "../ui/text";
import { FlameGraph } from "./flame";
import { keyName } from "./grouping";
import { idleMethods, idleTime } from "./idle";
import { MethodTable } from "./method_table";
import { hasCpu } from "./columns";
import type { ProfileClock, ProfileOptions, ProfileView } from "./options";
import { selectedRow, showLongest } from "./select";
import type { SpanKind } from "./span_source";
import { TreeTable } from "./tree_table";
import { chosenWindow, type Profile, useProfile } from "./use_profile";

const VIEWS: [ProfileView, string][] = [
  ["table", "Table"],
  ["tree", "Call tree"],
  ["bottom-up", "Bottom up"],
  ["flame", "Flame graph"],
];

const CLOCKS: [ProfileClock, string][] = [
  ["cpu", "CPU"],
  ["wall", "Wall"],
  ["off", "Off CPU"],
];

const MAX_IDLE_NAMES = 3;
/** The call tree of more spans takes so long that the page says what it does. */
const MANY_SPANS = 500_000;

export interface ProfilePanelProps {
  store: Store;
  options: ProfileOptions;
  set: (change: Partial<ProfileOptions>) => void;
}

export function ProfilePanel({ store, options, set }: ProfilePanelProps) {
  const { state } = store;
  // Who selects an idle method wants to see it.
  const method = state.selection?.kind === "method" ? state.selection.method : -1;
  const isFolded = options.foldIdle && idleMethods(state.trace)[method] !== 1;
  const { sources, rows, profile } = useProfile(store, options, isFolded);
  const selected = selectedRow(state.trace, rows, state.selection);
  const key = selected >= 0 ? rows.keyOf(selected) : -1;
  const focus = options.onlySelected ? selected : -1;
  const kinds = spanKinds(state);
  const spans = sources.reduce((sum, { start }) => sum + start.length, 0);
  const graph = (profile: Profile) => {
    const props = { store, options, set, profile, focus, isFolded };
    return options.view === "flame" ? (
      <FlameGraph key={focus} {...props} />
    ) : (
      <TreeTable key={`${options.view} ${focus}`} {...props} />
    );
  };
  return (
    <div class="profile">
      <div class="toolbar" role="toolbar" aria-label="Profile">
        <Choice label="View" value={options.view} choices={VIEWS} onChange={(view) => set({ view })} />
        {kinds.length > 1 && (
          <Choice label="Count" value={options.kind} choices={kinds} onChange={(kind) => set({ kind })} />
        )}
        <Field label="Threads">
          <select value={options.threads} onChange={(e) => set({ threads: e.currentTarget.value })}>
            {threadChoices(state, options.kind).map(([value, text]) => (
              <option value={value}>{text}</option>
            ))}
          </select>
        </Field>
        {options.view === "table" ? (
          <>
            <Field label="Rows">
              <select value={options.by} onChange={(e) => set({ by: e.currentTarget.value as ProfileOptions["by"] })}>
                <option value="method">{options.kind === "slices" ? "by name" : "by method"}</option>
                {options.kind !== "slices" && <option value="class">by class</option>}
                {options.kind !== "slices" && <option value="package">by package</option>}
                <option value="thread">by thread</option>
              </select>
            </Field>
            <Field label="Filter">
              <input
                type="search"
                value={options.filter}
                placeholder="part of a name"
                onInput={(e) => set({ filter: e.currentTarget.value })}
              />
            </Field>
          </>
        ) : (
          <label class="check">
            <input
              type="checkbox"
              checked={options.onlySelected}
              disabled={key < 0}
              onChange={(e) => set({ onlySelected: e.currentTarget.checked })}
            />{" "}
            only the selected one
          </label>
        )}
        {options.view === "flame" && hasCpu(state.trace, options.kind) && (
          <Choice label="Time" value={options.clock} choices={CLOCKS} onChange={(clock) => set({ clock })} />
        )}
        <button
          type="button"
          disabled={key < 0}
          title="Flame chart: the longest call of the selected row, in time order"
          onClick={() => showLongest(store, key, chosenWindow(state))}
        >
          Show in timeline
        </button>
      </div>
      {!profile && (
        <p class="empty" role="status">
          Computing the profile …
        </p>
      )}
      {profile && (
        <WindowLine store={store} profile={profile} selected={key < 0 ? null : keyName(state.trace, key)}>
          <Idle store={store} profile={profile} isFolded={isFolded} set={set} />
        </WindowLine>
      )}
      {profile && options.view === "table" && <MethodTable {...{ store, options, set, profile, isFolded }} />}
      {profile
        && options.view !== "table"
        && (spans > MANY_SPANS ? (
          <Later key={options.view} text="Building the call tree …">
            {() => graph(profile)}
          </Later>
        ) : (
          graph(profile)
        ))}
    </div>
  );
}

/** Says what the figures below cover, and how calls at the window's edges count. */
function WindowLine({
  store,
  profile,
  selected,
  children,
}: {
  store: Store;
  profile: Profile;
  selected: string | null;
  children: ComponentChildren;
}) {
  const { trace, range } = store.state;
  const { from, to } = profile.window;
  const whole = from <= 0 && to >= trace.duration;
  return (
    <p class="window-line" data-took={profile.took.toFixed(1)} data-window={`${from}-${to}`}>
      {whole ? <b>Whole trace</b> : <b>{range ? "Chosen range" : "Visible part"}</b>}
      {whole
        ? `, ${formatDuration(trace.duration)}: `
        : ` ${formatMoment(from)} – ${formatMoment(to)} (${formatDuration(to - from)}): `}
      {counted(profile.flat.allCalls, "call")}, {formatDuration(profile.flat.wallTotal)}.
      {!whole && " Calls that the edges cut count with their part inside; the number of calls has all that overlap."}
      {children}
      {range && (
        <button type="button" onClick={() => store.set({ range: null })}>
          Drop the range
        </button>
      )}
      {selected !== null && <span class="chosen"> Selected: {visibleName(selected)}</span>}
    </p>
  );
}

/** Says which idle methods are folded, and unfolds them. */
function Idle({
  store,
  profile,
  isFolded,
  set,
}: {
  store: Store;
  profile: Profile;
  isFolded: boolean;
  set: ProfilePanelProps["set"];
}) {
  const idle = useMemo(() => idleTime(store.state.trace, profile.rows, profile.flat), [profile]);
  if (!idle) return null;
  const names = idle.names.slice(0, MAX_IDLE_NAMES).map((name) => visibleName(name.split(".").slice(-2).join(".")));
  const more = idle.names.length > MAX_IDLE_NAMES ? ", …" : "";
  return (
    <span class="idle">
      {" "}
      {isFolded ? "Folded: " : "With "}
      {formatDuration(idle.ns)} of waiting for work in {names.join(", ")}
      {more}.
      <button type="button" onClick={() => set({ foldIdle: !isFolded })}>
        {isFolded ? "Show idle" : "Fold idle"}
      </button>
    </span>
  );
}

function spanKinds({ trace }: State): [SpanKind, string][] {
  const has = (kind: string) =>
    trace.tracks.some(
      (t) => t.kind === kind && t.thread !== null && t.count > 0 && t.role !== "running" && t.role !== "async",
    );
  if (!has("calls") || !has("slices")) return [];
  return [
    ["calls", "Methods"],
    ["slices", "Slices"],
    ["both", "Both"],
  ];
}

function threadChoices({ trace }: State, kind: SpanKind): [string, string][] {
  const choices: [string, string][] = [["all", "all threads"]];
  const threads = new Set<number>();
  for (const track of trace.tracks) {
    const counts = track.kind === "calls" ? kind !== "slices" : track.kind === "slices" && kind !== "calls";
    if (counts && track.thread !== null && track.role !== "running" && track.count > 0) threads.add(track.thread);
  }
  const processes = new Set([...threads].map((thread) => trace.threads[thread].process));
  if (processes.size > 1) {
    for (const process of processes) {
      if (process === null) continue;
      const { name, pid } = trace.index.processes[process];
      choices.push([`p${process}`, `process ${visibleName(name) || pid} (${pid})`]);
    }
  }
  for (const thread of [...threads].sort((a, b) => trace.threads[b].busy_ns - trace.threads[a].busy_ns)) {
    choices.push([`t${thread}`, visibleName(trace.threadName(thread))]);
  }
  return choices;
}
