//! Files that are empty, cut short, malformed or random give an error that says where, or a partial result
//! that says what is missing. tests/tracefs does the same with a capture that the recorder made from the
//! running kernel.

use std::fs;
use std::io::Write;
use std::path::Path;

use support::art_always_on::{self, Stream};
use support::art_blocks::{self, Blocks, Writer};
use support::art_writer::{Action, ArtTrace, Method, Record, SingleClockStream};
use support::damage::check_damaged_copies;
use support::files::Files;
use support::scenario::{Era, Scenario};
use support::{Command, Ran, run_in};

fn method_trace() -> Vec<u8> {
    app_calls().to_bytes()
}

fn app_calls() -> ArtTrace {
    let calls = 300u32;
    let record = |n: u32, action| Record::new(1 + (n % 2) as u16, n / 2 % 2, action, n * 5, n * 10);
    ArtTrace {
        start_us: 5_000_000,
        elapsed_us: 10_000,
        pid: 4242,
        threads: vec![(1, "main".into()), (2, "RenderThread".into())],
        methods: ["run", "draw"].map(|name| Method::new("com.example.Work", name)).to_vec(),
        records: (0..calls).flat_map(|n| [record(n, Action::Enter), record(n, Action::Exit)]).collect(),
        ..ArtTrace::default()
    }
}

#[test]
fn a_damaged_method_trace_is_refused_or_read_in_part() {
    check_damaged_copies("app.trace", &method_trace());
}

#[test]
fn a_damaged_capture_is_refused_or_read_in_part() {
    let scenario = Scenario { length: 20_000_000, threads: 2, ..Scenario::new(7, Era::Art14) };
    check_damaged_copies("short.dat", &scenario.make().dat);
}

/// Converts a file with these bytes.
fn convert(name: &str, bytes: &[u8], out: &str) -> Ran {
    let files = Files::new();
    files.write(name, bytes);
    run_in(files.0.path(), &["convert", name, "-o", out])
}

#[test]
fn a_cpu_that_no_machine_has_is_refused() {
    for out in ["o.dat", "o.pftrace"] {
        let ran = convert("in.txt", b" a-1 [4294967295] 1.5: foo: a=1\n", out).exited(1);
        assert!(ran.stderr.contains("4294967295"), "{ran}");
    }
}

#[test]
fn a_perfetto_trace_cut_within_a_packet_opens_up_to_the_cut() {
    // An event of CPU 0 (time 9, thread 7, an empty print), then a packet of 100 bytes, cut after its first.
    let trace = [0x0a, 10, 0x0a, 8, 0x12, 6, 8, 9, 16, 7, 0x1a, 0, 0x0a, 100, 0x0a];
    convert("in.pftrace", &trace, "o.csv").exited(3);
    convert("in.pftrace", &trace[..12], "o.csv").exited(0);
}

#[test]
fn a_text_cut_within_its_last_line_opens_up_to_the_cut() {
    let whole = b" a-1 [000] .... 1.500000: sched_wakeup: comm=b pid=2 prio=120 target_cpu=000\n a-1 [000] .... 1.600000: sys_en";
    let cut = convert("in.txt", whole, "o.csv").exited(3);
    assert!(cut.said().contains("neither an event nor a comment"), "{cut}");
}

#[test]
fn an_excerpt_without_a_header_may_lack_its_last_line_feed_and_a_recorders_text_may_not() {
    let line = " a-1 [000] .... 1.500000: sched_wakeup: comm=b pid=2 prio=120 target_cpu=000";
    convert("in.txt", format!("{line}\n{line}").as_bytes(), "o.csv").exited(0);
    let cut =
        convert("in.txt", &format!("{line}\n{line}").as_bytes()[..2 * line.len() - 3], "o.csv").exited(3);
    assert!(cut.said().contains("damage at byte 77: this line is cut"), "{cut}");
    let header = "# tracer: nop\n#\n#           TASK-PID     CPU#  ||||   TIMESTAMP  FUNCTION\n";
    convert("in.txt", format!("{header}{line}\n").as_bytes(), "o.csv").exited(0);
    let cut = convert("in.txt", format!("{header}{line}").as_bytes(), "o.csv").exited(3);
    assert!(
        cut.said().contains(&format!("damage at byte {}: the text ends in this line", header.len())),
        "{cut}"
    );
}

/// Where a file of a kind may end without a trace of what is missing.
#[derive(Clone, Copy, PartialEq)]
enum LegalEnds {
    /// Nowhere but at its end.
    Nowhere,
    /// Behind any line.
    Lines,
    /// Behind any packet of Perfetto.
    Packets,
}

impl LegalEnds {
    fn hold(self, bytes: &[u8], at: usize) -> bool {
        match self {
            LegalEnds::Nowhere => false,
            LegalEnds::Lines => bytes[at - 1] == b'\n',
            LegalEnds::Packets => packet_ends(bytes).contains(&at),
        }
    }
}

/// The ends of the packets of a trace.
fn packet_ends(trace: &[u8]) -> Vec<usize> {
    let mut ends = Vec::new();
    let mut at = 0;
    while at < trace.len() {
        at += 1;
        let mut len = 0;
        for shift in (0..).step_by(7) {
            let byte = trace[at];
            at += 1;
            len |= usize::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                break;
            }
        }
        at += len;
        ends.push(at);
    }
    ends
}

/// One file of each kind that `info` and `convert` read.
fn one_of_each_kind(dir: &Path) -> Vec<(String, Vec<u8>, LegalEnds)> {
    let scenario = Scenario { length: 8_000_000, threads: 2, ..Scenario::new(7, Era::Art14) };
    let made = scenario.make();
    fs::write(dir.join("a.dat"), &made.dat).unwrap();
    fs::write(dir.join("a.trace"), &made.trace).unwrap();
    let mut kinds = vec![("dat".to_owned(), made.dat.clone(), LegalEnds::Nowhere)];
    for (ending, ends) in [
        ("pftrace", LegalEnds::Packets),
        ("txt", LegalEnds::Nowhere),
        ("systrace.html", LegalEnds::Nowhere),
        ("html", LegalEnds::Nowhere),
        ("json", LegalEnds::Nowhere),
        ("zip", LegalEnds::Nowhere),
    ] {
        let name = format!("made.{ending}");
        run_in(dir, &["merge", "a.dat", "a.trace", "-o", &name]).exited(0);
        if ending != "html" {
            kinds.push((ending.to_owned(), fs::read(dir.join(&name)).unwrap(), ends));
        }
    }
    let tar = Command::new("tar").current_dir(dir).args(["-czf", "made.tar.gz", "a.dat"]).run();
    tar.exited(0);
    kinds.push(("tar.gz".into(), fs::read(dir.join("made.tar.gz")).unwrap(), LegalEnds::Nowhere));
    kinds.push(("dat.gz".into(), support::files::gzip(&made.dat), LegalEnds::Nowhere));
    let text = fs::read(dir.join("made.txt")).unwrap();
    let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
    zlib.write_all(&text).unwrap();
    let atrace = [b"capturing trace... done\nTRACE:\n", &zlib.finish().unwrap()[..]].concat();
    kinds.push(("atrace".into(), atrace, LegalEnds::Nowhere));
    kinds.push(("strace".into(), super::strace::BRACKETS.into(), LegalEnds::Lines));
    let calls = app_calls();
    let blocks =
        |streaming, wall, cpu, writer| art_blocks::to_bytes(&calls, Blocks { streaming, wall, cpu, writer });
    let of_one_clock = SingleClockStream { is_wall: true, has_filler: true, ended: true };
    let second = Writer::Second { nanos: true, split: 50 };
    let third = Writer::Third { frequency: 24_576_000, real: 24_576_000 };
    for (name, bytes) in [
        ("v3.trace", calls.to_bytes()),
        ("v3s.trace", calls.to_streaming_bytes(true)),
        ("v2s.trace", calls.to_single_clock_stream(of_one_clock)),
        ("v4.trace", blocks(false, true, false, second)),
        ("v4s.trace", blocks(true, true, false, third)),
        ("v5.trace", blocks(false, true, true, third)),
        ("v5s.trace", blocks(true, true, true, second)),
        ("long.trace", art_always_on::to_bytes(&calls, Stream::Calibrated)),
    ] {
        kinds.push((name.into(), bytes, LegalEnds::Nowhere));
    }
    if let Some(corpus) = support::corpus() {
        for name in [
            "mstange__linux-perf-data__sleep.data",
            "jbeich__platform_system_extras__perf_with_two_event_types.data",
        ] {
            let bytes = fs::read(corpus.join("simpleperf").join(name)).unwrap();
            kinds.push((format!("{}.data", bytes.len()), bytes, LegalEnds::Nowhere));
        }
    }
    kinds
}

#[test]
fn each_cut_of_every_kind_of_input_is_told() {
    let dir = support::tempdir();
    let cuts = support::rounds(12, 50);
    let mut silent = Vec::new();
    for (kind, bytes, ends) in one_of_each_kind(dir.path()) {
        let name = format!("cut.{kind}");
        for number in 1..=cuts {
            let at = bytes.len() * number / (cuts + 1);
            if at == 0 || ends.hold(&bytes, at) {
                continue;
            }
            fs::write(dir.path().join(&name), &bytes[..at]).unwrap();
            let ran = run_in(dir.path(), &["info", &name]);
            let said = ran.said();
            let names_file = said.contains(&name);
            if !matches!(ran.code(), Some(1 | 3)) || !names_file || said.contains("panicked") {
                silent.push(format!("{kind} cut at {at} of {}: {:?}: {said}", bytes.len(), ran.code()));
            }
        }
        let whole = dir.path().join(&name);
        fs::write(&whole, &bytes).unwrap();
        let ran = run_in(dir.path(), &["info", &name]);
        if ran.code() != Some(0) {
            silent.push(format!("{kind} whole: {ran}"));
        }
    }
    assert!(silent.is_empty(), "{} cuts:\n{}", silent.len(), silent.join("\n"));
}
