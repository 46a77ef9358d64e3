// What the table panel shows, as the user has chosen it. A link holds it.

/** The tables: what a row is. */
export type TableKind =
  | "slices"
  | "calls"
  | "samples"
  | "states"
  | "causes"
  | "running"
  | "ready"
  | "interrupts"
  | "frames"
  | "counters"
  | "events"
  | "arrows"
  | "launches";

export interface TableChoice {
  /** Empty: the first table that the trace has. */
  kind: TableKind | "";
  /** The column whose values are rows; empty: each item is a row. */
  by: string;
  /** The figure that groups add up; empty: the first one of the table. */
  figure: string;
  filter: string;
  /** The column that the filter looks into; empty: all that hold text. */
  where: string;
  /** A thread, a process, or all: `t3`, `p1`, `all`. */
  threads: string;
  /** Whether the table follows what the timeline shows where no period is chosen. */
  inView: boolean;
  sort: { id: string; down: boolean };
}

export const FIRST_TABLE: TableChoice = {
  kind: "",
  by: "name",
  figure: "",
  filter: "",
  where: "",
  threads: "all",
  inView: false,
  sort: { id: "sum", down: true },
};

/** The choice that a link tells; what does not fit is as at first. */
export function parseTableChoice(text: string | null): TableChoice {
  if (!text) return FIRST_TABLE;
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return FIRST_TABLE;
  }
  if (typeof value !== "object" || value === null) return FIRST_TABLE;
  const told = value as Record<string, unknown>;
  const choice: TableChoice = { ...FIRST_TABLE };
  for (const name of ["kind", "by", "figure", "filter", "where", "threads"] as const) {
    const one = told[name];
    if (typeof one === "string") Object.assign(choice, { [name]: one });
  }
  if (typeof told.inView === "boolean") choice.inView = told.inView;
  const sort = told.sort as { id?: unknown; down?: unknown } | null | undefined;
  if (typeof sort?.id === "string" && typeof sort.down === "boolean") choice.sort = { id: sort.id, down: sort.down };
  return choice;
}

/** The parts of a choice that are not as at first, as JSON; null where all are. */
export function tableChoiceText(choice: TableChoice): string | null {
  const parts = Object.entries(choice).filter(
    ([name, value]) => JSON.stringify(value) !== JSON.stringify(FIRST_TABLE[name as keyof TableChoice]),
  );
  return parts.length === 0 ? null : JSON.stringify(Object.fromEntries(parts));
}
