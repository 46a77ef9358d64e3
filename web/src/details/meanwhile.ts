// Who had the CPU while a thread was ready to run: of a selected state.

import type { Trace } from "../data/trace";
import type { Selection } from "../store";
import { itemsOf } from "../table/tables";

/** A thread that ran meanwhile, for how long, and where. */
export interface Runner {
  name: string;
  ns: number;
  selection: Selection | null;
}

/** Who ran on the CPU that the thread of a "Runnable" state ran on next, the longest first; else nothing. */
export function ranMeanwhile(trace: Trace, selection: Selection): Runner[] {
  if (selection.kind !== "state") return [];
  const track = trace.track(selection.track);
  const states = track?.states;
  const thread = track?.thread ?? null;
  if (thread === null || !states || selection.item >= states.start.length) return [];
  if (!trace.strings[states.state[selection.item]].startsWith("Runnable")) return [];
  const [from, to] = [states.start[selection.item], states.end[selection.item]];
  const items = itemsOf(trace, "ready", thread);
  const [name] = items.texts;
  const found = new Map<string, Runner>();
  for (const source of items.sources) {
    for (let item = 0; item < source.start.length; item++) {
      if (source.start[item] < from || source.end[item] > to) continue;
      const ran = name.text(name.of(source)(item));
      const runner = found.get(ran) ?? { name: ran, ns: 0, selection: items.select(source, item) };
      runner.ns += source.end[item] - source.start[item];
      found.set(ran, runner);
    }
  }
  return [...found.values()].sort((a, b) => b.ns - a.ns);
}
