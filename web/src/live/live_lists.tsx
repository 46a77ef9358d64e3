// What a recording that runs tells beside its picture: the last seconds in numbers, launches, markers and files.

import type { ComponentChildren } from "preact";

import { formatDuration } from "../timeline/time";
import { counted, countText, percentText, visibleName } from "../ui/text";
import type { LiveLaunch, LiveMark, Numbers } from "./messages";
import type { LiveFile } from "./session";

const UNKNOWN = "–";
const percent = (value: number | null) => (value === null ? UNKNOWN : `${value.toFixed(1)} %`);
const count = (value: number | null) => (value === null ? UNKNOWN : countText(value));

/** The figures of the last seconds. */
export function Figures({ numbers }: { numbers: Numbers | null }) {
  const { frames = null, janky = null, p95_ms: p95 = null, lost = null } = numbers ?? {};
  // The deadlines of frames are in the recording, or nobody knows which were late.
  const share =
    janky !== null && frames
      ? `${countText(janky)} · ${percentText(janky, frames)} %`
      : janky === null && frames
        ? "no deadline"
        : count(janky);
  const figures: [name: string, value: string, meaning: string][] = [
    ["Frames", count(frames), "Frames that the app's main thread and RenderThread did"],
    ["Janky", share, "Frames that ended after their deadline"],
    ["Frame p95", p95 === null ? UNKNOWN : `${p95.toFixed(1)} ms`, "95 % of the frames took no longer"],
    ["CPU of the app", percent(numbers?.app_cpu_percent ?? null), "The time that its threads ran, of one CPU"],
    [
      "Ready, no CPU",
      percent(numbers?.runnable_percent ?? null),
      "Of the time that the app's threads ran or were ready to, the part without a CPU",
    ],
    ["Lost", lost === null ? UNKNOWN : counted(lost, "event"), "Events that the device could not keep"],
    ["Events", numbers?.events_per_s == null ? UNKNOWN : `${countText(numbers.events_per_s)}/s`, "Events recorded"],
  ];
  return (
    <section aria-label={`The last ${numbers?.window_s ?? 10} seconds`}>
      <dl class="live-figures">
        {figures.map(([name, value, meaning]) => (
          <div title={meaning}>
            <dt>{name}</dt>
            <dd class={name === "Lost" && lost ? "live-lost" : undefined}>{value}</dd>
          </div>
        ))}
      </dl>
    </section>
  );
}

const momentText = (ns: number) => `${(ns / 1e9).toFixed(1)} s`;

export function Lists({ launches, marks, files }: { launches: LiveLaunch[]; marks: LiveMark[]; files: LiveFile[] }) {
  return (
    <aside class="live-side" aria-label="Launches, markers and files">
      <List title="Launches" empty="None so far." count={launches.length}>
        {launches.map(({ package: name, type, begin_ns, ttid_ns, ttfd_ns }) => (
          <li>
            <b>{visibleName(name) || "(not named)"}</b>
            <span class="muted">
              {[
                type && visibleName(type),
                `at ${momentText(begin_ns)}`,
                ttid_ns !== null && `TTID ${formatDuration(ttid_ns)}`,
                ttfd_ns !== null && `TTFD ${formatDuration(ttfd_ns)}`,
              ]
                .filter(Boolean)
                .join(" · ")}
            </span>
          </li>
        ))}
      </List>
      <List title="Markers" empty="None so far." count={marks.length}>
        {marks.map(({ name, at_ns }) => (
          <li>
            <b>{visibleName(name) || "(no name)"}</b> <span class="muted">at {momentText(at_ns)}</span>
          </li>
        ))}
      </List>
      <List title="Files" empty="None so far." count={files.length}>
        {files.map(({ path, text }) => (
          <li>
            <b>{visibleName(path)}</b> {text && <span class="muted">{visibleName(text)}</span>}
          </li>
        ))}
      </List>
    </aside>
  );
}

function List({
  title,
  empty,
  count,
  children,
}: {
  title: string;
  empty: string;
  count: number;
  children: ComponentChildren;
}) {
  return (
    <section>
      <h2>{title}</h2>
      {count === 0 ? (
        <p class="muted">{empty}</p>
      ) : (
        <div role="log" aria-label={title}>
          <ul>{children}</ul>
        </div>
      )}
    </section>
  );
}
