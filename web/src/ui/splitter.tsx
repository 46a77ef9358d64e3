// The bar between the timeline and the panel below it. It is dragged, or moved with the arrow keys.

import type { ComponentChildren } from "preact";

const STEP_PART = 0.05;
const MIN_PART = 0.1;
const MAX_PART = 0.9;

export interface SplitterProps {
  /** The timeline's part of the height, from 0 to 1. */
  part: number;
  onMove: (part: number) => void;
  onToggle: () => void;
  children: ComponentChildren;
}

export function Splitter({ part, onMove, onToggle, children }: SplitterProps) {
  const move = (to: number) => onMove(Math.min(MAX_PART, Math.max(MIN_PART, to)));
  const onKeyDown = (event: KeyboardEvent) => {
    const steps: Record<string, number> = {
      ArrowUp: part - STEP_PART,
      ArrowDown: part + STEP_PART,
      Home: MIN_PART,
      End: MAX_PART,
    };
    if (event.key in steps) move(steps[event.key]);
    else if (event.key === "Enter") onToggle();
    else return;
    event.preventDefault();
  };
  const onPointerDown = (event: PointerEvent) => {
    const bar = event.currentTarget as HTMLElement;
    const area = bar.closest(".panels")?.getBoundingClientRect();
    if (!area) return;
    bar.setPointerCapture(event.pointerId);
    bar.onpointermove = (at) => move((at.clientY - area.top) / area.height);
    bar.onpointerup = bar.onpointercancel = () => (bar.onpointermove = bar.onpointerup = bar.onpointercancel = null);
  };
  return (
    <div class="splitter">
      <div
        class="splitter-grip"
        role="separator"
        tabIndex={0}
        aria-orientation="horizontal"
        aria-label="Height of the timeline"
        aria-valuemin={100 * MIN_PART}
        aria-valuemax={100 * MAX_PART}
        aria-valuenow={Math.round(100 * part)}
        onKeyDown={onKeyDown}
        onPointerDown={onPointerDown}
        onDblClick={onToggle}
        title="Drag to change the height of the timeline"
      />
      {children}
    </div>
  );
}
