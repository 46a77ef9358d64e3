// The marker that ART writes around a wait for a monitor, in the words of `tracebridge why` (src/why/lock_marker.rs).

import { shortMethod } from "./own_frames";

const MARKER =
  /^monitor contention with owner (.*?) \(\d+\)(?: at (.*?)\(([^()]*)\))?(?: waiters=\d+)?(?: blocking from (.*)\(([^()]*)\))?$/;

/** What a thread waited for, and who held it in which method; null for any other marker. */
export function lockSentence(marker: string): string | null {
  const parts = MARKER.exec(marker);
  if (!parts) return null;
  const [, owner, holder, holderPlace, waiter, waiterPlace] = parts;
  return `waited${within(waiter, waiterPlace)} for a lock that "${owner}" held${within(holder, holderPlace)}`;
}

function within(signature: string | undefined, place: string | undefined): string {
  if (!signature) return "";
  const method = shortMethod(signature.split("(")[0].split(" ").at(-1) ?? "");
  const [file, line] = (place ?? "").split(":");
  if (!file || file === "null" || file === "Unknown Source") return ` in ${method}`;
  return Number(line) > 0 ? ` in ${method} (${file}:${line})` : ` in ${method} (${file})`;
}
