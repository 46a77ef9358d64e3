// The banner for losses and damage: above everything else, and there as long as the page is open.

import type { Trace } from "../data/trace";
import type { Store } from "../store";
import { missing } from "./losses";
import { visibleName } from "./text";

export function Banner({ trace, store }: { trace: Trace; store: Store }) {
  const sentences = missing(trace);
  if (sentences.length === 0) return null;
  return (
    <div class="banner" role="alert">
      <b>This trace is not complete.</b>
      {sentences.map((sentence) => (
        <span> {visibleName(sentence)}</span>
      ))}
      <button type="button" onClick={() => store.set({ panel: "summary" })}>
        Details
      </button>
    </div>
  );
}
