//! The reasons why no event of a trace.dat can be read. If only a part is missing, the file opens and the
//! report lists the missing part as damage.

use thiserror::Error;

/// The reason why no event of a trace.dat can be read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TraceDatError {
    /// The file has no bytes.
    #[error("the file is empty: the recording was never written, or the copy failed")]
    Empty,
    /// The file does not begin with trace-cmd's magic bytes.
    #[error("not a trace.dat: it does not begin with trace-cmd's magic bytes")]
    NotTraceDat,
    /// The file's version is neither 6 nor 7.
    #[error(
        "trace.dat version {0:?} is not known (6 and 7 are); convert it with `trace-cmd convert --file-version 7`"
    )]
    Version(String),
    /// The file ends inside a part that is needed to read any event.
    #[error(
        "cut at byte {offset}, inside {what}: no events can be read; copy the file again from the device"
    )]
    Cut {
        /// Bytes from the start of the file.
        offset: u64,
        /// The part that ends too early.
        what: &'static str,
    },
    /// The file states an impossible value.
    #[error("at byte {offset}: {what}")]
    Bad {
        /// Bytes from the start of the file.
        offset: u64,
        /// The fault, for people.
        what: String,
    },
    /// The file is a `latency` file, which has text instead of pages.
    #[error("holds tracefs' `trace` as text from byte {offset} on, not pages: cut the text out with `tail -c +{next}` and read that", next = offset + 1)]
    Text {
        /// Offset of the text, bytes from the start of the file.
        offset: u64,
    },
}
