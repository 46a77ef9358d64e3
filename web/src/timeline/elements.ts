// The elements of the timeline's panel.

const KEYS_HINT =
  "Timeline. W and S zoom, A and D pan, arrow keys step between slices, Enter zooms to the "
  + "selection, Page Up and Page Down scroll, Home shows all, F filters the rows, question mark lists all keys.";

/** How wide the names can be made. */
export const MIN_NAMES_PX = 100;
export const MAX_NAMES_PX = 800;

/** The parts of the panel that are drawn into, filled or listened to. */
export interface Elements {
  root: HTMLElement;
  corner: HTMLElement;
  overview: HTMLElement;
  ruler: HTMLElement;
  labels: HTMLElement;
  plot: HTMLElement;
  bar: HTMLElement;
  extent: HTMLElement;
  cursor: HTMLElement;
  hover: HTMLElement;
  tip: HTMLElement;
  note: HTMLElement;
  live: HTMLElement;
  grip: HTMLElement;
}

/** The panel's elements, which are in no document yet. */
export function makeElements(): Elements {
  const make = (name: string, parent?: HTMLElement, tag = "div") => {
    const element = document.createElement(tag);
    element.className = name;
    parent?.append(element);
    return element;
  };
  const root = make("tl");
  const corner = make("tl-corner", root);
  corner.append(document.createElement("b"), document.createElement("div"), document.createElement("div"));
  const overview = make("tl-overview", root);
  overview.setAttribute("aria-hidden", "true");
  const ruler = make("tl-ruler", root);
  ruler.setAttribute("aria-hidden", "true");
  make("tl-end", root);
  const labels = make("tl-labels", root);
  labels.setAttribute("role", "group");
  labels.setAttribute("aria-label", "Rows of the timeline");
  const plot = make("tl-plot", root);
  plot.tabIndex = 0;
  plot.setAttribute("role", "application");
  plot.setAttribute("aria-label", KEYS_HINT);
  const bar = make("tl-bar", root);
  bar.tabIndex = 0;
  bar.setAttribute("role", "group");
  bar.setAttribute("aria-label", "Scroll the rows");
  const extent = make("", bar);
  const grip = make("tl-grip", root);
  grip.tabIndex = 0;
  grip.title = "Drag to change the width of the names";
  for (const [name, value] of [
    ["role", "separator"],
    ["aria-orientation", "vertical"],
    ["aria-label", "Width of the names"],
    ["aria-valuemin", String(MIN_NAMES_PX)],
    ["aria-valuemax", String(MAX_NAMES_PX)],
    ["aria-valuenow", String(MIN_NAMES_PX)],
  ])
    grip.setAttribute(name, value);
  const live = make("tl-live", root);
  live.setAttribute("aria-live", "polite");
  return {
    root,
    corner,
    overview,
    ruler,
    labels,
    plot,
    bar,
    extent,
    live,
    grip,
    cursor: make("tl-cursor", plot),
    hover: make("tl-hover", plot),
    note: make("tl-note", root),
    tip: make("tl-tip", root),
  };
}

/** Fills the box beside the pointer. */
export function showTip(tip: HTMLElement, { title, lines }: { title: string; lines: [string, string][] }): void {
  const heading = document.createElement("strong");
  heading.textContent = title || "(no name)";
  const list = document.createElement("dl");
  for (const [name, value] of lines) {
    const [term, text] = [document.createElement("dt"), document.createElement("dd")];
    term.textContent = name;
    text.textContent = value;
    list.append(term, text);
  }
  tip.replaceChildren(heading, list);
}
