//! Looks events up in a mounted tracefs.

use std::path::{Path, PathBuf};

use nix::unistd::{AccessFlags, access};

use super::{EventFiles, enable_path};

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

    fn writable_members(&self, group: &str) -> Vec<String> {
        let Ok(entries) = std::fs::read_dir(self.0.join("events").join(group)) else { return Vec::new() };
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let events = names.map(|name| format!("{group}/{name}"));
        let mut writable: Vec<String> = events.filter(|event| self.writable(&enable_path(event))).collect();
        writable.sort_unstable();
        writable
    }
}
