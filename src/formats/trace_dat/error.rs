//! Why a trace.dat cannot be read at all. What is merely missing is in the report's damage instead.

use thiserror::Error;

/// Why a trace.dat cannot be read at all.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TraceDatError {
    /// The file has no bytes.
    #[error("the file is empty: the recording was never written, or the copy failed")]
    Empty,
    /// Another kind of file.
    #[error("not a trace.dat: it does not begin with trace-cmd's magic bytes")]
    NotTraceDat,
    /// A version that this reader does not know.
    #[error(
        "trace.dat version {0:?} is not known (6 and 7 are); convert it with `trace-cmd convert --file-version 7`"
    )]
    Version(String),
    /// The file ends where it must not.
    #[error(
        "cut at byte {offset}, inside {what}: no events can be read; copy the file again from the device"
    )]
    Cut {
        /// Bytes from the start of the file.
        offset: u64,
        /// What ends too early.
        what: &'static str,
    },
    /// The file says something that cannot be.
    #[error("at byte {offset}: {what}")]
    Bad {
        /// Bytes from the start of the file.
        offset: u64,
        /// What.
        what: String,
    },
    /// A `latency` file: text instead of pages.
    #[error("holds tracefs' `trace` as text from byte {offset} on, not pages: cut the text out with `tail -c +{next}` and read that", next = offset + 1)]
    Text {
        /// Bytes from the start of the file to the text.
        offset: u64,
    },
}
