// Opens the report page that is dropped on this one.

import { useEffect, useState } from "preact/hooks";

import { openOther } from "../compare/open_other";
import type { Store } from "../store";
import { Said } from "../ui/said";
import { visibleName } from "../ui/text";

/** Nothing is said. */
const NOTHING = { text: "", stays: false };

export function Drop({ store }: { store: Store }) {
  const [over, setOver] = useState(false);
  const [said, setSaid] = useState(NOTHING);
  useEffect(() => {
    const hasFiles = (event: DragEvent) => event.dataTransfer?.types.includes("Files") ?? false;
    const onOver = (event: DragEvent) => {
      if (!hasFiles(event)) return;
      // Else the browser would leave the page for the file.
      event.preventDefault();
      setOver(true);
    };
    const onLeave = (event: DragEvent) => {
      if (event.relatedTarget === null) setOver(false);
    };
    const onDrop = (event: DragEvent) => {
      if (!hasFiles(event)) return;
      event.preventDefault();
      setOver(false);
      const files = event.dataTransfer?.files;
      if (!files?.length) return;
      if (files.length > 1) {
        setSaid({ text: "One page at a time can be opened beside this one.", stays: true });
        return;
      }
      setSaid({ text: `Opening “${visibleName(files[0].name)}” …`, stays: true });
      openOther(store, files[0]).then(
        (text) => setSaid({ text, stays: false }),
        (error: unknown) => setSaid({ text: error instanceof Error ? error.message : String(error), stays: true }),
      );
    };
    addEventListener("dragover", onOver);
    addEventListener("dragleave", onLeave);
    addEventListener("drop", onDrop);
    return () => {
      removeEventListener("dragover", onOver);
      removeEventListener("dragleave", onLeave);
      removeEventListener("drop", onDrop);
    };
  }, [store]);
  return (
    <>
      {over && <p class="dropping">Drop a report page here to compare it with this one</p>}
      <Said text={said.text} stays={said.stays} onClose={() => setSaid(NOTHING)} />
    </>
  );
}
