// Hands what the page has made to the browser, which keeps it as a file of the user's.

/** How long the browser may take to begin with the file. */
const KEPT_MS = 60_000;
const MAX_STEM_CHARS = 80;

export function saveFile(name: string, file: Blob): void {
  const address = URL.createObjectURL(file);
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), KEPT_MS);
}

/** A file's name, without its ending, from a text of any letters. */
export function fileStem(text: string): string {
  const plain = text
    .replace(/\.html?$/i, "")
    .replace(/[^\p{L}\p{N}._+-]+/gu, "-")
    .replace(/^[-.]+|[-.]+$/g, "");
  return Array.from(plain).slice(0, MAX_STEM_CHARS).join("") || "trace";
}
