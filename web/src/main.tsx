// Opens the page's data, and mounts the panels. In a worker: decodes for the page.

import { serve } from "./data/decode_workers";
import { Blocks, readDirectory } from "./data/format";
import { openPage, sentence } from "./open_page";
import { savedFragment } from "./share/saved_copy";
import { watchReading } from "./ui/reading";

/** Opens the page, or says why it cannot be opened. */
function start(): void {
  const root = document.getElementById("app") ?? document.body;
  // A copy opens with what was seen when it was made, unless a link asks for something else.
  const asked = () => (location.hash.length > 1 ? location.hash : (savedFragment(document) ?? ""));
  const open = async () => openPage(root, readDirectory(document), Blocks.of(document), asked());
  open().catch((error: unknown) => {
    const problem = document.createElement("p");
    problem.className = "failed";
    problem.setAttribute("role", "alert");
    problem.textContent = sentence(error);
    root.replaceChildren(problem);
  });
}

// The page's workers run this script too.
if (typeof document === "undefined") serve();
else if (document.readyState === "loading") {
  // The script stands before the data, so that it can say what the browser still reads.
  const opening = document.querySelector(".opening");
  watchReading((text) => {
    if (opening) opening.textContent = text;
  });
  addEventListener("DOMContentLoaded", start);
} else start();
