//! The reasons why the server does not start, and why a call has no answer.

use std::io;

use crate::dataset::DatasetError;
use crate::export::explain::ExplainError;
use crate::file_access::PathError;
use crate::why::NothingAsked;

/// The reasons why the server ends or does not start.
#[derive(Debug, thiserror::Error)]
pub(crate) enum McpError {
    /// A directory cannot be used.
    #[error(transparent)]
    Root(#[from] PathError),
    /// The runtime cannot be started.
    #[error("the server cannot start: {0}")]
    Start(#[from] io::Error),
    /// The client does not speak the protocol, or is gone before it has said which version it speaks.
    #[error("the client does not speak the Model Context Protocol: {0}")]
    Protocol(String),
}

/// The reason why a call has no answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum ToolError {
    /// The arguments are not those of the tool.
    #[error("the arguments are wrong: {0}")]
    Arguments(String),
    /// There is no such tool.
    #[error("there is no tool {0:?}")]
    Unknown(String),
    /// The tool works on devices.
    #[error("devices are not permitted: start the server with --allow-devices")]
    Devices,
    /// A path that may not be used.
    #[error(transparent)]
    Path(#[from] PathError),
    /// A dataset that cannot be read.
    #[error(transparent)]
    Dataset(#[from] DatasetError),
    /// The trace has no answer.
    #[error(transparent)]
    Explain(#[from] ExplainError),
    /// The trace has nothing of the kind.
    #[error(transparent)]
    Nothing(#[from] NothingAsked),
    /// The program cannot be started.
    #[error("the command cannot be started: {0}")]
    Start(io::Error),
    /// The command has failed.
    #[error("{}", .0.join("; "))]
    Command(Vec<String>),
    /// Too many calls run and wait.
    #[error("{running} calls run and {waiting} wait, which is the limit: ask again when one is answered")]
    Busy { running: usize, waiting: usize },
    /// The client has cancelled the call.
    #[error("cancelled")]
    Cancelled,
    /// The time is over.
    #[error("the time is over: give timeout_s, or ask for less")]
    TimedOut,
}
