// The labels of the rows in view, as elements, so that they can be read aloud and reached by keyboard.

import type { RowChoice } from "../store";
import { visibleName } from "../ui/text";
import type { Layout } from "./layout";
import type { Row } from "./rows";

/** Where the rows of a picture lie. */
export type RowsInView = Pick<Layout, "rowsInView" | "inPicture" | "pinnedHeight">;

interface Label {
  row: Row;
  element: HTMLElement;
}

/** Characters of a name that a label shows at most. */
const MAX_NAME_CHARS = 200;

/** So many characters of a long name's end are always shown: packages differ there. */
const TAIL_CHARS = 10;

/** A name that is cut in its middle where it lacks room. */
function nameElement(text: string): HTMLElement {
  const name = document.createElement("span");
  name.className = "tl-name";
  const letters = Array.from(text);
  const cut = letters.length > 2 * TAIL_CHARS ? letters.length - TAIL_CHARS : letters.length;
  const parts: [string, string][] = [
    ["tl-head", letters.slice(0, cut).join("")],
    ["tl-tail", letters.slice(cut).join("")],
  ];
  for (const [part, of] of parts) {
    const span = document.createElement("span");
    span.className = part;
    span.textContent = of;
    if (of) name.append(span);
  }
  return name;
}

export class Labels {
  private shown: Label[] = [];

  constructor(
    private readonly parent: HTMLElement,
    private readonly onToggle: (row: Row) => void,
    private readonly onThread: (thread: number) => void,
    /** Pins and hides rows; null: these cannot be pinned or hidden. */
    private readonly onChoose: ((row: Row, list: "pinned" | "hidden") => void) | null,
    private readonly choice: () => RowChoice,
  ) {}

  /** Shows the labels of the rows in view; moves those that are shown already. */
  update(layout: RowsInView, scrolled: number, height: number, thread: number | null): void {
    const rows = layout.rowsInView(scrolled, height);
    const isSame = rows.length === this.shown.length && rows.every((row, n) => row === this.shown[n].row);
    if (!isSame) {
      const focused = this.shown.find(({ element }) => element.contains(document.activeElement));
      const control = focused
        ? [...focused.element.querySelectorAll("button")].indexOf(document.activeElement as HTMLButtonElement)
        : -1;
      this.shown = rows.map((row) => ({ row, element: this.make(row) }));
      this.parent.replaceChildren(...this.shown.map(({ element }) => element));
      const again = focused && this.shown.find(({ row }) => row.id === focused.row.id);
      again?.element.querySelectorAll("button")[Math.max(control, 0)]?.focus();
    }
    for (const { row, element } of this.shown) {
      // A label stays in view while any part of its row is.
      const least = row.kind === "group" ? row.height : 22;
      const y = layout.inPicture(row.y, scrolled);
      const isFixed = row.y < layout.pinnedHeight;
      const free = isFixed ? 0 : layout.pinnedHeight;
      const top = Math.max(y, Math.min(free, y + row.height - least));
      element.classList.toggle("tl-pinned", isFixed);
      element.style.transform = `translateY(${top}px)`;
      element.classList.toggle("tl-chosen", thread !== null && row.thread === thread && row.kind === "row");
    }
  }

  private make(row: Row): HTMLElement {
    const element = document.createElement("div");
    element.className = `tl-label tl-${row.kind}`;
    element.style.paddingLeft = `${6 + row.indent * 12}px`;
    element.style.height = `${Math.min(row.height, row.kind === "row" ? 40 : row.height)}px`;
    const text = visibleName(row.label.slice(0, MAX_NAME_CHARS)) || "(no name)";
    const name = nameElement(text);
    const detail = document.createElement("span");
    detail.className = "tl-detail";
    detail.textContent = visibleName(row.detail.slice(0, MAX_NAME_CHARS));
    const toggles = row.open !== null;
    if (row.kind !== "row") {
      const button = this.button(() => this.onToggle(row));
      button.setAttribute("aria-expanded", String(row.open));
      if (row.kind === "group") button.append(row.open ? "▾ " : "▸ ");
      button.append(name, detail);
      element.append(button);
    } else {
      if (toggles) {
        const button = this.button(() => this.onToggle(row));
        button.className = "tl-fold";
        button.textContent = row.open ? "▾" : "▸";
        button.setAttribute("aria-expanded", String(row.open));
        button.setAttribute("aria-label", `Details of ${text}`);
        element.append(button);
      } else {
        const space = document.createElement("span");
        space.className = "tl-fold";
        element.append(space);
      }
      const { thread } = row;
      if (thread !== null) {
        const button = this.button(() => this.onThread(thread));
        button.append(name, detail);
        element.append(button);
      } else element.append(name, detail);
    }
    const { onChoose } = this;
    if (onChoose && row.kind !== "more") element.append(this.tools(row, text, onChoose));
    element.title = row.detail ? `${text} · ${detail.textContent}` : text;
    return element;
  }

  /** The buttons that pin and hide a row; they show where the pointer or the focus is. */
  private tools(row: Row, text: string, onChoose: (row: Row, list: "pinned" | "hidden") => void): HTMLElement {
    const tools = document.createElement("span");
    tools.className = "tl-tools";
    const isPinned = this.choice().pinned.includes(row.id);
    const add = (sign: string, title: string, list: "pinned" | "hidden") => {
      const button = this.button(() => onChoose(row, list));
      button.textContent = sign;
      button.title = title;
      button.setAttribute("aria-label", `${title}: ${text}`);
      tools.append(button);
    };
    if (row.kind === "row") add(isPinned ? "⊖" : "⊕", isPinned ? "Unpin" : "Pin to the top", "pinned");
    add("✕", "Hide", "hidden");
    return tools;
  }

  private button(action: () => void): HTMLButtonElement {
    const button = document.createElement("button");
    button.type = "button";
    button.addEventListener("click", action);
    return button;
  }
}
