//! Looks events up in a mounted tracefs.

use std::path::{Path, PathBuf};

use nix::unistd::{AccessFlags, access};

use super::EventFiles;

/// The files below one directory, as this process may use them.
#[derive(Debug, Clone)]
pub struct TracefsEventFiles(PathBuf);

impl TracefsEventFiles {
    /// The tracefs, or the instance of one, at `root`.
    pub fn new(root: &Path) -> TracefsEventFiles {
        TracefsEventFiles(root.to_owned())
    }
}

impl EventFiles for TracefsEventFiles {
    fn exists(&self, path: &str) -> bool {
        access(&self.0.join(path), AccessFlags::F_OK).is_ok()
    }
    fn writable(&self, path: &str) -> bool {
        access(&self.0.join(path), AccessFlags::W_OK).is_ok()
    }
}
