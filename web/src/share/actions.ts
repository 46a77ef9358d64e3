// What the menu "Share" does: a link, a copy of the page, and pictures.

import type { Panel, Store } from "../store";
import { picturesOf } from "../timeline/picture";
import { toFragment } from "../ui/fragment";
import { fileStem, saveFile } from "../ui/save_file";
import { bytesText, countText } from "../ui/text";
import { pngOf, svgOf } from "./picture_file";
import { copyOf, copyOfText } from "./saved_copy";

/** Mail and chat programs cut links that are longer. */
const LONG_LINK_CHARS = 2000;

/** What was done, for people; `link` is there where the clipboard did not take it. */
export interface Outcome {
  text: string;
  link?: string;
  failed?: boolean;
}

/** The address of what is seen. */
export function linkOf(store: Store, first: Panel): string {
  const fragment = toFragment(store.state, first, store.place?.());
  return `${location.href.replace(/#.*$/, "")}${fragment ? `#${fragment}` : ""}`;
}

export async function copyLink(store: Store, first: Panel): Promise<Outcome> {
  const link = linkOf(store, first);
  const long =
    link.length > LONG_LINK_CHARS
      ? ` It has ${countText(link.length)} characters, and some programs cut so long ones; “Save copy” does not.`
      : "";
  try {
    await navigator.clipboard.writeText(link);
  } catch {
    return { text: `The browser does not let the page write to the clipboard. Copy the link from here.${long}`, link };
  }
  return { text: `Link copied: it shows this view, period and selection to who has the same file.${long}` };
}

export function saveCopy(store: Store, first: Panel): Outcome {
  const fragment = toFragment(store.state, first, store.place?.());
  const file = store.pageText === null ? copyOf(document, fragment) : copyOfText(store.pageText, fragment);
  const { name, trace, traces } = store.state;
  saveFile(`${fileStem(name || trace.index.title)}.html`, file);
  const foreign = traces.some(({ isDropped }) => isDropped)
    ? " The page that was opened beside it is not in the copy."
    : "";
  return { text: `A copy of this page with its view, notes and name is saved, ${bytesText(file.size)}.${foreign}` };
}

export async function savePicture(store: Store, kind: "png" | "svg"): Promise<Outcome> {
  const pictures = picturesOf(store);
  const file = kind === "png" ? await pngOf(pictures) : svgOf(pictures);
  const { name, trace } = store.state;
  saveFile(`${fileStem(name || trace.index.title)}.${kind}`, file);
  return { text: `A picture of the timeline is saved, ${bytesText(file.size)}.` };
}
