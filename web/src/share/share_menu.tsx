// The menu "Share": link, copy, pictures, and the way to another page.

import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

import type { Panel, Store } from "../store";
import { mounted } from "../ui/mounted";
import { Said } from "../ui/said";
import { isTyping } from "../ui/typing";
import { copyLink, type Outcome, saveCopy, savePicture } from "./actions";

interface Entry {
  title: string;
  what: string;
  act: () => Outcome | Promise<Outcome>;
}

/** `open` opens the page of another capture beside this one. */
export function ShareMenu({
  store,
  first,
  open,
}: {
  store: Store;
  first: Panel;
  open: (file: File) => Promise<Outcome>;
}) {
  const [shown, setShown] = useState(false);
  const [outcome, setOutcome] = useState<Outcome | null>(null);
  const root = useRef<HTMLDivElement>(null);
  const button = useRef<HTMLButtonElement>(null);
  const file = useRef<HTMLInputElement>(null);
  const run = (act: Entry["act"]) => {
    setShown(false);
    void Promise.resolve()
      .then(act)
      .catch((error: unknown) => ({ text: error instanceof Error ? error.message : String(error), failed: true }))
      .then(setOutcome);
  };
  const link: Entry = {
    title: "Copy link",
    what: "of this view, period and selection (L)",
    act: () => copyLink(store, first),
  };
  const entries: Entry[] = [
    // What is kept of a recording that runs has no address.
    ...(store.pageText === null ? [link] : []),
    { title: "Save copy", what: "of this page, with its view, notes and name", act: () => saveCopy(store, first) },
    { title: "Picture (PNG)", what: "of the timeline", act: () => savePicture(store, "png") },
    { title: "Picture (SVG)", what: "of the timeline, with real text", act: () => savePicture(store, "svg") },
  ];
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (isTyping(event) || event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.key.toLowerCase() === "l" && store.pageText === null) run(link.act);
      else if (event.key.toLowerCase() === "e") setShown(true);
      else return;
      event.preventDefault();
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, [store, first]);
  useLayoutEffect(() => {
    if (!shown) return;
    mounted(root).querySelector<HTMLElement>("[role=menuitem]")?.focus();
    const onPress = (event: Event) => {
      if (!mounted(root).contains(event.target as Node)) setShown(false);
    };
    addEventListener("pointerdown", onPress);
    return () => removeEventListener("pointerdown", onPress);
  }, [shown]);
  const onKeyDown = (event: KeyboardEvent) => {
    const items = [...mounted(root).querySelectorAll<HTMLElement>("[role=menuitem]")];
    const at = items.indexOf(document.activeElement as HTMLElement);
    const steps: Record<string, number> = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: items.length - 1 };
    if (event.key in steps) items[(steps[event.key] + items.length) % items.length]?.focus();
    else if (event.key === "Escape") {
      setShown(false);
      mounted(button).focus();
    } else if (event.key === "Tab") {
      setShown(false);
      return;
    } else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <div class="share" ref={root}>
      <button
        ref={button}
        type="button"
        aria-haspopup="menu"
        aria-expanded={shown}
        title="Link, copy, picture, comparison (E)"
        onClick={() => setShown(!shown)}
      >
        Share ▾
      </button>
      {shown && (
        <div class="menu" role="menu" aria-label="Share" onKeyDown={onKeyDown}>
          {entries.map(({ title, what, act }) => (
            <button type="button" role="menuitem" tabIndex={-1} onClick={() => run(act)}>
              <b>{title}</b> <span class="muted">{what}</span>
            </button>
          ))}
          <button type="button" role="menuitem" tabIndex={-1} onClick={() => mounted(file).click()}>
            <b>Compare with …</b> <span class="muted">another report page, which can be dropped here, too</span>
          </button>
        </div>
      )}
      <input
        ref={file}
        type="file"
        accept=".html,.htm"
        class="unseen"
        tabIndex={-1}
        aria-label="Report page to compare with"
        onChange={(event) => {
          const chosen = event.currentTarget.files?.item(0);
          event.currentTarget.value = "";
          if (chosen) run(() => open(chosen));
        }}
      />
      <Said
        text={outcome?.text ?? ""}
        stays={outcome?.link !== undefined || outcome?.failed}
        onClose={() => setOutcome(null)}
      >
        {outcome?.link && (
          <input readOnly value={outcome.link} aria-label="Link" onFocus={(e) => e.currentTarget.select()} />
        )}
      </Said>
    </div>
  );
}
