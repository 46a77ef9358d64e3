//! This machine's own tracefs: mounted for the tests, one test at a time, its knobs compared.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard};

use nix::fcntl::{Flock, FlockArg};

use crate::support;

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// The kernel's one trace buffer, held by one test. Dropping it gives it to the next.
pub struct Machine {
    pub root: PathBuf,
    _lock: MutexGuard<'static, ()>,
    _everybody: Flock<fs::File>,
}

/// The tracefs, or `None` (said) where there is none to be had. Waits for other tests, also of other processes.
pub fn machine() -> Option<Machine> {
    let lock = ONE_AT_A_TIME.lock().unwrap_or_else(|e| e.into_inner());
    let everybody = fs::File::create(std::env::temp_dir().join("tracebridge-tests.lock")).unwrap();
    let everybody = Flock::lock(everybody, FlockArg::LockExclusive).map_err(|(_, e)| e).unwrap();
    let root = mounted().or_else(mount)?;
    Some(Machine { root, _lock: lock, _everybody: everybody })
}

fn mounted() -> Option<PathBuf> {
    let mounts = fs::read_to_string("/proc/mounts").ok()?;
    let dir = mounts.lines().find_map(|l| {
        let mut words = l.split(' ').skip(1);
        let dir = words.next()?;
        (words.next()? == "tracefs").then(|| PathBuf::from(dir))
    })?;
    fs::write(dir.join("tracing_on"), "1").is_ok().then_some(dir)
}

fn mount() -> Option<PathBuf> {
    let dir = std::env::temp_dir().join("tracebridge-tests-tracefs");
    fs::create_dir_all(&dir).unwrap();
    let done = Command::new("mount").args(["-t", "tracefs", "nodev"]).arg(&dir).output();
    if done.is_ok_and(|o| o.status.success()) {
        return Some(dir);
    }
    support::skip("tracefs", "no tracefs to be had: needs root and a kernel with it");
    None
}

/// What every readable knob says: the files below the root and `options` and each CPU's size, each event's `enable`,
/// `filter` and `trigger`. Not what reading would change, what changes by itself (the buffers, their counts), or
/// other people's instances.
pub struct Knobs(BTreeMap<PathBuf, String>);

impl Knobs {
    pub fn read(root: &Path) -> Knobs {
        const MOVING: [&str; 14] = [
            "trace",
            "trace_pipe",
            "trace_pipe_raw",
            "stats",
            "saved_cmdlines",
            "saved_tgids",
            "README",
            "format",
            "id",
            "hist",
            "free_buffer",
            "available_events",
            "printk_formats",
            "error_log",
        ];
        let mut out = BTreeMap::new();
        let mut todo = vec![root.to_owned()];
        while let Some(dir) = todo.pop() {
            for entry in fs::read_dir(&dir).into_iter().flatten().flatten() {
                let path = entry.path();
                let name = entry.file_name().into_string().unwrap();
                if name == "instances" {
                    continue;
                }
                if entry.file_type().unwrap().is_dir() {
                    todo.push(path);
                } else if MOVING.contains(&name.as_str()) || name.ends_with("_functions") {
                } else if let Ok(text) = fs::read_to_string(&path) {
                    // Before its first use a buffer says `7 (expanded: 1408)`; nothing can have that back.
                    out.insert(path, text.split(" (expanded").next().unwrap().to_owned());
                }
            }
        }
        assert!(out.len() > 100, "few knobs at {}", root.display());
        Knobs(out)
    }

    /// Those that differ now.
    pub fn changed(&self, root: &Path) -> Vec<String> {
        let now = Knobs::read(root).0;
        let all: std::collections::BTreeSet<_> = self.0.keys().chain(now.keys()).collect();
        let differ = all.into_iter().filter(|k| self.0.get(*k) != now.get(*k));
        differ.map(|k| format!("{}: {:?} -> {:?}", k.display(), self.0.get(k), now.get(k))).collect()
    }
}

/// Uses the buffer once, so that its size is one that can be put back.
pub fn expand(root: &Path) {
    let shown = fs::read_to_string(root.join("buffer_size_kb")).unwrap();
    if let Some((_, n)) = shown.split_once("expanded: ") {
        fs::write(root.join("buffer_size_kb"), n.trim_end().trim_end_matches(')')).unwrap();
    }
}
