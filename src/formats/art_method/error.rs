//! The reasons why a method trace cannot be opened at all.

use thiserror::Error;

use crate::art::DataHeaderError;

/// The reason why a method trace cannot be opened at all. Offsets count bytes from the start of the
/// decompressed file.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Error {
    /// The file is empty.
    #[error("offset 0: the file is empty; pull it again after the app has finished writing it")]
    Empty,
    /// The file begins neither with `*version` nor with `SLOW`.
    #[error(
        "offset 0: no method trace: it begins neither with *version nor with SLOW; \
         a gzip file must be complete, and heap dumps (.hprof) or simpleperf files are other formats"
    )]
    NotATrace,
    /// A tool has treated the file as text and re-encoded it.
    #[error(
        "offset {offset}: the binary part was re-encoded as UTF-8 text: each byte above 0x7F became {became}. {cure}"
    )]
    Reencoded {
        /// The first changed byte.
        offset: u64,
        /// The bytes that the original bytes became.
        became: &'static str,
        /// A way to get an intact file.
        cure: &'static str,
    },
    /// The binary header is unusable and there is no text section to show instead.
    #[error("offset {offset}: {reason}")]
    Header {
        /// The start of the binary header.
        offset: u64,
        /// The reason why the header is unusable.
        reason: DataHeaderError,
    },
}
