// Notes that users pin to moments: making, changing and finding them.

import type { Note, State, Store } from "../store";
import { periodOf } from "../timeline/layout";

/** A note has no more characters than this, and a page no more notes. */
export const MAX_NOTE_CHARS = 2000;
export const MAX_NOTES = 500;

/** A note without a text: at the selection, or else at `hovered`, or else in the middle of the view. */
export function draftNote({ trace, selection, view }: State, hovered: number | null = null): Note {
  const at = periodOf(trace, selection)?.from ?? hovered ?? (view.from + view.to) / 2;
  return { trace, at: Math.round(Math.min(Math.max(at, 0), Math.max(trace.duration, 1))), text: "", selection };
}

/** Puts a text in place of that of a note, which may be new. A note whose text is empty is removed. */
export function saveNote(store: Store, note: Note, text: string): void {
  const others = store.state.notes.filter((one) => one !== note);
  const kept = text.trim().slice(0, MAX_NOTE_CHARS);
  const notes = kept ? [...others, { ...note, text: kept }] : others;
  store.set({ notes: inOrder(notes).slice(0, MAX_NOTES), editing: null });
}

export function removeNote(store: Store, note: Note): void {
  store.set({ notes: store.state.notes.filter((one) => one !== note), editing: null });
}

export function inOrder(notes: readonly Note[]): Note[] {
  return [...notes].sort((a, b) => a.at - b.at);
}

/** The note of a trace that lies within `reach` ns of a moment. */
export function noteNear({ notes, trace }: Pick<State, "notes" | "trace">, at: number, reach: number): Note | null {
  const near = notes.filter((note) => note.trace === trace && Math.abs(note.at - at) <= reach);
  return near.sort((a, b) => Math.abs(a.at - at) - Math.abs(b.at - at)).at(0) ?? null;
}

/** The next number for a note that has no words. */
export function nextNumber(notes: readonly Note[]): string {
  return String(1 + notes.reduce((most, { text }) => Math.max(most, /^\d{1,6}$/.test(text) ? Number(text) : 0), 0));
}
