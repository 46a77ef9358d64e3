// The figures of a profile, computed in the plainest way from a fixture's columns: for each call of a row, its
// ancestors are looked at one by one. It shares no code with the page.

/** The calls of a fixture's trace: `{ thread, start, end, cpu, name, parent }`, where `parent` is another call. */
export function callsOf(trace, kind = "calls") {
  const calls = [];
  for (const track of trace.tracks) {
    const threads = track.thread !== null && track.thread !== undefined;
    if (track.kind !== kind || !threads || (kind === "slices" && !["atrace", "own"].includes(track.role))) continue;
    const { start, duration, depth, method, name, cpu } = track.columns;
    const open = [];
    for (let i = 0; i < start.length; i++) {
      open.length = depth[i];
      const call = {
        thread: track.thread,
        start: start[i],
        end: start[i] + duration[i],
        cpu: cpu?.[i] ?? 0,
        key: kind === "calls" ? method[i] : name[i],
        parent: open[depth[i] - 1] ?? null,
      };
      open.push(call);
      calls.push(call);
    }
  }
  return calls;
}

/** By row: calls, recursive calls, inclusive and exclusive time inside of the window. `rowOf` names a call's row. */
export function profileOf(calls, rowOf, from = 0, to = Infinity) {
  const rows = new Map();
  const part = ({ start, end }) => Math.max(0, Math.min(end, to) - Math.max(start, from));
  const inside = ({ start, end }) => start < to && (end > from || start >= from);
  const get = (name) => {
    if (!rows.has(name)) rows.set(name, { calls: 0, recursive: 0, inclusive: 0, exclusive: 0 });
    return rows.get(name);
  };
  for (const call of calls.filter(inside)) {
    const row = get(rowOf(call));
    let recursive = false;
    for (let above = call.parent; above; above = above.parent) if (rowOf(above) === rowOf(call)) recursive = true;
    row[recursive ? "recursive" : "calls"]++;
    if (!recursive) row.inclusive += part(call);
    row.exclusive += part(call);
    if (call.parent) get(rowOf(call.parent)).exclusive -= part(call);
  }
  return rows;
}
