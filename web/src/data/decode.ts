// Decodes the tracks of a block into typed arrays. Runs in workers, so that it knows nothing of the page.

import { type Column, ColumnReader } from "./columns";
import type { TrackInfo } from "./format";
import type { TrackColumns } from "./track_columns";
import { unpack } from "./unpack";

/** The columns of tracks that lie in one block, which is given in base64. */
export async function decodeBlock(text: string, tracks: TrackInfo[], limit: number | null): Promise<TrackColumns[]> {
  const bytes = await unpack(text, limit);
  return tracks.map((track) => decodeTrack(track, bytes));
}

/** The facts of a track that decoding needs. */
export type Decodable = Pick<TrackInfo, "kind" | "name" | "count" | "offset" | "columns">;

/** Reads the columns in the order in which they lie in the block, each into the array that its values need. */
export function decodeTrack(track: Decodable, bytes: Uint8Array): TrackColumns {
  const reader = new ColumnReader(bytes, track.offset);
  // A value has at least one byte, so that a damaged count cannot ask for more memory than the page has
  // bytes.
  if (track.count > bytes.length) throw new Error(`The track "${track.name}" ends too early: damaged data.`);
  const columns = new Map<string, Column>();
  for (const [name, encoding, factor] of track.columns) {
    const TypedArray = ARRAYS.get(name) ?? Float64Array;
    columns.set(name, reader.into(encoding, new TypedArray(track.count), factor));
  }
  const optional = <N extends ColumnName>(name: N) => columns.get(name) as ArrayOf<N> | undefined;
  const column = <N extends ColumnName>(name: N): ArrayOf<N> => {
    const found = optional(name);
    if (!found) throw new Error(`The track "${track.name}" has no column ${name}: damaged data.`);
    return found;
  };
  const ends = () => {
    const start = column("start");
    const end = column("duration");
    for (let i = 0; i < end.length; i++) end[i] += start[i];
    return { start, end };
  };
  switch (track.kind) {
    case "slices":
      return {
        spans: {
          ...ends(),
          depth: column("depth"),
          label: column("name"),
          flags: optional("flags"),
          args: optional("args"),
          thread: optional("thread"),
          cpu: optional("cpu"),
          overrun: optional("overrun"),
        },
      };
    case "calls":
      return {
        spans: {
          ...ends(),
          depth: column("depth"),
          label: column("method"),
          cpu: optional("cpu"),
          flags: optional("flags"),
        },
      };
    case "states":
      return {
        states: { ...ends(), state: column("state"), cpu: Uint16Array.from(column("cpu")), waker: optional("waker") },
      };
    case "instants":
      return { instants: { time: column("time"), label: column("name"), args: optional("args") } };
    case "counter":
      return { counter: { time: column("time"), value: column("value") } };
    case "losses":
      return { losses: { ...ends(), count: column("count") } };
    case "causes":
      return {
        causes: { ...ends(), cause: column("cause"), subject: column("subject"), follow: column("follow") },
      };
    case "arrows": {
      const from = column("from");
      const to = column("to");
      for (let i = 0; i < to.length; i++) to[i] += from[i];
      return { arrows: { from, to, fromTrack: column("from_track"), toTrack: column("to_track") } };
    }
    default:
      return {};
  }
}

/** The arrays of columns that hold no times and values. */
const INTEGER_ARRAYS = {
  depth: Uint16Array,
  flags: Uint8Array,
  name: Uint32Array,
  method: Uint32Array,
  args: Uint32Array,
  thread: Uint32Array,
  state: Uint32Array,
  waker: Uint32Array,
  cause: Uint32Array,
  subject: Uint32Array,
  follow: Uint32Array,
  from_track: Uint32Array,
  to_track: Uint32Array,
};
const ARRAYS = new Map<string, new (count: number) => Column>(Object.entries(INTEGER_ARRAYS));

type IntegerColumn = keyof typeof INTEGER_ARRAYS;
type ColumnName = IntegerColumn | "start" | "duration" | "time" | "value" | "count" | "cpu" | "overrun" | "from" | "to";
type ArrayOf<N> = N extends IntegerColumn ? InstanceType<(typeof INTEGER_ARRAYS)[N]> : Float64Array;
