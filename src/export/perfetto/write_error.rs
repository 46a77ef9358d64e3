//! Why packets cannot be made of an event.

use std::io;

use crate::ftrace::limits::MAX_CPUS;

/// A reader broke the contract of [`Sink`](crate::formats::Sink), or an input is damaged.
#[derive(Debug, thiserror::Error)]
pub(super) enum PerfettoWriteError {
    #[error("CPU {0} is more than any machine has ({MAX_CPUS})")]
    CpuNumber(u32),
    #[error("event type {0} was announced out of order")]
    TypeOutOfOrder(u32),
    #[error("an event has the type {0}, which was not announced")]
    UnknownType(u32),
}

impl From<PerfettoWriteError> for io::Error {
    fn from(error: PerfettoWriteError) -> io::Error {
        io::Error::other(error)
    }
}
