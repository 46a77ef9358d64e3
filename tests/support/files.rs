//! A directory for the files of one test.

use std::path::PathBuf;

use tempfile::TempDir;

/// The directory, which goes with this value.
pub struct Files(pub TempDir);

impl Files {
    pub fn new() -> Files {
        Files(TempDir::new().unwrap())
    }

    /// Writes a file, and returns its path.
    pub fn write(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.0.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    }
}
