//! Finds other programs that read the same trace buffer. The kernel gives each page to one reader, so that
//! each of them gets a part of the events.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::Tracefs;
use crate::android::FIRST_APP_UID;

/// The programs that have a pipe of this buffer open, as `name (pid N)`, as far as this user may see that.
pub(super) fn other_readers(tracefs: &Tracefs) -> Vec<String> {
    let Ok(processes) = fs::read_dir("/proc") else { return Vec::new() };
    let mut readers = Vec::new();
    for process in processes.flatten() {
        let Some(pid) = process.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        // No app may open a trace pipe, and apps have many files.
        let is_app = process.metadata().is_ok_and(|meta| meta.uid() >= FIRST_APP_UID);
        if pid == std::process::id() || is_app {
            continue;
        }
        // A kernel thread has no program and no files. One look at `exe` is cheaper than one at the files.
        if fs::read_link(process.path().join("exe")).is_err() {
            continue;
        }
        let Ok(files) = fs::read_dir(process.path().join("fd")) else { continue };
        if files.flatten().any(|file| fs::read_link(file.path()).is_ok_and(|path| is_pipe_of(tracefs, &path)))
        {
            let name = fs::read_to_string(process.path().join("comm")).unwrap_or_default();
            readers.push(format!("{} (pid {pid})", name.trim_end()));
        }
    }
    readers
}

/// Whether `path` is a pipe of this buffer. A tracefs may be mounted at several places, so only the part of
/// the path below it counts.
fn is_pipe_of(tracefs: &Tracefs, path: &Path) -> bool {
    let Some(path) =
        path.to_str().filter(|path| path.ends_with("/trace_pipe_raw") || path.ends_with("/trace_pipe"))
    else {
        return false;
    };
    let instance = path.split_once("/instances/").and_then(|(_, below)| below.split('/').next());
    instance == tracefs.instance_name()
}
