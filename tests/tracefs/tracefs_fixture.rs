//! This machine's own tracefs, which one test at a time uses: mounting it, comparing its knobs, and ending
//! recorders.

use std::collections::BTreeMap;
use std::fs;
use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use nix::fcntl::{Flock, FlockArg};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::support::{self, tracebridge};

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// The kernel's one trace buffer. Only one test at a time has this value. When a test panics, dropping the
/// value puts back the knobs that the test found.
pub struct Machine {
    pub root: PathBuf,
    found: Knobs,
    // The locks are released last, when the knobs have their old values.
    _everybody: Flock<fs::File>,
    _lock: MutexGuard<'static, ()>,
}

impl Drop for Machine {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.found.put_back(&self.root);
        }
    }
}

/// A recorder that a test started. If the recorder still runs when the test ends, dropping this value sends
/// SIGTERM, after five seconds SIGKILL, and puts back the settings that the recorder saved in `state`.
pub struct Recorder {
    child: Option<Child>,
    state: PathBuf,
}

impl Recorder {
    /// Starts `command`, whose saved settings are in the directory `state`, with its standard output on a
    /// pipe.
    pub fn start(mut command: Command, state: &Path) -> Recorder {
        let child = command.stdout(Stdio::piped()).spawn().unwrap();
        Recorder { child: Some(child), state: state.to_owned() }
    }

    /// Sends the recorder a signal.
    pub fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.id() as i32), signal).unwrap();
    }

    /// Waits until the recorder ends. Returns its exit status and what it printed.
    pub fn output(mut self) -> Output {
        self.child.take().unwrap().wait_with_output().unwrap()
    }
}

impl Deref for Recorder {
    type Target = Child;

    fn deref(&self) -> &Child {
        self.child.as_ref().unwrap()
    }
}

impl DerefMut for Recorder {
    fn deref_mut(&mut self) -> &mut Child {
        self.child.as_mut().unwrap()
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        let Some(child) = &mut self.child else { return };
        if matches!(child.try_wait(), Ok(Some(_))) {
            return;
        }
        let pid = Pid::from_raw(child.id() as i32);
        // A stopped process gets SIGTERM only once it goes on.
        let _ = kill(pid, Signal::SIGTERM).and_then(|()| kill(pid, Signal::SIGCONT));
        let started = Instant::now();
        while matches!(child.try_wait(), Ok(None)) && started.elapsed() < Duration::from_secs(5) {
            std::thread::sleep(Duration::from_millis(50));
        }
        let _ = child.kill();
        let _ = child.wait();
        let _ = tracebridge().arg("restore").arg("--state-dir").arg(&self.state).output();
    }
}

/// Waits until a recorder has begun to record into the buffer at `root`: it switches `sched_switch` on first,
/// then tracing.
pub fn wait_for_tracing(root: &Path) {
    let end = Instant::now() + Duration::from_secs(20);
    let on = |file: &str| fs::read_to_string(root.join(file)).is_ok_and(|v| v.starts_with('1'));
    while !(on("events/sched/sched_switch/enable") && on("tracing_on")) {
        assert!(Instant::now() < end, "no recording after 20 s");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// This machine's tracefs. Where there is none, prints a message and returns `None`, and the test is skipped.
/// Waits for other tests, also for the tests of other processes.
pub fn machine() -> Option<Machine> {
    let lock = ONE_AT_A_TIME.lock().unwrap_or_else(|e| e.into_inner());
    let everybody = fs::File::create(std::env::temp_dir().join("tracebridge-tests.lock")).unwrap();
    let everybody = Flock::lock(everybody, FlockArg::LockExclusive).map_err(|(_, e)| e).unwrap();
    let root = mounted().or_else(mount)?;
    let found = Knobs::read(&root);
    Some(Machine { root, found, _everybody: everybody, _lock: lock })
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

/// The values of all readable knobs: the files below the root and `options`, each CPU's size, each event's
/// `enable`, `filter` and `trigger`. Files that change when they are read, files that change by
/// themselves (the buffers and their counts), and instances are left out.
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
                    // A buffer that was never used shows `7 (expanded: 1408)`, and never does so again after
                    // its first use.
                    out.insert(path, text.split(" (expanded").next().unwrap().to_owned());
                }
            }
        }
        assert!(out.len() > 100, "few knobs at {}", root.display());
        Knobs(out)
    }

    /// Writes the old values of the knobs that differ now, as far as the kernel accepts them.
    pub fn put_back(&self, root: &Path) {
        let _ = fs::write(root.join("current_tracer"), "nop");
        let _ = fs::write(root.join("events/enable"), "0");
        for instance in fs::read_dir(root.join("instances")).into_iter().flatten().flatten() {
            if instance.file_name().to_string_lossy().starts_with("tb-") {
                let _ = fs::remove_dir(instance.path());
            }
        }
        let now = Knobs::read(root).0;
        for (path, value) in self.0.iter().filter(|(path, value)| now.get(*path) != Some(value)) {
            // A choice of several values is shown as `local [global] mono`, a filter that is not set as
            // `none`.
            let chosen = value.split_once('[').and_then(|(_, rest)| rest.split(']').next());
            let value = if value.trim() == "none" { "0" } else { chosen.unwrap_or(value.trim()) };
            let _ = fs::write(path, value);
        }
    }

    /// The knobs that differ now, each with its old and its new value.
    pub fn changed(&self, root: &Path) -> Vec<String> {
        let now = Knobs::read(root).0;
        let all: std::collections::BTreeSet<_> = self.0.keys().chain(now.keys()).collect();
        let differ = all.into_iter().filter(|k| self.0.get(*k) != now.get(*k));
        differ.map(|k| format!("{}: {:?} -> {:?}", k.display(), self.0.get(k), now.get(k))).collect()
    }
}

/// Uses the buffer once: the size that it shows before its first use cannot be put back.
pub fn expand(root: &Path) {
    let shown = fs::read_to_string(root.join("buffer_size_kb")).unwrap();
    if let Some((_, n)) = shown.split_once("expanded: ") {
        fs::write(root.join("buffer_size_kb"), n.trim_end().trim_end_matches(')')).unwrap();
    }
}
