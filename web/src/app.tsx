// The page's frame: the header, the timeline, and the panel below it.

import { useEffect, useRef, useState } from "preact/hooks";

import { ComparisonPanel } from "./compare/comparison_panel";
import { openOther } from "./compare/open_other";
import { Timelines } from "./compare/timelines";
import { DetailsPanel } from "./details/details_panel";
import { LaunchesPanel } from "./launches/launches_panel";
import { NoteEditor } from "./notes/note_editor";
import { draftNote } from "./notes/notes";
import { firstOptions, kindOf, type ProfileOptions } from "./profile/options";
import { ProfilePanel } from "./profile/profile_panel";
import { Drop } from "./share/drop";
import { ShareMenu } from "./share/share_menu";
import type { Panel, State, Store } from "./store";
import { SummaryPanel } from "./summary/summary_panel";
import { TablePanel } from "./table/table_panel";
import { Banner } from "./ui/banner";
import { switchTrace } from "./ui/fragment";
import { RowControls } from "./ui/row_controls";
import { Help } from "./ui/help";
import { Later } from "./ui/later";
import { MiddleCut } from "./ui/middle_cut";
import { Search } from "./ui/search";
import { Splitter } from "./ui/splitter";
import { visibleName } from "./ui/text";
import { isTyping } from "./ui/typing";
import { useStore } from "./ui/use_store";
import { hasCauses } from "./why/critical_path";
import { stepFrame } from "./video/moment";
import { ScreenPanel } from "./video/screen_panel";
import { WhyPanel } from "./why/why_panel";

export interface AppProps {
  store: Store;
  /** The panel that the page opens with. */
  first: Panel;
  generator: string;
}

const ROLES = { trace: "trace", new: "new", old: "old" };

export function App({ store, first, generator }: AppProps) {
  const {
    trace,
    traces,
    comparison,
    panel,
    theme,
    name,
    profiled: asked,
  } = useStore(store, "trace", "traces", "comparison", "panel", "theme", "name", "profiled");
  const search = useRef<HTMLInputElement>(null);
  const rowFilter = useRef<HTMLInputElement>(null);
  /** The timeline's part of the height; null: a comparison takes what it needs. */
  const [chosenPart, setPart] = useState<number | null>(null);
  const [help, setHelp] = useState(false);
  const [options, setOptions] = useState<ProfileOptions>(() => firstOptions(store.state));
  // A thread of one trace is none of another.
  const [profiled, setProfiled] = useState(trace);
  if (profiled !== trace) {
    setProfiled(trace);
    if (options.threads !== "all") setOptions({ ...options, threads: firstOptions(store.state).threads });
  }
  useEffect(() => {
    if (!asked) return;
    setOptions((before) => ({
      ...before,
      kind: kindOf(trace, asked.thread, before.kind),
      threads: `t${asked.thread}`,
    }));
  }, [asked]);
  useEffect(() => {
    document.documentElement.dataset.theme = theme;
  }, [theme]);
  const title = visibleName(name || trace.index.title);
  useEffect(() => {
    document.title = `${title} · tracebridge`;
  }, [title]);
  const open = async (file: File) => ({ text: await openOther(store, file) });
  useEffect(() => {
    const onKeyDown = (event: KeyboardEvent) => {
      const writing = isTyping(event);
      const find = (event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "f" && !event.shiftKey;
      if (find || (event.key === "/" && !writing)) {
        search.current?.focus();
        search.current?.select();
        event.preventDefault();
      } else if (event.key === "f" && !writing && !event.ctrlKey && !event.metaKey && !event.altKey) {
        rowFilter.current?.focus();
        rowFilter.current?.select();
        event.preventDefault();
      } else if ((event.key === "," || event.key === ".") && !writing && !event.ctrlKey && !event.metaKey) {
        const video = store.state.trace.videos.at(0);
        if (!video) return;
        stepFrame(store, video, event.key === "," ? -1 : 1);
        event.preventDefault();
      } else if (/^[1-9]$/.test(event.key) && !writing && !event.ctrlKey && !event.metaKey && !event.altKey) {
        const tab = document
          .querySelectorAll<HTMLElement>("[role=tab]")
          .item(Number(event.key) - 1) as HTMLElement | null;
        if (!tab) return;
        tab.click();
        tab.focus();
        event.preventDefault();
      } else if (event.key === "m" && !writing && !event.ctrlKey && !event.metaKey && !event.altKey) {
        store.set({ editing: draftNote(store.state) });
        event.preventDefault();
      } else if (event.key === "?" && !writing) {
        setHelp(true);
        event.preventDefault();
      }
    };
    addEventListener("keydown", onKeyDown);
    return () => removeEventListener("keydown", onKeyDown);
  }, []);

  const panels: [Panel, string][] = [
    ["profile", "Profile"],
    ["table", "Table"],
    ["summary", "Summary"],
  ];
  if (traces.some(({ videos }) => videos.length > 0)) panels.unshift(["screen", "Screen"]);
  if (traces.some(hasCauses)) panels.unshift(["why", "Why"]);
  if (traces.some(({ index }) => index.launches.length + index.frames.length > 0))
    panels.unshift(["launches", "Launches and frames"]);
  if (comparison) panels.splice(panels.length - 1, 0, ["comparison", "Comparison"]);
  const shown = panels.some(([name]) => name === panel) ? panel : panel === "timeline" ? panel : "profile";
  const set = (change: Partial<ProfileOptions>) => setOptions((before) => ({ ...before, ...change }));
  const toggle = () => store.set({ panel: shown === "timeline" ? "profile" : "timeline" });
  const isOpen = shown !== "timeline";
  const byNeed = shown === "comparison" && chosenPart === null;
  const part = chosenPart ?? 0.55;
  return (
    <>
      <header>
        <h1>
          <MiddleCut text={title} />
        </h1>
        {traces.length > 1 && (
          <div class="choice" role="group" aria-label="Trace">
            {traces.map((other) => (
              <button
                type="button"
                aria-pressed={other === trace}
                title={visibleName(other.index.title)}
                onClick={() => switchTrace(store, other)}
              >
                {ROLES[other.role]}
              </button>
            ))}
          </div>
        )}
        <Search store={store} field={search} />
        <ShareMenu store={store} first={first} open={open} />
        <ThemeSwitch store={store} theme={theme} />
        <button type="button" class="round" aria-label="Keys" title="Keys (?)" onClick={() => setHelp(true)}>
          ?
        </button>
      </header>
      <Banner traces={traces} store={store} />
      <main class={`panels ${byNeed ? "by-need" : ""}`} style={{ "--timeline": isOpen ? `${100 * part}%` : "100%" }}>
        <Timelines store={store} />
        <Splitter
          part={isOpen ? part : 1}
          onMove={(to) => {
            setPart(to);
            if (!isOpen) toggle();
          }}
          onToggle={toggle}
        >
          <Tabs store={store} panels={panels} shown={shown} />
          <RowControls store={store} field={rowFilter} />
          <button
            type="button"
            class="only"
            aria-pressed={shown === "timeline"}
            onClick={() => store.set({ panel: shown === "timeline" ? "profile" : "timeline" })}
          >
            Timeline alone
          </button>
        </Splitter>
        {isOpen && (
          <div class="lower">
            <section class="panel" role="tabpanel" id="panel" aria-labelledby={`tab-${shown}`}>
              {shown === "launches" && <LaunchesPanel store={store} />}
              {shown === "why" && <WhyPanel store={store} />}
              {shown === "screen" && <ScreenPanel store={store} />}
              {shown === "profile" && (
                <Later text="Computing the profile …">
                  {() => <ProfilePanel store={store} options={options} set={set} />}
                </Later>
              )}
              {shown === "table" && <TablePanel store={store} />}
              {shown === "summary" && (
                <SummaryPanel store={store} trace={trace} traces={traces} generator={generator} />
              )}
              {shown === "comparison" && comparison && (
                <ComparisonPanel store={store} traces={traces} comparison={comparison} />
              )}
            </section>
            <DetailsPanel store={store} />
          </div>
        )}
      </main>
      {help && <Help onClose={() => setHelp(false)} />}
      <NoteEditor store={store} />
      <Drop store={store} />
    </>
  );
}

function Tabs({ store, panels, shown }: { store: Store; panels: [Panel, string][]; shown: Panel }) {
  const onKeyDown = (event: KeyboardEvent) => {
    const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (step === 0) return;
    const at = panels.findIndex(([name]) => `tab-${name}` === (event.target as Element).id);
    const [name] = panels[(at + step + panels.length) % panels.length];
    store.set({ panel: name });
    document.getElementById(`tab-${name}`)?.focus();
    event.preventDefault();
  };
  return (
    <>
      <div class="tabs" role="tablist" aria-label="Panel" onKeyDown={onKeyDown}>
        {panels.map(([name, title], n) => (
          <button
            type="button"
            role="tab"
            id={`tab-${name}`}
            aria-selected={name === shown}
            aria-controls={name === shown ? "panel" : undefined}
            tabIndex={name === shown || (n === 0 && shown === "timeline") ? 0 : -1}
            onClick={() => store.set({ panel: name })}
          >
            {title}
          </button>
        ))}
      </div>
    </>
  );
}

function ThemeSwitch({ store, theme }: { store: Store; theme: State["theme"] }) {
  return (
    <label class="field">
      <span>Theme</span>
      <select value={theme} onChange={(e) => store.set({ theme: e.currentTarget.value as State["theme"] })}>
        <option value="auto">auto</option>
        <option value="light">light</option>
        <option value="dark">dark</option>
      </select>
    </label>
  );
}
