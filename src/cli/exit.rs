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

/// A command line that clap takes and that still makes no sense: exit status 2.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct UsageError(pub &'static str);

/// An error and its causes on one line. A cause that the message before it already ends with (the library's errors
/// quote the system's) is said once.
pub fn message(error: &anyhow::Error) -> String {
    error.chain().map(ToString::to_string).fold(String::new(), |said, cause| match said.as_str() {
        "" => cause,
        said_before if said_before.ends_with(&cause) => said,
        _ => format!("{said}: {cause}"),
    })
}

/// Whether the reader of our output went away (`tracebridge … | head`): a success, not a failure.
pub fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .any(|cause| cause.downcast_ref::<io::Error>().is_some_and(|e| e.kind() == io::ErrorKind::BrokenPipe))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("x.dat: {source}")]
    struct Quotes {
        source: io::Error,
    }

    #[test]
    fn a_cause_is_said_once() {
        let quoted = anyhow::Error::new(Quotes { source: io::Error::other("cut at byte 5") });
        assert_eq!(message(&quoted), "x.dat: cut at byte 5");
        assert_eq!(message(&quoted.context("reading")), "reading: x.dat: cut at byte 5");
        assert_eq!(message(&anyhow::anyhow!("inner").context("outer")), "outer: inner");
    }
}
