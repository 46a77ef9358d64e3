// Facts, lists and small tables, as the summary shows them.

import type { ComponentChildren } from "preact";

import { countText, visibleName } from "./text";

/** Facts as names and values; those without a value are left out. */
export function Facts({ facts }: { facts: [string, string | null | undefined][] }) {
  return (
    <dl class="facts">
      {facts.map(
        ([name, value]) =>
          value && (
            <div>
              <dt>{visibleName(name)}</dt>
              <dd>{visibleName(value)}</dd>
            </div>
          ),
      )}
    </dl>
  );
}

/** A list of sentences, of which only the first are shown where they are many. */
export function List({ title, lines }: { title: string; lines: string[] }) {
  const MAX_LINES = 200;
  if (lines.length === 0) return null;
  return (
    <>
      {title && <h3>{title}</h3>}
      <ul>
        {lines.slice(0, MAX_LINES).map((line) => (
          <li>{visibleName(line)}</li>
        ))}
      </ul>
      {lines.length > MAX_LINES && <p>… and {countText(lines.length - MAX_LINES)} more.</p>}
    </>
  );
}

/** A small table. */
export function Table({ caption, head, rows }: { caption?: string; head: string[]; rows: ComponentChildren[][] }) {
  return (
    <table>
      {caption && <caption>{caption}</caption>}
      <thead>
        <tr>
          {head.map((title) => (
            <th scope="col">{title}</th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <tr>
            {row.map((cell) => (
              <td>{typeof cell === "string" ? visibleName(cell) : cell}</td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}
