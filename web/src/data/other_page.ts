// Reads the data out of the text of another report page. Nothing of that page runs: it is never made a document.

import { BLOCK_PREFIX, Blocks, COMMENT_BEGIN, type Directory, DIRECTORY_ID, parseDirectory } from "./format";

/** Larger files are not read: browsers make no text of them. */
const MAX_FILE_BYTES = 450_000_000;
/** No block of the page may have more bytes unpacked; the program makes them of some 4 MB. */
const MAX_BLOCK_BYTES = 512 << 20;

/** The directory and the blocks of a page in a file. Throws an Error with a sentence for people. */
export async function readOtherPage(file: File): Promise<{ directory: Directory; blocks: Blocks }> {
  if (file.size > MAX_FILE_BYTES) {
    throw new Error(`it has ${file.size} bytes, and a browser opens no more than ${MAX_FILE_BYTES} beside another`);
  }
  return parseOtherPage(await file.text());
}

/** The same of a page's text; no block of it may have more than `limit` bytes. */
export function parseOtherPage(
  text: string,
  limit: number | null = MAX_BLOCK_BYTES,
): { directory: Directory; blocks: Blocks } {
  const begin = `<script type="application/json" id="${DIRECTORY_ID}">`;
  const at = text.indexOf(begin);
  const blocks = blocksOf(text);
  if (at < 0) {
    if (blocks.length > 0) throw new Error("it ends before the directory of its data: the file was cut");
    throw new Error(
      /^\s*<!doctype html/i.test(text.slice(0, 200))
        ? "it is a page, but none that tracebridge report has written, or all of its data was cut off"
        : "it is no report page; tracebridge report makes one of a trace",
    );
  }
  const end = text.indexOf("</script>", at);
  if (end < 0) throw new Error("it ends in the middle of its data: the file was cut");
  let directory: Directory;
  try {
    directory = parseDirectory(text.slice(at + begin.length, end));
  } catch (error) {
    if (error instanceof SyntaxError) throw new Error("its directory is damaged");
    throw error;
  }
  const { traces } = directory as { traces?: unknown };
  const isDirectory =
    Array.isArray(traces)
    && traces.length > 0
    && traces.every((one: { index?: unknown } | null) => Number.isSafeInteger(one?.index));
  if (!isDirectory) throw new Error("its directory names no trace");
  return { directory, blocks: new Blocks(blocks, limit) };
}

/** Where the blocks lie in the text of a page: before the directory, or behind it. */
function blocksOf(text: string): (() => string)[] {
  const prefix = COMMENT_BEGIN + BLOCK_PREFIX;
  const blocks: (() => string)[] = [];
  for (let at = text.indexOf(prefix); at >= 0; at = text.indexOf(prefix, at)) {
    const begin = at + prefix.length;
    const end = text.indexOf("-->", begin);
    if (end < 0) throw new Error("it ends in the middle of its data: the file was cut");
    blocks.push(() => text.slice(begin, end));
    at = end;
  }
  return blocks;
}
