//! Files that are empty, cut short, malformed or random give an error that says where, or a partial result
//! that says what is missing. tests/tracefs does the same with a capture that the recorder made from the
//! running kernel.

use support::art_writer::{Action, ArtTrace, Method, Record};
use support::damage::check_damaged_copies;
use support::files::Files;
use support::scenario::{Era, Scenario};
use support::{Ran, run_in};

fn method_trace() -> Vec<u8> {
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
    .to_bytes()
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
