// Opens the page's data, and mounts the panels. In a worker: decodes for the page.

import { render } from "preact";

import { App } from "./app";
import { serve } from "./data/decode_workers";
import { Blocks, type Comparison, readDirectory } from "./data/format";
import { held, isTooMuch } from "./data/held";
import { Trace } from "./data/trace";
import { Store } from "./store";
import { followFragment } from "./ui/follow_fragment";
import { fromFragment, placeFrom } from "./ui/fragment";
import { savedFragment } from "./share/saved_copy";
import { watchReading } from "./ui/reading";
import { askToOpen } from "./ui/too_large";
import { visibleName } from "./ui/text";

async function open(root: HTMLElement): Promise<void> {
  const opening = root.firstElementChild ?? root;
  const directory = readDirectory(document);
  const blocks = Blocks.of(document);
  const found = await Promise.all(
    directory.traces.map(async ({ role, index }) => ({ role, index: await Trace.readIndex(blocks, index) })),
  );
  const all = held(found.map(({ index }) => index));
  if (found[0] && isTooMuch(all)) {
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
  // A copy opens with what was seen when it was made, unless a link asks for something else.
  const asked = location.hash.length > 1 ? location.hash : (savedFragment(document) ?? "");
  const store = new Store(fromFragment(asked, { traces, comparison }, first));
  store.firstPlace = placeFrom(asked);
  followFragment(store, first);
  root.replaceChildren();
  render(<App store={store} first={first} generator={directory.generator} />, root);
}

/** Opens the page, or says why it cannot be opened. */
function start(): void {
  const root = document.getElementById("app") ?? document.body;
  open(root).catch((error: unknown) => {
    const problem = document.createElement("p");
    problem.className = "failed";
    problem.setAttribute("role", "alert");
    problem.textContent = sentence(error);
    root.replaceChildren(problem);
  });
}

/** The message for an error. The browser's own errors speak of details that only damaged data can cause. */
function sentence(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  if (error instanceof Error && error.constructor === Error) return message;
  return `The trace data of this page is damaged; the file may have been cut while it was copied. (${message})`;
}

// The page's workers run this script too.
if (typeof document === "undefined") serve();
else if (document.readyState === "loading") {
  // The script stands before the data, so that it can say what the browser still reads.
  const opening = document.querySelector(".opening");
  watchReading((text) => {
    if (opening) opening.textContent = text;
  });
  addEventListener("DOMContentLoaded", start);
} else start();
