// What the measurements of the page of a recording that runs have in common.

import { readFileSync } from "node:fs";

/** The value below which a part of some sorted values lies. */
export const percentile = (sorted, part) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))];

/** Median, 95th and 99th percentile. */
export function percentiles(values) {
  const sorted = [...values].sort((a, b) => a - b);
  return [0.5, 0.95, 0.99].map((part) => (percentile(sorted, part) ?? NaN).toFixed(1)).join(" / ");
}

/** Memory that the page's process has resident, MB. */
export async function residentMemory(browser) {
  const { processInfo } = await (await browser.target().createCDPSession()).send("SystemInfo.getProcessInfo");
  const sizes = processInfo
    .filter(({ type }) => type === "renderer")
    .map(({ id }) => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${id}/status`, "utf8"))?.[1] ?? 0) / 1024);
  return Math.max(...sizes);
}

/** Has Chromium trace its frames; the function that is answered ends that, and answers frames a second and those that it
 * dropped. */
export async function countFrames(page) {
  await page.tracing.start({ categories: ["devtools.timeline.frame", "disabled-by-default-devtools.timeline.frame"] });
  return async () => {
    const text = Buffer.from((await page.tracing.stop()) ?? []).toString("utf8");
    const { traceEvents } = JSON.parse(text || '{"traceEvents":[]}');
    const drawn = traceEvents.filter(({ name }) => name === "DrawFrame").map(({ ts }) => ts);
    const dropped = traceEvents.filter(({ name }) => name === "DroppedFrame").length;
    const seconds = (Math.max(...drawn) - Math.min(...drawn)) / 1e6;
    return { fps: (drawn.length - 1) / seconds, dropped };
  };
}
