// What the page says while the browser still reads it: of a large one how to make a smaller one.

/** A page with so much packed data takes more than a second to open. */
const LARGE_BYTES = 40e6;

/** Watches how much of the page has been read, until the browser has read it all; `say` shows a sentence. */
export function watchReading(say: (text: string) => void): void {
  let bytes = 0;
  let last: ChildNode | null = null;
  const look = () => {
    if (document.readyState !== "loading") return;
    let node: ChildNode | null = last ? last.nextSibling : document.body.firstChild;
    for (; node; node = node.nextSibling) {
      // The last one may still grow.
      if (!node.nextSibling) break;
      if (node instanceof Comment) bytes += node.length;
      last = node;
    }
    if (bytes > LARGE_BYTES) {
      say(
        `This page is large: ${Math.round(bytes / 1e6)} MB are read so far. A part of the trace opens at once: `
          + "tracebridge report FILE --from 2s --to 4s -o part.html",
      );
    }
    requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
}
