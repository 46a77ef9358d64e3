// The page's frame: the header, the timeline, and the panel below it.

import { useEffect, useRef } from "preact/hooks";

import type { Comparison } from "./data/format";
import type { Trace } from "./data/trace";
import type { Store } from "./store";
import { mountTimeline } from "./timeline/timeline";

export interface AppProps {
  store: Store;
  traces: Trace[];
  comparison: Comparison | null;
  generator: string;
}

export function App({ store }: AppProps) {
  const timeline = useRef<HTMLDivElement>(null);
  useEffect(() => mountTimeline(timeline.current!, store), []);
  return <main><div class="timeline" ref={timeline} /></main>;
}
