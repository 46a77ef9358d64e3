//! What one marker costs: a bare `write(2)` of a ready string, libcutils's way (`snprintf` and `write`), and
//! ours.
//!
//! `cargo bench --bench marker` as root; `TRACEFS` names a mounted tracefs (else `/sys/kernel/tracing`).
//! Writes into an instance of its own. All run in turns, so that one ratio comes from one run.
#![allow(unsafe_code)] // snprintf is the peer

use std::fs::{self, File, OpenOptions};
use std::hint::black_box;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use nix::libc;
use nix::time::{ClockId, clock_gettime};
use tracebridge::markers::{Tag, TagWatch, Tracer};

const NAME: &str = "Choreographer#doFrame 1234567";
/// The variable that the library reads: the tracefs of static tracers.
const TRACEFS_VARIABLE: &str = "TRACEBRIDGE_TRACEFS";
const CALLS: u32 = 20_000;
const ROUNDS: usize = 60;

/// CPU ns per call: what else the machine does costs time, but no CPU time of this thread.
fn time(mut call: impl FnMut()) -> f64 {
    let cpu_ns = || {
        let now = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).unwrap();
        now.tv_sec() as f64 * 1e9 + now.tv_nsec() as f64
    };
    let start = cpu_ns();
    for _ in 0..CALLS {
        call();
    }
    (cpu_ns() - start) / f64::from(CALLS)
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
    let median = |mut all: Vec<f64>| {
        all.sort_by(f64::total_cmp);
        all[all.len() / 2]
    };
    for (what, times) in CALLS_MEASURED.iter().zip(&rounds) {
        // Each round's ratio to that round's bare write: what else the machine does hits both.
        let ratio = median(times.iter().zip(&rounds[0]).map(|(a, b)| a / b).collect());
        println!("{what:<30} {:>8.2} CPU-ns   {ratio:>5.3} x a bare write", median(times.clone()));
    }
    let _ = fs::remove_file(&areas);
}
