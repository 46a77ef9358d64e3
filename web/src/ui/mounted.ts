// The elements of mounted components.

import type { RefObject } from "preact";

/** The element of `ref`, for effects and event handlers: they run while the component is mounted. */
export function mounted<T>(ref: RefObject<T>): T {
  if (ref.current === null) throw new Error("The component is not mounted.");
  return ref.current;
}
