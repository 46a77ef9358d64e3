//! Why a method trace does not open at all.

use thiserror::Error;

use crate::art::DataHeaderError;

/// Why a method trace does not open at all. Every offset is in bytes from the start of the (decompressed) file.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Error {
    /// Nothing in it.
    #[error("offset 0: the file is empty; pull it again after the app has finished writing it")]
    Empty,
    /// Neither `*version` nor `SLOW` opens the file.
    #[error(
        "offset 0: no method trace: it begins neither with *version nor with SLOW; \
         a gzip file must be complete, and heap dumps (.hprof) or simpleperf files are other formats"
    )]
    NotATrace,
    /// Some tool took the file for text.
    #[error(
        "offset {offset}: the binary part was re-encoded as UTF-8 text: each byte above 0x7F became {became}. {cure}"
    )]
    Reencoded {
        /// The first such place.
        offset: u64,
        /// What the bytes became.
        became: &'static str,
        /// What to do.
        cure: &'static str,
    },
    /// The binary header is unusable and there is no text section to show instead.
    #[error("offset {offset}: {reason}")]
    Header {
        /// Where the binary header begins.
        offset: u64,
        /// What is wrong with it.
        reason: DataHeaderError,
    },
}
