//! Writes markers into the ring of this process from several threads, and prints how many each thread wrote
//! and how many found the ring full. The tests compare that with a recording.
//!
//! Each thread writes instants `tN|NUMBER` in ascending order, of which the separator becomes a space. With
//! `--sections` it writes slices, and with `--beside` each marker to trace_marker too, and another one into
//! the ring behind that.
#![allow(missing_docs)]

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use clap::Parser;
use serde_json::json;
use tracebridge_markers::{Tag, Tracer, WithoutRecorder, use_ring};

#[derive(Parser, Clone)]
struct Args {
    /// Threads that write at the same time.
    #[arg(long, default_value_t = 8)]
    threads: u32,
    /// Markers of each thread.
    #[arg(long, default_value_t = 1000)]
    markers: u64,
    /// Sleep after so many markers, for a millisecond; 0 never sleeps.
    #[arg(long, default_value_t = 0)]
    burst: u64,
    /// Wait after so many markers until the recorder has read all that the thread has written, and do not
    /// sleep.
    #[arg(long)]
    until_read: bool,
    /// Write the same text to this trace_marker behind each marker, with `K` before it, and then a second
    /// marker into the ring, with `R` before it.
    #[arg(long)]
    beside: Option<String>,
    /// Start a new thread for each this many markers; 0 starts each thread once.
    #[arg(long, default_value_t = 0)]
    per_thread: u64,
    /// Write slices, half of the markers begins and half of them ends.
    #[arg(long)]
    sections: bool,
    /// Let no thread end before all have written: none takes the place of another in the ring.
    #[arg(long)]
    together: bool,
    /// Fork once, and write this many markers in the child.
    #[arg(long, default_value_t = 0)]
    fork: u64,
    /// Write the count of each thread, a u64, to this file after each marker: a kill leaves it there.
    #[arg(long)]
    journal: Option<PathBuf>,
    /// Wait this long for a recorder that wants markers, in milliseconds.
    #[arg(long, default_value_t = 200_000)]
    wait: u64,
    /// Run this program in place of this one at the end, in the same process.
    #[arg(last = true)]
    then: Vec<String>,
}

static TRACER: Tracer = Tracer::new(Tag::ALWAYS);

fn main() {
    let args = Args::parse();
    assert!(use_ring(WithoutRecorder::Nowhere), "this process can have no ring");
    let end = Instant::now() + Duration::from_millis(args.wait);
    // The text says that the program is ready to write, and from when on it is heard.
    while !TRACER.instant("ready") {
        if Instant::now() > end {
            eprintln!("ring_load: no recorder wants markers");
            std::process::exit(1);
        }
        thread::sleep(Duration::from_millis(1));
    }
    println!("{}", json!({ "pid": std::process::id() }));
    let child = (args.fork > 0).then(|| fork(&args));
    let end = &Barrier::new(if args.together { args.threads as usize } else { 1 });
    let args = &args;
    let counts: Vec<_> = thread::scope(|scope| {
        let run = move |n| {
            let counts = write_all(args, n);
            end.wait();
            counts
        };
        let threads: Vec<_> = (0..args.threads).map(|n| scope.spawn(move || run(n))).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("no thread panics")).collect()
    });
    if let Some(child) = child {
        nix::sys::wait::waitpid(child, None).expect("a child");
    }
    println!("{}", json!({ "pid": std::process::id(), "threads": counts }));
    if let Some((program, words)) = args.then.split_first() {
        panic!("{program}: {}", Command::new(program).args(words).exec());
    }
}

/// All markers of one thread, or of the threads that follow each other in its place.
fn write_all(args: &Args, number: u32) -> Vec<serde_json::Value> {
    if args.per_thread == 0 {
        return vec![write(args, number, 0, args.markers)];
    }
    let step = args.per_thread.max(1);
    let starts = (0..args.markers).step_by(step as usize);
    let one = |start| {
        let args = args.clone();
        let part = thread::spawn(move || write(&args, number, start, step.min(args.markers - start)));
        part.join().expect("no thread panics")
    };
    starts.map(one).collect()
}

fn write(args: &Args, number: u32, start: u64, count: u64) -> serde_json::Value {
    let mut beside =
        args.beside.as_ref().map(|path| File::options().write(true).open(path).expect("a trace_marker"));
    let journal = args.journal.as_ref().map(|path| {
        File::options().write(true).create(true).truncate(false).open(path).expect("the journal")
    });
    let own_ring = args.until_read.then(open_ring);
    let mut written = 0u64;
    let mut dropped = 0u64;
    let pid = std::process::id();
    let tid = nix::unistd::gettid().as_raw();
    let mut name = String::new();
    for n in start..start + count {
        use std::fmt::Write as _;
        name.clear();
        let _ = write!(name, "t{number} {n}");
        let kernel = beside.as_ref().map(|_| format!("I|{pid}|K{name}"));
        let is_written = if !args.sections {
            TRACER.instant(&name)
        } else if n % 2 == 0 {
            TRACER.begin(&name)
        } else {
            TRACER.end()
        };
        if let (Some(file), Some(text)) = (&mut beside, kernel) {
            let _ = file.write_all(text.as_bytes());
            name.insert(0, 'R');
            written += u64::from(TRACER.instant(&name));
        }
        *(if is_written { &mut written } else { &mut dropped }) += 1;
        if let Some(journal) = &journal {
            let _ = journal.write_at(&written.to_ne_bytes(), 8 * u64::from(number));
        }
        if args.burst > 0 && n % args.burst == args.burst - 1 {
            match &own_ring {
                Some(ring) => wait_until_read(ring, tid),
                None => thread::sleep(Duration::from_millis(1)),
            }
        }
    }
    json!({ "thread": number, "tid": tid, "written": written, "dropped": dropped })
}

/// The memory of this process's ring as a file.
fn open_ring() -> File {
    let links =
        std::fs::read_dir("/proc/self/fd").expect("the descriptors").flatten().map(|link| link.path());
    let is_ring = |link: &PathBuf| {
        std::fs::read_link(link).is_ok_and(|target| target.to_string_lossy().contains("tracebridge-ring"))
    };
    File::open(links.into_iter().find(is_ring).expect("a ring")).expect("the ring's memory")
}

/// Waits until the recorder has read the records of the block of this thread.
fn wait_until_read(ring: &File, tid: i32) {
    // The layout is that of ring/mod.rs in tracebridge-markers: behind the head, each block's control.
    const CONTROLS: u64 = 4096;
    const CONTROL_BYTES: usize = 128;
    const WRITTEN: usize = 4;
    const READ: usize = 64;
    let end = Instant::now() + Duration::from_secs(200);
    let mut controls = [0; 256 * CONTROL_BYTES];
    loop {
        ring.read_exact_at(&mut controls, CONTROLS).expect("the ring's memory");
        let number = |control: &[u8], at: usize| {
            u32::from_ne_bytes(control[at..at + 4].try_into().expect("four bytes"))
        };
        let mut own = controls.chunks(CONTROL_BYTES).filter(|control| number(control, 0) == tid as u32);
        if own.all(|control| number(control, WRITTEN) == number(control, READ)) {
            return;
        }
        assert!(Instant::now() < end, "the recorder does not read the ring");
        thread::sleep(Duration::from_millis(1));
    }
}

/// Forks. The child writes markers into a ring of its own, and ends.
#[allow(unsafe_code)]
fn fork(args: &Args) -> nix::unistd::Pid {
    // SAFETY: the process has one thread so far, so that the child may do whatever it could do.
    match unsafe { nix::unistd::fork() }.expect("a child") {
        nix::unistd::ForkResult::Parent { child } => child,
        nix::unistd::ForkResult::Child => {
            // The first marker makes the ring of the child.
            let end = Instant::now() + Duration::from_secs(10);
            while !TRACER.instant("child is ready") && Instant::now() < end {
                thread::sleep(Duration::from_millis(1));
            }
            (0..args.fork).for_each(|n| _ = TRACER.instant(&format!("child {n}")));
            std::process::exit(0);
        }
    }
}
