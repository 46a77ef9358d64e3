// The page's own script, letter by letter as it stands in the file: its workers run it, and copies of the page hold it.

/** Known only while the script begins to run; null in a worker. */
export const ownScript = typeof document === "undefined" ? null : (document.currentScript?.textContent ?? null);
