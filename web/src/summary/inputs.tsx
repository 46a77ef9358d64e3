// The files that the trace was made of: format, size, clock, and how well they were aligned.

import type { TraceIndex } from "../data/format";
import { formatDuration } from "../timeline/time";
import { Facts } from "../ui/facts";
import { bytesText, countText, visibleName } from "../ui/text";

export function Inputs({ index }: { index: TraceIndex }) {
  const inputs = index.summary.inputs ?? [];
  return (
    <>
      {inputs.map((input) => (
        <Input input={input} />
      ))}
    </>
  );
}

/** A time of day with its zone: the program writes them all in UTC. */
function withZone(value: string): string {
  return /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$/.test(value) ? `${value} UTC` : value;
}

function Input({ input }: { input: Record<string, unknown> }) {
  const text = (name: string) => {
    const value = input[name] ?? null;
    return value === null || typeof value === "string" ? value : JSON.stringify(value);
  };
  const number = (name: string) => {
    const value = input[name];
    return typeof value === "number" ? value : null;
  };
  const count = (name: string) => {
    const value = number(name);
    return value ? countText(value) : null;
  };
  const path = text("name") ?? text("file") ?? "";
  const size = number("size") ?? number("bytes");
  const offset = number("offset_ns");
  const verdict = text("verdict");
  const [median, p99] = [number("residual_median_ns"), number("residual_p99_ns")];
  const why = text("why");
  const explain = Array.isArray(input.explain) ? input.explain.map(String) : [];
  const header = Array.isArray(input.header) ? (input.header as unknown[]).filter(Array.isArray) : [];
  return (
    <section>
      <h2 title={visibleName(path)}>{visibleName(path.split("/").pop() || path || "Input")}</h2>
      <Facts
        facts={[
          ["Path", path],
          ["Format", text("format")],
          ["Size", size === null ? null : `${bytesText(size)} (${countText(size)} bytes)`],
          ["Clock", text("clock") && `${text("clock")}${why ? `: ${why}` : ""}`],
          ["Alignment", verdict],
          ["Offset", offset === null ? null : offset === 0 ? "0 ns" : `${countText(offset)} ns`],
          [
            "Residual",
            median === null
              ? null
              : `median ${formatDuration(median)}, 99 % within ${p99 === null ? "?" : formatDuration(p99)}`,
          ],
          ["Kernel events", count("events")],
          ["Duplicates left out", count("duplicates")],
          ["Method enters and exits", count("method_edges")],
        ]}
      />
      {header.length > 0 && (
        <>
          <h3>Header</h3>
          <Facts
            facts={header.map((pair) => [String((pair as unknown[])[0]), withZone(String((pair as unknown[])[1]))])}
          />
        </>
      )}
      {explain.length > 0 && (
        <details>
          <summary>How the clock was found</summary>
          <ul>
            {explain.map((line) => (
              <li>{visibleName(line)}</li>
            ))}
          </ul>
        </details>
      )}
    </section>
  );
}
