//! The flag `-v` of the recording commands: one line on standard error for each step.
//!
//! A reader of standard error that takes nothing does not hold a recording up: no more steps are printed
//! then.

use std::fmt::{self, Arguments};
use std::io;
use std::os::fd::AsFd;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use nix::poll::{PollFd, PollFlags, poll};

use crate::console::complain;

/// How long a step waits for the reader of standard error, ms.
const PRINT_TIMEOUT_MS: u16 = 300;
/// The most of a value that is printed, characters. Some files of tracefs have thousands of lines.
const MAX_VALUE_CHARS: usize = 80;

/// The steps of this process are printed once this is set.
static LOG: OnceLock<StepLog> = OnceLock::new();

struct StepLog {
    since: Instant,
    /// Whether the reader of standard error took nothing.
    is_stalled: AtomicBool,
}

/// Has [`print_step`] print from now on.
pub(crate) fn enable() {
    LOG.get_or_init(|| StepLog { since: Instant::now(), is_stalled: AtomicBool::new(false) });
}

/// Whether steps are printed: for callers that would have to find out something for a step first.
pub(crate) fn is_enabled() -> bool {
    LOG.get().is_some_and(|log| !log.is_stalled.load(Ordering::Relaxed))
}

/// Prints a step, with the time since the command began.
pub(crate) fn print_step(step: Arguments<'_>) {
    let Some(log) = LOG.get().filter(|_| is_enabled()) else { return };
    if has_room() {
        let ms = log.since.elapsed().as_secs_f64() * 1e3;
        complain(format_args!("tracebridge: {ms:.1} ms: {step}"));
    } else {
        log.is_stalled.store(true, Ordering::Relaxed);
    }
}

/// Whether standard error takes a line now: a pipe that is ready takes as much as a line at once.
fn has_room() -> bool {
    let stderr = io::stderr();
    let mut fds = [PollFd::new(stderr.as_fd(), PollFlags::POLLOUT)];
    poll(&mut fds, PRINT_TIMEOUT_MS).is_ok_and(|ready| ready > 0)
}

/// A phase of a command. When it is dropped, the time that the phase took is printed as a step.
pub(crate) struct Phase {
    name: &'static str,
    since: Instant,
}

impl Phase {
    /// Begins a phase.
    pub(crate) fn begin(name: &'static str) -> Phase {
        Phase { name, since: Instant::now() }
    }
}

impl Drop for Phase {
    fn drop(&mut self) {
        let ms = self.since.elapsed().as_secs_f64() * 1e3;
        print_step(format_args!("phase {}: took {ms:.1} ms", self.name));
    }
}

/// A value for a step: its beginning, in quotes and on one line.
pub(crate) struct ShortValue<'a>(pub(crate) &'a str);

impl fmt::Display for ShortValue<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.char_indices().nth(MAX_VALUE_CHARS) {
            Some((end, _)) => write!(f, "{:?}…", &self.0[..end]),
            None => write!(f, "{:?}", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_one_line_and_short() {
        assert_eq!(ShortValue("").to_string(), "\"\"");
        assert_eq!(ShortValue("sched:sched_switch\nirq:x").to_string(), r#""sched:sched_switch\nirq:x""#);
        assert_eq!(ShortValue(&"ü".repeat(81)).to_string(), format!("\"{}\"…", "ü".repeat(80)));
    }
}
