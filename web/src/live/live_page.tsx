// The page of a recording that runs: the rolling picture, what can be asked of the program, and what is kept of the recording
// as a report page while the picture is stopped.

import { type ComponentChildren, render } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

import type { OpenPage } from "../open_page";
import type { State } from "../store";
import { Field } from "../ui/controls";
import { KeyList, KeysDialog } from "../ui/help";
import { MiddleCut } from "../ui/middle_cut";
import { mounted } from "../ui/mounted";
import { counted, visibleName } from "../ui/text";
import { isTyping } from "../ui/typing";
import { openKept } from "./kept_page";
import { exposeLive } from "./live_debug";
import { Figures, Lists } from "./live_lists";
import type { Category } from "./messages";
import { Rolling, ZOOM_STEP_FACTOR } from "./rolling";
import { Session } from "./session";

const KEYS: [string, string][] = [
  ["Space", "stops the picture, and shows what is kept as a report; goes on"],
  ["M", "sets a marker with a name in the recording"],
  ["+, - or Ctrl + wheel", "shows less or more time"],
  ["Wheel, ↑ ↓, Page Up, Page Down", "scrolls the rows"],
  ["← →, drag, Shift + wheel", "moves a picture that is stopped to earlier and later times"],
  ["?", "shows these keys"],
];
const FORMATS: [format: string, what: string][] = [
  ["dat", "for trace-cmd and tracebridge"],
  ["pftrace", "for Perfetto"],
  ["html", "a report page"],
];
const MAX_MARK_CHARS = 200;
const PAN_STEP_PART = 0.12;
const SCROLL_STEP_PX = 60;
const SCROLL_STEP_PART = 0.8;
/** These take Space for themselves. */
const TAKES_SPACE = "button, a, summary, [role=tab], [role=menuitem]";

/** A picture that is stopped: what has it go on, and what has become of the report of what is kept. */
interface Stopped {
  end: () => void;
  kept: "opening" | "shown" | "failed";
}

/** Follows a recording that runs, in `root`. */
export function startLive(root: HTMLElement): void {
  root.replaceChildren();
  render(<LivePage />, root);
}

function LivePage() {
  const [, draw] = useState(0);
  const [session] = useState(() => new Session(() => draw((n) => n + 1)));
  const [theme, setTheme] = useState<State["theme"]>("auto");
  const [dialog, setDialog] = useState<"help" | "mark" | null>(null);
  const picture = useRef<HTMLDivElement>(null);
  const rolling = useRef<Rolling | null>(null);
  const layer = useRef<HTMLDivElement>(null);
  const stopButton = useRef<HTMLButtonElement>(null);
  /** Ends the stop of the picture; null: it rolls. */
  const [stopped, setStopped] = useState<Stopped | null>(null);
  const current = useRef(stopped);
  current.current = stopped;
  const { hello, kept } = session;

  useEffect(() => {
    const made = new Rolling(mounted(picture), kept, session.clock, () => session);
    rolling.current = made;
    const hide = exposeLive(made, session);
    return () => {
      hide();
      made.unmount();
      session.close();
    };
  }, []);
  useEffect(() => {
    document.documentElement.dataset.theme = theme;
  }, [theme]);
  const title = visibleName([hello?.app, hello?.title].filter(Boolean).join(" · "));
  useEffect(() => {
    if (stopped?.kept !== "shown") document.title = `${title || "live"} · tracebridge`;
  }, [title, stopped]);

  const stop = () => {
    const shown = rolling.current;
    if (!shown || Number.isNaN(kept.latest)) return;
    shown.stop();
    const aborted = new AbortController();
    let open: OpenPage | null = null;
    const end = () => {
      aborted.abort();
      if (open) setTheme(open.store.state.theme);
      open?.close();
      mounted(layer).replaceChildren();
      if (location.hash) history.replaceState(null, "", location.href.replace(/#.*/, ""));
      shown.goOn();
      setStopped(null);
      setTimeout(() => stopButton.current?.focus());
    };
    const show = (kept: Stopped["kept"]) => setStopped({ end, kept });
    show("opening");
    const opening = document.createElement("p");
    opening.className = "opening";
    mounted(layer).replaceChildren(opening);
    const seen = { from: shown.edge - shown.window, to: shown.edge };
    openKept(mounted(layer), session.start, seen, theme, aborted.signal, () => show("shown")).then(
      (opened) => {
        open = opened;
        if (aborted.signal.aborted) open.close();
        else show("shown");
      },
      (error: unknown) => {
        if (aborted.signal.aborted) return;
        const reason = error instanceof Error ? error.message : String(error);
        show("failed");
        session.problem(`What is kept cannot be shown as a report: ${reason}`);
      },
    );
  };
  const toggle = () => (current.current ? current.current.end() : stop());
  useEffect(() => {
    const onKeyDown = (event: KeyboardEvent) => {
      const isPlain = !event.ctrlKey && !event.metaKey && !event.altKey;
      if (!isPlain || isTyping(event) || event.defaultPrevented || document.querySelector("dialog[open]")) return;
      if (event.key === " " && !(event.target as Element).closest(TAKES_SPACE)) toggle();
      else if (current.current?.kept === "shown" || !rolling.current || !key(rolling.current, event)) return;
      event.preventDefault();
    };
    const key = (shown: Rolling, { key }: KeyboardEvent): boolean => {
      const acts: Record<string, () => void> = {
        "+": () => shown.zoom(1 / ZOOM_STEP_FACTOR),
        "=": () => shown.zoom(1 / ZOOM_STEP_FACTOR),
        "-": () => shown.zoom(ZOOM_STEP_FACTOR),
        m: () => session.can("mark") && setDialog("mark"),
        "?": () => setDialog("help"),
        ArrowLeft: () => shown.pan(-shown.window * PAN_STEP_PART),
        ArrowRight: () => shown.pan(shown.window * PAN_STEP_PART),
        ArrowUp: () => shown.scrollBy(-SCROLL_STEP_PX),
        ArrowDown: () => shown.scrollBy(SCROLL_STEP_PX),
        PageUp: () => shown.scrollBy(-shown.elements.plot.clientHeight * SCROLL_STEP_PART),
        PageDown: () => shown.scrollBy(shown.elements.plot.clientHeight * SCROLL_STEP_PART),
      };
      const act = Object.hasOwn(acts, key.length === 1 ? key.toLowerCase() : key)
        ? acts[key.length === 1 ? key.toLowerCase() : key]
        : null;
      act?.();
      return act !== null;
    };
    addEventListener("keydown", onKeyDown);
    return () => removeEventListener("keydown", onKeyDown);
  }, [theme]);

  const isShown = stopped?.kept === "shown";
  const state = session.isConnected || session.isEnded ? session.state : "";
  return (
    <>
      <div class="live" data-covered={isShown || undefined}>
        <header>
          <h1>
            <MiddleCut text={title || "A recording"} />
          </h1>
          <span class="live-state" role="status">
            {stopped
              ? `The picture is stopped; ${stopped.kept === "opening" ? "what is kept is being read …" : session.isEnded ? "the recording has ended." : "the recording goes on."}`
              : visibleName(state)}
            {kept.isFull
              && ` The page keeps the last ${Math.round((kept.latest - kept.horizon) / 1e9)} s: it has no room for more.`}
          </span>
          <button
            ref={stopButton}
            type="button"
            title="Space"
            onClick={toggle}
            disabled={!stopped && Number.isNaN(kept.latest)}
          >
            {stopped ? "Go on" : "Stop the picture"}
          </button>
          <button type="button" title="M" disabled={!session.can("mark")} onClick={() => setDialog("mark")}>
            Marker
          </button>
          <Drawer title="Save" disabled={!session.can("save")}>
            {FORMATS.map(([format, what]) => (
              <button type="button" onClick={() => session.ask({ do: "save", format })}>
                <b>.{format}</b> <span class="muted">{what}</span>
              </button>
            ))}
          </Drawer>
          {hello?.can.includes("categories") && (
            <Drawer title="Categories" disabled={!session.can("categories")}>
              <Categories session={session} categories={hello.categories} />
            </Drawer>
          )}
          <button
            type="button"
            disabled={!session.isConnected || session.isEnded}
            onClick={() => session.ask({ do: "stop" })}
          >
            End the recording
          </button>
          <Field label="Theme">
            <select value={theme} onChange={(e) => setTheme(e.currentTarget.value as State["theme"])}>
              {(["auto", "light", "dark"] as const).map((one) => (
                <option value={one}>{one}</option>
              ))}
            </select>
          </Field>
          <button type="button" class="round" aria-label="Keys" title="Keys (?)" onClick={() => setDialog("help")}>
            ?
          </button>
        </header>
        <div role="alert" class="live-alerts">
          {!session.isConnected && !session.isEnded && (
            <p class="banner">There is no connection to tracebridge; the page tries again every second.</p>
          )}
          {session.problems.map((problem) => (
            <p class="banner" key={problem}>
              <span>{visibleName(problem)}</span>
              <button type="button" aria-label="Close the message" onClick={() => session.forget(problem)}>
                ✕
              </button>
            </p>
          ))}
        </div>
        <Figures numbers={session.numbers} />
        <main class="live-main">
          <div class="live-timeline" ref={picture} />
          <Lists launches={session.launches} marks={session.marks} files={session.files} />
        </main>
      </div>
      <div class="live-kept" data-shown={isShown || undefined}>
        {isShown && (
          <div class="live-bar" role="region" aria-label="Stopped picture">
            <button type="button" title="Space" onClick={toggle} ref={(button) => button?.focus()}>
              Go on
            </button>
            <span>The picture is stopped. The recording goes on, and is not on this page.</span>
          </div>
        )}
        <div class="live-page" ref={layer} />
      </div>
      {dialog === "help" && (
        <KeysDialog onClose={() => setDialog(null)}>
          <KeyList title="Live" keys={KEYS} />
        </KeysDialog>
      )}
      {dialog === "mark" && (
        <MarkDialog onClose={() => setDialog(null)} onMark={(name) => session.ask({ do: "mark", name })} />
      )}
    </>
  );
}

/** What can be recorded: what is on, and what is being switched. */
function Categories({ session, categories }: { session: Session; categories: Category[] }) {
  const on = categories.filter((category) => category.on);
  const pending = [...session.wanted.keys()];
  return (
    <>
      <p class="muted" role="status">
        {pending.length > 0
          ? `Switching ${visibleName(pending.join(", "))} …`
          : `${on.length} of ${counted(categories.length, "category", "categories")} recorded.`}
      </p>
      {categories.map(({ name, description, on: isOn }) => (
        <label class="check" key={name} title={visibleName(description)}>
          <input
            type="checkbox"
            checked={session.wanted.get(name) ?? isOn}
            onChange={({ currentTarget: { checked } }) => session.switchCategory(name, checked)}
          />
          <b>{visibleName(name)}</b> <span class="muted">{visibleName(description)}</span>
        </label>
      ))}
    </>
  );
}

/** What opens below its title, and closes when a button in it or something beside it is pressed. */
function Drawer({ title, disabled, children }: { title: string; disabled: boolean; children: ComponentChildren }) {
  const root = useRef<HTMLDivElement>(null);
  const [shown, setShown] = useState(false);
  const close = () => {
    setShown(false);
    mounted(root).querySelector("button")?.focus();
  };
  useEffect(() => {
    if (!shown) return;
    const onPress = (event: Event) => {
      if (!mounted(root).contains(event.target as Node)) setShown(false);
    };
    addEventListener("pointerdown", onPress);
    return () => removeEventListener("pointerdown", onPress);
  }, [shown]);
  return (
    <div
      class="share"
      ref={root}
      onKeyDown={(event) => {
        if (event.key === "Escape") close();
      }}
    >
      <button type="button" aria-expanded={shown} disabled={disabled} onClick={() => setShown(!shown)}>
        {title} ▾
      </button>
      {shown && !disabled && (
        <div
          class="menu"
          role="group"
          aria-label={title}
          onClick={({ target }) => (target as Element).closest("button") && close()}
        >
          {children}
        </div>
      )}
    </div>
  );
}

function MarkDialog({ onClose, onMark }: { onClose: () => void; onMark: (name: string) => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => mounted(dialog).showModal(), []);
  return (
    <dialog ref={dialog} class="help" aria-labelledby="mark-title" onClose={onClose}>
      <form
        method="dialog"
        onSubmit={(event) => {
          const name = new FormData(event.currentTarget).get("name");
          onMark(typeof name === "string" ? name.trim() : "");
        }}
      >
        <h2 id="mark-title">Marker in the recording</h2>
        <p>
          <input name="name" aria-label="Name of the marker" maxLength={MAX_MARK_CHARS} autofocus autocomplete="off" />{" "}
          <button>Set</button>{" "}
          <button type="button" onClick={() => mounted(dialog).close()}>
            Cancel
          </button>
        </p>
      </form>
    </dialog>
  );
}
