//! The one seam to the kernel: files below one directory, a mounted tracefs or (in tests) a directory of files.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use super::Error;

/// Where a tracefs usually is: its own mount point (Linux ≥ 4.1), then the one inside debugfs.
pub const USUAL_PLACES: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// Knobs that hold a list.
const LISTS: [&str; 4] =
    ["set_ftrace_filter", "set_graph_function", "set_event_notrace_pid", "set_ftrace_notrace_pid"];

/// A trace buffer with its knobs: the top one of a tracefs, or one of its instances.
#[derive(Debug, Clone)]
pub struct Tracefs {
    root: PathBuf,
    instance: Option<String>,
}

/// One event of the kernel.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventName {
    /// The kernel's subsystem (`sched`).
    pub group: String,
    /// The event (`sched_switch`).
    pub name: String,
}

impl EventName {
    /// `group/name`, from any two texts.
    pub fn new(group: impl Into<String>, name: impl Into<String>) -> EventName {
        EventName { group: group.into(), name: name.into() }
    }

    /// Its directory below the root of tracefs (`events/sched/sched_switch`).
    pub fn dir(&self) -> String {
        format!("events/{}/{}", self.group, self.name)
    }
}

impl std::fmt::Display for EventName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.group, self.name)
    }
}

impl Tracefs {
    /// The tracefs at `dir`, or in the first of [`USUAL_PLACES`] that has one. It has to have `tracing_on`.
    pub fn find(dir: Option<&Path>) -> Result<Tracefs, Error> {
        let places: Vec<PathBuf> = match dir {
            Some(dir) => vec![dir.to_owned()],
            None => USUAL_PLACES.iter().map(PathBuf::from).collect(),
        };
        let mut denied = None;
        for root in &places {
            match fs::metadata(root.join("tracing_on")) {
                Ok(_) => return Ok(Tracefs { root: root.clone(), instance: None }),
                Err(e) if e.kind() == io::ErrorKind::PermissionDenied => {
                    denied.get_or_insert(Error::knob(root, "enter this directory", e));
                }
                Err(_) => {}
            }
        }
        let tried: Vec<String> = places.iter().map(|p| p.display().to_string()).collect();
        Err(denied.unwrap_or(Error::NoTracefs { tried: tried.join(", ") }))
    }

    /// The instance called `name`; made, with `make`, when it does not exist yet. The second value tells whether it
    /// was. Instances have a buffer, a clock and events of their own.
    pub fn instance(&self, name: &str, make: bool) -> Result<(Tracefs, bool), Error> {
        let root = self.path("instances").join(name);
        let made = make && !root.exists();
        if made {
            fs::create_dir(&root).map_err(|e| Error::knob(&root, "make this instance", e))?;
        } else if let Err(e) = fs::metadata(root.join("tracing_on")) {
            return Err(Error::knob(&root, "use this instance", e));
        }
        Ok((Tracefs { root, instance: Some(name.to_owned()) }, made))
    }

    /// The buffer that a saved-settings record names.
    pub(super) fn of_record(root: PathBuf, instance: Option<String>) -> Tracefs {
        Tracefs { root, instance }
    }

    /// The name of the instance; `None` for the top buffer.
    pub fn instance_name(&self) -> Option<&str> {
        self.instance.as_deref()
    }

    /// Its directory.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The directory of the top buffer: its own, or the one that its instance belongs to.
    pub fn top(&self) -> &Path {
        let above = self.instance.as_ref().and_then(|_| self.root.parent()?.parent());
        above.unwrap_or(&self.root)
    }

    /// The path of a file in it; `../../` leads from an instance to the top buffer's files, also when the instance is
    /// there no more.
    pub fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        match name.as_ref().strip_prefix("../..") {
            Ok(name) if self.instance.is_some() => self.top().join(name),
            _ => self.root.join(name),
        }
    }

    /// Whether it has this file.
    pub fn has(&self, name: impl AsRef<Path>) -> bool {
        self.path(name).exists()
    }

    /// A file's bytes.
    pub fn read_bytes(&self, name: impl AsRef<Path>) -> Result<Vec<u8>, Error> {
        let path = self.path(name);
        read_whole(&path).map_err(|e| Error::knob(&path, "read", e))
    }

    /// A file's text, without the line end.
    pub fn read(&self, name: impl AsRef<Path>) -> Result<String, Error> {
        let bytes = self.read_bytes(name)?;
        Ok(String::from_utf8_lossy(&bytes).trim_end_matches('\n').to_owned())
    }

    /// Writes a knob with one `write(2)`, as the kernel expects it. Prefer [`super::Settings::set`], which puts the
    /// old value back.
    pub fn write(&self, name: impl AsRef<Path>, value: &str) -> Result<(), Error> {
        let path = self.path(name);
        // The kernel takes O_TRUNC as "clear" at several files: wanted at lists, which a write adds to.
        let list = path.file_name().is_some_and(|n| LISTS.iter().any(|l| n == *l));
        let open = OpenOptions::new().write(true).truncate(list).open(&path);
        let write = open.and_then(|mut f| f.write_all(value.as_bytes()));
        write.map_err(|e| Error::knob(&path, format!("write {value:?}"), e))
    }

    /// Whether its directory is there: an instance may have been removed.
    pub fn is_there(&self) -> bool {
        self.root.exists()
    }

    /// Empties the buffer, and the counts of lost events with it (opening `trace` with O_TRUNC does so).
    pub fn clear(&self) -> Result<(), Error> {
        let path = self.path("trace");
        OpenOptions::new()
            .write(true)
            .truncate(true)
            .open(&path)
            .map(drop)
            .map_err(|e| Error::knob(&path, "clear", e))
    }

    /// Opens a file for reading.
    pub fn open(&self, name: impl AsRef<Path>) -> Result<File, Error> {
        let path = self.path(name);
        File::open(&path).map_err(|e| Error::knob(&path, "open", e))
    }

    /// The CPUs that the buffer has parts for, in growing order (offline ones are among them once they were online).
    pub fn cpus(&self) -> Result<Vec<u32>, Error> {
        let mut cpus: Vec<u32> =
            self.list("per_cpu")?.iter().filter_map(|n| n.strip_prefix("cpu")?.parse().ok()).collect();
        cpus.sort_unstable();
        Ok(cpus)
    }

    /// The names in a directory, sorted.
    pub fn list(&self, dir: impl AsRef<Path>) -> Result<Vec<String>, Error> {
        let path = self.path(dir);
        let entries = fs::read_dir(&path).map_err(|e| Error::knob(&path, "list", e))?;
        let mut names: Vec<String> = entries.filter_map(|e| e.ok()?.file_name().into_string().ok()).collect();
        names.sort_unstable();
        Ok(names)
    }

    /// The choices of a knob that shows them as `local [global] boot`, and the chosen one.
    pub fn choices(&self, knob: &str) -> Result<(Vec<String>, Option<String>), Error> {
        let text = self.read(knob)?;
        let bare = |w: &str| w.trim_matches(|c| c == '[' || c == ']').to_owned();
        let chosen = text.split_whitespace().find(|w| w.starts_with('[')).map(bare);
        Ok((text.split_whitespace().map(bare).collect(), chosen))
    }

    /// The events of a group. Their directories are those that have `enable`.
    pub fn events_of(&self, group: &str) -> Result<Vec<EventName>, Error> {
        let dir = Path::new("events").join(group);
        let names = self.list(&dir)?;
        Ok(names
            .into_iter()
            .filter(|n| self.has(dir.join(n).join("enable")))
            .map(|n| EventName::new(group, n))
            .collect())
    }

    /// All events that are enabled now, as far as this process may know: `set_event` lists them; where that is
    /// not readable (a locked-down device) each event that is readable is looked at.
    pub fn enabled_events(&self) -> Result<Vec<EventName>, Error> {
        if let Ok(text) = self.read("set_event") {
            let names = text.lines().filter_map(|l| l.split_once(':'));
            return Ok(names.map(|(g, n)| EventName::new(g, n.trim())).collect());
        }
        let mut enabled = Vec::new();
        for group in self.list("events")? {
            for event in self.events_of(&group).unwrap_or_default() {
                if self.read(format!("{}/enable", event.dir())).is_ok_and(|v| v.starts_with('1')) {
                    enabled.push(event);
                }
            }
        }
        Ok(enabled)
    }
}

/// A file's bytes, asked for in large pieces: `fs::read` starts with 32 bytes where a file tells no size, and some
/// files of tracefs (`events/header_page`) hand out their beginning only, whatever is asked for next.
pub(super) fn read_whole(path: &Path) -> io::Result<Vec<u8>> {
    const PIECE: usize = 64 * 1024;
    let mut file = File::open(path)?;
    let mut piece = vec![0; PIECE];
    let mut out = Vec::new();
    loop {
        match file.read(&mut piece) {
            Ok(0) => return Ok(out),
            Ok(len) => out.extend_from_slice(&piece[..len]),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_tracefs_the_error_tells_how_to_mount_one() {
        let dir = tempfile::tempdir().unwrap();
        let error = Tracefs::find(Some(dir.path())).unwrap_err().to_string();
        assert!(
            error.contains("mount -t tracefs") && error.contains(&dir.path().display().to_string()),
            "{error}"
        );
    }

    #[test]
    fn the_top_buffers_knobs_are_reached_from_an_instance_that_is_gone() {
        let gone = Tracefs::of_record("/t/instances/x".into(), Some("x".into()));
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
        assert_eq!(tracefs.cpus().unwrap(), [2, 10]);
        let (all, chosen) = tracefs.choices("trace_clock").unwrap();
        assert_eq!((all.len(), chosen.as_deref()), (3, Some("global")));
    }
}
