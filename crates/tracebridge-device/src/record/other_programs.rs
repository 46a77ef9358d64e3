//! Other programs that use the same trace buffer while a recording runs.
//!
//! The kernel gives each page to one reader, so that each of several readers gets a part of the events. And
//! Perfetto's `traced_probes` and other tracers switch tracing off, clear and resize the buffer, and change
//! the clock without asking.

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
        // A kernel thread has no program and no files. Asking for `exe` is cheaper than listing the files.
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

/// The files of a trace buffer that no other program may change during a recording.
const WATCHED: [&str; 4] = ["tracing_on", "trace_clock", "buffer_size_kb", "options/overwrite"];

/// The values of [`WATCHED`] when a recording started.
#[derive(Debug)]
pub(super) struct SettingsWatch {
    values: Vec<(&'static str, String)>,
}

impl SettingsWatch {
    /// Reads the values as they are now. A file that this user may not read is not watched.
    pub(super) fn begin(tracefs: &Tracefs) -> SettingsWatch {
        let value = |knob| Some((knob, tracefs.read(knob).ok()?));
        SettingsWatch { values: WATCHED.into_iter().filter_map(value).collect() }
    }

    /// The changes by other programs since then, for a sentence: `tracing_on from 1 to 0`. Empty if none.
    pub(super) fn changes(&self, tracefs: &Tracefs) -> Vec<String> {
        let change = |(knob, before): &(&'static str, String)| {
            let now = tracefs.read(knob).ok()?;
            let current = |text: &str| super::parse_choices(text).1.unwrap_or_else(|| text.to_owned());
            (now != *before).then(|| format!("{knob} from {} to {}", current(before), current(&now)))
        };
        self.values.iter().filter_map(change).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_named_with_both_values() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("tracing_on"), "1\n").unwrap();
        std::fs::write(dir.path().join("trace_clock"), "local [boot] mono\n").unwrap();
        let tracefs = Tracefs::find(Some(dir.path())).unwrap();
        let watch = SettingsWatch::begin(&tracefs);
        assert_eq!(watch.changes(&tracefs), [""; 0]);
        std::fs::write(dir.path().join("trace_clock"), "local boot [mono]\n").unwrap();
        std::fs::write(dir.path().join("tracing_on"), "0\n").unwrap();
        assert_eq!(watch.changes(&tracefs), ["tracing_on from 1 to 0", "trace_clock from boot to mono"]);
    }
}
