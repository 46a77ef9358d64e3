//! Files with samples that are cut at 200 places, or hold sizes that nobody can have: each kind is an error,
//! or is read in part and says so. The kinds of perf and simpleperf are real files, in `corpus`.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use support::python::{PERFETTO, python_with};
use support::{Command, project_dir, run_in};
use tracebridge::formats::input::Input;
use tracebridge::formats::open;
use tracebridge::formats::samples::CountOnly;

/// The number of samples that a file's bytes hold, and whether it says that something is missing. `None`
/// where the file is refused.
fn count(bytes: &[u8]) -> Option<(u64, bool)> {
    let input = Input::from_bytes("cut", bytes.to_vec());
    let opened = open(&input).ok()?;
    let reading = opened.samples()?.read(&mut CountOnly).unwrap();
    let report = &reading.report;
    let is_told = !report.damage.is_empty() || !report.notes.is_empty() || !report.irregular.is_empty();
    Some((reading.tables.events.iter().map(|event| event.samples).sum(), is_told))
}

/// The number of places at which a file is cut or changed.
fn places() -> usize {
    support::rounds(40, 200)
}

/// Cuts a file at many places. Between two of its parts, which `is_boundary` finds, nobody can tell a cut.
fn cut(bytes: &[u8], is_boundary: impl Fn(usize) -> bool) {
    let (whole, _) = count(bytes).expect("the whole file is read");
    assert!(whole > 200, "{whole}");
    let mut most = 0;
    for n in 0..places() {
        let at = bytes.len() * n / places();
        let Some((samples, is_told)) = count(&bytes[..at]) else { continue };
        assert!(samples <= whole, "cut at {at}: {samples} of {whole} samples");
        assert!(is_told || is_boundary(at), "the cut at byte {at} is not told");
        most = most.max(samples);
    }
    assert!(most > whole / 2, "of {whole} samples {most} are read where the file is cut");
}

/// Changes single bytes, and puts the largest numbers in the places of others: nothing but an error or a
/// result may come of it.
fn change(bytes: &[u8]) {
    for n in 0..places() {
        let at = bytes.len() * n / places();
        let mut changed = bytes.to_vec();
        changed[at] ^= 0xff;
        count(&changed);
        let end = (at + 10).min(bytes.len());
        changed[at..end]
            .copy_from_slice(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01][..end - at]);
        count(&changed);
    }
}

/// 1,000 lines of folded stacks.
fn folded() -> String {
    let mut text = String::new();
    for n in 0..1_000 {
        let _ = writeln!(text, "main;run {};step{};leaf {}", n % 7, n % 50, 10_000 + n);
    }
    text
}

fn written(dir: &Path, args: &[&str], name: &str) -> Vec<u8> {
    run_in(dir, args).exited_with_one_of(&[0, 3]);
    fs::read(dir.join(name)).unwrap()
}

#[test]
fn folded_stacks_that_are_cut_say_so() {
    let text = folded().into_bytes();
    cut(&text, |at| text[..at].ends_with(b"\n"));
    change(&text);
}

#[test]
fn a_profile_for_firefox_that_is_cut_says_so() {
    let dir = support::tempdir();
    fs::write(dir.path().join("a.folded"), folded()).unwrap();
    let profile = written(dir.path(), &["profile", "a.folded", "--firefox", "x.json"], "x.json");
    let (whole, _) = count(&profile).unwrap();
    for n in 0..places() {
        let part = &profile[..profile.len() * n / places()];
        let Some((samples, is_told)) = count(part) else { continue };
        assert!(samples <= whole && is_told, "cut at place {n}");
    }
    change(&profile);
}

#[test]
fn a_perfetto_trace_whose_samples_are_cut_says_so() {
    let Some(python) = python_with(PERFETTO) else { return };
    let dir = support::tempdir();
    let path = dir.path().join("x.pftrace");
    let script = project_dir().join("tests/support/make_sample_traces.py");
    Command::new(&python).arg(script).arg(&path).arg("3").run().exited(0);
    let trace = fs::read(&path).unwrap();
    let mut boundaries = vec![0];
    let mut at = 0;
    while at < trace.len() {
        // The field 1 of `Trace`, and the length of a packet.
        assert_eq!(trace[at], 0x0a);
        let low = usize::from(trace[at + 1]);
        let is_long = low & 0x80 != 0;
        let len = if is_long { low & 0x7f | usize::from(trace[at + 2]) << 7 } else { low };
        at += len + if is_long { 3 } else { 2 };
        boundaries.push(at);
    }
    cut(&trace, |at| boundaries.contains(&at));
    change(&trace);
}
