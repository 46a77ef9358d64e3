//! The reference launch: a stand-in for Android that plays the cold start of an app, for the demo, the
//! pictures and the tests. It is no part of the product.
//!
//! Two processes play. `system_server` asks for the launch, starts the app's process and says when its
//! first frame is on the screen, with the markers of the release chosen. The app binds, opens its code,
//! inflates its views, waits for a worker and for a lock, draws frames with its RenderThread, and writes an
//! ART method trace (version 3, both clocks) of its Java threads. Its work is real: it computes, reads a
//! file from the disk, and waits for other threads. The last line that is printed is JSON: when the launch
//! began and ended, and what there is to be found.
//!
//! With `--art` the app is a Java program on a real Android runtime, which a zygote forks (tools/art/app): its
//! method trace and the markers of its runtime are the runtime's own.
#![allow(missing_docs)]

mod app;
mod markers;
mod method_tracer;
mod system_server;
mod zygote;

#[path = "../../tests/support/src/art_writer.rs"]
#[allow(dead_code)]
mod art_writer;
#[path = "../stand_in/mod.rs"]
mod stand_in;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::{Parser, ValueEnum};
use nix::time::ClockId;

/// Plays the cold start of an app: markers, methods, files, locks and frames.
#[derive(Parser, Clone)]
struct Args {
    /// Where to write the method trace.
    #[arg(long, short, default_value = "launch.trace")]
    output: PathBuf,
    /// The app's package.
    #[arg(long, default_value = "com.example.feed")]
    package: String,
    /// The release whose system_server is played.
    #[arg(long, value_enum, default_value = "android12")]
    release: Release,
    /// Frames that the app draws, 60 a second.
    #[arg(long, default_value_t = 60)]
    frames: u64,
    /// The tracefs whose trace_marker is written; without it the system's own.
    #[arg(long)]
    tracefs: Option<PathBuf>,
    /// Compute a fixed number of steps in place of each CPU time: what slows the code down then shows in how
    /// long the launch takes.
    #[arg(long)]
    fixed_work: bool,
    /// Trace no methods.
    #[arg(long)]
    no_methods: bool,
    /// Short calls that the activity makes beside its others: for a method trace of any size.
    #[arg(long, default_value_t = 0)]
    more_calls: u64,
    /// The directory that scripts/art has made: its runtime plays the app.
    #[arg(long, conflicts_with = "fixed_work")]
    art: Option<PathBuf>,
    /// The app's part, for itself.
    #[arg(long, hide = true)]
    plays_app: bool,
}

/// How old the system is that writes the markers of a launch.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Release {
    /// Android 9 and before: `launching: PACKAGE`, and frames without numbers.
    Android9,
    /// Android 10 and 11: the slices of `MetricsLogger` around it.
    Android10,
    /// Android 12 and later: `launchingActivity#N`, and an instant with the type of the launch.
    Android12,
}

/// The clock of the times that are printed, which is the recorder's own: CLOCK_BOOTTIME, ns.
fn now_ns() -> u64 {
    stand_in::kernel_ns(ClockId::CLOCK_BOOTTIME)
}

/// Whether [`work`] computes a fixed number of steps.
static IS_WORK_FIXED: AtomicBool = AtomicBool::new(false);
/// Steps that stand for a microsecond, if so: what a current processor computes in about that time.
const STEPS_PER_US: u64 = 700;

fn steps(value: u64, count: u64) -> u64 {
    (0..count).fold(value, |a, b| a.wrapping_mul(31).wrapping_add(b))
}

/// Computes for this much of the thread's CPU time, µs, or what a processor can compute in it.
fn work(us: u64) {
    if IS_WORK_FIXED.load(Ordering::Relaxed) {
        std::hint::black_box(steps(us, us * STEPS_PER_US));
        return;
    }
    let clock = ClockId::CLOCK_THREAD_CPUTIME_ID;
    let until = stand_in::kernel_ns(clock) + us * 1000;
    let mut value = us;
    while stand_in::kernel_ns(clock) < until {
        value = steps(value, 64);
    }
    std::hint::black_box(value);
}

fn main() {
    let args = Args::parse();
    IS_WORK_FIXED.store(args.fixed_work, Ordering::Relaxed);
    let played = if args.plays_app { app::play(&args) } else { system_server::play(&args) };
    if let Err(error) = played {
        eprintln!("reference_launch: {error}");
        std::process::exit(1);
    }
}
