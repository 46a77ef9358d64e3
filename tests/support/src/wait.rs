//! Waits with a limit: a test that waits for something that never comes fails, and says what it waited for.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

/// Longest wait for anything. It ends a hang; nothing is expected to need it, also not on a machine that is
/// busy with other work.
pub const WAIT_LIMIT: Duration = Duration::from_secs(480);

/// Longest pause between two looks at a state.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Waits until `condition` holds.
///
/// # Panics
/// If it does not hold within [`WAIT_LIMIT`].
#[track_caller]
pub fn until(what: &str, condition: impl FnMut() -> bool) {
    assert!(holds_within(WAIT_LIMIT, condition), "waited {} s for {what}", WAIT_LIMIT.as_secs());
}

/// Looks at `condition` until it holds, at most for this time. Returns whether it holds.
pub fn holds_within(limit: Duration, mut condition: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + limit;
    let mut pause = Duration::from_micros(200);
    loop {
        if condition() {
            return true;
        }
        if Instant::now() >= end {
            return false;
        }
        thread::sleep(pause);
        pause = (pause * 2).min(POLL_INTERVAL);
    }
}

/// Returns what `wait` returns: for system calls that may wait for ever, such as opening a FIFO that nobody
/// opens on the other side.
///
/// # Panics
/// If `wait` does not return within [`WAIT_LIMIT`], or panics itself.
#[track_caller]
pub fn within_limit<T: Send + 'static>(what: &str, wait: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, result) = channel();
    thread::spawn(move || done.send(wait()));
    match result.recv_timeout(WAIT_LIMIT) {
        Ok(value) => value,
        Err(RecvTimeoutError::Timeout) => panic!("waited {} s for {what}", WAIT_LIMIT.as_secs()),
        Err(RecvTimeoutError::Disconnected) => panic!("{what}: it panicked"),
    }
}
