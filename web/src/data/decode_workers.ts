// Decodes blocks in workers, several at a time: the page's own script, which finds no document there.

import { decodeBlock } from "./decode";
import type { TrackInfo } from "./format";
import { ownScript } from "./own_script";
import type { TrackColumns } from "./track_columns";

/** The tracks of a block; `text` gives the block in base64. */
export interface Job<T extends TrackInfo> {
  text(): string;
  tracks: T[];
}

/** What a worker is asked to decode. */
interface Question {
  text: string;
  tracks: TrackInfo[];
  limit: number | null;
}

/** The answer of a worker: the columns, or why there are none. */
type Answer = { columns: TrackColumns[] } | { error: unknown };

/** More workers than this would wait for the page's own thread, which hands out the blocks. */
const MAX_WORKERS = 4;

/** Decodes all jobs, and hands out the columns of each one's tracks. No block may have more than `limit` bytes. */
export async function decodeAll<T extends TrackInfo>(
  jobs: Job<T>[],
  limit: number | null,
  done: (tracks: T[], columns: TrackColumns[]) => void,
): Promise<void> {
  const waiting = [...jobs];
  const source = URL.createObjectURL(new Blob([ownScript ?? ""], { type: "text/javascript" }));
  const work = async () => {
    let worker = startWorker(source);
    for (let job = waiting.shift(); job; job = waiting.shift()) {
      const [text, tracks] = [job.text(), job.tracks];
      let answer = worker && (await ask(worker, text, tracks, limit));
      if (!answer) {
        // Where no worker may run, the page's own thread decodes.
        worker = null;
        answer = { columns: await decodeBlock(text, tracks, limit) };
      }
      if ("error" in answer) throw answer.error;
      done(tracks, answer.columns);
    }
    worker?.terminate();
  };
  try {
    const count = Math.min(navigator.hardwareConcurrency || 2, MAX_WORKERS, jobs.length);
    await Promise.all(Array.from({ length: count }, work));
  } finally {
    URL.revokeObjectURL(source);
  }
}

function startWorker(source: string): Worker | null {
  try {
    return new Worker(source);
  } catch {
    return null;
  }
}

/** The answer of the worker; null where it does not run. */
function ask(worker: Worker, text: string, tracks: TrackInfo[], limit: number | null): Promise<Answer | null> {
  return new Promise((resolve) => {
    worker.onmessage = ({ data }: MessageEvent<Answer>) => resolve(data);
    worker.onerror = (event) => {
      event.preventDefault();
      resolve(null);
    };
    worker.postMessage({ text, tracks: tracks.map(plain), limit } satisfies Question);
  });
}

/** The facts of a track that decoding needs. */
const plain = ({ kind, role, name, count, offset, columns }: TrackInfo) =>
  ({ kind, role, name, count, offset, columns }) as TrackInfo;

/** Answers the page's questions; called in a worker. */
export function serve(): void {
  const page = self as unknown as Worker;
  page.onmessage = async ({ data: { text, tracks, limit } }: MessageEvent<Question>) => {
    try {
      const columns = await decodeBlock(text, tracks, limit);
      page.postMessage({ columns }, [...buffersOf(columns)]);
    } catch (error) {
      page.postMessage({ error });
    }
  };
}

function buffersOf(columns: TrackColumns[]): Set<ArrayBuffer> {
  const kinds = columns.flatMap((track) => Object.values(track) as (object | undefined)[]);
  const arrays = kinds.flatMap((kind) => Object.values(kind ?? {}) as unknown[]);
  return new Set(arrays.filter((array) => ArrayBuffer.isView(array)).map((array) => array.buffer as ArrayBuffer));
}
