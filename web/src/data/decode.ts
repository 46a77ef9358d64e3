// Decodes the tracks of a block into typed arrays. Runs in workers, so that it knows nothing of the page.

import { type Column, ColumnReader } from "./columns";
import type { TrackInfo } from "./format";
import type { TrackColumns } from "./trace";
import { unpack } from "./unpack";

/** The columns of tracks that lie in one block, which is given in base64. */
export async function decodeBlock(text: string, tracks: TrackInfo[]): Promise<TrackColumns[]> {
  const bytes = await unpack(text);
  return tracks.map((track) => decodeTrack(track, bytes));
}

/** Reads the columns in the order in which they lie in the block, each into the array that its values need. */
function decodeTrack(track: TrackInfo, bytes: Uint8Array): TrackColumns {
  const reader = new ColumnReader(bytes, track.offset);
  // A value has at least one byte, so that a damaged count cannot ask for more memory than the page has
  // bytes.
  if (track.count > bytes.length) throw new Error(`The track "${track.name}" ends too early: damaged data.`);
  const columns = new Map<string, Column>();
  for (const [name, encoding, factor] of track.columns) {
    const Array = ARRAYS[name] ?? Float64Array;
    columns.set(name, reader.into(encoding, new Array(track.count), factor));
  }
  const optional = <T extends Column>(name: string) => columns.get(name) as T | undefined;
  const column = <T extends Column>(name: string): T => {
    const found = optional<T>(name);
    if (!found) throw new Error(`The track "${track.name}" has no column ${name}: damaged data.`);
    return found;
  };
  const ends = () => {
    const start = column<Float64Array>("start");
    const end = column<Float64Array>("duration");
    for (let i = 0; i < end.length; i++) end[i] += start[i];
    return { start, end };
  };
  switch (track.kind) {
    case "slices":
      return { spans: { ...ends(), depth: column("depth"), label: column("name"), flags: optional("flags"),
        args: optional("args"), thread: optional("thread") } };
    case "calls":
      return { spans: { ...ends(), depth: column("depth"), label: column("method"), cpu: optional("cpu"),
        flags: optional("flags") } };
    case "states":
      return { states: { ...ends(), state: column("state"), cpu: Uint16Array.from(column("cpu")),
        waker: optional("waker") } };
    case "instants":
      return { instants: { time: column("time"), label: column("name"), args: optional("args") } };
    case "counter":
      return { counter: { time: column("time"), value: column("value") } };
    case "losses":
      return { losses: { ...ends(), count: column("count") } };
    case "arrows": {
      const from = column<Float64Array>("from");
      const to = column<Float64Array>("to");
      for (let i = 0; i < to.length; i++) to[i] += from[i];
      return { arrows: { from, to, fromTrack: column("from_track"), toTrack: column("to_track") } };
    }
    default:
      return {};
  }
}

/** The arrays of columns that hold no times and values. */
const ARRAYS: Record<string, { new (count: number): Column }> = {
  depth: Uint16Array, flags: Uint8Array, name: Uint32Array, method: Uint32Array, args: Uint32Array,
  thread: Uint32Array, state: Uint32Array, waker: Uint32Array, from_track: Uint32Array, to_track: Uint32Array,
};
