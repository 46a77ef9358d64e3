// Saves what the page has made as a file of the user's.

/** How long the browser may need a file's address. */
const KEPT_MS = 60_000;

/** Has the browser save a file. */
export function saveFile(name: string, type: string, pieces: BlobPart[]): void {
  const address = URL.createObjectURL(new Blob(pieces, { type }));
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), KEPT_MS);
}
