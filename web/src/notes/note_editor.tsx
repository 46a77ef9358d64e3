// The dialog in which a note is written.

import { useLayoutEffect, useRef } from "preact/hooks";

import type { Note, Store } from "../store";
import { details } from "../timeline/details";
import { modelOf } from "../timeline/model";
import { formatMoment, formatWall } from "../timeline/time";
import { mounted } from "../ui/mounted";
import { useStore } from "../ui/use_store";
import { MAX_NOTE_CHARS, removeNote, saveNote } from "./notes";

export function NoteEditor({ store }: { store: Store }) {
  const { editing } = useStore(store, "editing");
  return editing && <Editor key={`${editing.at} ${editing.text}`} store={store} note={editing} />;
}

function Editor({ store, note }: { store: Store; note: Note }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const field = useRef<HTMLTextAreaElement>(null);
  // Before the next key is pressed, which belongs to the text.
  useLayoutEffect(() => {
    mounted(dialog).showModal();
    mounted(field).focus();
  }, []);
  const isNew = !store.state.notes.includes(note);
  const { trace, at, selection } = note;
  const about = selection && details(modelOf(trace), selection, null)?.title;
  const save = () => saveNote(store, note, mounted(field).value);
  return (
    <dialog ref={dialog} class="note-editor" aria-labelledby="note-title" onClose={() => store.set({ editing: null })}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          save();
        }}
      >
        <h2 id="note-title">{isNew ? "New note" : "Note"}</h2>
        <p class="muted">
          at {[formatMoment(at), formatWall(trace.index, at)].filter(Boolean).join(", ")}
          {about ? `, at “${about}”` : ""}
        </p>
        <textarea
          ref={field}
          aria-label="Text of the note"
          rows={4}
          maxLength={MAX_NOTE_CHARS}
          defaultValue={note.text}
          onKeyDown={(event) => {
            if (event.key === "Enter" && !event.shiftKey) {
              event.preventDefault();
              save();
            }
          }}
        />
        <p class="note-buttons">
          <button>Save</button>
          <button type="button" onClick={() => mounted(dialog).close()}>
            Cancel
          </button>
          {!isNew && (
            <button type="button" onClick={() => removeNote(store, note)}>
              Delete
            </button>
          )}
          <span class="muted">Enter saves, Shift+Enter begins a line</span>
        </p>
      </form>
    </dialog>
  );
}
