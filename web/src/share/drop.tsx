// Opens the report page that is dropped on this one.

import { useEffect, useState } from "preact/hooks";

import { openOther } from "../compare/open_other";
import type { Store } from "../store";

export function Drop({ store }: { store: Store }) {
  const [over, setOver] = useState(false);
  const [said, setSaid] = useState("");
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
        setSaid("One page at a time can be opened beside this one.");
        return;
      }
      setSaid(`Opening “${files[0].name}” …`);
      openOther(store, files[0]).then(setSaid, (error: unknown) =>
        setSaid(error instanceof Error ? error.message : String(error)),
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
      <p class="said" role="status">
        {said && (
          <>
            <span>{said}</span>
            <button type="button" aria-label="Close the message" onClick={() => setSaid("")}>
              ✕
            </button>
          </>
        )}
      </p>
    </>
  );
}
