// The profile of the time window: computed again when the window moves, and no more often than it can be.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";

import type { State, Store } from "../store";
import { CallTree } from "./call_tree";
import type { FlatProfile } from "./flat";
import { FlatIndex } from "./flat_index";
import { type Grouping, grouping } from "./grouping";
import { idleMethods } from "./idle";
import { type ProfileOptions, threadChosen } from "./options";
import { type SpanSource, spanSources, type Window, windowOf } from "./span_source";

/** A profile that takes longer than this is computed only when the window has come to rest. */
const AT_ONCE_MS = 14;
const REST_MS = 120;
/** How long the page computes in the background before it looks for what the user does. */
const WORK_MS = 12;
const PAUSE_MS = 2;

export interface Profile {
  window: Window;
  sources: SpanSource[];
  rows: Grouping;
  flat: FlatProfile;
  /** The call tree; built when it is asked for. */
  tree(): CallTree;
  /** How long the computing took, ms. */
  took: number;
}

/** The chosen range, else what the timeline shows. */
export function chosenWindow({ range, view }: State): Window {
  return range ?? view;
}

/** The calls that the options choose, and the profile of the window; null while it is computed. */
export function useProfile(
  store: Store,
  options: ProfileOptions,
  isFolded: boolean,
): { sources: SpanSource[]; rows: Grouping; profile: Profile | null } {
  const cost = useRef(0);
  const window = useWindow(store, cost);
  const { trace } = store.state;
  const sources = useMemo(() => {
    const chosen = threadChosen(store.state, options.threads);
    return spanSources(trace, options.kind).filter((source) => chosen(source.thread));
  }, [trace, options.kind, options.threads]);
  const rows = useMemo(
    () => grouping(trace, options.view === "table" ? options.by : "method"),
    [trace, options.by, options.view],
  );
  const index = useMemo(() => new FlatIndex(sources, rows), [sources, rows]);
  const left = isFolded ? idleMethods(trace) : null;
  const within = windowOf(trace, window);
  const ready = useReady(index, within);
  const profile = useMemo(() => {
    if (!ready) return null;
    const began = performance.now();
    const flat = index.of(within);
    let tree: CallTree | null = null;
    const made: Profile = {
      window,
      sources,
      rows,
      flat,
      took: performance.now() - began,
      tree: () => {
        if (tree) return tree;
        const start = performance.now();
        tree = CallTree.of(sources, rows, within, left);
        cost.current = made.took += performance.now() - start;
        return tree;
      },
    };
    cost.current = made.took;
    return made;
  }, [trace, index, ready, within.from, within.to, left]);
  return { sources, rows, profile };
}

/** Whether the profile of a window can be had at once; computes in the background what it and others need. */
function useReady(index: FlatIndex, window: Window): boolean {
  const ready = index.ready(window);
  const [, draw] = useState(0);
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout>;
    const work = () => {
      const until = performance.now() + WORK_MS;
      let more = true;
      while (more && performance.now() < until) more = index.prepare(window);
      if (!ready && index.ready(window)) draw((n) => n + 1);
      else if (more) timer = setTimeout(work, PAUSE_MS);
    };
    timer = setTimeout(work, PAUSE_MS);
    return () => clearTimeout(timer);
  }, [index, ready, window.from, window.to]);
  return ready;
}

/** Follows the window of the store: at once where profiles are quick, else when it has come to rest. */
function useWindow(store: Store, cost: { current: number }): Window {
  const [window, setWindow] = useState(chosenWindow(store.state));
  const [, draw] = useState(0);
  useEffect(() => {
    let frame = 0;
    let timer = 0;
    const take = () => {
      frame = timer = 0;
      setWindow(chosenWindow(store.state));
    };
    const stop = store.subscribe((_, changed) => {
      if (changed.has("trace") || changed.has("selection")) draw((n) => n + 1);
      if (changed.has("trace")) take();
      if (!changed.has("view") && !changed.has("range")) return;
      if (cost.current < AT_ONCE_MS) {
        frame ||= requestAnimationFrame(take);
      } else {
        clearTimeout(timer);
        timer = setTimeout(take, REST_MS) as unknown as number;
      }
    });
    setWindow(chosenWindow(store.state));
    return () => {
      stop();
      cancelAnimationFrame(frame);
      clearTimeout(timer);
    };
  }, [store]);
  return window;
}
