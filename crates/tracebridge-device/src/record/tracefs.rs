//! Access to tracefs. Every file is reached through one [`Tracefs`] value with a root directory: a mounted
//! tracefs or, in tests, a directory of ordinary files.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::unistd::{AccessFlags, access};
use serde::{Deserialize, Serialize};

use super::RecordError;
use crate::ids::Cpu;
use crate::markers::TRACEFS_PLACES;
use crate::step_log::{self, ShortValue, print_step};

/// Files that hold a list: a write adds to the list, and opening the file with O_TRUNC empties it.
const LIST_FILES: [&str; 4] =
    ["set_ftrace_filter", "set_graph_function", "set_event_notrace_pid", "set_ftrace_notrace_pid"];

/// How long a setting that is busy is tried again, and how often. While anybody has `trace` open for reading,
/// as `list` and `cat trace` have it for a moment, the kernel refuses another size of the buffer.
const BUSY_TIMEOUT: Duration = Duration::from_secs(2);
const BUSY_INTERVAL: Duration = Duration::from_millis(10);

/// The identity of a trace buffer among all others since the boot, however it is reached: device and inode of
/// its `tracing_on`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct BufferId {
    pub(crate) device: u64,
    pub(crate) inode: u64,
}

/// Whether an instance may have this name: a single part of a path.
pub(crate) fn is_instance_name(name: &str) -> bool {
    !["", ".", ".."].contains(&name) && !name.contains('/')
}

/// A trace buffer with its settings: the top-level buffer of a tracefs, or one of its instances.
#[derive(Debug, Clone)]
pub(crate) struct Tracefs {
    root: PathBuf,
    instance: Option<String>,
}

/// The name of a kernel event.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct EventName {
    /// The kernel's subsystem (`sched`).
    pub(crate) group: String,
    /// The event (`sched_switch`).
    pub(crate) name: String,
}

impl EventName {
    pub(crate) fn new(group: impl Into<String>, name: impl Into<String>) -> EventName {
        EventName { group: group.into(), name: name.into() }
    }

    /// The event's directory, relative to tracefs (`events/sched/sched_switch`).
    pub(crate) fn dir(&self) -> String {
        format!("events/{}/{}", self.group, self.name)
    }

    /// The file that switches the event on and off, relative to tracefs.
    pub(crate) fn enable(&self) -> String {
        format!("{}/enable", self.dir())
    }
}

impl std::fmt::Display for EventName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.group, self.name)
    }
}

impl Tracefs {
    /// Finds the tracefs at `dir` or, without `dir`, at the first of [`TRACEFS_PLACES`] that has a
    /// `tracing_on`.
    pub(crate) fn find(dir: Option<&Path>) -> Result<Tracefs, RecordError> {
        let places: Vec<PathBuf> = match dir {
            Some(dir) => vec![dir.to_owned()],
            None => TRACEFS_PLACES.iter().map(PathBuf::from).collect(),
        };
        let mut denied = None;
        for root in &places {
            match access(&root.join("tracing_on"), AccessFlags::F_OK) {
                Ok(()) => return Ok(Tracefs { root: root.clone(), instance: None }),
                Err(e @ (Errno::EACCES | Errno::EPERM)) => {
                    denied.get_or_insert(RecordError::knob(root, "enter this directory", e.into()));
                }
                Err(_) => {}
            }
        }
        let tried: Vec<String> = places.iter().map(|p| p.display().to_string()).collect();
        Err(denied.unwrap_or(RecordError::NoTracefs { tried: tried.join(", ") }))
    }

    /// Opens the instance called `name`, and creates it first if `create` is set and it does not exist. The
    /// second value is true if the instance was created. An instance has its own buffer, clock and events.
    pub(crate) fn instance(&self, name: &str, create: bool) -> Result<(Tracefs, bool), RecordError> {
        if !is_instance_name(name) {
            return Err(RecordError::InstanceName(name.to_owned()));
        }
        let root = self.path("instances").join(name);
        let created = create && access(&root, AccessFlags::F_OK).is_err();
        if created {
            fs::create_dir(&root).map_err(|e| RecordError::knob(&root, "create this instance", e))?;
            print_step(format_args!("created the instance {}", root.display()));
        } else if let Err(e) = access(&root.join("tracing_on"), AccessFlags::F_OK) {
            return Err(RecordError::knob(&root, "use this instance", e.into()));
        }
        Ok((Tracefs { root, instance: Some(name.to_owned()) }, created))
    }

    /// The trace buffer that a file of saved settings names; the buffer need not exist any more.
    pub(super) fn of_saved_settings(root: PathBuf, instance: Option<String>) -> Tracefs {
        Tracefs { root, instance }
    }

    /// The buffer itself; `None` if it does not exist or this user may not look at it.
    pub(crate) fn buffer_id(&self) -> Option<BufferId> {
        let meta = fs::metadata(self.path("tracing_on")).ok()?;
        Some(BufferId { device: meta.dev(), inode: meta.ino() })
    }

    /// The name of the instance; `None` for the top-level buffer.
    pub(crate) fn instance_name(&self) -> Option<&str> {
        self.instance.as_deref()
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// The directory of the tracefs itself: for an instance, the directory two levels above the instance's
    /// own.
    pub(crate) fn top(&self) -> &Path {
        let above = self.instance.as_ref().and_then(|_| self.root.parent()?.parent());
        above.unwrap_or(&self.root)
    }

    /// The path of a file. From an instance, `../../` leads to the files of the top-level buffer, even if the
    /// instance does not exist any more.
    pub(crate) fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        match name.as_ref().strip_prefix("../..") {
            Ok(name) if self.instance.is_some() => self.top().join(name),
            _ => self.root.join(name),
        }
    }

    /// Whether there is such a file. A locked phone refuses `stat(2)` on most files of tracefs and logs each
    /// attempt; `access(2)` is never refused.
    pub(crate) fn has(&self, name: impl AsRef<Path>) -> bool {
        access(&self.path(name), AccessFlags::F_OK).is_ok()
    }

    /// Whether this user may write a file, as far as `access(2)` tells. The mode of most files refuses it
    /// before SELinux is asked, so that nothing is logged.
    pub(crate) fn may_write(&self, name: impl AsRef<Path>) -> bool {
        access(&self.path(name), AccessFlags::W_OK).is_ok()
    }

    /// The error of a write to a file that this user may not write.
    pub(crate) fn check_writable(&self, name: impl AsRef<Path>) -> Result<(), RecordError> {
        let path = self.path(name);
        access(&path, AccessFlags::W_OK).map_err(|e| RecordError::knob(&path, "write", e.into()))
    }

    /// Reads a whole file.
    pub(crate) fn read_bytes(&self, name: impl AsRef<Path>) -> Result<Vec<u8>, RecordError> {
        let path = self.path(name);
        read_whole(&path).map_err(|e| RecordError::knob(&path, "read", e))
    }

    /// Reads a whole file as text, without the newline at its end.
    pub(crate) fn read(&self, name: impl AsRef<Path>) -> Result<String, RecordError> {
        let bytes = self.read_bytes(name)?;
        Ok(String::from_utf8_lossy(&bytes).trim_end_matches('\n').to_owned())
    }

    /// Writes a file with one `write(2)`, as the kernel expects. Nothing restores the old value afterwards:
    /// see [`super::SettingsGuard::set`] for that.
    pub(crate) fn write(&self, name: impl AsRef<Path>, value: &str) -> Result<(), RecordError> {
        let path = self.path(name.as_ref());
        let before = step_log::is_enabled().then(|| self.read(name.as_ref()).ok()).flatten();
        // O_TRUNC clears several files of tracefs. That is wanted only for lists, which a write adds to.
        let is_list = path.file_name().is_some_and(|n| LIST_FILES.iter().any(|l| n == *l));
        let write_once = || {
            let open = OpenOptions::new().write(true).truncate(is_list).open(&path);
            open.and_then(|mut f| f.write_all(value.as_bytes()))
        };
        let mut write = write_once();
        let deadline = Instant::now() + BUSY_TIMEOUT;
        while write.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::ResourceBusy)
            && Instant::now() < deadline
        {
            std::thread::sleep(BUSY_INTERVAL);
            write = write_once();
        }
        let old = ShortValue(before.as_deref().unwrap_or("unknown"));
        let new = ShortValue(value);
        match write {
            Ok(()) => {
                print_step(format_args!("wrote {}: {old} -> {new}", path.display()));
                Ok(())
            }
            Err(error) => {
                print_step(format_args!("cannot write {}: {old} -> {new}: {error}", path.display()));
                Err(RecordError::knob(&path, format!("write {value:?}"), error))
            }
        }
    }

    /// Whether the trace buffer still exists: an instance may have been removed.
    pub(crate) fn exists(&self) -> bool {
        access(&self.root, AccessFlags::F_OK).is_ok()
    }

    /// Empties the buffer and resets the counts of lost events: the kernel does both when `trace` is opened
    /// with O_TRUNC.
    pub(crate) fn clear(&self) -> Result<(), RecordError> {
        let path = self.path("trace");
        print_step(format_args!("clears the trace buffer ({})", path.display()));
        OpenOptions::new()
            .write(true)
            .truncate(true)
            .open(&path)
            .map(drop)
            .map_err(|e| RecordError::knob(&path, "clear", e))
    }

    /// The tracer that is on, as the first line of `trace` names it: `# tracer: nop`. More users may read
    /// that file than `current_tracer`.
    pub(crate) fn tracer_of_trace(&self) -> Option<String> {
        let mut head = [0; 128];
        let len = File::open(self.path("trace")).and_then(|mut trace| trace.read(&mut head)).ok()?;
        let head = String::from_utf8_lossy(head.get(..len)?).into_owned();
        Some(head.lines().next()?.strip_prefix("# tracer: ")?.trim().to_owned())
    }

    /// Whether this user may read the kernel's lists of the names and processes of threads. They belong to
    /// the top-level buffer.
    pub(crate) fn has_names(&self) -> bool {
        access(&self.top().join("saved_cmdlines"), AccessFlags::R_OK).is_ok()
    }

    /// The CPUs that have a ring buffer, in ascending order. A CPU that is offline now is among them if it
    /// was ever online.
    pub(crate) fn cpus(&self) -> Result<Vec<Cpu>, RecordError> {
        let mut cpus: Vec<Cpu> =
            self.list("per_cpu")?.iter().filter_map(|n| n.strip_prefix("cpu")?.parse().ok()).collect();
        cpus.sort_unstable();
        Ok(cpus)
    }

    /// The sorted names of a directory's entries.
    pub(crate) fn list(&self, dir: impl AsRef<Path>) -> Result<Vec<String>, RecordError> {
        let path = self.path(dir);
        let entries = fs::read_dir(&path).map_err(|e| RecordError::knob(&path, "list", e))?;
        let mut names: Vec<String> = entries.filter_map(|e| e.ok()?.file_name().into_string().ok()).collect();
        names.sort_unstable();
        Ok(names)
    }

    /// Reads a file that lists its choices with the current one in brackets, as in `local [global] boot`.
    /// Returns all choices and the current one.
    pub(crate) fn choices(&self, knob: &str) -> Result<(Vec<String>, Option<String>), RecordError> {
        Ok(parse_choices(&self.read(knob)?))
    }

    /// The events of a group: the subdirectories of the group's directory that contain an `enable` file.
    pub(crate) fn events_of(&self, group: &str) -> Result<Vec<EventName>, RecordError> {
        let dir = Path::new("events").join(group);
        let names = self.list(&dir)?;
        Ok(names
            .into_iter()
            .filter(|n| self.has(dir.join(n).join("enable")))
            .map(|n| EventName::new(group, n))
            .collect())
    }

    /// The events that `name` stands for: one for `group/event`, all of the group's for `group`.
    pub(crate) fn events_named(&self, name: &str) -> Result<Vec<EventName>, RecordError> {
        match name.split_once('/') {
            Some((group, event)) => Ok(vec![EventName::new(group, event)]),
            None => self.events_of(name),
        }
    }

    /// Whether an event is enabled; false if this user may not see that.
    pub(crate) fn is_enabled(&self, event: &EventName) -> bool {
        self.read(event.enable()).is_ok_and(|value| value.starts_with('1'))
    }
}

/// Splits a list of choices such as `local [global] boot`. Returns all choices and the current one, which is
/// in brackets.
pub(crate) fn parse_choices(text: &str) -> (Vec<String>, Option<String>) {
    let bare = |word: &str| word.trim_matches(['[', ']']).to_owned();
    let current = text.split_whitespace().find(|word| word.starts_with('[')).map(bare);
    (text.split_whitespace().map(bare).collect(), current)
}

/// Whether an option is on by the text of `trace_options`, which has `NAME` or `noNAME`. `None` if the kernel
/// does not have the option.
pub(crate) fn is_option_on(trace_options: &str, name: &str) -> Option<bool> {
    trace_options.lines().find_map(|line| match line.strip_prefix("no") {
        Some(off) if off == name => Some(false),
        _ => (line == name).then_some(true),
    })
}

/// Reads a whole file with large reads. `fs::read` starts with a read of 32 bytes for a file whose size is
/// unknown, and some files of tracefs (`events/header_page`) return nothing more after the first read.
pub(super) fn read_whole(path: &Path) -> io::Result<Vec<u8>> {
    const CHUNK_BYTES: usize = 16 * 1024;
    let mut file = File::open(path)?;
    // On the stack: a recorder reads hundreds of files, and memory that is mapped for each costs more than
    // the read.
    let mut chunk = [0; CHUNK_BYTES];
    let mut out = Vec::new();
    loop {
        match file.read(&mut chunk) {
            Ok(0) => return Ok(out),
            Ok(len) => out.extend_from_slice(&chunk[..len]),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_tracefs_the_error_says_how_to_mount_one() {
        let dir = tempfile::tempdir().unwrap();
        let error = Tracefs::find(Some(dir.path())).unwrap_err().to_string();
        assert!(
            error.contains("mount -t tracefs") && error.contains(&dir.path().display().to_string()),
            "{error}"
        );
    }

    #[test]
    fn settings_of_the_top_level_buffer_are_reached_from_an_instance_that_was_removed() {
        let gone = Tracefs::of_saved_settings("/t/instances/x".into(), Some("x".into()));
        assert_eq!(gone.path("../../options/record-tgid"), Path::new("/t/options/record-tgid"));
        assert_eq!(gone.path("options/overwrite"), Path::new("/t/instances/x/options/overwrite"));
    }

    #[test]
    fn a_directory_of_files_serves_as_a_tracefs() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("tracing_on"), "1\n").unwrap();
        fs::write(dir.path().join("trace_clock"), "local [global] boot\n").unwrap();
        for cpu in ["cpu10", "cpu2"] {
            fs::create_dir_all(dir.path().join("per_cpu").join(cpu)).unwrap();
        }
        let tracefs = Tracefs::find(Some(dir.path())).unwrap();
        assert_eq!(tracefs.cpus().unwrap(), [Cpu(2), Cpu(10)]);
        let (all, chosen) = tracefs.choices("trace_clock").unwrap();
        assert_eq!((all.len(), chosen.as_deref()), (3, Some("global")));
    }
}
