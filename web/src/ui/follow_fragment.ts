// Keeps the store and the URL's fragment the same.

import type { Panel, Store } from "../store";
import { fromFragment, toFragment } from "./fragment";

/** The view changes with every step of the wheel; browsers refuse too many changes of the URL. */
const WRITE_MS = 250;

/** Writes each change of the store into the fragment, and takes a changed fragment into the store. */
export function followFragment(store: Store, first: Panel): () => void {
  let timer = 0;
  let written = location.hash.slice(1);
  const write = () => {
    timer = 0;
    // Somebody has changed the fragment, and `read` is about to be called: what they asked for counts.
    if (location.hash.slice(1) !== written) return;
    try {
      history.replaceState(null, "", `#${toFragment(store.state, first)}`);
    } catch {
      // A browser that does not let a page change its own URL shows the page all the same.
    }
    written = location.hash.slice(1);
  };
  const read = () => {
    if (location.hash.slice(1) === written) return;
    written = location.hash.slice(1);
    store.set(fromFragment(location.hash, store.state, first));
  };
  const stop = store.subscribe(() => {
    clearTimeout(timer);
    timer = setTimeout(write, WRITE_MS) as unknown as number;
  });
  addEventListener("hashchange", read);
  return () => {
    stop();
    clearTimeout(timer);
    removeEventListener("hashchange", read);
  };
}
