// Contents that take long to compute: they come behind a picture that says so.

import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";

/** Shows `text`, and when the browser has painted it, the contents. */
export function Later({ text, children }: { text: string; children: () => ComponentChildren }) {
  const [painted, setPainted] = useState(false);
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout>;
    // The second frame begins when the first one is on the screen.
    let frame = requestAnimationFrame(() => {
      frame = requestAnimationFrame(() => (timer = setTimeout(() => setPainted(true))));
    });
    return () => {
      cancelAnimationFrame(frame);
      clearTimeout(timer);
    };
  }, []);
  return (
    <>
      {painted ? (
        children()
      ) : (
        <p class="empty" role="status">
          {text}
        </p>
      )}
    </>
  );
}
