// Opens the page of another capture beside the one that is shown, so that the two become a comparison.

import { readOtherPage } from "../data/other_page";
import { held, isTooMuch } from "../data/held";
import { Trace } from "../data/trace";
import { ALL_ROWS, type Store } from "../store";
import { Layout } from "../timeline/layout";
import { modelOf } from "../timeline/model";
import { visibleName } from "../ui/text";
import { boundsOf, firstAlignment } from "./alignment";
import { compareTraces } from "./measure";

/** Opens a file beside the shown trace, which becomes the new one. Throws an Error with a sentence for people. */
export async function openOther(store: Store, file: File): Promise<string> {
  const name = visibleName(file.name.slice(0, 200));
  let other: Trace;
  try {
    const { directory, blocks } = await readOtherPage(file);
    const [first] = directory.traces;
    const index = await Trace.readIndex(blocks, first.index);
    if (isTooMuch(held([index, store.state.trace.index]))) {
      throw new Error(
        "both pages together hold more than a browser has room for; report --from and --to make smaller ones",
      );
    }
    other = await Trace.open(blocks, "old", index, () => undefined);
    // Whatever the page cannot draw or measure fails here, before it takes the place of what is shown.
    void new Layout(modelOf(other), ALL_ROWS);
    compareTraces(other, other);
  } catch (error) {
    throw new Error(`“${name}” cannot be opened beside this page: ${reasonOf(error)}`);
  }
  const own = store.state.traces.find(({ isDropped }) => !isDropped) ?? store.state.trace;
  const shown = store.state.trace.isDropped ? own : store.state.trace;
  show(store, shown, other);
  const several = store.state.traces.length > 2 ? " Of the pages, the first trace of each is compared." : "";
  return `“${name}” is opened beside this page, as the old one.${several}`;
}

/** Shows two traces as a comparison. */
function show(store: Store, now: Trace, old: Trace): void {
  now.role = "new";
  old.role = "old";
  const traces = [now, old];
  const comparison = compareTraces(old, now);
  const alignment = firstAlignment(traces, comparison);
  store.set({
    traces,
    comparison,
    alignment,
    trace: now,
    view: boundsOf({ trace: now, traces, alignment }),
    range: null,
    selection: null,
    otherSelection: null,
    notes: store.state.notes.filter(({ trace }) => traces.includes(trace)),
    path: null,
    pointer: null,
    panel: "comparison",
  });
}

/** Makes the new one of two traces the old one. */
export function swapTraces(store: Store): void {
  const [now, old] = store.state.traces;
  show(store, old, now);
}

function reasonOf(error: unknown): string {
  if (error instanceof Error && error.constructor === Error) return error.message;
  const detail = error instanceof Error ? error.message : String(error);
  return `its trace data is damaged; the file may have been cut while it was copied (${detail})`;
}
