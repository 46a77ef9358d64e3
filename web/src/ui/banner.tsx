// The banner for losses and damage of the recording: above everything else, and there as long as the page is open. What
// only the page leaves out stands in the summary.

import type { Trace } from "../data/trace";
import type { Store } from "../store";
import { missing } from "./losses";
import { visibleName } from "./text";

export function Banner({ trace, store }: { trace: Trace; store: Store }) {
  const losses = missing(trace);
  if (losses.length === 0) return null;
  return (
    <div class="banner" role="alert">
      <b>This trace is not complete.</b>
      {losses.map((sentence) => (
        <span> {visibleName(sentence)}</span>
      ))}
      <button type="button" onClick={() => store.set({ panel: "summary" })}>
        Details
      </button>
    </div>
  );
}
