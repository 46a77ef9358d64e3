// The banner for losses and damage: above everything else, and there as long as the page is open. Where the trace is
// complete, and the page alone does not show all of it, the banner says so without alarm.

import type { Trace } from "../data/trace";
import type { Store } from "../store";
import { missing, otherPackets } from "./losses";
import { visibleName } from "./text";

export function Banner({ trace, store }: { trace: Trace; store: Store }) {
  const losses = missing(trace);
  const others = otherPackets(trace.index);
  const sentences = others === null ? losses : [...losses, others];
  if (sentences.length === 0) return null;
  const isLossy = losses.length > 0;
  return (
    <div class={isLossy ? "banner" : "banner quiet"} role={isLossy ? "alert" : "status"}>
      {isLossy && <b>This trace is not complete.</b>}
      {sentences.map((sentence) => (
        <span> {visibleName(sentence)}</span>
      ))}
      <button type="button" onClick={() => store.set({ panel: "summary" })}>
        Details
      </button>
    </div>
  );
}
