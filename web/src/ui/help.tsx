// The dialog that lists the keys.

import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";

import { KEYS as TIMELINE_KEYS } from "../timeline/keys";
import { mounted } from "./mounted";

const PAGE_KEYS: [string, string][] = [
  ["?", "shows these keys"],
  ["/ or Ctrl+F", "goes to the search field"],
  ["Enter, Shift+Enter", "in the search field: next and previous match"],
  ["N, Shift+N", "next and previous match, outside of the search field"],
  ["Escape", "in the search field: ends the search"],
  ["M", "pins a note to the selection, or to the middle of the view"],
  ["L", "copies a link to what is seen: view, period, selection, notes"],
  ["E", "opens the menu Share: link, copy of the page, pictures, comparison with another page"],
  [", and .", "previous and next frame of the video of the screen"],
  ["1 … 9", "goes to the first, second … tab"],
  ["Tab, Shift+Tab", "goes to the next and previous control, panel or table"],
];

const PANEL_KEYS: [string, string][] = [
  ["↑ ↓ Page Up, Page Down, Home, End", "in a table: moves by rows"],
  ["→ ←", "in a table: unfolds and folds a row, or goes to the row above"],
  ["Enter or Space", "selects the row, in the timeline too"],
  ["Shift+Enter or double click", "shows the longest call of the row in the timeline"],
  ["Enter", "in the table: shows the row in the timeline, of a group its largest item"],
  ["↑ ↓ ← →", "in the flame graph: caller, longest callee, neighbours"],
  ["Enter, Escape", "in the flame graph: zooms in, shows the whole graph"],
  ["↑ ↓ on the bar between the panels", "makes the timeline smaller or larger; Enter shows it alone"],
];

type Keys = readonly (readonly [key: string, what: string])[];

export function Help({ onClose }: { onClose: () => void }) {
  return (
    <KeysDialog onClose={onClose}>
      <KeyList title="Timeline" keys={TIMELINE_KEYS} />
      <div>
        <KeyList title="Page" keys={PAGE_KEYS} />
        <KeyList title="Profile and tables" keys={PANEL_KEYS} />
      </div>
    </KeysDialog>
  );
}

/** A dialog with lists of keys. */
export function KeysDialog({ onClose, children }: { onClose: () => void; children: ComponentChildren }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => mounted(dialog).showModal(), []);
  return (
    <dialog
      ref={dialog}
      class="help"
      aria-labelledby="help-title"
      onClose={onClose}
      onClick={(event) => {
        if (event.target === dialog.current) dialog.current?.close();
      }}
    >
      <form method="dialog">
        <h2 id="help-title">Keys</h2>
        <div class="help-columns">{children}</div>
        <button autofocus>Close</button>
      </form>
    </dialog>
  );
}

export function KeyList({ title, keys }: { title: string; keys: Keys }) {
  return (
    <section>
      <h3>{title}</h3>
      <dl>
        {keys.map(([key, what]) => (
          <div>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
    </section>
  );
}
