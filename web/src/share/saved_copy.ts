// A copy of the page that opens with what is seen now: with its view, its notes and its name.

import { BLOCK_PREFIX, COMMENT_BEGIN, DIRECTORY_ID } from "../data/format";
import { ownScript } from "../data/own_script";

const SAVED_ID = "tracebridge-saved";
/** The elements of the body that belong to the page; a browser's extension may have added others. */
const OWN = `noscript, script#${DIRECTORY_ID}, script[type="application/text"]`;

/** The fragment that a copy opens with; null where the page is no copy. */
export function savedFragment(page: Document): string | null {
  const text = page.getElementById(SAVED_ID)?.textContent;
  if (!text) return null;
  try {
    const { fragment } = JSON.parse(text) as { fragment?: unknown };
    return typeof fragment === "string" ? fragment : null;
  } catch {
    return null;
  }
}

/**
 * The page as a file, which opens with `fragment`. It is put together from what the browser read: the style, the data
 * and the script stand in it letter by letter, so that the policy, which names the script's hash, still fits.
 */
export function copyOf(page: Document, fragment: string): Blob {
  if (!ownScript) throw new Error("This browser does not tell the page its own script.");
  const policy = page.querySelector('meta[http-equiv="Content-Security-Policy"]')?.outerHTML ?? "";
  const style = page.head.querySelector("style")?.textContent ?? "";
  const parts: string[] = [
    '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n',
    policy,
    '\n<meta name="viewport" content="width=device-width, initial-scale=1">\n<title>tracebridge</title>\n',
    `<style>${style}</style>\n</head>\n<body>\n`,
    '<div id="app"><p class="opening">Opening the trace …</p></div>\n',
  ];
  for (const node of page.body.childNodes) {
    // One text for each block: all together may be longer than a text can be.
    if (node instanceof Comment && node.data.startsWith(BLOCK_PREFIX)) parts.push(COMMENT_BEGIN, node.data, "-->\n");
    else if (node instanceof Element && node.matches(OWN)) parts.push(node.outerHTML, "\n");
  }
  parts.push(savedElement(fragment));
  parts.push("<script>", ownScript, "</script>\n</body>\n</html>\n");
  return new Blob(parts, { type: "text/html" });
}

/** A page of which there is the text, as a file that opens with `fragment`. */
export function copyOfText(page: string, fragment: string): Blob {
  const end = page.lastIndexOf("</body>");
  return new Blob([page.slice(0, end), savedElement(fragment), page.slice(end)], { type: "text/html" });
}

function savedElement(fragment: string): string {
  const saved = JSON.stringify({ fragment }).replaceAll("<", "\\u003c");
  return `<script type="application/json" id="${SAVED_ID}">${saved}</script>\n`;
}
