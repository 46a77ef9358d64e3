// The search field: what it finds, and the way from match to match.

import type { RefObject } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";

import type { Store } from "../store";
import { sharedMatches } from "../timeline/search";
import { counted } from "./text";
import { isTyping } from "./typing";
import { useStore } from "./use_store";

/** Matches are counted when the typing rests. */
const REST_MS = 150;

export function Search({ store, field }: { store: Store; field: RefObject<HTMLInputElement> }) {
  const { trace, query } = useStore(store, "trace", "query");
  const [typed, setTyped] = useState(query);
  const timer = useRef<ReturnType<typeof setTimeout>>();
  useEffect(() => {
    clearTimeout(timer.current);
    setTyped(query);
  }, [query]);
  const type = (text: string) => {
    clearTimeout(timer.current);
    setTyped(text);
    timer.current = setTimeout(() => store.set({ query: text }), REST_MS);
  };
  const matches = useMemo(() => (query.trim() ? sharedMatches(trace, query) : null), [trace, query]);
  const go = (back: boolean) => {
    const selection = back ? matches?.previous() : matches?.next();
    if (selection) store.set({ selection });
  };
  // Outside of fields the keys n and N go from match to match.
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (isTyping(event) || event.ctrlKey || event.metaKey || event.altKey || event.key.toLowerCase() !== "n") return;
      go(event.shiftKey);
      event.preventDefault();
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, [matches]);
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === "Enter") {
      if (typed !== query) store.set({ query: typed });
      else go(event.shiftKey);
    } else if (event.key === "Escape") {
      type("");
      store.set({ query: "" });
    } else return;
    event.preventDefault();
  };
  const none = matches?.count === 0;
  return (
    <div class="search" role="search">
      <input
        ref={field}
        type="search"
        value={typed}
        aria-label="Search slices, methods, threads and processes"
        placeholder="Search slices, methods, threads  ( / )"
        onInput={(e) => type(e.currentTarget.value)}
        onKeyDown={onKeyDown}
      />
      <span class="count" role="status">
        {matches ? (none ? "nothing found" : counted(matches.count, "match", "matches")) : ""}
      </span>
      <button
        type="button"
        aria-label="Previous match"
        title="Previous match (Shift+Enter, N)"
        disabled={!matches || none}
        onClick={() => go(true)}
      >
        ▲
      </button>
      <button
        type="button"
        aria-label="Next match"
        title="Next match (Enter, n)"
        disabled={!matches || none}
        onClick={() => go(false)}
      >
        ▼
      </button>
    </div>
  );
}
