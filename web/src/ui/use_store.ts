// The store's state in components.

import { useEffect, useState } from "preact/hooks";

import type { State, Store } from "../store";

/** The store's state; the component is drawn again when one of `keys` changes. */
export function useStore(store: Store, ...keys: (keyof State)[]): State {
  const [, draw] = useState(0);
  useEffect(
    () =>
      store.subscribe((_, changed) => {
        if (keys.some((key) => changed.has(key))) draw((n) => n + 1);
      }),
    [store],
  );
  return store.state;
}
