// The timeline panel.

import type { Store } from "../store";

/** Mounts the timeline in `container`; returns the function that unmounts it. */
export function mountTimeline(container: HTMLElement, store: Store): () => void {
  container.textContent = `${store.state.trace.tracks.length} tracks`;
  return () => container.replaceChildren();
}
