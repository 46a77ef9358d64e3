// What the page says instead of opening a trace that would take too much memory: how much that is, and what to cut.

import { render } from "preact";

import type { TraceIndex } from "../data/format";
import { fittingPart, type Held } from "../data/held";
import { formatDuration } from "../timeline/time";
import { countText, visibleName } from "./text";

/** Says how much the page holds; the promise is kept when the user wants to open it all the same. */
export function askToOpen(root: HTMLElement, index: TraceIndex, held: Held): Promise<void> {
  return new Promise((open) => {
    root.replaceChildren();
    const go = () => {
      render(null, root);
      open();
    };
    render(<TooLarge index={index} held={held} onOpen={go} />, root);
  });
}

function TooLarge({ index, held, onOpen }: { index: TraceIndex; held: Held; onOpen: () => void }) {
  const { calls, events, bytes, largest } = held;
  const files = (index.summary.inputs ?? []).map(({ name, file }) => {
    const path = name ?? file;
    return typeof path === "string" ? (path.split("/").pop() ?? "") : "";
  });
  const [from, to] = suggestion(index, fittingPart(held));
  const command = `tracebridge report ${files.filter(Boolean).join(" ") || "FILE"} --from ${from}s --to ${to}s -o part.html`;
  const items = largest.reduce((sum, { items }) => sum + items, 0);
  return (
    <main class="too-large">
      <h1>{visibleName(index.title)}</h1>
      <p role="alert">
        This page holds {countText(calls)} method calls and {countText(events)} other events in{" "}
        {formatDuration(index.duration_ns)}. To show all of it takes {(bytes / 1e9).toFixed(1)} GB of memory and many
        seconds.
      </p>
      <h2>A part of it opens at once</h2>
      <pre>
        <code>{visibleName(command)}</code>
      </pre>
      <p>
        makes a page of the part around the {index.launches.length > 0 ? "launch" : "middle"}; other times, counted from
        the begin, make others.
      </p>
      {items > 0 && (
        <>
          <h2>Threads with most of it</h2>
          <ul>
            {largest
              .filter((thread) => thread.items > 0)
              .map((thread) => (
                <li>
                  {visibleName(thread.name)}: {countText(thread.items)}
                </li>
              ))}
          </ul>
        </>
      )}
      <button type="button" onClick={onOpen}>
        Open all of it
      </button>
    </main>
  );
}

/** A period that fits, in seconds: from a little before the first launch on, else in the middle of the trace. */
function suggestion({ duration_ns: duration, launches, window }: TraceIndex, part: number): [string, string] {
  const length = duration * part;
  const launch = launches.at(0);
  const begin = launch ? launch.begin_ns - length / 20 : (duration - length) / 2;
  const from = Math.max(0, Math.min(begin, duration - length));
  const base = window?.from_ns ?? 0;
  const text = (ns: number) => ((base + ns) / 1e9).toFixed(3);
  return [text(from), text(from + length)];
}
