//! The cost of one marker: a bare `write(2)` of a ready string, libcutils's way (`snprintf` and `write`), and
//! ours.
//!
//! `cargo bench -p tracebridge-markers --bench marker` as root; `TRACEFS` names a mounted tracefs (else
//! `/sys/kernel/tracing`). Writes into an instance of its own. All run in turns, so that one ratio comes from
//! one run. With `--features ring` it then starts the recorder of `cargo build --release`, and measures
//! markers that go to a ring.
#![allow(unsafe_code)] // snprintf is the peer; kill(2) ends the recorder

use std::fs::{self, File, OpenOptions};
use std::hint::black_box;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use nix::libc;
use tracebridge_markers::{Tag, TagWatch, Tracer, WithoutRecorder, use_ring};

mod cpu_time;

use cpu_time::{median, median_ratio, ns_per_call};

const NAME: &str = "Choreographer#doFrame 1234567";
/// The variable that the library reads: the tracefs of static tracers.
const TRACEFS_VARIABLE: &str = "TRACEBRIDGE_TRACEFS";
const CALLS: u32 = 20_000;
const ROUNDS: usize = 60;

/// CPU ns per call.
fn time(call: impl FnMut()) -> f64 {
    ns_per_call(CALLS, call)
}

fn snprintf_and_write(file: &File, pid: i32, name: &std::ffi::CStr) {
    let mut buf = [const { std::mem::MaybeUninit::<u8>::uninit() }; 1024];
    // SAFETY: snprintf writes at most 1024 bytes into the buffer, NUL included, and tells how many it wanted
    // to; only that many initialised bytes are looked at.
    let text = unsafe {
        let len = libc::snprintf(buf.as_mut_ptr().cast(), buf.len(), c"B|%d|%s".as_ptr(), pid, name.as_ptr());
        std::slice::from_raw_parts(buf.as_ptr().cast::<u8>(), (len as usize).min(buf.len() - 1))
    };
    let _ = (&*file).write(text);
}

/// The calls in the order in which they run and are printed.
const CALLS_MEASURED: [&str; 11] = [
    "bare write",
    "snprintf + write",
    "begin",
    "end",
    "begin, static tracer",
    "counter",
    "async begin",
    "instant on a track",
    "begin, tag off",
    "begin, static tracer, tag off",
    "the loop itself",
];

static ALWAYS: Tracer = Tracer::new(Tag::ALWAYS);
static OFF: Tracer = Tracer::new(Tag::RRO);

/// Makes an instance, and runs this program again with it: a static tracer keeps its file open as long as its
/// process runs, and an instance that somebody has open cannot be removed.
fn main() {
    if let Some(instance) = std::env::var_os(TRACEFS_VARIABLE) {
        return race(&PathBuf::from(instance));
    }
    let tracefs = PathBuf::from(std::env::var_os("TRACEFS").unwrap_or_else(|| "/sys/kernel/tracing".into()));
    let instance = tracefs.join("instances/tracebridge-bench-marker");
    let _ = fs::create_dir(&instance);
    let this = std::env::current_exe().unwrap();
    let status = Command::new(this).env(TRACEFS_VARIABLE, &instance).status().unwrap();
    let _ = fs::remove_dir(&instance);
    std::process::exit(status.code().unwrap_or(1));
}

fn race(instance: &Path) {
    let own = instance.join("trace_marker").exists();
    let path = if own { instance.join("trace_marker") } else { PathBuf::from("/dev/null") };
    println!("markers go to {}", path.display());
    let file = OpenOptions::new().write(true).open(&path).unwrap();
    let tracer = Tracer::open_at(&path).unwrap();
    // A property area as Android has it, in which no tag was ever set: the head alone.
    let areas = std::env::temp_dir().join(format!("tracebridge-bench-{}", tracer.pid()));
    let head: Vec<u8> = [0u32, 0, 0x504f_5250, 0xfc6e_d0ab].into_iter().flat_map(u32::to_ne_bytes).collect();
    fs::write(&areas, [head, vec![0; 128]].concat()).unwrap();
    let watch = TagWatch::at(&areas, Tag::VIEW);
    assert!(watch.is_some());
    let off = Tracer::open_at(&path).unwrap().with_watch(watch);
    assert!(!own || ALWAYS.instant("static"), "the static tracer does not write into the instance");
    let ready = format!("B|{}|{NAME}", tracer.pid());
    let name = std::ffi::CString::new(NAME).unwrap();

    let mut rounds: [Vec<f64>; CALLS_MEASURED.len()] = Default::default();
    for _ in 0..ROUNDS {
        let times = [
            time(|| drop(black_box((&file).write(ready.as_bytes())))),
            time(|| snprintf_and_write(&file, tracer.pid(), &name)),
            time(|| _ = black_box(tracer.begin(black_box(NAME)))),
            time(|| _ = black_box(tracer.end())),
            time(|| _ = black_box(ALWAYS.begin(black_box(NAME)))),
            time(|| _ = black_box(ALWAYS.counter(black_box("bytes in flight"), black_box(123_456_789)))),
            time(|| _ = black_box(ALWAYS.async_begin(black_box(NAME), black_box(1234)))),
            time(|| _ = black_box(ALWAYS.track_instant(black_box("network"), black_box("retry")))),
            time(|| _ = black_box(off.begin(black_box(NAME)))),
            time(|| _ = black_box(OFF.begin(black_box(NAME)))),
            time(|| _ = black_box(black_box(NAME).is_empty())),
        ];
        rounds.iter_mut().zip(times).for_each(|(round, time)| round.push(time));
    }
    for (what, times) in CALLS_MEASURED.iter().zip(&rounds) {
        let ratio = median_ratio(times, &rounds[0]);
        println!("{what:<30} {:>8.2} CPU-ns   {ratio:>5.3} x a bare write", median(times.clone()));
    }
    let _ = fs::remove_file(&areas);
    if use_ring(WithoutRecorder::Nowhere) {
        race_ring(instance);
    }
}

/// Calls between two pauses in which the recorder empties the ring. A block holds some 2700 markers of this
/// length, and a marker that finds it full costs less than one that is written.
const RING_CALLS: u32 = 2000;
const RING_ROUNDS: usize = 200;

/// A recorder of its own, which ends with this value.
struct Recorder(Child, PathBuf);

impl Recorder {
    /// `None` where the recorder is not built: `target/release/tracebridge`.
    fn start(instance: &Path) -> Option<Recorder> {
        let capture = std::env::temp_dir().join(format!("tracebridge-bench-{}.dat", std::process::id()));
        let this = std::env::current_exe().ok()?;
        let mut command = Command::new(this.parent()?.parent()?.join("tracebridge"));
        let tracefs = instance.parent()?.parent()?;
        command.args(["record", "sched", "--instance", "tracebridge-bench-ring", "--tracefs"]).arg(tracefs);
        let child = command.arg("-o").arg(&capture).stdout(Stdio::null()).spawn().ok()?;
        Some(Recorder(child, capture))
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        // SAFETY: the call takes two numbers. The child is not waited for yet, so the number is its own.
        unsafe { libc::kill(self.0.id() as libc::pid_t, libc::SIGINT) };
        let _ = self.0.wait();
        let _ = fs::remove_file(&self.1);
    }
}

/// CPU ns of each round of a thread that writes into the ring, in pauses of which the recorder empties it.
fn ring_rounds(mut call: impl FnMut() -> bool) -> Vec<f64> {
    let mut dropped = 0u32;
    let mut rounds = Vec::new();
    while rounds.len() < RING_ROUNDS {
        let before = dropped;
        let ns = ns_per_call(RING_CALLS, || dropped += u32::from(!black_box(call())));
        // A round in which the ring was full says nothing of a marker.
        if dropped == before || dropped > 200 * RING_CALLS {
            rounds.push(ns);
        }
        std::thread::sleep(Duration::from_millis(8));
    }
    rounds
}

fn race_ring(instance: &Path) {
    type Row = (&'static str, fn() -> bool);
    let idle = (0..ROUNDS).map(|_| time(|| _ = black_box(ALWAYS.begin(black_box(NAME)))));
    println!("{:<30} {:>8.2} CPU-ns", "ring, nobody records", median(idle.collect()));
    let Some(_recorder) = Recorder::start(instance) else {
        return println!("no recorder (cargo build --release): the ring is not measured");
    };
    for _ in 0..500 {
        if ALWAYS.instant("ready") {
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(ALWAYS.instant("ready"), "no recorder wants markers");
    let begin = || ALWAYS.begin(black_box(NAME));
    let rows: [Row; 4] = [
        ("ring, begin", || ALWAYS.begin(black_box(NAME))),
        ("ring, end", || ALWAYS.end()),
        ("ring, counter", || ALWAYS.counter(black_box("bytes in flight"), black_box(123_456_789))),
        ("ring, instant on a track", || ALWAYS.track_instant(black_box("network"), black_box("retry"))),
    ];
    for (what, call) in rows {
        println!("{what:<30} {:>8.2} CPU-ns", median(ring_rounds(call)));
    }
    let two: Vec<f64> = std::thread::scope(|scope| {
        let threads = [(); 2].map(|()| scope.spawn(move || median(ring_rounds(begin))));
        threads.map(|thread| thread.join().unwrap()).to_vec()
    });
    println!("{:<30} {:>8.2} and {:.2} CPU-ns", "ring, begin, two threads", two[0], two[1]);
}
