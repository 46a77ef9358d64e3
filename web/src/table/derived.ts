// Tables whose items are no track's: launches, and who ran on the CPU that a ready thread waited for.

import { hasSpans, hasStates, type Trace } from "../data/trace";
import { begin, type FigureColumn, type Items, type ItemSource, type TextColumn } from "./items";

export function launchItems(trace: Trace): Items {
  const { launches } = trace.index;
  const source: ItemSource = {
    base: 0,
    start: Float64Array.from(launches, (launch) => launch.begin_ns),
    end: Float64Array.from(launches, (launch) => launch.end_ns),
    thread: null,
    process: null,
  };
  const text = (id: string, title: string, meaning: string, of: (at: number) => string): TextColumn => ({
    kind: "text",
    id,
    title,
    meaning,
    size: launches.length,
    text: of,
    of: () => (item) => item,
  });
  const time = (id: string, title: string, meaning: string, of: (at: number) => number | null): FigureColumn => ({
    kind: "figure",
    id,
    title,
    meaning,
    unit: "time",
    of: () => (item) => of(item) ?? NaN,
  });
  const whole = (at: number) => (launches[at].cut ? null : launches[at].end_ns - launches[at].begin_ns);
  return {
    sources: launches.length > 0 ? [source] : [],
    count: launches.length,
    texts: [
      text("name", "App", "The package", (at) => launches[at].package),
      text("type", "Type", "cold, warm or hot", (at) => launches[at].type ?? ""),
    ],
    figures: [
      time("duration", "Total", "How long Android says that the launch took", whole),
      time("ttid", "TTID", "Time to initial display", (at) => launches[at].ttid_ns),
      time("ttfd", "TTFD", "Time to full display", (at) => launches[at].ttfd_ns),
      begin,
    ],
    threadOf: () => (item) => launches[item].thread,
    select: (_, item) => ({ kind: "launch", launch: item }),
  };
}

/**
 * Who had the CPU that `thread` ran on next, while it was ready to run and did not: what kept it from running. One
 * item for each other thread in each such wait.
 */
export function readyItems(trace: Trace, thread: number): Items {
  const found: { start: number; end: number; runner: number; cpu: number; track: number; item: number }[] = [];
  const running = new Map(trace.tracks.filter(hasSpans).flatMap((t) => (t.role === "running" ? [[t.cpu, t]] : [])));
  const own = trace.tracks.find((track) => track.thread === thread && hasStates(track));
  if (own && hasStates(own)) {
    const { start, end, state, cpu } = own.states;
    const at = new Map([...running.keys()].map((cpu) => [cpu, 0]));
    for (let i = 0; i + 1 < start.length; i++) {
      if (!trace.strings[state[i]].startsWith("Runnable") || !cpu[i + 1]) continue;
      const number = cpu[i + 1] - 1;
      const track = running.get(number);
      if (!track) continue;
      const { spans } = track;
      let item = at.get(number) ?? 0;
      while (item < spans.start.length && spans.end[item] <= start[i]) item++;
      at.set(number, item);
      for (; item < spans.start.length && spans.start[item] < end[i]; item++) {
        const runner = spans.thread?.[item] ?? 0;
        if (runner === thread + 1) continue;
        const [from, to] = [Math.max(spans.start[item], start[i]), Math.min(spans.end[item], end[i])];
        if (from < to) found.push({ start: from, end: to, runner, cpu: number, track: track.id, item });
      }
    }
  }
  const { threads } = trace;
  const { processes } = trace.index;
  const source: ItemSource = {
    base: 0,
    start: Float64Array.from(found, ({ start }) => start),
    end: Float64Array.from(found, ({ end }) => end),
    thread: null,
    process: null,
  };
  const text = (id: string, title: string, meaning: string, of: (at: number) => string): TextColumn => ({
    kind: "text",
    id,
    title,
    meaning,
    size: found.length,
    text: of,
    of: () => (item) => item,
  });
  const processOf = (at: number) => {
    const { runner } = found[at];
    const process = runner ? threads[runner - 1].process : null;
    return process === null ? "" : `${processes[process].name} (${processes[process].pid})`;
  };
  return {
    sources: found.length > 0 ? [source] : [],
    count: found.length,
    texts: [
      text("name", "Ran meanwhile", "Who had the CPU", (at) =>
        found[at].runner ? trace.threadName(found[at].runner - 1) : "unknown thread",
      ),
      text("process", "Process", "The process of the thread that ran", processOf),
      text("cpu", "CPU", "The CPU that the ready thread ran on next", (at) => `CPU ${found[at].cpu}`),
    ],
    figures: [
      {
        kind: "figure",
        id: "duration",
        title: "Duration",
        meaning: "How long it ran while the other thread was ready",
        unit: "time",
        of:
          ({ start, end }, { from, to }) =>
          (item) =>
            Math.min(end[item], to) - Math.max(start[item], from),
      },
      begin,
    ],
    threadOf: null,
    select: (_, item) => ({ kind: "span", track: found[item].track, item: found[item].item }),
  };
}
