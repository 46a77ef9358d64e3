//! The part of a running recording that is kept in memory, as a recording of its own.

use std::io;
use std::path::Path;

use crate::export::convert::{ConvertError, Converted};

/// The head of a recording and the pages of its last seconds, which it shares with the recording.
#[derive(Debug, Clone, Default)]
pub struct Kept {}

/// Why the kept part of a recording was not written.
#[derive(Debug, thiserror::Error)]
pub enum KeptError {
    /// No page has come yet.
    #[error("nothing has been recorded yet")]
    Nothing,
    /// A temporary file could not be written or read.
    #[error("a temporary file: {0}")]
    Scratch(#[from] io::Error),
    /// The conversion failed.
    #[error(transparent)]
    Convert(#[from] Box<ConvertError>),
}

impl Kept {
    /// Whether there is no page.
    pub fn is_empty(&self) -> bool {
        true
    }

    /// The times of the session, ns, from the begin of the first page to the last time that is known.
    pub fn extent(&self) -> Option<(u64, u64)> {
        None
    }

    /// The pages with events between two times of the session, ns.
    pub fn between(&self, from: u64, to: u64) -> Kept {
        let _ = (from, to);
        self.clone()
    }

    /// The bytes of a trace.dat.
    pub fn dat(&self) -> Result<Vec<u8>, KeptError> {
        Err(KeptError::Nothing)
    }

    /// Writes a file in the format of this name, or without one in that of the path's ending.
    pub fn write(&self, path: &Path, format: Option<&str>) -> Result<Converted, KeptError> {
        let _ = (path, format);
        Err(KeptError::Nothing)
    }

    /// A report page.
    pub fn page(&self) -> Result<Vec<u8>, KeptError> {
        Err(KeptError::Nothing)
    }
}
