// The notes and the page's name, as the summary lists them.

import type { Note, Store } from "../store";
import { switchTrace } from "../ui/fragment";
import { formatMoment } from "../timeline/time";
import { visibleName } from "../ui/text";
import { useStore } from "../ui/use_store";
import { draftNote, inOrder, removeNote } from "./notes";

/** A moment's note is shown with so much around it. */
const AROUND_NS = 5e6;
const MAX_NAME_CHARS = 200;

export function NotesCard({ store }: { store: Store }) {
  const { notes, name, trace, traces } = useStore(store, "notes", "name", "trace");
  return (
    <section class="notes">
      <h2>Notes</h2>
      <label class="field">
        <span>Name of this page</span>
        <input
          value={name}
          maxLength={MAX_NAME_CHARS}
          placeholder={visibleName(trace.index.title)}
          onChange={(e) => store.set({ name: e.currentTarget.value.trim() })}
        />
      </label>
      {notes.length === 0 && (
        <p class="muted">None. The key M pins one to the selection, or to the moment under the pointer.</p>
      )}
      <ul>
        {inOrder(notes).map((note) => (
          <li>
            <button type="button" class="link" onClick={() => goTo(store, note)} title="Show in the timeline">
              {formatMoment(note.at)}
            </button>
            {traces.length > 1 && <span class="muted"> {note.trace.role}</span>}
            <span class="note-text">{visibleLines(note.text)}</span>
            <button
              type="button"
              aria-label={`Change the note ${short(note.text)}`}
              onClick={() => store.set({ editing: note })}
            >
              Change
            </button>
            <button
              type="button"
              aria-label={`Delete the note ${short(note.text)}`}
              onClick={() => removeNote(store, note)}
            >
              Delete
            </button>
          </li>
        ))}
      </ul>
      <button type="button" onClick={() => store.set({ editing: draftNote(store.state) })}>
        New note
      </button>
    </section>
  );
}

const visibleLines = (text: string) => text.split("\n").map(visibleName).join("\n");
const short = (text: string) => visibleName(text.slice(0, 40));

function goTo(store: Store, { trace, at, selection }: Note): void {
  const view = { from: Math.max(0, at - AROUND_NS), to: Math.min(at + AROUND_NS, Math.max(trace.duration, 1)) };
  switchTrace(store, trace);
  store.set(selection ? { selection } : { view });
}
