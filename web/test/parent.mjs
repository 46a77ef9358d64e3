// The end of the process that has started this one.

const POLL_MS = 500;

/** Ends this process when the one that has started it has ended. */
export function endWithParent() {
  const parent = process.ppid;
  const look = () => {
    if (process.ppid !== parent) process.exit(1);
  };
  setInterval(look, POLL_MS).unref();
}
