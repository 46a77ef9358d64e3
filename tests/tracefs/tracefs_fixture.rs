//! This machine's own tracefs, whose top-level buffer one test at a time uses: mounting it, comparing its
//! knobs, ending recorders, and instances, which tests use beside each other.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, PipeReader, PipeWriter, Read, pipe};
use std::ops::{Deref, DerefMut};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{ChildStdout, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, kill};
use nix::unistd::{AccessFlags, Pid, access};

use serde_json::Value;
use support::{Child, Command, Ran, WAIT_LIMIT, holds_within, tracebridge, until, within_limit};

/// Longest wait for other programs that use this machine's tracefs: each lets others have it after each test.
const TURN_LIMIT: Duration = Duration::from_secs(1800);

/// How long a recorder that a failed test has left may take to end after SIGTERM.
const END_LIMIT: Duration = Duration::from_secs(5);

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// The tracefs that this program uses.
struct Mounted {
    root: PathBuf,
    /// The directory itself. All mounts of a tracefs have one root directory, so that its lock keeps out
    /// every test program on this kernel, also one in a chroot or with another directory for temporary files.
    dir: File,
}

/// The kernel's one top-level trace buffer. Only one test at a time has this value. When a test panics,
/// dropping the value puts back the knobs that the test found.
pub struct Machine {
    pub root: PathBuf,
    found: Knobs,
    instances: RefCell<Vec<PathBuf>>,
    // The locks are released last, when the knobs have their old values.
    _everybody: Flock<File>,
    _lock: MutexGuard<'static, ()>,
}

impl Machine {
    /// The name of an instance for this test. If a recorder makes it and does not remove it, it is removed
    /// when the test fails, or at the end of the run.
    pub fn instance_name(&self, what: &str) -> String {
        let dir = instance_dir(&self.root, what);
        self.instances.borrow_mut().push(dir.clone());
        name_of(&dir)
    }

    /// The directory of an instance of this name.
    pub fn instance_dir(&self, name: &str) -> PathBuf {
        self.root.join("instances").join(name)
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.found.put_back(&self.root);
            self.instances.borrow().iter().for_each(|dir| remove_instance(dir));
        }
        support::put_back_at_end(None);
    }
}

/// A trace buffer of a test's own, removed on drop. It needs no lock: nobody else uses it.
pub struct Instance {
    tracefs: &'static Path,
    dir: PathBuf,
}

impl Instance {
    /// Makes an instance; `None`, with a message, where there is no tracefs.
    pub fn new(what: &str) -> Option<Instance> {
        let instance = Instance::planned(what)?;
        instance.make();
        Some(instance)
    }

    /// The same, but it is not there until [`Instance::make`] is called.
    pub fn planned(what: &str) -> Option<Instance> {
        let tracefs = &mounted()?.root;
        Some(Instance { tracefs, dir: instance_dir(tracefs, what) })
    }

    pub fn make(&self) {
        fs::create_dir(&self.dir).unwrap_or_else(|error| panic!("{}: {error}", self.dir.display()));
    }

    /// The tracefs in which the instance is.
    pub fn tracefs(&self) -> &Path {
        self.tracefs
    }

    /// The directory of the instance, which has the files of a tracefs.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Writes a knob that must take the value.
    pub fn write(&self, knob: &str, value: &str) {
        fs::write(self.dir.join(knob), value).unwrap_or_else(|error| panic!("{knob} = {value}: {error}"));
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        remove_instance(&self.dir);
    }
}

/// The directory of an instance that no other test and no other run has.
fn instance_dir(root: &Path, what: &str) -> PathBuf {
    let dir = root.join("instances").join(format!("{}-{what}", support::run_id()));
    support::remove_instance_at_end(&dir);
    dir
}

fn name_of(dir: &Path) -> String {
    dir.file_name().unwrap().to_str().unwrap().to_owned()
}

/// Removes an instance, if it is there. A process that had it open may still be ending.
fn remove_instance(dir: &Path) {
    holds_within(END_LIMIT, || !dir.exists() || fs::remove_dir(dir).is_ok());
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
        command.stdout(Stdio::piped());
        Recorder::start_with_output(command, state)
    }

    /// The same with the standard output that the command has.
    pub fn start_with_output(mut command: Command, state: &Path) -> Recorder {
        support::restore_at_end(&support::binary(), state);
        Recorder { child: Some(command.spawn().unwrap()), state: state.to_owned() }
    }

    /// Sends the recorder a signal.
    pub fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.id() as i32), signal).unwrap();
    }

    /// Waits until the recorder takes signals in order: it has blocked them, and looks for them itself.
    pub fn wait_until_it_heeds_signals(&self) {
        let status = format!("/proc/{}/status", self.id());
        let is_blocked = |status: &str| {
            let mask = status.lines().find_map(|line| line.strip_prefix("SigBlk:"))?;
            Some(u64::from_str_radix(mask.trim(), 16).ok()? & 1 << (Signal::SIGINT as u32 - 1) != 0)
        };
        until("a recorder that heeds signals", || {
            fs::read_to_string(&status).is_ok_and(|status| is_blocked(&status) == Some(true))
        });
    }

    /// Waits until the recorder ends. Returns its exit status and what it printed.
    pub fn finish(mut self) -> Ran {
        self.child.take().unwrap().finish()
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
        holds_within(END_LIMIT, || !matches!(child.try_wait(), Ok(None)));
        let _ = child.kill();
        let _ = child.wait();
        let _ = tracebridge().arg("restore").arg("--state-dir").arg(&self.state).output();
    }
}

/// The lines that a child prints to its standard output, one after another.
pub struct Lines(Receiver<String>);

impl Lines {
    pub fn new(child: &mut Child) -> Lines {
        let stdout = child.stdout.take().expect("a pipe was asked for");
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            BufReader::new(stdout).lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
        });
        Lines(lines)
    }

    /// Waits for the next line.
    #[track_caller]
    pub fn next(&self) -> String {
        match self.0.recv_timeout(WAIT_LIMIT) {
            Ok(line) => line,
            Err(RecvTimeoutError::Disconnected) => panic!("the child has closed its standard output"),
            Err(RecvTimeoutError::Timeout) => {
                panic!("waited {} s for a line of a child", WAIT_LIMIT.as_secs())
            }
        }
    }

    /// The next line as JSON.
    #[track_caller]
    pub fn next_json(&self) -> Value {
        let line = self.next();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
    }
}

/// A pipe that a recorder writes to and nobody reads from.
pub struct Unread {
    _reader: PipeReader,
    writer: PipeWriter,
}

impl Unread {
    /// Makes the pipe the standard output of `command`.
    pub fn stdout_of(command: &mut Command) -> Unread {
        let (reader, writer) = pipe().unwrap();
        command.stdout(writer.try_clone().unwrap());
        Unread { _reader: reader, writer }
    }

    /// Waits until no byte has room in the pipe: the recorder that writes to it has to wait.
    pub fn wait_until_full(&self, recorder: &mut Recorder) {
        until("a pipe that nobody reads to be full", || {
            assert!(recorder.try_wait().unwrap().is_none(), "the recorder ended by itself");
            let mut writer = [PollFd::new(self.writer.as_fd(), PollFlags::POLLOUT)];
            poll(&mut writer, PollTimeout::ZERO).unwrap() == 0
        });
    }
}

/// Waits until a recorder has begun to record into the buffer at `root`: it switches `sched_switch` on first,
/// then tracing.
pub fn wait_for_tracing(root: &Path) {
    let on = |file: &str| fs::read_to_string(root.join(file)).is_ok_and(|v| v.starts_with('1'));
    until("a recording", || on("events/sched/sched_switch/enable") && on("tracing_on"));
}

/// Takes what a recorder writes to its standard output until it has begun to record into the buffer at
/// `root`. The rest of the output is left to the caller.
pub fn read_until_tracing(root: &Path, recorder: &mut Recorder) -> ChildStdout {
    let mut stdout = recorder.stdout.take().expect("a pipe was asked for");
    let tracing_on = root.join("tracing_on");
    within_limit("the head of a stream", move || {
        let mut head = vec![0; 1 << 20];
        let mut taken = 0;
        // Tracing may be on before a recorder begins. The head is much longer than a pipe has room for.
        while taken < 300_000 || !fs::read_to_string(&tracing_on).unwrap().starts_with('1') {
            let len = stdout.read(&mut head).unwrap();
            assert!(len > 0, "the stream ends before a recording has begun");
            taken += len;
        }
        stdout
    })
}

/// Waits until events of the buffer at `root` have been lost since a recorder cleared it.
pub fn wait_for_lost_events(root: &Path) {
    let lost = |cpu: fs::DirEntry| {
        let stats = fs::read_to_string(cpu.path().join("stats")).unwrap_or_default();
        let is_count = |line: &&str| line.starts_with("overrun: ") || line.starts_with("dropped events: ");
        stats.lines().filter(is_count).any(|line| !line.ends_with(": 0"))
    };
    until("lost events", || fs::read_dir(root.join("per_cpu")).unwrap().flatten().any(lost));
}

/// This machine's tracefs. Where there is none, prints a message and returns `None`, and the test is skipped.
/// Waits for other tests, also for the tests of other programs.
pub fn machine() -> Option<Machine> {
    let lock = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let Mounted { root, dir } = mounted()?;
    let everybody = wait_for_turn(dir);
    expand(root);
    let found = Knobs::read(root);
    // As long as the test runs, and no longer, the guard of the run has what to put back.
    let settings = support::run_dir().join("settings");
    fs::write(&settings, found.for_the_guard()).unwrap();
    support::put_back_at_end(Some(&settings));
    let instances = RefCell::default();
    Some(Machine { root: root.clone(), found, instances, _everybody: everybody, _lock: lock })
}

/// Locks the directory of the tracefs.
fn wait_for_turn(dir: &File) -> Flock<File> {
    let mut locked = None;
    let has_it = holds_within(TURN_LIMIT, || {
        match Flock::lock(dir.try_clone().unwrap(), FlockArg::LockExclusiveNonblock) {
            Ok(lock) => locked = Some(lock),
            Err((_, Errno::EWOULDBLOCK)) => {}
            Err((_, error)) => panic!("the directory of the tracefs cannot be locked: {error}"),
        }
        locked.is_some()
    });
    assert!(
        has_it,
        "waited {} s for another program that tests with this machine's tracefs: see /proc/locks",
        TURN_LIMIT.as_secs()
    );
    locked.unwrap()
}

/// The tracefs of this machine, mounted by this program if it is not.
fn mounted() -> Option<&'static Mounted> {
    static MOUNTED: OnceLock<Option<Mounted>> = OnceLock::new();
    let mounted = MOUNTED.get_or_init(|| {
        let root = found().or_else(mount)?;
        let dir = File::open(&root).unwrap();
        // If this program is killed, its guard has the lock until it has put everything back.
        support::hold_until_tidied(dir.try_clone().unwrap().into());
        Some(Mounted { root, dir })
    });
    if mounted.is_none() {
        support::skip("tracefs", "no tracefs to be had: needs root and a kernel with it");
    }
    mounted.as_ref()
}

/// A tracefs that is mounted, and not by another run of tests: that one goes when its run ends.
fn found() -> Option<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
    let place = |line: &str| {
        let mut words = line.split(' ').skip(1);
        let dir = words.next()?;
        (words.next()? == "tracefs" && !dir.contains("tracebridge-test-")).then(|| PathBuf::from(dir))
    };
    let is_writable = |dir: &PathBuf| access(&dir.join("tracing_on"), AccessFlags::W_OK).is_ok();
    mounts.lines().filter_map(place).find(is_writable)
}

fn mount() -> Option<PathBuf> {
    let dir = support::run_dir().join("tracefs");
    fs::create_dir_all(&dir).unwrap();
    support::unmount_at_end(&dir);
    let mut mount = Command::new("mount");
    mount.args(["-t", "tracefs", "nodev"]).arg(&dir);
    mount.output().is_ok_and(|done| done.status.success()).then_some(dir)
}

/// The names that the recorder has the kernel remember at the least.
const SAVED_CMDLINES: u32 = 8192;

/// The values of all readable knobs: the files below the root and `options`, each CPU's size, each event's
/// `enable`, `filter` and `trigger`. Files that change when they are read, files that change by
/// themselves (the buffers and their counts), and instances are left out.
pub struct Knobs(BTreeMap<&'static Path, String>);

impl Knobs {
    pub fn read(root: &Path) -> Knobs {
        let mut piece = vec![0; 1 << 16];
        let value = |path: &'static PathBuf| Some((path.as_path(), shown(path, &mut piece)?));
        let knobs: BTreeMap<_, _> = knob_files(root).iter().filter_map(value).collect();
        assert!(knobs.len() > 100, "few knobs at {}", root.display());
        Knobs(knobs)
    }

    /// Writes the old values of the knobs that differ now, as far as the kernel accepts them.
    pub fn put_back(&self, root: &Path) {
        let _ = fs::write(root.join("current_tracer"), "nop");
        let _ = fs::write(root.join("events/enable"), "0");
        let now = Knobs::read(root).0;
        for (path, value) in self.0.iter().filter(|(path, value)| now.get(*path) != Some(value)) {
            let _ = fs::write(path, written(value));
        }
    }

    /// The lines of the file for [`support::put_back_at_end`].
    fn for_the_guard(&self) -> String {
        let mut lines = String::new();
        for (path, value) in &self.0 {
            let first = |text: &str| text.lines().next().unwrap_or_default().to_owned();
            let shown = first(value);
            let written = first(written(value));
            writeln!(lines, "{}\n{shown}\n{written}", path.display()).unwrap();
        }
        lines
    }

    /// The knobs that differ now, each with its old and its new value. The list of names is one for all
    /// trace buffers, and a recorder only makes it longer: where it was long already, another recorder,
    /// which had made it so, has ended since.
    pub fn changed(&self, root: &Path) -> Vec<String> {
        let now = Knobs::read(root).0;
        let is_anothers = |knob: &Path| {
            let was_long =
                |size: &String| size.trim().parse().is_ok_and(|names: u32| names >= SAVED_CMDLINES);
            knob.ends_with("saved_cmdlines_size") && self.0.get(knob).is_some_and(was_long)
        };
        let all: BTreeSet<_> = self.0.keys().chain(now.keys()).collect();
        let differ = all.into_iter().filter(|k| self.0.get(*k) != now.get(*k) && !is_anothers(k));
        differ.map(|k| format!("{}: {:?} -> {:?}", k.display(), self.0.get(k), now.get(k))).collect()
    }
}

/// The files of all knobs. There are thousands, in half as many directories, which are read once: a kernel
/// does not get further ones, and the probes that tests may add are in `kprobe_events` too.
fn knob_files(root: &Path) -> &'static [PathBuf] {
    /// Files that are no setting, or do not stay the same.
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
    static FILES: OnceLock<Vec<PathBuf>> = OnceLock::new();
    FILES.get_or_init(|| {
        let mut files = Vec::new();
        let mut todo = vec![root.to_owned()];
        while let Some(dir) = todo.pop() {
            for entry in fs::read_dir(&dir).into_iter().flatten().flatten() {
                let name = entry.file_name().into_string().unwrap();
                let is_dir = entry.file_type().unwrap().is_dir();
                if is_dir && name != "instances" {
                    todo.push(entry.path());
                } else if !is_dir && !MOVING.contains(&name.as_str()) && !name.ends_with("_functions") {
                    files.push(entry.path());
                }
            }
        }
        files
    })
}

/// The value that a knob shows, read with as few calls as possible; `None` of a file that cannot be read.
fn shown(path: &Path, piece: &mut [u8]) -> Option<String> {
    let mut file = File::open(path).ok()?;
    let mut bytes = Vec::new();
    loop {
        let len = file.read(piece).ok()?;
        bytes.extend_from_slice(&piece[..len]);
        // The kernel gives a long text by the page, and a short one whole.
        if len < 1024 {
            break;
        }
    }
    let text = String::from_utf8(bytes).ok()?;
    // A buffer that was never used shows `7 (expanded: 1408)`, and never does so again after its first use.
    Some(text.split(" (expanded").next()?.to_owned())
}

/// The text that has to be written to a knob for it to show this value. A choice of several values is shown
/// as `local [global] mono`, a filter that is not set as `none`, or as a remark for those of a group.
pub fn written(shown: &str) -> &str {
    let chosen = shown.split_once('[').and_then(|(_, rest)| rest.split(']').next());
    match shown.trim() {
        "none" => "0",
        remark if remark.starts_with("### global filter") => "0",
        // A list that is empty; opening it for writing empties it.
        remark if remark.starts_with('#') => "",
        value => chosen.unwrap_or(value),
    }
}

/// Uses the buffer once: the size that it shows before its first use cannot be put back.
fn expand(root: &Path) {
    let shown = fs::read_to_string(root.join("buffer_size_kb")).unwrap();
    if let Some((_, n)) = shown.split_once("expanded: ") {
        fs::write(root.join("buffer_size_kb"), n.trim_end().trim_end_matches(')')).unwrap();
    }
}
