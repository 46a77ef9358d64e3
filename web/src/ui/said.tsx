// A message of the page, which screen readers say, too.

import type { ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";

/** How long a message stays that nobody has to act on. */
const SHOWN_MS = 8000;

/** Shows `text` until it is closed, or for a while unless it `stays`; nothing where it is empty. */
export function Said({
  text,
  stays = false,
  onClose,
  children,
}: {
  text: string;
  stays?: boolean;
  onClose: () => void;
  children?: ComponentChildren;
}) {
  useEffect(() => {
    if (!text || stays) return;
    const timer = setTimeout(onClose, SHOWN_MS);
    return () => clearTimeout(timer);
  }, [text, stays]);
  return (
    <p class="said" role="status">
      {text && (
        <>
          <span>{text}</span>
          {children}
          <button type="button" aria-label="Close the message" onClick={onClose}>
            ✕
          </button>
        </>
      )}
    </p>
  );
}
