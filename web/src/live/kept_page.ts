// What is kept as a report page of its own, opened above the rolling picture while that is stopped.

import { parseOtherPage } from "../data/other_page";
import { type OpenPage, openPage } from "../open_page";
import type { Range } from "../store";

/** Fetches what is kept, and opens it in `root`. `start` is the session's start on the recording's clock, `seen` what the
 * picture shows, from there on. */
export async function openKept(
  root: HTMLElement,
  start: string | null,
  seen: Range,
  theme: string,
  signal: AbortSignal,
  asking: () => void,
): Promise<OpenPage> {
  const answer = await fetch("kept", { signal }).catch(() => {
    throw new Error("tracebridge does not answer");
  });
  const text = await answer.text();
  if (!answer.ok) throw new Error(text.slice(0, 300).trim() || `tracebridge answered ${answer.status}`);
  const { directory, blocks } = parseOtherPage(text, null);
  const opened = await openPage(root, directory, blocks, `theme=${theme}`, asking);
  const { store } = opened;
  store.pageText = text;
  const { index, duration } = store.state.trace;
  // Without a start both end at the same moment.
  const offset = start === null ? duration - seen.to : Number(BigInt(start) - BigInt(index.start_ns));
  const to = Math.min(seen.to + offset, duration);
  const from = Math.max(0, seen.from + offset);
  if (from < to) store.set({ view: { from, to } });
  return opened;
}
