// Methods in which a thread waits for something to do. Their time says nothing about the work of a program, and on
// the wall clock it is most of the time of most threads: profiles fold it, and say so.

import type { Trace } from "../data/trace";
import type { FlatProfile } from "./flat";
import type { Grouping } from "./grouping";

/** Class and method, as Java, Android and the C library name them. */
const IDLE = new RegExp(
  "^(?:"
    + [
      "java\\.lang\\.Object\\.wait(?:Internal|0)?",
      "java\\.lang\\.Thread\\.(?:sleep|sleep0|parkFor\\$?|parkUntil\\$?)",
      "android\\.os\\.MessageQueue\\.nativePollOnce",
      "(?:sun|jdk\\.internal)\\.misc\\.Unsafe\\.park",
      "java\\.util\\.concurrent\\.locks\\.LockSupport\\.park(?:Nanos|Until)?",
      "libcore\\.io\\.(?:Linux|BlockGuardOs|ForwardingOs)\\.poll",
      "android\\.system\\.Os\\.poll",
      "(?:.*[./!])?(?:__)?(?:epoll_p?wait|ppoll|nanosleep|futex_wait_ex)",
    ].join("|")
    + ")$",
);

const flagsOf = new WeakMap<Trace, Uint8Array>();

/** 1 for each method in which threads are idle. */
export function idleMethods(trace: Trace): Uint8Array {
  let flags = flagsOf.get(trace);
  if (!flags) {
    flags = Uint8Array.from(trace.methods?.name ?? [], (_, method) => (IDLE.test(trace.methodName(method)) ? 1 : 0));
    flagsOf.set(trace, flags);
  }
  return flags;
}

/** The idle methods that were called, the longest first, and the time in them; null where there are none. */
export function idleTime(trace: Trace, rows: Grouping, flat: FlatProfile): { names: string[]; ns: number } | null {
  if (rows.by !== "method") return null;
  const flags = idleMethods(trace);
  const found: { name: string; ns: number }[] = [];
  flags.forEach((flag, method) => {
    if (flag && flat.calls(method) > 0) found.push({ name: rows.name(method), ns: flat.exclusive(method) });
  });
  if (found.length === 0) return null;
  found.sort((a, b) => b.ns - a.ns);
  return { names: found.map(({ name }) => name), ns: found.reduce((sum, { ns }) => sum + ns, 0) };
}
