// The banner for losses and damage of the recording: above everything else, and there as long as the page is open. What
// only the page leaves out stands in the summary.

import type { Trace } from "../data/trace";
import type { Store } from "../store";
import { switchTrace } from "./fragment";
import { missing } from "./losses";
import { visibleName } from "./text";

export function Banner({ traces, store }: { traces: readonly Trace[]; store: Store }) {
  const lossy = traces.map((trace) => ({ trace, losses: missing(trace) })).filter(({ losses }) => losses.length > 0);
  if (lossy.length === 0) return null;
  const details = () => {
    const { trace } = store.state;
    switchTrace(store, lossy.some((one) => one.trace === trace) ? trace : lossy[0].trace, { panel: "summary" });
  };
  return (
    <div class="banner" role="alert">
      {lossy.map(({ trace, losses }) => (
        <>
          <b>{traces.length > 1 ? `The ${trace.role} trace is not complete.` : "This trace is not complete."}</b>
          {losses.map((sentence) => (
            <span> {visibleName(sentence)}</span>
          ))}
        </>
      ))}
      <button type="button" onClick={details}>
        Details
      </button>
    </div>
  );
}
