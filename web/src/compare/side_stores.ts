// The stores of two timelines under each other. Each tells its timeline what it shows, and the page's store what its
// timeline was asked to show: both have one view, each in its own trace's times.

import type { Trace } from "../data/trace";
import { parseSelection, selectionText } from "../ui/fragment";
import { ALL_ROWS, type Range, type Selection, type State, Store } from "../store";
import { offsetTo, shifted } from "./alignment";

/** A store for each trace of the page, and the function that ends their following. */
export function makeSideStores(main: Store, traces: readonly Trace[]): { stores: Store[]; end: () => void } {
  const sides = traces.map((trace) => new Side(main, trace));
  const stop = main.subscribe(() => {
    for (const side of sides) side.follow();
  });
  return { stores: sides.map(({ store }) => store), end: stop };
}

class Side {
  readonly store: Store;
  /** What the page's store last wanted this side to be. */
  private wanted: State;

  constructor(
    private readonly main: Store,
    private readonly trace: Trace,
  ) {
    this.wanted = this.sideOf(null);
    this.store = new Store(this.wanted);
    this.store.subscribe((state) => this.tell(state));
  }

  /** Takes over what the page's store says. */
  follow(): void {
    this.wanted = this.sideOf(this.store.state);
    this.store.set(this.wanted);
  }

  /** The state of this side; what `before` has already stays the same object. */
  private sideOf(before: State | null): State {
    const { state } = this.main;
    if (state.trace === this.trace) return state;
    const by = offsetTo(state, this.trace);
    const range = state.range && shifted(state.range, by);
    const { sort, filter } = state.rows;
    const own = before?.rows ?? ALL_ROWS;
    const rows = own.sort === sort && own.filter === filter ? own : { ...own, sort, filter };
    return {
      ...state,
      trace: this.trace,
      view: sameRange(before?.view ?? null, shifted(state.view, by)),
      range: sameRange(before?.range ?? null, range),
      selection: state.otherSelection ?? this.counterpart(state, before?.selection ?? null),
      otherSelection: state.selection,
      pointer: null,
      path: null,
      rows,
    };
  }

  /** A selection by name or by method is one of both traces. */
  private counterpart({ trace, selection }: State, before: Selection | null): Selection | null {
    if (selection?.kind !== "method" && selection?.kind !== "name") return null;
    const text = selectionText(trace, selection);
    if (before && text === selectionText(this.trace, before)) return before;
    return text ? parseSelection(this.trace, text) : null;
  }

  /** Tells the page's store what this side's timeline was asked for. */
  private tell(state: State): void {
    const { wanted, main } = this;
    const keys = (Object.keys(state) as (keyof State)[]).filter((key) => state[key] !== wanted[key]);
    if (keys.length === 0) return;
    const change: Partial<State> = Object.fromEntries(keys.map((key) => [key, state[key]]));
    // Only once: the timeline may ask for more while the others are told.
    this.wanted = state;
    if (main.state.trace === this.trace) {
      main.set(change);
      return;
    }
    // Rows are pinned and hidden in their own trace.
    delete change.rows;
    const by = -offsetTo(main.state, this.trace);
    if (change.view) change.view = shifted(change.view, by);
    if (change.range) change.range = shifted(change.range, by);
    if (change.selection !== undefined) {
      // Whose trace is clicked has its profile and its details shown. The other one keeps its selection.
      const { selection } = change;
      const here = { view: state.view, range: state.range, rows: state.rows };
      if (selection)
        main.set({ ...here, trace: this.trace, selection, otherSelection: main.state.selection, path: null });
      else main.set({ otherSelection: null });
      return;
    }
    main.set(change);
  }
}

function sameRange<R extends Range | null>(before: R | null, now: R): R {
  return before?.from === now?.from && before?.to === now?.to && before ? before : now;
}
