//! Files that are empty, cut short or random give an error that says where, or a partial result that says
//! what is missing. tests/tracefs does the same with a capture that the recorder made from the running
//! kernel.

use support::art_writer::{Action, ArtTrace, Method, Record};
use support::damage::check_damaged_copies;
use support::scenario::{Era, Scenario};

fn method_trace() -> Vec<u8> {
    let calls = 300u32;
    let record = |n: u32, action| Record::from((1 + (n % 2) as u16, n / 2 % 2, action, n * 5, n * 10));
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
