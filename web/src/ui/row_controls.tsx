// Which rows the timeline shows: a filter by name, their order, and the way back to those that are hidden.

import type { RefObject } from "preact";

import { ALL_ROWS, type RowChoice, type Store } from "../store";
import { counted } from "./text";
import { useStore } from "./use_store";

const SORTS: [RowChoice["sort"], string][] = [
  ["activity", "launched, then busiest"],
  ["name", "name"],
  ["pid", "pid"],
  ["time", "first event"],
];

export function RowControls({ store, field }: { store: Store; field: RefObject<HTMLInputElement> }) {
  const { rows } = useStore(store, "rows");
  const set = (change: Partial<RowChoice>) => store.set({ rows: { ...rows, ...change } });
  return (
    <div class="row-controls" role="group" aria-label="Rows of the timeline">
      <label class="field">
        <span>Timeline rows</span>
        <input
          ref={field}
          type="search"
          value={rows.filter}
          placeholder="filter by name ( f )"
          onInput={(e) => set({ filter: e.currentTarget.value })}
          onKeyDown={(e) => {
            if (e.key === "Escape") set({ filter: "" });
          }}
        />
      </label>
      <label class="field">
        <span>sorted by</span>
        <select value={rows.sort} onChange={(e) => set({ sort: e.currentTarget.value as RowChoice["sort"] })}>
          {SORTS.map(([sort, text]) => (
            <option value={sort}>{text}</option>
          ))}
        </select>
      </label>
      {rows.hidden.length > 0 && (
        <button type="button" onClick={() => set({ hidden: ALL_ROWS.hidden })}>
          Show {counted(rows.hidden.length, "hidden row")}
        </button>
      )}
    </div>
  );
}
