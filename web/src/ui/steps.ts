// Long work in steps, between which the page does what the user asks.

/** How long the page computes before it looks for what the user does. */
const WORK_MS = 12;
const PAUSE_MS = 2;

/** Runs `steps` to their end and hands their value to `done`; returns the function that stops them. */
export function inSteps<T>(steps: Generator<void, T>, done: (value: T) => void): () => void {
  let timer: ReturnType<typeof setTimeout>;
  const work = () => {
    const until = performance.now() + WORK_MS;
    do {
      const { done: isDone, value } = steps.next();
      if (isDone) {
        done(value);
        return;
      }
    } while (performance.now() < until);
    timer = setTimeout(work, PAUSE_MS);
  };
  timer = setTimeout(work);
  return () => clearTimeout(timer);
}
