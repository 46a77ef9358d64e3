// The names that catapult's trace viewer shows for the markers of a systrace text, by its rules: a marker's parts are
// divided by "|", the third part is the name, and what follows are arguments and a category. Ends without a begin and
// begins of asynchronous slices without an end are not shown; a slice without an end lasts until the trace's.

const MARKER = /^.*?\[\d{3,}\]\s+(?:\S+\s+)?[\d.]+:\s+(?:tracing_mark_write|0): ([BSFC]\|.*)$/;

/** How often each name is shown, of slices and of asynchronous slices, and the names of counters. */
export function catapultNames(text) {
  const names = { slices: new Map(), async: new Map(), counters: new Map() };
  const add = (kind, name) => names[kind].set(name, (names[kind].get(name) ?? 0) + 1);
  const open = new Set();
  for (const line of text.split("\n")) {
    const marker = MARKER.exec(line.replace(/\r$/, ""))?.[1];
    if (!marker) continue;
    const [kind, pid, name = "", cookie] = marker.split("|");
    if (kind === "B") add("slices", name);
    else if (kind === "C" && cookie !== undefined) add("counters", name);
    else if (kind === "S") open.add(`${pid}|${name}|${parseInt(cookie)}`);
    else if (kind === "F" && open.delete(`${pid}|${name}|${parseInt(cookie)}`)) add("async", name);
  }
  return names;
}
