// The texts that come while a recording runs, as docs/live-format.md defines them. Whatever is in them is checked: names
// come from the recorded programs.

import { isListOf, isNumber, isObject, isText, type Json } from "../data/checked_index";

export interface Category {
  name: string;
  description: string;
  on: boolean;
}

/** What is recorded, and what the page may ask for. */
export interface Hello {
  kind: "hello";
  title: string;
  serial: string;
  app: string | null;
  keep_s: number;
  categories: Category[];
  can: string[];
}

/** The last seconds in numbers; null: not known. */
export interface Numbers {
  kind: "numbers";
  window_s: number | null;
  events_per_s: number | null;
  lost: number | null;
  frames: number | null;
  janky: number | null;
  p95_ms: number | null;
  app_cpu_percent: number | null;
  runnable_percent: number | null;
}

export interface LiveLaunch {
  kind: "launch";
  package: string;
  type: string | null;
  begin_ns: number;
  end_ns: number;
  ttid_ns: number | null;
  ttfd_ns: number | null;
}

/** A marker of the user's that has come back from the device. */
export interface LiveMark {
  kind: "mark";
  name: string;
  at_ns: number;
}

export const STATES = ["waiting", "recording", "no-connection", "ended"] as const;

export type Message =
  | Hello
  | Numbers
  | LiveLaunch
  | LiveMark
  | { kind: "categories"; categories: Category[] }
  | { kind: "gap"; from_ns: number; to_ns: number; text: string }
  | { kind: "skipped"; batches: number }
  | { kind: "state"; state: (typeof STATES)[number]; text: string }
  | { kind: "saved"; path: string }
  | { kind: "triggered"; path: string; text: string; at_ns: number }
  | { kind: "error"; text: string };

const NUMBERS = [
  "window_s",
  "events_per_s",
  "lost",
  "frames",
  "janky",
  "p95_ms",
  "app_cpu_percent",
  "runnable_percent",
];

/** The message in a text; null where its kind is not known. Throws an Error with a sentence where it is damaged. */
export function readMessage(text: string): Message | null {
  let read: unknown;
  try {
    read = JSON.parse(text);
  } catch {
    read = null;
  }
  if (!isObject(read) || !isText(read.kind))
    throw new Error("A message of the recording is damaged, and was left out.");
  const { kind } = read;
  const lacks = (name: string) =>
    new Error(`A message "${kind.slice(0, 20)}" of the recording lacks "${name}", and was left out.`);
  const member = <T>(name: string, is: (value: unknown) => value is T): T => {
    const value = read[name];
    if (!is(value)) throw lacks(name);
    return value;
  };
  const orNone = (name: string) => (isNumber(read[name]) ? read[name] : null);
  const textOf = (name: string) => (isText(read[name]) ? read[name] : "");
  switch (kind) {
    case "hello": {
      const { can, app } = read;
      return {
        kind,
        title: textOf("title"),
        serial: textOf("serial"),
        app: isText(app) ? app : null,
        keep_s: Math.max(1, member("keep_s", isNumber)),
        categories: categoriesOf(read.categories) ?? [],
        can: isListOf(can, isText) ? can : [],
      };
    }
    case "categories": {
      const categories = categoriesOf(read.categories);
      if (!categories) throw lacks("categories");
      return { kind, categories };
    }
    case "numbers":
      return { kind, ...Object.fromEntries(NUMBERS.map((name) => [name, orNone(name)])) } as unknown as Numbers;
    case "launch":
      return {
        kind,
        package: textOf("package"),
        type: isText(read.type) ? read.type : null,
        begin_ns: member("begin_ns", isNumber),
        end_ns: member("end_ns", isNumber),
        ttid_ns: orNone("ttid_ns"),
        ttfd_ns: orNone("ttfd_ns"),
      };
    case "mark":
      return { kind, name: textOf("name"), at_ns: member("at_ns", isNumber) };
    case "gap":
      return { kind, from_ns: member("from_ns", isNumber), to_ns: member("to_ns", isNumber), text: textOf("text") };
    case "skipped":
      return { kind, batches: member("batches", isNumber) };
    case "state":
      return { kind, state: member("state", isState), text: textOf("text") };
    case "saved":
      return { kind, path: textOf("path") };
    case "triggered":
      return { kind, path: textOf("path"), text: textOf("text"), at_ns: member("at_ns", isNumber) };
    case "error":
      return { kind, text: textOf("text") };
    default:
      return null;
  }
}

/** The categories of a list; null where it is none. */
function categoriesOf(list: unknown): Category[] | null {
  const isCategory = (one: unknown): one is Json => isObject(one) && isText(one.name);
  if (!isListOf(list, isCategory)) return null;
  return list.map(({ name, description, on }) => ({
    name: name as string,
    description: isText(description) ? description : "",
    on: on === true,
  }));
}

function isState(value: unknown): value is (typeof STATES)[number] {
  return (STATES as readonly unknown[]).includes(value);
}
