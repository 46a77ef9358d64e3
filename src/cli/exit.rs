//! What the process's exit status means; scripts rely on it.

use std::io;
use std::process::ExitCode;

/// What the process's exit status means; scripts rely on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// 0: all that was asked for, nothing lost.
    Complete,
    /// 1: not done.
    Failed,
    /// 2: the command line was not understood.
    Usage,
    /// 3: done, but events were lost or an input was damaged; the summary says what.
    Lossy,
    /// The status of a wrapped command, passed on.
    Child(u8),
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(match exit {
            Exit::Complete => 0,
            Exit::Failed => 1,
            Exit::Usage => 2,
            Exit::Lossy => 3,
            Exit::Child(status) => status,
        })
    }
}

/// Whether the reader of our output went away (`tracebridge … | head`): a success, not a failure.
pub fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .any(|cause| cause.downcast_ref::<io::Error>().is_some_and(|e| e.kind() == io::ErrorKind::BrokenPipe))
}
