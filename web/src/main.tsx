// Opens the page's data, and mounts the panels.

import { render } from "preact";

import { App } from "./app";
import { Blocks, type Comparison, readDirectory } from "./data/format";
import { Trace } from "./data/trace";
import { Store } from "./store";

async function open(root: HTMLElement): Promise<void> {
  const directory = readDirectory(document);
  const blocks = new Blocks(document);
  const traces: Trace[] = [];
  for (const { role, index } of directory.traces) traces.push(await Trace.open(blocks, role, index));
  if (!traces[0]) throw new Error("This page holds no trace.");
  for (const trace of traces) await trace.loadAll();
  const comparison = directory.comparison === null ? null : await blocks.json<Comparison>(directory.comparison);
  document.title = `${traces[0].index.title} · tracebridge`;
  const store = new Store({
    trace: traces[0],
    panel: "profile",
    view: { from: 0, to: Math.max(traces[0].duration, 1) },
    range: null,
    selection: null,
    query: "",
    bookmarks: [],
    theme: "auto",
  });
  root.replaceChildren();
  render(<App store={store} traces={traces} comparison={comparison} generator={directory.generator} />, root);
}

const root = document.getElementById("app")!;
open(root).catch((error: unknown) => {
  root.textContent = error instanceof Error ? error.message : String(error);
  root.className = "failed";
});
