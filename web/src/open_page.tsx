// Opens the traces that a page holds, and mounts the panels on them.

import { render } from "preact";

import { App } from "./app";
import { type Blocks, type Comparison, type Directory } from "./data/format";
import { held, isTooMuch } from "./data/held";
import { Trace } from "./data/trace";
import { Store } from "./store";
import { followFragment } from "./ui/follow_fragment";
import { fromFragment, placeFrom } from "./ui/fragment";
import { askToOpen } from "./ui/too_large";
import { visibleName } from "./ui/text";

/** A page that is open: its state, and what takes it away. */
export interface OpenPage {
  store: Store;
  close: () => void;
}

/**
 * Opens a page in `root`, whose first element says how far it is, with what the fragment `asked` asks for. `asking` is
 * called before somebody is asked whether a large page is to be opened.
 */
export async function openPage(
  root: HTMLElement,
  directory: Directory,
  blocks: Blocks,
  asked: string,
  asking?: () => void,
): Promise<OpenPage> {
  const opening = root.firstElementChild ?? root;
  const found = await Promise.all(
    directory.traces.map(async ({ role, index }) => ({ role, index: await Trace.readIndex(blocks, index) })),
  );
  const all = held(found.map(({ index }) => index));
  if (found[0] && isTooMuch(all)) {
    asking?.();
    await askToOpen(root, found[0].index, all);
    root.replaceChildren(opening);
  }
  const traces: Trace[] = [];
  for (const { role, index } of found) {
    traces.push(
      await Trace.open(blocks, role, index, (done, total) => {
        opening.textContent = `Opening the trace … ${done} of ${total} tracks`;
      }),
    );
  }
  if (!traces[0]) throw new Error("This page holds no trace.");
  document.title = `${visibleName(traces[0].index.title)} · tracebridge`;
  const comparison = directory.comparison === null ? null : await blocks.json<Comparison>(directory.comparison);
  const first = comparison ? "comparison" : "profile";
  const store = new Store(fromFragment(asked, { traces, comparison }, first));
  store.firstPlace = placeFrom(asked);
  const stop = followFragment(store, first);
  root.replaceChildren();
  render(<App store={store} first={first} generator={directory.generator} />, root);
  const close = () => {
    stop();
    render(null, root);
  };
  return { store, close };
}

/** The message for an error. The browser's own errors speak of details that only damaged data can cause. */
export function sentence(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  if (error instanceof Error && error.constructor === Error) return message;
  return `The trace data of this page is damaged; the file may have been cut while it was copied. (${message})`;
}
