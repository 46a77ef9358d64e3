// The timelines of the page: one, or the new and the old one under each other.

import { useEffect, useMemo, useRef } from "preact/hooks";

import type { Store } from "../store";
import { mountTimeline } from "../timeline/timeline";
import { formatDuration } from "../timeline/time";
import { MiddleCut } from "../ui/middle_cut";
import { mounted } from "../ui/mounted";
import { visibleName } from "../ui/text";
import { useStore } from "../ui/use_store";
import { scrollTogether } from "./scroll_together";
import { makeSideStores } from "./side_stores";

/** The names of the timelines in tests. */
const NAMES = ["timeline", "other"];

export function Timelines({ store }: { store: Store }) {
  const { traces } = useStore(store, "traces");
  return traces.length > 1 ? <Pair key={traces} store={store} /> : <Single store={store} />;
}

function Single({ store }: { store: Store }) {
  const timeline = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const shown = mountTimeline(mounted(timeline), store);
    return () => shown.unmount();
  }, []);
  return <section class="timeline" aria-label="Timeline" ref={timeline} />;
}

function Pair({ store }: { store: Store }) {
  const { traces, trace, alignment } = useStore(store, "trace", "alignment");
  const root = useRef<HTMLDivElement>(null);
  const sides = useMemo(() => makeSideStores(store, traces), [traces]);
  useEffect(() => {
    const places = [...mounted(root).querySelectorAll<HTMLElement>(".timeline")];
    const shown = places.map((place, n) => mountTimeline(place, sides.stores[n], store, NAMES[n]));
    const apart = scrollTogether(shown);
    return () => {
      apart();
      for (const one of shown) one.unmount();
      sides.end();
    };
  }, [sides]);
  return (
    <div class="timelines" ref={root}>
      {traces.map((one) => (
        <div class={`side ${one === trace ? "shown" : ""}`}>
          <p class="side-name">
            <b>{one.role}</b>
            <MiddleCut text={visibleName(one.index.title)} />
            <span class="muted">{formatDuration(one.duration)}</span>
            {one === traces[0] && alignment && <span class="muted aligned">aligned at {alignment.what}</span>}
          </p>
          <section class="timeline" aria-label={`Timeline, ${one.role}`} />
        </div>
      ))}
    </div>
  );
}
