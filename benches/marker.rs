//! What one marker costs: a bare `write(2)` of a ready string, libcutils's way (`snprintf` and `write`), and
//! ours.
//!
//! `cargo bench --bench marker` as root; `TRACEFS` names a mounted tracefs (else `/sys/kernel/tracing`).
//! Writes into an instance of its own. All three run in turns, so that one ratio comes from one run.
#![allow(unsafe_code)] // snprintf is the peer

use std::fs::{self, File, OpenOptions};
use std::hint::black_box;
use std::io::Write;
use std::path::PathBuf;
use std::time::Instant;

use nix::libc;
use tracebridge::markers::Tag;
use tracebridge::markers::TagWatch;
use tracebridge::markers::Tracer;

const NAME: &str = "Choreographer#doFrame 1234567";
const CALLS: u32 = 20_000;
const ROUNDS: usize = 60;

/// ns per call.
fn time(mut call: impl FnMut()) -> f64 {
    let start = Instant::now();
    for _ in 0..CALLS {
        call();
    }
    start.elapsed().as_nanos() as f64 / f64::from(CALLS)
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

fn main() {
    let tracefs = PathBuf::from(std::env::var_os("TRACEFS").unwrap_or_else(|| "/sys/kernel/tracing".into()));
    let instance = tracefs.join("instances/tracebridge-bench-marker");
    let _ = fs::create_dir(&instance);
    let own = instance.join("trace_marker").exists();
    let path = if own { instance.join("trace_marker") } else { PathBuf::from("/dev/null") };
    println!("markers go to {}", path.display());
    let file = OpenOptions::new().write(true).open(&path).unwrap();
    let tracer = Tracer::open_at(&path).unwrap();
    // A property area as Android has it, in which no tag was ever set: the head alone.
    let areas = std::env::temp_dir().join(format!("tracebridge-bench-{}", tracer.pid()));
    let head: Vec<u8> = [0u32, 0, 0x504f_5250, 0xfc6e_d0ab].into_iter().flat_map(u32::to_ne_bytes).collect();
    fs::write(&areas, [head, vec![0; 128]].concat()).unwrap();
    let watch = TagWatch::at(&areas, Tag::find("view").unwrap());
    assert!(watch.is_some());
    let off = Tracer::open_at(&path).unwrap().with_watch(watch);
    let ready = format!("B|{}|{NAME}", tracer.pid());
    let name = std::ffi::CString::new(NAME).unwrap();

    let mut rounds: [Vec<f64>; 6] = Default::default();
    for _ in 0..ROUNDS {
        rounds[0].push(time(|| {
            let _ = black_box((&file).write(ready.as_bytes()));
        }));
        rounds[1].push(time(|| snprintf_and_write(&file, tracer.pid(), &name)));
        rounds[2].push(time(|| {
            let _ = black_box(tracer.begin(black_box(NAME)));
        }));
        rounds[3].push(time(|| {
            let _ = black_box(tracer.end());
        }));
        rounds[4].push(time(|| {
            let _ = black_box(off.begin(black_box(NAME)));
        }));
        rounds[5].push(time(|| {
            let _ = black_box(black_box(NAME).is_empty());
        }));
    }
    let median = |n: usize| {
        let mut all = rounds[n].clone();
        all.sort_by(f64::total_cmp);
        all[all.len() / 2]
    };
    // Each round's ratio to that round's bare write: what else the machine does hits both.
    let ratio = |n: usize| {
        let mut all: Vec<f64> = rounds[n].iter().zip(&rounds[0]).map(|(a, b)| a / b).collect();
        all.sort_by(f64::total_cmp);
        all[all.len() / 2]
    };
    for (n, what) in ["bare write", "snprintf + write", "begin", "end", "begin, tag off", "the loop itself"]
        .iter()
        .enumerate()
    {
        println!("{what:<18} {:>8.2} ns   {:>5.3} x a bare write", median(n), ratio(n));
    }
    drop((file, tracer, off));
    let _ = fs::remove_file(&areas);
    if own {
        let _ = fs::remove_dir(&instance);
    }
}
