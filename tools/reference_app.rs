//! The reference app: stands in for an Android app in the tests and the demo, and is no part of the product.
//!
//! Threads of known names make nested calls of known methods. Around each call it writes a real
//! `B|pid|Class.method` and `E|pid` to the kernel's trace_marker, or with `--ring` to a ring in its memory,
//! and of the very same calls it writes an ART method trace (version 3, both clocks). So every method's enter
//! and exit has a marker that it can be checked against. It prints what it did as JSON.
#![allow(missing_docs)]

#[path = "../tests/support/src/art_writer.rs"]
#[allow(dead_code)]
mod art_writer;
#[path = "stand_in/mod.rs"]
mod stand_in;

use std::fs::{self, File};
use std::io::Write;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use art_writer::{Action, ArtTrace, Method, Record};
use clap::Parser;
use nix::time::ClockId;
use serde_json::json;
use stand_in::{Epoch, Era, become_package, kernel_ns, set_comm};
use tracebridge_markers::{Tag, Tracer, WithoutRecorder, use_ring};

/// Makes nested calls in several threads, and leaves markers and an ART method trace of them.
#[derive(Parser, Clone)]
struct Args {
    /// Where to write the method trace.
    #[arg(long, short, default_value = "app.trace")]
    output: PathBuf,
    /// Threads, the main one included (at least 1).
    #[arg(long, default_value_t = 4)]
    threads: u16,
    /// Methods on the stack at the deepest; each calls the next one twice.
    #[arg(long, default_value_t = 5)]
    depth: u32,
    /// At least this many calls in each thread, unless the duration ends first.
    #[arg(long, default_value_t = 1000)]
    calls: u64,
    /// At most this long, in milliseconds.
    #[arg(long, default_value_t = 60_000)]
    duration: u64,
    /// Sleep between two calls from the outside, in microseconds.
    #[arg(long, default_value_t = 500)]
    pause: u64,
    /// Process name, as a package has it; the main thread's name is its last 15 characters, as on Android.
    #[arg(long, default_value = "com.example.reference")]
    process: String,
    /// Which runtime to be, by its clocks and thread ids.
    #[arg(long, value_enum, default_value = "art14")]
    era: Era,
    /// Write the trace as a runtime does that streams it to the file.
    #[arg(long)]
    streaming: bool,
    /// Write the markers into a ring.
    #[arg(long)]
    ring: bool,
}

/// Writes the markers with `--ring`.
static RING: Tracer = Tracer::new(Tag::ALWAYS);

/// Full thread names after `main`, taken in turn: two of one name, some longer than the kernel's 15
/// characters.
const THREAD_NAMES: [&str; 6] = [
    "RenderThread",
    "pool-1-thread-1",
    "pool-1-thread-1",
    "OkHttp ConnectionPool dispatcher",
    "com.example.reference.Loader",
    "AsyncTask #1",
];
/// How many records a thread collects before they go to the trace, as the runtime does it.
const FLUSH: usize = 4096;

/// State that all threads share.
struct Shared {
    args: Args,
    epoch: Epoch,
    marker: Option<File>,
    /// The names of the methods, for markers in a ring.
    names: Vec<String>,
    /// The markers' texts, by method: made before, so that nothing but the write lies between clock and
    /// marker.
    begins: Vec<String>,
    end: String,
    deadline: Instant,
    trace: Mutex<ArtTrace>,
    done: Mutex<Vec<serde_json::Value>>,
}

/// One thread of the app.
struct Worker<'a> {
    shared: &'a Shared,
    id: u16,
    cpu_start: Option<u64>,
    records: Vec<Record>,
    calls: u64,
    markers: u64,
    markers_failed: u64,
}

impl<'a> Worker<'a> {
    fn run(shared: &'a Shared, number: u16, name: &'a str) {
        let tid = nix::unistd::gettid().as_raw();
        let id = if matches!(shared.args.era, Era::ArtCounter | Era::Art14) { number } else { tid as u16 };
        shared.trace.lock().expect("no thread panics").threads.push((id, name.to_owned()));
        let records = Vec::with_capacity(FLUSH + 1);
        let mut worker =
            Worker { shared, id, cpu_start: None, records, calls: 0, markers: 0, markers_failed: 0 };
        while worker.calls < shared.args.calls && Instant::now() < shared.deadline {
            worker.call(0);
            thread::sleep(Duration::from_micros(shared.args.pause));
        }
        worker.flush();
        let comm = fs::read_to_string("/proc/thread-self/comm").unwrap_or_default();
        shared.done.lock().expect("no thread panics").push(json!({
            "id": id, "tid": tid, "name": name, "comm": comm.trim_end(), "calls": worker.calls,
            "markers": worker.markers, "markers_failed": worker.markers_failed,
        }));
    }

    /// One call of the method of this depth, and what it calls. The trace's instants lie outside of the
    /// markers', as they do for a method that begins and ends a section; the clock nearer to the marker is
    /// the wall clock.
    fn call(&mut self, depth: u32) {
        let method = depth % self.shared.args.depth.max(1);
        let cpu_us = self.cpu_us();
        let wall_us = self.shared.epoch.wall_us();
        self.mark(Some(method as usize));
        self.records.push(Record { thread: self.id, method, action: Action::Enter, cpu_us, wall_us });
        self.calls += 1;

        if depth + 1 < self.shared.args.depth {
            self.call(depth + 1);
            self.call(depth + 1);
        } else if self.calls.is_multiple_of(16) {
            thread::sleep(Duration::from_micros(50));
        } else {
            std::hint::black_box((0..200u64).fold(self.calls, |a, b| a.wrapping_mul(31).wrapping_add(b)));
        }

        self.mark(None);
        let wall_us = self.shared.epoch.wall_us();
        let cpu_us = self.cpu_us();
        self.records.push(Record { thread: self.id, method, action: Action::Exit, cpu_us, wall_us });
        if depth == 0 && self.records.len() >= FLUSH {
            self.flush();
        }
    }

    fn cpu_us(&mut self) -> u32 {
        let now = kernel_ns(ClockId::CLOCK_THREAD_CPUTIME_ID);
        ((now - *self.cpu_start.get_or_insert(now)) / 1000) as u32
    }

    /// Marks that the method begins, or that the newest one ends.
    fn mark(&mut self, begins: Option<usize>) {
        let shared = self.shared;
        let is_written = if shared.args.ring {
            begins.map_or_else(|| RING.end(), |method| RING.begin(&shared.names[method]))
        } else {
            let text = begins.map_or(&shared.end, |method| &shared.begins[method]);
            shared.marker.as_ref().is_some_and(|mut file| file.write_all(text.as_bytes()).is_ok())
        };
        // Where it is not written, nobody records, or nobody may.
        *(if is_written { &mut self.markers } else { &mut self.markers_failed }) += 1;
    }

    fn flush(&mut self) {
        self.shared.trace.lock().expect("no thread panics").records.append(&mut self.records);
    }
}

const CLASS: &str = "com.example.reference.Work";

fn method_name(index: u32) -> String {
    match index {
        0 => "onCreate".into(),
        1 => "inflate".into(),
        n => format!("level{n}"),
    }
}

fn main() {
    let args = Args::parse();
    become_package(&args.process);
    set_comm(&args.process);
    let marker = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"]
        .iter()
        .find_map(|dir| File::options().write(true).open(format!("{dir}/trace_marker")).ok());
    let pid = std::process::id();
    let depth = args.depth.max(1);
    let methods = (0..depth).map(|index| Method::new(CLASS, &method_name(index))).collect();
    if args.ring && !use_ring(WithoutRecorder::Nowhere) {
        eprintln!("reference_app: this process can have no ring");
        std::process::exit(1);
    }
    if args.ring {
        // A recorder looks for new rings four times a second; what is traced is to be in the ring wholly.
        std::thread::sleep(std::time::Duration::from_millis(600));
    }
    let epoch = Epoch::now(args.era);
    let shared = Arc::new(Shared {
        marker,
        names: (0..depth).map(|index| format!("{CLASS}.{}", method_name(index))).collect(),
        begins: (0..depth).map(|index| format!("B|{pid}|{CLASS}.{}", method_name(index))).collect(),
        end: format!("E|{pid}"),
        deadline: Instant::now() + Duration::from_millis(args.duration),
        trace: Mutex::new(ArtTrace {
            dalvik: args.era == Era::Dalvik,
            start_us: epoch.start / 1000,
            pid,
            methods,
            ..ArtTrace::default()
        }),
        done: Mutex::new(Vec::new()),
        epoch,
        args,
    });

    let workers: Vec<_> = (2..=shared.args.threads.max(1))
        .zip(THREAD_NAMES.iter().cycle())
        .map(|(number, name)| {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                set_comm(name);
                Worker::run(&shared, number, name);
            })
        })
        .collect();
    Worker::run(&shared, 1, "main");
    for worker in workers {
        worker.join().expect("no thread panics");
    }

    let mut trace = shared.trace.lock().expect("no thread panics");
    trace.elapsed_us = u64::from(shared.epoch.wall_us());
    let bytes = if shared.args.streaming { trace.to_streaming_bytes(true) } else { trace.to_bytes() };
    let output = &shared.args.output;
    if let Err(error) = fs::write(output, bytes) {
        eprintln!("reference_app: {}: {error}", output.display());
        std::process::exit(1);
    }
    println!(
        "{}",
        json!({
            "process": shared.args.process, "pid": pid, "start_us": trace.start_us,
            "records": trace.records.len(), "methods": trace.methods.len(),
            "threads": *shared.done.lock().expect("no thread panics"),
        })
    );
}
