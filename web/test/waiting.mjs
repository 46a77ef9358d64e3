// Waiting, with a limit, for what a test needs. Nothing here depends on how fast the machine is: a limit is
// so long that only what never comes reaches it, and then the error says what was waited for.

import { inspect } from "node:util";

/** The longest wait for one thing. */
export const LIMIT_MS = 120_000;
const POLL_MS = 50;

/** Something took longer than its limit. */
export class LimitError extends Error {}

/** The value that `promise` is resolved with; a LimitError that names `what` where that takes longer than the limit. */
export async function within(what, promise, limit = LIMIT_MS) {
  let timer;
  const late = new Promise((_, refuse) => {
    timer = setTimeout(() => refuse(new LimitError(`not done within ${limit / 1000} s: ${what}`)), limit);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

/**
 * Calls `check` until it throws no assertion error any more; returns what it returns. At the limit a
 * LimitError is thrown, which names `what` and has the last assertion error's message.
 */
export async function eventually(what, check, limit = LIMIT_MS) {
  const until = performance.now() + limit;
  for (;;) {
    try {
      return await within(what, check(), limit);
    } catch (error) {
      if (error.code !== "ERR_ASSERTION") throw error;
      if (performance.now() > until) {
        throw new LimitError(`not so within ${limit / 1000} s: ${what}: ${error.message}`, { cause: error });
      }
    }
    await new Promise((done) => setTimeout(done, POLL_MS));
  }
}

/**
 * Waits until the page has computed and drawn what it had to: it says nowhere that it computes, the profile
 * is that of the period that is chosen or in view, and for some frames its elements have stayed as they are.
 */
export async function settled(page) {
  const problem = await within(
    `${page.url()} comes to rest`,
    page.evaluate(async (limit) => {
      const QUIET_FRAMES = 3;
      const until = performance.now() + limit;
      let changed = false;
      const observer = new MutationObserver(() => (changed = true));
      observer.observe(document, { subtree: true, childList: true, attributes: true, characterData: true });
      /** The work that the page still has to do; an empty text where that is nothing. */
      const pending = () => {
        const computing = document.querySelector(".empty[role=status]");
        if (computing) return computing.textContent;
        const { range, view } = window.__tracebridge?.timeline?.store.state ?? {};
        const shown = document.querySelector(".window-line")?.dataset.window;
        const wanted = range ?? view;
        if (shown && wanted && shown !== `${wanted.from}-${wanted.to}`) return `profile of ${shown} shows`;
        return changed ? "elements change" : "";
      };
      let waiting = "";
      for (let quiet = 0; quiet < QUIET_FRAMES; quiet = waiting ? 0 : quiet + 1) {
        changed = false;
        // Effects of components run behind a frame.
        await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
        waiting = pending();
        if (performance.now() > until) break;
      }
      observer.disconnect();
      return waiting;
    }, LIMIT_MS / 2),
  );
  if (problem) throw new Error(`the page did not come to rest within ${LIMIT_MS / 2000} s: ${inspect(problem)}`);
}
