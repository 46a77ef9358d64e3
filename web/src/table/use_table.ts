// The table that is chosen, computed behind the picture whenever the choice, the period or the trace changes.

import { useEffect, useMemo, useState } from "preact/hooks";

import type { Trace } from "../data/trace";
import { threadChosen } from "../profile/options";
import type { Range, Store } from "../store";
import { inSteps } from "../ui/steps";
import type { TableChoice, TableKind } from "./choice";
import { columnOf, Computed, type Wanted } from "./computed";
import type { Items } from "./items";
import { mainThread } from "./questions";
import { itemsOf, periodOf, tableKinds } from "./tables";

/** The choice with what it leaves open filled in. */
export interface Chosen extends TableChoice {
  kind: TableKind;
  /** The thread that the table `ready` is about. */
  thread: number;
}

/** The choice as it fits a trace: of a table that the trace has, with columns that the table has. */
export function fitting(trace: Trace, choice: TableChoice): Chosen {
  const kinds = tableKinds(trace).map(([kind]) => kind);
  const kind = choice.kind !== "" && kinds.includes(choice.kind) ? choice.kind : (kinds.at(0) ?? "slices");
  const asked = Number(choice.threads.slice(1));
  const isThread = /^t\d+$/.test(choice.threads) && asked < trace.threads.length;
  const isProcess = /^p\d+$/.test(choice.threads) && asked < trace.index.processes.length;
  const threads = isThread || isProcess ? choice.threads : "all";
  return { ...choice, kind, threads, thread: isThread ? asked : mainThread(trace) };
}

export interface Table {
  items: Items;
  /** Null until the first one is there. */
  computed: Computed | null;
  /** Whether what is shown is not yet what was chosen. */
  isComputing: boolean;
  period: Range | null;
}

export function useTable(store: Store, chosen: Chosen): Table {
  const { trace, range, view } = store.state;
  const { kind, by, figure, filter, where, threads, thread, inView, sort } = chosen;
  const items = useMemo(() => itemsOf(trace, kind, thread), [trace, kind, thread]);
  const isWhole = view.from <= 0 && view.to >= trace.duration;
  const period = range ?? (inView && !isWhole ? view : null);
  const [shown, setShown] = useState<{ computed: Computed; wanted: Wanted } | null>(null);
  const column = items.texts.find(({ id }) => id === by) ?? null;
  // Groups are sorted where they are shown; items are sorted here.
  const sorting = column ? "" : `${sort.id} ${sort.down}`;
  const wanted = useMemo((): Wanted => {
    const owned = threads !== "all" && kind !== "ready";
    const one = items.figures.find(({ id }) => id === figure) ?? items.figures[0];
    const isKnown = columnOf(items, sort.id).id === sort.id;
    const isOwner = threadChosen(store.state, threads);
    const ofProcess = Number(threads.slice(1));
    return {
      items,
      by: column,
      figure: one,
      sort: column || isKnown ? sort : { id: one.id, down: true },
      filter: {
        period: periodOf(trace, period),
        text: filter,
        where: items.texts.some(({ id }) => id === where) ? where : "",
        processOf: (thread) => trace.threads[thread].process,
        owner: owned
          ? (thread, process) =>
              thread !== null ? isOwner(thread) : threads === `p${ofProcess}` && process === ofProcess
          : null,
      },
    };
  }, [items, column, figure, filter, where, threads, sorting, period?.from, period?.to]);
  useEffect(() => inSteps(Computed.of(wanted), (computed) => setShown({ computed, wanted })), [wanted]);
  const isOld = shown?.wanted.items !== items;
  return { items, computed: isOld ? null : shown.computed, isComputing: shown?.wanted !== wanted, period };
}
