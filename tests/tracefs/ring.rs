//! Markers in rings: programs write them into their memory, `record` reads them, and every reader of the
//! capture shows them. The counts of the programs are compared with those of the capture.
//!
//! The tests run a small version of each load. `cargo test … ring -- --ignored` runs the large ones.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::OnceLock;
use std::time::Duration;
use support::{Child, Command, Ran, until};

use nix::sys::signal::Signal;
use serde_json::Value;
use tracebridge::formats::trace_dat::TraceDat;
use tracebridge::formats::{Event, EventType, Order, Sink};

use crate::capture::{self, assert_same_events};
use crate::recording::record;
use crate::tracefs_fixture::{Knobs, Lines, Machine, Recorder, machine, wait_for_tracing};
use support::{has_program, tracebridge};

/// The program that writes into a ring.
pub fn ring_load() -> Command {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    Command::new(PROGRAM.get_or_init(|| support::example("ring_load")))
}

/// A running program with a ring, whose first line said that a recorder wants its markers.
pub struct Load {
    pub child: Child,
    output: Lines,
    pub pid: i32,
}

/// The numbers of markers that a thread of the load wrote and dropped.
#[derive(Debug, Clone, Copy)]
pub struct Count {
    /// The thread's number in its markers.
    thread: u64,
    tid: i32,
    pub written: u64,
    pub dropped: u64,
}

impl Load {
    /// Starts the program, before or after the recorder.
    pub fn start(args: &[&str]) -> Child {
        ring_load().args(args).stdout(Stdio::piped()).spawn().unwrap()
    }

    pub fn heard(mut child: Child) -> Load {
        let output = Lines::new(&mut child);
        let mut load = Load { child, output, pid: 0 };
        load.pid = load.ready();
        load
    }

    /// Reads the line that says that a recorder wants the program's markers. Returns its process id.
    pub fn ready(&mut self) -> i32 {
        self.output.next_json()["pid"].as_i64().unwrap() as i32
    }

    /// Reads the line with the counts of its threads.
    pub fn written(&mut self) -> Vec<Count> {
        let counts = self.output.next_json();
        let number = |thread: &Value, key: &str| thread[key].as_u64().unwrap();
        let of = |thread: &Value| Count {
            thread: number(thread, "thread"),
            tid: number(thread, "tid") as i32,
            written: number(thread, "written"),
            dropped: number(thread, "dropped"),
        };
        counts["threads"].as_array().unwrap().iter().map(of).collect()
    }

    /// The counts of its threads, when it has ended.
    pub fn counts(mut self) -> Vec<Count> {
        let counts = self.written();
        assert!(self.child.wait().unwrap().success());
        counts
    }
}

/// How many rings a process has open.
pub fn open_rings(pid: u32) -> usize {
    let links = fs::read_dir(format!("/proc/{pid}/fd")).unwrap().flatten();
    let is_ring = |link: PathBuf| link.to_string_lossy().contains("tracebridge-ring");
    links.filter(|link| fs::read_link(link.path()).is_ok_and(is_ring)).count()
}

/// Waits until the recorder has let go of all rings.
pub fn wait_until_no_ring_is_read(recorder: &Recorder) {
    until("a recorder that has no ring open", || open_rings(recorder.id()) == 0);
}

/// A recorder that runs until it is told to stop.
pub fn start_recorder(machine: &Machine, dir: &Path, args: &[&str]) -> Recorder {
    let recorder = Recorder::start(record(machine, dir, &[&["sched"], args].concat()), dir);
    wait_for_tracing(&machine.root);
    recorder
}

pub fn stop(recorder: Recorder) -> Ran {
    recorder.signal(Signal::SIGINT);
    recorder.finish()
}

/// A marker of a capture: ns, thread id, text.
pub type Marker = (u64, i32, String);

/// Collects the markers of a capture.
#[derive(Default)]
struct MarkerCollector(Vec<Marker>);

impl Sink for MarkerCollector {
    fn event(&mut self, event: &Event<'_>, kind: &EventType) -> io::Result<()> {
        if kind.name == "print"
            && let Some(field) = kind.fields.iter().position(|field| field.name == "buf")
            && let Some(text) = event.text(kind, field)
        {
            self.0.push((event.ts.0, event.tid.0, String::from_utf8_lossy(text).trim_end().to_owned()));
        }
        Ok(())
    }
}

/// The markers of a capture in order of time, those of the kernel and those of rings.
pub fn markers(capture: &Path) -> Vec<Marker> {
    let bytes = fs::read(capture).unwrap();
    let mut collector = MarkerCollector::default();
    let report = TraceDat::open(&bytes).unwrap().read(Order::Time, &mut collector).unwrap();
    let is_of_rings = |what: &str| what.contains("rings of programs were given up");
    assert!(report.damage.iter().all(|damage| is_of_rings(&damage.what)), "{:?}", report.damage);
    collector.0
}

/// The markers of each thread of the load, by the number in their text: instants `I|PID|tTHREAD N`.
pub fn numbers(markers: &[Marker], pid: i32) -> BTreeMap<(u64, i32), Vec<u64>> {
    let prefix = format!("I|{pid}|t");
    let mut of: BTreeMap<(u64, i32), Vec<u64>> = BTreeMap::new();
    for (_, tid, text) in markers {
        let Some((thread, n)) = text.strip_prefix(&prefix).and_then(|rest| rest.split_once(' ')) else {
            continue;
        };
        of.entry((thread.parse().unwrap(), *tid)).or_default().push(n.parse().unwrap());
    }
    of
}

fn assert_in_order(markers: &[Marker]) {
    let mut last: BTreeMap<i32, u64> = BTreeMap::new();
    for (ns, tid, text) in markers {
        let before = last.insert(*tid, *ns).unwrap_or(0);
        assert!(before <= *ns, "thread {tid} goes back from {before} to {ns} at {text}");
    }
}

/// Compares what a program with a ring wrote and dropped with the summary and with the capture's markers.
pub fn check_program(program: &Value, counts: &[Count], markers: &[Marker], pid: i32) {
    let dropped: u64 = counts.iter().map(|count| count.dropped).sum();
    let written: u64 = counts.iter().map(|count| count.written).sum();
    assert_eq!(program["dropped"], dropped, "{program}");
    // The first marker says that the program is ready.
    assert_eq!(program["markers"], written + 1, "{program}");
    for thread in program["threads"].as_array().unwrap() {
        let own = counts.iter().find(|count| thread["tid"] == count.tid).unwrap();
        assert_eq!((&thread["markers"], &thread["dropped"]), (&own.written.into(), &own.dropped.into()));
    }
    let numbers = numbers(markers, pid);
    for Count { thread, tid, written, .. } in counts {
        let of_thread = numbers.get(&(*thread, *tid)).map_or(&[][..], Vec::as_slice);
        assert_eq!(of_thread.len() as u64, *written, "thread {thread}");
        assert!(of_thread.is_sorted_by(|a, b| a < b), "thread {thread} is out of order");
    }
}

/// Runs a load, and compares what its threads wrote and dropped with the capture and with the summary.
/// Returns the number of dropped markers.
fn check_load(args: &[&str], threads: usize) -> u64 {
    let Some(machine) = machine() else { return 0 };
    let knobs = Knobs::read(&machine.root);
    let dir = support::tempdir();
    let child = Load::start(args);
    let recorder = start_recorder(&machine, dir.path(), &[]);
    let load = Load::heard(child);
    let pid = load.pid;
    let counts = load.counts();
    let out = stop(recorder);
    assert_eq!(knobs.changed(&machine.root), [""; 0]);
    let summary = out.json();
    let dropped: u64 = counts.iter().map(|count| count.dropped).sum();
    let written: u64 = counts.iter().map(|count| count.written).sum();
    let kernel_lost = summary["cpus"].as_array().unwrap().iter().any(|c| c["overrun"] != 0);
    assert_eq!(out.code(), Some(if dropped > 0 || kernel_lost { 3 } else { 0 }), "{summary}");
    let capture = dir.path().join("x.dat");
    let markers = markers(&capture);
    assert_in_order(&markers);
    assert_eq!(numbers(&markers, pid).len(), threads);
    check_program(&summary["rings"]["programs"][0], &counts, &markers, pid);
    let info = tracebridge().args(["info"]).arg(&capture).run();
    let text = &info.stdout;
    assert_eq!(text.contains(&format!("{dropped} markers were dropped")), dropped > 0, "{text}");
    eprintln!("{args:?}: {written} written, {dropped} dropped, late {}", summary["rings"]["late"]);
    dropped
}

#[test]
fn ring_markers_that_come_slower_than_the_drain_are_all_in_the_capture() {
    let dropped = check_load(&["--threads", "8", "--markers", "20000", "--burst", "1000", "--until-read"], 8);
    assert_eq!(dropped, 0);
}

#[test]
fn ring_markers_that_come_faster_than_the_drain_are_in_the_capture_or_counted() {
    check_load(&["--threads", "8", "--markers", "200000"], 8);
}

#[test]
#[ignore = "10 million markers in each direction take minutes"]
fn ring_of_10_million_markers_in_each_direction() {
    check_load(&["--threads", "8", "--markers", "1250000"], 8);
    let dropped =
        check_load(&["--threads", "8", "--markers", "1250000", "--burst", "1000", "--until-read"], 8);
    assert_eq!(dropped, 0);
}

#[test]
fn ring_blocks_are_shared_by_threads_that_come_and_go() {
    check_load(&["--threads", "2", "--markers", "3000", "--per-thread", "3"], 2000);
}

/// Writes a marker into the ring, one to trace_marker, and another one into the ring. Where the two of the
/// ring are closest to each other, nothing came between the three: their distances are those of the clocks.
#[test]
fn ring_times_are_those_of_trace_marker() {
    const COUNT: usize = 20_000;
    /// On the busiest machine so many of the threes are not interrupted.
    const UNINTERRUPTED: usize = COUNT / 10;
    let Some(machine) = machine() else { return };
    let dir = support::tempdir();
    let beside = machine.root.join("trace_marker");
    let args = [
        "--threads",
        "1",
        "--markers",
        "20000",
        "--burst",
        "1000",
        "--until-read",
        "--beside",
        beside.to_str().unwrap(),
    ];
    let child = Load::start(&args);
    let recorder = start_recorder(&machine, dir.path(), &[]);
    let load = Load::heard(child);
    let pid = load.pid;
    load.counts();
    stop(recorder);
    let markers = markers(&dir.path().join("x.dat"));
    assert_in_order(&markers);
    let times = |letter: &str| {
        let prefix = format!("I|{pid}|{letter}t0 ");
        let of = |(ns, _, text): &Marker| Some((text.strip_prefix(&prefix)?.parse().unwrap(), *ns as i64));
        markers.iter().filter_map(of).collect::<BTreeMap<usize, i64>>()
    };
    let before = times("");
    let kernel = times("K");
    let behind = times("R");
    assert_eq!([before.len(), kernel.len(), behind.len()], [COUNT; 3]);
    let mut threes: Vec<(i64, i64)> =
        kernel.iter().map(|(n, ns)| (behind[n] - before[n], ns - before[n])).collect();
    // A marker of the kernel that is not between the two of the ring is an error of the clocks.
    let error = threes.iter().map(|(all, first)| (-first).max(first - all)).max().unwrap();
    threes.sort_unstable();
    let mut distances: Vec<i64> = threes[..UNINTERRUPTED].iter().map(|(_, first)| *first).collect();
    distances.sort_unstable();
    let at = |percent: usize| distances[(distances.len() - 1) * percent / 100];
    eprintln!(
        "distance to trace_marker: median {} ns, 99 % {} ns, all {} ns, outside at most {error} ns",
        at(50),
        at(99),
        at(100)
    );
    assert!(at(50).abs() <= 1000, "median {} ns", at(50));
    assert!(error <= 5000, "a marker of the kernel is {error} ns outside of the two of the ring around it");
}

/// Kills the program at several moments. Everything that it wrote before is in the capture.
fn check_kills(kills: u64) {
    let Some(machine) = machine() else { return };
    let dir = support::tempdir();
    let recorder = start_recorder(&machine, dir.path(), &[]);
    let mut loads = Vec::new();
    for kill in 0..kills {
        let journal = dir.path().join(format!("journal-{kill}"));
        let path = journal.to_str().unwrap();
        let args = ["--threads", "4", "--markers", "100000000", "--journal", path, "--burst", "100"];
        let mut load = Load::heard(Load::start(&args));
        // Moments spread over 50 ms, each at another part of a round of the drain.
        std::thread::sleep(Duration::from_micros(kill * 7919 % 50_000));
        load.child.kill().unwrap();
        load.child.wait().unwrap();
        loads.push((load.pid, fs::read(&journal).unwrap_or_default()));
    }
    stop(recorder);
    let markers = markers(&dir.path().join("x.dat"));
    let mut all = 0;
    for (pid, journal) in loads {
        let numbers = numbers(&markers, pid);
        for (thread, written) in journal.as_chunks::<8>().0.iter().enumerate() {
            let written = u64::from_ne_bytes(*written);
            let found: Vec<u64> = numbers
                .iter()
                .filter(|((n, _), _)| *n == thread as u64)
                .flat_map(|(_, n)| n.clone())
                .collect();
            // The kill may come between the marker and the line in the journal.
            let found_len = found.len() as u64;
            assert!(found_len == written || found_len == written + 1, "{pid}: {found_len} of {written}");
            assert!(found.is_sorted_by(|a, b| a < b));
            all += written;
        }
    }
    assert!(all > 0);
    eprintln!("{kills} kills: {all} markers, none lost");
}

#[test]
fn ring_markers_of_a_killed_program_are_in_the_capture() {
    check_kills(10);
}

#[test]
#[ignore = "100 kills take a while"]
fn ring_markers_of_100_killed_programs_are_in_the_capture() {
    check_kills(100);
}

#[test]
fn ring_slices_nest_with_the_kernels_and_every_reader_shows_them() {
    let Some(machine) = machine() else { return };
    let dir = support::tempdir();
    let child = Load::start(&["--threads", "2", "--markers", "2000", "--sections", "--burst", "200"]);
    let recorder = start_recorder(&machine, dir.path(), &[]);
    let load = Load::heard(child);
    let pid = load.pid;
    let counts = load.counts();
    let out = stop(recorder);
    assert_eq!(out.json()["rings"]["programs"][0]["pid"], pid);
    let capture = dir.path().join("x.dat");
    let found = markers(&capture);
    for Count { tid, written, .. } in counts {
        let texts =
            found.iter().filter(|(_, t, text)| *t == tid && !text.contains("ready")).map(|(.., text)| text);
        let texts: Vec<&String> = texts.collect();
        assert_eq!(texts.len() as u64, written);
        for pair in texts.chunks(2) {
            assert!(pair[0].starts_with(&format!("B|{pid}|")) && *pair[1] == format!("E|{pid}"), "{pair:?}");
        }
    }
    if has_program("trace-cmd") {
        assert_same_events(capture::read(&capture), capture::trace_cmd_report(&capture));
    }
    let packed = dir.path().join("y.dat");
    tracebridge().arg("convert").arg(&capture).arg("-o").arg(&packed).run().exited(0);
    assert_eq!(markers(&packed).len(), found.len());
    tracebridge().args(["merge", "-o"]).arg(dir.path().join("x.json")).arg(&capture).run().exited(0);
    let json = fs::read_to_string(dir.path().join("x.json")).unwrap();
    let events = |phase: &str| json.lines().filter(|l| l.contains(phase) && l.contains("\"t0 ")).count();
    assert_eq!((events("\"ph\":\"B\""), events("\"ph\":\"E\"")), (1000, 1000));
}

#[test]
fn ring_markers_go_through_streams_and_compressed_captures() {
    let Some(machine) = machine() else { return };
    let dir = support::tempdir();
    let load = ["--threads", "2", "--markers", "3000", "--burst", "300"];
    let child = Load::start(&load);
    let recorder = start_recorder(&machine, dir.path(), &["--compress"]);
    let (pid, counts) = {
        let load = Load::heard(child);
        (load.pid, load.counts())
    };
    stop(recorder);
    let of = numbers(&markers(&dir.path().join("x.dat")), pid);
    assert_eq!(
        of.values().map(|n| n.len() as u64).sum::<u64>(),
        counts.iter().map(|c| c.written).sum::<u64>()
    );

    let child = Load::start(&load);
    let mut command = tracebridge();
    command
        .args(["record", "sched", "-o", "-", "--tracefs"])
        .arg(&machine.root)
        .arg("--state-dir")
        .arg(dir.path());
    let stream = dir.path().join("stream");
    command.stdout(fs::File::create(&stream).unwrap());
    let mut recorder = Recorder::start_with_output(command, dir.path());
    wait_for_tracing(&machine.root);
    let (pid, counts) = {
        let load = Load::heard(child);
        (load.pid, load.counts())
    };
    recorder.signal(Signal::SIGINT);
    recorder.wait().unwrap();
    let built = dir.path().join("stream.dat");
    tracebridge().arg("convert").arg(&stream).arg("-o").arg(&built).run().exited(0);
    let of = numbers(&markers(&built), pid);
    assert_eq!(
        of.values().map(|n| n.len() as u64).sum::<u64>(),
        counts.iter().map(|c| c.written).sum::<u64>()
    );
}

#[test]
fn ring_of_a_forked_child_is_its_own_and_nothing_is_left_of_either() {
    let Some(machine) = machine() else { return };
    let dir = support::tempdir();
    let child = Load::start(&["--threads", "1", "--markers", "500", "--fork", "700"]);
    let recorder = start_recorder(&machine, dir.path(), &[]);
    let load = Load::heard(child);
    let parent = load.pid;
    load.counts();
    // Both have ended: within a second or two the recorder lets go of their memory.
    wait_until_no_ring_is_read(&recorder);
    let out = stop(recorder);
    let programs = out.json()["rings"]["programs"].clone();
    assert_eq!(programs.as_array().unwrap().len(), 2, "{programs}");
    let found = markers(&dir.path().join("x.dat"));
    assert_eq!(numbers(&found, parent).values().map(Vec::len).sum::<usize>(), 500);
    let of_child =
        |(_, tid, text): &&Marker| text.contains("|child ") && text.starts_with(&format!("I|{tid}|"));
    // The first one says that the child is heard.
    assert_eq!(found.iter().filter(of_child).count(), 701);
}

#[test]
fn ring_that_is_none_is_refused_with_its_reason_and_the_recording_goes_on() {
    let Some(machine) = machine() else { return };
    let dir = support::tempdir();
    let python = "
import fcntl, mmap, os, struct, sys, time
def memfd(size, seals):
    fd = os.memfd_create('tracebridge-ring', os.MFD_ALLOW_SEALING)
    os.ftruncate(fd, size)
    fcntl.fcntl(fd, 1033, seals)
    return fd
kind = sys.argv[1]
size = int(sys.argv[2])
fd = memfd(4096 if kind == 'cut' else size, 4 if kind == 'unsealed' else 7)
if kind == 'hostile':
    m = mmap.mmap(fd, size)
    m[0:8] = b'TBRING\\r\\n'
    struct.pack_into('=IIIIII', m, 8, 1, 256, 16384, os.getpid(), 3, 0)
    # Three blocks: one says that more is unread than it has, one is full of zeroes, one names init's thread.
    for block, (owner, written) in enumerate([(os.getpid(), 0xfffffff8), (os.getpid(), 64), (os.getpid(), 24)]):
        struct.pack_into('=III', m, 4096 + 128 * block, owner, written, 0)
    words = 3
    check = (((ord('T') << 3) | (ord('T') >> 5)) & 255) ^ words ^ 0xa5
    struct.pack_into('=QQQ', m, 4096 + 128 * 256 + 131072 * 2, words | ord('T') << 16 | check << 24, 1 << 62, 1)
print('ready', flush=True)
sys.stdin.read()
";
    let mut programs: Vec<Child> = ["cut", "unsealed", "foreign", "hostile"]
        .into_iter()
        .map(|kind| {
            let mut program = Command::new("python3");
            program.args(["-c", python, kind, "33591296"]).stdin(Stdio::piped()).stdout(Stdio::piped());
            let mut program = program.spawn().unwrap();
            assert_eq!(Lines::new(&mut program).next(), "ready");
            program
        })
        .collect();
    let recorder = start_recorder(&machine, dir.path(), &[]);
    let load = Load::heard(Load::start(&["--threads", "1", "--markers", "100"]));
    let pid = load.pid;
    load.counts();
    let out = stop(recorder);
    let pids: Vec<u32> = programs.iter().map(|program| program.id()).collect();
    for program in &mut programs {
        drop(program.stdin.take());
        program.wait().unwrap();
    }
    let summary = out.json();
    let refused = summary["rings"]["refused"].as_array().unwrap();
    for (pid, what) in
        pids.iter().zip(["it has 4096 bytes", "its size is not sealed", "its first bytes are not"])
    {
        let start = format!("process {pid}: {what}");
        assert!(refused.iter().any(|r| r.as_str().unwrap().starts_with(&start)), "{start}: {refused:?}");
    }
    assert_eq!(out.code(), Some(3), "{summary}");
    let all = summary["rings"]["programs"].as_array().unwrap();
    let damage = all.iter().find(|program| program["pid"] == pids[3]).unwrap()["damage"].clone();
    let damage: Vec<&str> = damage.as_array().unwrap().iter().map(|d| d.as_str().unwrap()).collect();
    assert_eq!(damage.len(), 3, "{damage:?}");
    for (what, part) in
        damage.iter().zip(["bytes are unread", "begins no record", "thread 1, which is another"])
    {
        assert!(what.contains(part), "{what}");
    }
    assert_eq!(numbers(&markers(&dir.path().join("x.dat")), pid).values().map(Vec::len).sum::<usize>(), 100);
}
