//! Makes a slice take long for one known reason, and says which, so that what `why` finds can be counted
//! right or wrong. `scripts/why-truth` draws the reasons and their sizes.
//!
//! The slice `planted` holds some work of its own, and the planted cause. The program prints one JSON object:
//! the cause by the names of `why --json`, as the path over threads that leads to it, and its size in ns, by
//! the program's own clock readings.
//!
//! With `--without yes` the same work is done without its cause, where that is one of other programs or of
//! the kernel: what the cause costs is the difference of the two.
//!
//! usage: planted_cause CAUSE MILLISECONDS [--tracefs DIR] [--dir DIR] [--own-work MILLISECONDS]
//!                      [--without yes]

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Barrier, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use nix::sched::{CpuSet, sched_setaffinity};
use nix::time::{ClockId, clock_gettime};
use nix::unistd::Pid;

/// Bytes of the file that is read from the disk.
const FILE_BYTES: u64 = 64 << 20;
/// Bytes of one read from the disk: direct, past the page cache.
const READ_BYTES: usize = 128 << 10;

/// The causes that can be planted: the name on the command line, and the path that `why` should find.
const CAUSES: &[(&str, &[&str])] = &[
    ("none", &["running"]),
    ("more_work", &["running"]),
    ("sleep", &["sleep"]),
    ("disk", &["disk"]),
    ("lock_computing", &["lock", "running"]),
    ("lock_sleeping", &["lock", "sleep"]),
    ("lock_reading", &["lock", "disk"]),
    ("lock_chain", &["lock", "lock", "running"]),
    ("lock_with_time_outs", &["lock", "running"]),
    ("lock_beside_broadcasts", &["lock", "running"]),
    ("server", &["ipc", "running"]),
    ("server_busy", &["ipc", "running"]),
    ("hogs", &["runnable"]),
    ("quota", &["throttled"]),
    ("reclaim", &["reclaim"]),
    ("inversion", &["lock", "runnable"]),
    ("inversion_of_three", &["lock", "lock", "runnable"]),
    ("interrupts", &["interrupt"]),
    ("sleep_and_disk", &["sleep", "disk"]),
    ("lock_and_work", &["lock > running", "running"]),
];

/// The causes that are two at once: the list then names both, and each takes about half of the planted time.
const PAIRS: &[&str] = &["sleep_and_disk", "lock_and_work"];

struct Arguments {
    cause: String,
    planted: Duration,
    own_work: Duration,
    tracefs: PathBuf,
    dir: PathBuf,
    /// Whether hogs, or the quota, are left out.
    is_without: bool,
}

impl Arguments {
    /// So many hogs, or none.
    fn hogs(&self, count: usize) -> usize {
        if self.is_without { 0 } else { count }
    }
}

/// Writes the slice's begin and end.
struct Markers(File);

impl Markers {
    fn write(&mut self, text: &str) {
        self.0.write_all(text.as_bytes()).expect("trace_marker");
    }
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let [mode, socket] = words.as_slice()
        && mode == "--serve"
    {
        return serve(Path::new(socket));
    }
    let arguments = parse(&words);
    let path = CAUSES.iter().find(|(name, _)| *name == arguments.cause).expect("a known cause").1;
    let marker = arguments.tracefs.join("trace_marker");
    let mut markers = Markers(OpenOptions::new().write(true).open(marker).expect("trace_marker"));
    let is_pair = PAIRS.contains(&arguments.cause.as_str());
    let said = if is_pair {
        let sizes = plant_pair(&arguments, &mut markers).map(|size| size.as_nanos() as u64);
        serde_json::json!({ "cause": arguments.cause, "pair": path, "sizes": sizes })
    } else {
        let size = plant(&arguments, &mut markers).as_nanos() as u64;
        serde_json::json!({ "cause": arguments.cause, "path": path, "ns": size })
    };
    println!("{said}");
}

fn parse(words: &[String]) -> Arguments {
    let [cause, ms, rest @ ..] = words else { panic!("usage: planted_cause CAUSE MILLISECONDS") };
    let millis =
        |text: &String| Duration::from_micros((text.parse::<f64>().expect("milliseconds") * 1e3) as u64);
    let mut arguments = Arguments {
        cause: cause.clone(),
        planted: millis(ms),
        own_work: Duration::from_millis(5),
        tracefs: "/sys/kernel/tracing".into(),
        dir: std::env::temp_dir(),
        is_without: false,
    };
    for pair in rest.chunks(2) {
        let [name, value] = pair else { panic!("{pair:?} lacks a value") };
        match name.as_str() {
            "--tracefs" => arguments.tracefs = value.into(),
            "--dir" => arguments.dir = value.into(),
            "--own-work" => arguments.own_work = millis(value),
            "--without" => arguments.is_without = value == "yes",
            other => panic!("unknown option {other}"),
        }
    }
    arguments
}

/// Runs the slice: its own work, and `planted` in the middle of it, whose size is returned.
fn slice(arguments: &Arguments, planted: &mut dyn FnMut() -> Duration, markers: &mut Markers) -> Duration {
    let pid = std::process::id();
    markers.write(&format!("B|{pid}|planted"));
    compute(arguments.own_work / 2);
    let size = planted();
    compute(arguments.own_work / 2);
    markers.write(&format!("E|{pid}"));
    size
}

/// Runs the slice with two causes. Returns the size of each.
fn plant_pair(arguments: &Arguments, markers: &mut Markers) -> [Duration; 2] {
    let half = arguments.planted / 2;
    let mut first = Duration::ZERO;
    let slice =
        |prepared: &mut dyn FnMut() -> Duration, markers: &mut Markers| slice(arguments, prepared, markers);
    match arguments.cause.as_str() {
        "sleep_and_disk" => {
            let file = ColdFile::new(&arguments.dir);
            let both = &mut || {
                first = waiting_time(|| thread::sleep(half));
                file.read_for(half)
            };
            let second = slice(both, markers);
            [first, second]
        }
        "lock_and_work" => {
            with_holder_then(markers, &slice, move || compute(half), move || _ = compute(half));
            [half, half]
        }
        other => panic!("{other} cannot be planted"),
    }
}

/// Runs the slice. Returns the size of the planted cause.
fn plant(arguments: &Arguments, markers: &mut Markers) -> Duration {
    let planted = arguments.planted;
    let slice =
        |prepared: &mut dyn FnMut() -> Duration, markers: &mut Markers| slice(arguments, prepared, markers);
    match arguments.cause.as_str() {
        "none" => slice(&mut || Duration::ZERO, markers),
        "more_work" => slice(&mut || compute(planted), markers),
        "sleep" => slice(&mut || timed(|| thread::sleep(planted)), markers),
        "disk" => {
            let file = ColdFile::new(&arguments.dir);
            slice(&mut || file.read_for(planted), markers)
        }
        "lock_computing" => with_holder(markers, &slice, move || compute(planted)),
        "lock_sleeping" => with_holder(markers, &slice, move || timed(|| thread::sleep(planted))),
        "lock_reading" => {
            let file = ColdFile::new(&arguments.dir);
            with_holder(markers, &slice, move || file.read_for(planted))
        }
        "lock_chain" => lock_chain(markers, &slice, planted),
        "lock_with_time_outs" => wait_for_worker(markers, &slice, planted, TimedWait::TimeOuts),
        "lock_beside_broadcasts" => wait_for_worker(markers, &slice, planted, TimedWait::Broadcasts),
        "server" => ask_server(arguments, markers, &slice, false),
        "server_busy" => ask_server(arguments, markers, &slice, true),
        // Both also hold for the slice's own work.
        "hogs" => {
            let _hogs = Hogs::on_cpu_of_this_thread(arguments.hogs(2));
            beside_cpu_time(|| _ = slice(&mut || compute(planted / 2), markers))
        }
        "quota" => {
            let quota = if arguments.is_without { "-1" } else { "5000" };
            let _group = Group::new("cpu", &[("cpu.cfs_period_us", "20000"), ("cpu.cfs_quota_us", quota)]);
            beside_cpu_time(|| _ = slice(&mut || compute(planted / 4), markers))
        }
        "reclaim" => reclaim(arguments, markers, &slice),
        "inversion" => inversion(markers, &slice, planted, arguments.hogs(3)),
        "inversion_of_three" => inversion_of_three(markers, &slice, planted, arguments.hogs(3)),
        "interrupts" => interrupts(markers, &slice, planted),
        other => panic!("{other} cannot be planted"),
    }
}

type Slice<'a> = dyn Fn(&mut dyn FnMut() -> Duration, &mut Markers) -> Duration + 'a;

/// The slice waits for a lock that the thread `holder` has while it does `work`, which returns its size.
fn with_holder(
    markers: &mut Markers,
    slice: &Slice<'_>,
    work: impl FnOnce() -> Duration + Send + 'static,
) -> Duration {
    with_holder_then(markers, slice, work, || ())
}

/// [`with_holder`], and the slice does `own` behind its wait.
fn with_holder_then(
    markers: &mut Markers,
    slice: &Slice<'_>,
    work: impl FnOnce() -> Duration + Send + 'static,
    own: impl Fn(),
) -> Duration {
    let lock = Arc::new(Mutex::new(()));
    let holds = Arc::new(Barrier::new(2));
    let go = Arc::new(Barrier::new(2));
    let holder = {
        let lock = Arc::clone(&lock);
        let holds = Arc::clone(&holds);
        let go = Arc::clone(&go);
        named("holder", move || {
            let held = lock.lock().expect("the lock");
            holds.wait();
            go.wait();
            let size = work();
            drop(held);
            size
        })
    };
    holds.wait();
    let wait = &mut || {
        go.wait();
        let waited = timed(|| drop(lock.lock().expect("the lock")));
        own();
        waited
    };
    slice(wait, markers);
    holder.join().expect("the holder")
}

/// The slice waits for a lock whose holder waits for another one, whose holder does the work. Returns the
/// work's size.
fn with_two_holders(
    markers: &mut Markers,
    slice: &Slice<'_>,
    work: impl FnOnce() -> Duration + Send + 'static,
) -> Duration {
    let inner = Arc::new(Mutex::new(()));
    let holds = Arc::new(Barrier::new(2));
    let go = Arc::new(Barrier::new(2));
    let last = {
        let inner = Arc::clone(&inner);
        let holds = Arc::clone(&holds);
        let go = Arc::clone(&go);
        named("last_holder", move || {
            let held = inner.lock().expect("the inner lock");
            holds.wait();
            go.wait();
            let size = work();
            drop(held);
            size
        })
    };
    holds.wait();
    with_holder(markers, slice, move || {
        go.wait();
        drop(inner.lock().expect("the inner lock"));
        Duration::ZERO
    });
    last.join().expect("the last holder")
}

/// The slice waits for a lock whose holder waits for another one, whose holder computes.
fn lock_chain(markers: &mut Markers, slice: &Slice<'_>, planted: Duration) -> Duration {
    with_two_holders(markers, slice, move || {
        compute(planted);
        planted
    })
}

/// Why a wait is woken before it is over.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TimedWait {
    /// It has a time-out of 10 ms, and is asked for again.
    TimeOuts,
    /// A bystander wakes everybody each 3 ms.
    Broadcasts,
}

/// The slice waits until a worker has computed, and is woken in vain meanwhile.
fn wait_for_worker(markers: &mut Markers, slice: &Slice<'_>, planted: Duration, kind: TimedWait) -> Duration {
    let state = &(Mutex::new(false), Condvar::new());
    let start = &Barrier::new(2);
    thread::scope(|scope| {
        scope.spawn(move || {
            start.wait();
            compute(planted);
            *state.0.lock().expect("no thread panics") = true;
            state.1.notify_all();
        });
        scope.spawn(move || {
            while kind == TimedWait::Broadcasts && !*state.0.lock().expect("no thread panics") {
                thread::sleep(Duration::from_millis(3));
                state.1.notify_all();
            }
        });
        let time_out = Duration::from_millis(if kind == TimedWait::TimeOuts { 10 } else { 10_000 });
        let wait = &mut || {
            start.wait();
            timed(|| {
                let mut is_done = state.0.lock().expect("no thread panics");
                while !*is_done {
                    is_done = state.1.wait_timeout(is_done, time_out).expect("no thread panics").0;
                }
            })
        };
        slice(wait, markers)
    })
}

/// Hogs on the holder's CPU keep it from running.
fn inversion(markers: &mut Markers, slice: &Slice<'_>, planted: Duration, hogs: usize) -> Duration {
    with_holder(markers, slice, move || compute_beside_hogs(planted / 3, hogs))
}

/// The slice waits for a lock whose holder waits for another lock, whose holder hogs keep from running.
fn inversion_of_three(markers: &mut Markers, slice: &Slice<'_>, planted: Duration, hogs: usize) -> Duration {
    with_two_holders(markers, slice, move || compute_beside_hogs(planted / 3, hogs))
}

/// Computes while hogs take the CPU of this thread. Returns how long it was ready and had no CPU, also while
/// it started and ended them.
fn compute_beside_hogs(time: Duration, hogs: usize) -> Duration {
    let before = run_delay();
    let hogs = Hogs::on_cpu_of_this_thread(hogs);
    compute(time);
    drop(hogs);
    run_delay().saturating_sub(before)
}

/// Packets over loopback whose soft interrupts take the CPU of the slice: each is received in the interrupt
/// that its sending raises, on the CPU of the sender, which is the slice. The size is the interrupts' own
/// time on this CPU, by /proc/stat.
fn interrupts(markers: &mut Markers, slice: &Slice<'_>, planted: Duration) -> Duration {
    let cpu = nix::sched::sched_getcpu().expect("this CPU");
    let mut set = CpuSet::new();
    set.set(cpu).expect("a CPU");
    sched_setaffinity(Pid::from_raw(0), &set).expect("to stay on this CPU");
    let receiver = std::net::UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let sender = std::net::UdpSocket::bind("127.0.0.1:0").expect("a socket");
    sender.connect(receiver.local_addr().expect("its address")).expect("loopback");
    let packet = [0u8; 1400];
    slice(
        &mut || {
            let before = soft_interrupt_time(cpu);
            let start = Instant::now();
            while start.elapsed() < planted {
                let _ = sender.send(&packet);
            }
            soft_interrupt_time(cpu).saturating_sub(before)
        },
        markers,
    )
}

/// The time that a CPU has served hard and soft interrupts, as /proc/stat has it: to 10 ms.
fn soft_interrupt_time(cpu: usize) -> Duration {
    let stat = std::fs::read_to_string("/proc/stat").expect("/proc/stat");
    let name = format!("cpu{cpu} ");
    let line = stat.lines().find_map(|line| line.strip_prefix(&name)).expect("a line of this CPU");
    let ticks: Vec<u64> = line.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    // user, nice, system, idle, iowait, irq, softirq
    let [_, _, _, _, _, hard, soft, ..] = ticks.as_slice() else { panic!("{line}") };
    Duration::from_millis(10 * (hard + soft))
}

/// The slice asks a process of its own over a socket, which computes the answer.
fn ask_server(arguments: &Arguments, markers: &mut Markers, slice: &Slice<'_>, is_busy: bool) -> Duration {
    let socket = arguments.dir.join(format!("planted-{}.sock", std::process::id()));
    let listener = std::os::unix::net::UnixListener::bind(&socket).expect("a socket");
    let program = std::env::current_exe().expect("this program");
    let mut server = Command::new(program).arg("--serve").arg(&socket).spawn().expect("the server");
    let (mut own, _) = listener.accept().expect("the server's connection");
    let (mut other, _) = listener.accept().expect("the server's other connection");
    let share = if is_busy { arguments.planted / 2 } else { arguments.planted };
    let micros = u32::try_from(share.as_micros()).expect("a short time").to_le_bytes();
    slice(
        &mut || {
            timed(|| {
                if is_busy {
                    // The server takes this call first.
                    other.write_all(&micros).expect("the other call");
                }
                own.write_all(&micros).expect("the call");
                own.read_exact(&mut [0; 1]).expect("the answer");
            })
        },
        markers,
    );
    drop((own, other));
    server.wait().expect("the server's end");
    let _ = std::fs::remove_file(socket);
    arguments.planted
}

/// Answers calls: computes as long as each asks for. Calls of the second connection come first.
fn serve(socket: &Path) {
    let mut own = UnixStream::connect(socket).expect("the socket");
    let mut other = UnixStream::connect(socket).expect("the socket");
    other.set_nonblocking(true).expect("the socket");
    let mut micros = [0; 4];
    while own.read_exact(&mut micros).is_ok() {
        let mut before = [0; 4];
        if other.read_exact(&mut before).is_ok() {
            compute(Duration::from_micros(u32::from_le_bytes(before).into()));
        }
        compute(Duration::from_micros(u32::from_le_bytes(micros).into()));
        own.write_all(&[1]).expect("the client");
    }
}

/// The slice reads more of a file than its group may hold in memory, so that the kernel takes other pages
/// of it away for each. The file has holes alone, for which no disk is asked. The size is the time in which
/// the kernel's pressure-stall information saw a task waiting for memory.
fn reclaim(arguments: &Arguments, markers: &mut Markers, slice: &Slice<'_>) -> Duration {
    let limit: u64 = 16 << 20;
    let _group = Group::new("memory", &[("memory.limit_in_bytes", &limit.to_string())]);
    let file = ColdFile::of_holes(&arguments.dir);
    let planted = arguments.planted;
    slice(
        &mut || {
            let before = memory_stall();
            let start = Instant::now();
            while start.elapsed() < planted {
                file.fill_cache();
            }
            memory_stall().saturating_sub(before)
        },
        markers,
    )
}

/// How long tasks of this machine have waited for memory: the first line of /proc/pressure/memory.
fn memory_stall() -> Duration {
    let pressure = std::fs::read_to_string("/proc/pressure/memory").expect("pressure-stall information");
    let total = pressure.lines().next().and_then(|line| line.split_once("total="));
    Duration::from_micros(total.and_then(|(_, us)| us.parse().ok()).expect("a total in µs"))
}

/// A file whose pages are not in memory.
struct ColdFile {
    file: File,
    path: PathBuf,
}

impl ColdFile {
    fn new(dir: &Path) -> ColdFile {
        let cold = ColdFile::buffered(dir);
        let direct = OpenOptions::new().read(true).custom_flags(nix::libc::O_DIRECT).open(&cold.path);
        ColdFile { file: direct.expect("direct reads"), path: cold.path.clone() }.without(cold)
    }

    /// Keeps the file of `other`, whose name both have.
    fn without(self, other: ColdFile) -> ColdFile {
        std::mem::forget(other);
        self
    }

    fn of_holes(dir: &Path) -> ColdFile {
        let path = dir.join(format!("planted-{}.bin", std::process::id()));
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(true).open(&path);
        let file = file.expect("a file");
        file.set_len(FILE_BYTES).expect("a file of holes");
        ColdFile { file, path }
    }

    fn buffered(dir: &Path) -> ColdFile {
        let path = dir.join(format!("planted-{}.bin", std::process::id()));
        let mut file = File::create(&path).expect("a file");
        let block = vec![0x5a; 1 << 20];
        for _ in 0..FILE_BYTES >> 20 {
            file.write_all(&block).expect("the file");
        }
        file.sync_all().expect("the file on its disk");
        let file = OpenOptions::new().read(true).write(true).open(&path).expect("the file");
        ColdFile { file, path }
    }

    /// Reads from the disk for this long. Returns how long the thread waited for it.
    fn read_for(&self, time: Duration) -> Duration {
        // Direct reads need memory that begins at a page.
        let mut memory = vec![0u8; READ_BYTES + 4096];
        let from = memory.as_ptr().align_offset(4096);
        let start = Instant::now();
        waiting_time(|| {
            let mut at = 0;
            while start.elapsed() < time {
                let block = &mut memory[from..from + READ_BYTES];
                self.file.read_exact_at(block, at).expect("a read");
                at = (at + READ_BYTES as u64) % FILE_BYTES;
            }
        })
    }

    fn fill_cache(&self) {
        let mut block = vec![0u8; 1 << 20];
        for at in 0..FILE_BYTES >> 20 {
            let _ = self.file.read_at(&mut block, at << 20);
        }
    }
}

impl Drop for ColdFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Threads of other processes that take the CPU of this thread.
struct Hogs(Vec<Child>);

impl Hogs {
    fn on_cpu_of_this_thread(count: usize) -> Hogs {
        let cpu = nix::sched::sched_getcpu().expect("this CPU");
        let mut set = CpuSet::new();
        set.set(cpu).expect("a CPU");
        sched_setaffinity(Pid::from_raw(0), &set).expect("to stay on this CPU");
        let hog = |_| {
            let mut hog = Command::new("sh");
            // The affinity is inherited.
            hog.args(["-c", "while :; do :; done"]).stdin(Stdio::null()).spawn().expect("a hog")
        };
        let hogs = Hogs((0..count).map(hog).collect());
        thread::sleep(Duration::from_millis(20));
        hogs
    }
}

impl Drop for Hogs {
    fn drop(&mut self) {
        for hog in &mut self.0 {
            let _ = hog.kill();
            let _ = hog.wait();
        }
    }
}

/// A control group that this process is in (version 1 of cgroups).
struct Group {
    dir: PathBuf,
    parent: PathBuf,
    /// Whether the group is left behind, as groups of a phone are: whoever started the program removes it.
    stays: bool,
}

impl Group {
    fn new(controller: &str, settings: &[(&str, &str)]) -> Group {
        let parent = Path::new("/sys/fs/cgroup").join(controller);
        let dir = parent.join(format!("planted-{}", std::process::id()));
        std::fs::create_dir(&dir).expect("a control group");
        for (name, value) in settings {
            std::fs::write(dir.join(name), value).expect("a setting of the control group");
        }
        std::fs::write(dir.join("cgroup.procs"), std::process::id().to_string()).expect("to join the group");
        Group { dir, parent, stays: controller == "cpu" }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = std::fs::write(self.parent.join("cgroup.procs"), std::process::id().to_string());
        if !self.stays {
            let _ = std::fs::remove_dir(&self.dir);
        }
    }
}

fn named<T: Send + 'static>(name: &str, work: impl FnOnce() -> T + Send + 'static) -> thread::JoinHandle<T> {
    thread::Builder::new().name(name.to_owned()).spawn(work).expect("a thread")
}

fn timed(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).expect("the thread's CPU time");
    Duration::from(time)
}

/// How long the thread waited within the work: what is left of its time without that on the CPU, and without
/// that in which it was ready to run, as the scheduler counts it.
fn waiting_time(work: impl FnOnce()) -> Duration {
    let delay = run_delay();
    let beside = beside_cpu_time(work);
    beside.saturating_sub(run_delay().saturating_sub(delay))
}

/// How long this thread has been ready without a CPU: the second number of its `schedstat`.
fn run_delay() -> Duration {
    let statistics = std::fs::read_to_string("/proc/thread-self/schedstat").expect("schedstat");
    let ns = statistics.split_whitespace().nth(1).and_then(|number| number.parse().ok());
    Duration::from_nanos(ns.expect("a time in ns"))
}

/// How much longer the work took than the CPU had it.
fn beside_cpu_time(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    let cpu = cpu_time();
    work();
    start.elapsed().saturating_sub(cpu_time().saturating_sub(cpu))
}

/// Computes until the thread has had the CPU for this long, and returns that: what other programs do
/// meanwhile is not planted.
fn compute(time: Duration) -> Duration {
    let start = cpu_time();
    while cpu_time().saturating_sub(start) < time {
        std::hint::spin_loop();
    }
    time
}
