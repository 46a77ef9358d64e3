// The timeline's keys.

import type { TimelineControl } from "./control";
import type { Navigator } from "./navigate";

/** The action of each key, for the page's help. */
export const KEYS: [string, string][] = [
  ["W, S (or +, -)", "zoom in and out"],
  ["A, D", "pan to earlier and later times"],
  ["Wheel, Page Up, Page Down", "scroll the rows"],
  ["Ctrl + wheel, pinch", "zoom at the pointer"],
  ["Shift + wheel, drag", "pan; two fingers do both"],
  ["Long press", "on a touch screen: says what lies there, without selecting it"],
  ["Shift + drag", "measure and choose a period; the tables follow it"],
  ["Alt + drag", "zoom into a period"],
  ["Home", "show the whole trace"],
  ["F", "filter the rows by their names"],
  ["← →", "select the previous or next item of the same row"],
  ["Shift + ← →", "select the previous or next item with the same name"],
  ["↑ ↓", "select the parent or the first child"],
  ["[ ]", "select in the row above or below"],
  ["Enter", "zoom to the selection"],
  ["P", "choose the selection's period"],
  ["M", "pin a note to the selection, or to the moment under the pointer"],
  ["B", "pin a note with a number there, or remove it"],
  ["R", "show more arrows of wake-ups, binder calls and flows: 20, 200, 1,500 of the selection"],
  ["Escape", "drop the chosen period, then the selection"],
];

/** How far a key pans, and how far it scrolls, as a part of what is in view. */
const PAN_STEP_PART = 0.12;
const SCROLL_STEP_PART = 0.8;
/** A key makes the period in view this much shorter or longer. */
const ZOOM_STEP_FACTOR = 0.75;

/** Does what a pressed key asks for; true where the key is the timeline's. */
export function handleKey(timeline: TimelineControl, navigator: Navigator, event: KeyboardEvent): boolean {
  if (event.ctrlKey || event.metaKey || event.altKey) return false;
  const span = timeline.view.to - timeline.view.from;
  switch (event.key.length === 1 ? event.key.toLowerCase() : event.key) {
    case "w":
    case "+":
    case "=":
      timeline.zoom(ZOOM_STEP_FACTOR);
      break;
    case "s":
    case "-":
      timeline.zoom(1 / ZOOM_STEP_FACTOR);
      break;
    case "a":
      timeline.pan(-span * PAN_STEP_PART);
      break;
    case "d":
      timeline.pan(span * PAN_STEP_PART);
      break;
    case "Home":
      timeline.fit();
      break;
    case "ArrowLeft":
      navigator.beside(-1, event.shiftKey);
      break;
    case "ArrowRight":
      navigator.beside(1, event.shiftKey);
      break;
    case "ArrowUp":
      navigator.vertical(-1);
      break;
    case "ArrowDown":
      navigator.vertical(1);
      break;
    case "[":
      navigator.otherRow(-1);
      break;
    case "]":
      navigator.otherRow(1);
      break;
    case "PageUp":
      timeline.scrollBy(-timeline.bodyHeight * SCROLL_STEP_PART);
      break;
    case "PageDown":
      timeline.scrollBy(timeline.bodyHeight * SCROLL_STEP_PART);
      break;
    case "Enter":
      timeline.zoomToSelection();
      break;
    case "p":
      timeline.rangeOfSelection();
      break;
    case "m":
      timeline.writeNote();
      break;
    case "b":
      timeline.toggleNumber();
      break;
    case "r":
      timeline.toggleArrows();
      break;
    case "Escape":
      timeline.drop();
      break;
    default:
      return false;
  }
  return true;
}
