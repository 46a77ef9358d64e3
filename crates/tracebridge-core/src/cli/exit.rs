//! The exit statuses of the process, which scripts rely on, and the one-line form of errors.

use std::borrow::Cow;
use std::io;
use std::process::ExitCode;

use crate::console::{complain, output_error};

/// The meaning of the process's exit status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// 0: everything was done and nothing was lost.
    Complete,
    /// 1: the command failed.
    Failed,
    /// 2: the command line is wrong.
    Usage,
    /// 3: the command ended, and events were lost or an input was damaged. The summary names the loss.
    Lossy,
    /// 4: `gate` found that something became slower.
    Closed,
    /// The exit status of a wrapped command.
    Child(u8),
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(match exit {
            Exit::Complete => 0,
            Exit::Failed => 1,
            Exit::Usage => 2,
            Exit::Lossy => 3,
            Exit::Closed => 4,
            Exit::Child(status) => status,
        })
    }
}

/// A command line that clap accepts and that still contradicts itself. The exit status is 2.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct UsageError(pub Cow<'static, str>);

impl From<String> for UsageError {
    fn from(text: String) -> UsageError {
        UsageError(text.into())
    }
}

impl From<&'static str> for UsageError {
    fn from(text: &'static str) -> UsageError {
        UsageError(text.into())
    }
}

/// Formats an error and its causes on one line. A cause that the message before it already quotes is left
/// out, because the errors of the library quote those of the system.
pub fn message(error: &anyhow::Error) -> String {
    error.chain().map(ToString::to_string).fold(String::new(), |said, cause| match said.as_str() {
        "" => cause,
        said_before if said_before.contains(&cause) => said,
        _ => format!("{said}: {cause}"),
    })
}

/// Returns whether the error means that the reader of the output has closed the pipe (`tracebridge … |
/// head`). That is a success.
pub fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .any(|cause| cause.downcast_ref::<io::Error>().is_some_and(|e| e.kind() == io::ErrorKind::BrokenPipe))
}

/// The process's exit status for what a command returned, with a message where the command failed. A command
/// that is complete, but of whose standard output a part could not be written, has failed.
pub fn finish(result: anyhow::Result<Exit>) -> ExitCode {
    match result {
        Ok(exit) => match output_error() {
            Some(error) if exit == Exit::Complete => {
                complain(format_args!("tracebridge: standard output: {error}"));
                Exit::Failed.into()
            }
            _ => exit.into(),
        },
        Err(error) if is_broken_pipe(&error) => Exit::Complete.into(),
        Err(error) => {
            complain(format_args!("tracebridge: {}", message(&error)));
            if error.is::<UsageError>() { Exit::Usage.into() } else { Exit::Failed.into() }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("x.dat: {source} (see doctor)")]
    struct Quotes {
        source: io::Error,
    }

    #[test]
    fn a_cause_is_printed_once() {
        let quoted = anyhow::Error::new(Quotes { source: io::Error::other("cut at byte 5") });
        assert_eq!(message(&quoted), "x.dat: cut at byte 5 (see doctor)");
        assert_eq!(message(&quoted.context("reading")), "reading: x.dat: cut at byte 5 (see doctor)");
        assert_eq!(message(&anyhow::anyhow!("inner").context("outer")), "outer: inner");
    }
}
