//! The real simpleperf on this machine: its recordings, read from `perf.data` and from its report, equal what
//! it prints of them itself.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use support::scenario::Random;
use support::simpleperf::{PrintedSample, printed_samples, simpleperf};
use support::{Command, Ran, tempdir, tracebridge};

use crate::c_programs::{CTarget, root};
use crate::shown_samples::{MANGLED, comparable, read};
use crate::tracefs_fixture::machine;

/// Number of recordings: one with each list of `EVENTS`, and more in a full run.
const RECORDINGS: u64 = EVENTS.len() as u64;
const RECORDINGS_OF_FULL_RUN: u64 = 100;

/// Events and how often they take samples. `None` in place of a call graph's options: the event types take
/// none.
const EVENTS: [&[&str]; 12] = [
    &["-f", "2000", "-e", "cpu-clock"],
    &["-f", "500", "-e", "task-clock"],
    &["-f", "1000", "-e", "cpu-clock:u"],
    &["-c", "400000", "-e", "task-clock:k"],
    &["-f", "1000", "-e", "task-clock", "--trace-offcpu"],
    &["-f", "1000", "-e", "cpu-clock:u", "--trace-offcpu"],
    &["-f", "1000", "-e", "cpu-clock", "--no-inherit", "--add-counter", "page-faults,context-switches"],
    &["-e", "sched:sched_switch"],
    &["-f", "1000", "-e", "cpu-clock", "-c", "1", "-e", "sched:sched_switch,page-faults"],
    &["-c", "1", "-e", "context-switches"],
    &["-f", "1000", "--group", "cpu-clock,page-faults"],
    &["-c", "1", "-e", "page-faults:u", "-f", "300", "-e", "cpu-clock"],
];
const CALL_GRAPHS: [&[&str]; 6] = [
    &[],
    &["--call-graph", "fp"],
    &["-g"],
    &["--call-graph", "dwarf,1024"],
    &["-g", "--post-unwind=yes"],
    &["-g", "--no-unwind"],
];
/// The kernel takes no other clock for a tracepoint.
const CLOCKS: [&[&str]; 3] = [&[], &["--clockid", "monotonic_raw"], &["--clockid", "perf"]];
const THREADS: [&[&str]; 3] = [&[], &["-a", "--exclude-perf"], &["-m", "16"]];

/// simpleperf, a program to be sampled, and a directory for recordings.
struct Bench {
    simpleperf: PathBuf,
    program: tempfile::TempPath,
    dir: support::TempDir,
}

impl Bench {
    fn new() -> Option<Bench> {
        let simpleperf = simpleperf()?;
        let program = CTarget::host()?.compile(&root().join("tests/support/sampled_program.c"));
        Some(Bench { simpleperf, program, dir: tempdir() })
    }

    /// Records the program for 0.1 s.
    fn record(&self, options: &[&str]) -> PathBuf {
        let path = self.dir.path().join("perf.data");
        let mut record = Command::new(&self.simpleperf);
        record.arg("record").args(options).arg("-o").arg(&path).arg("--").arg(&self.program).arg("0.1");
        record.run().exited(0);
        path
    }

    /// Runs a command of simpleperf on a recording. Without `--remove-gaps 0` `report-sample` leaves out
    /// samples whose stacks it takes for broken.
    fn report(&self, options: &[&str], path: &Path) -> Ran {
        Command::new(&self.simpleperf).args(options).arg("-i").arg(path).run()
    }
}

/// By event type, thread and function: samples and the sum of their periods.
type Sums = BTreeMap<(String, i32, String), (u64, u64)>;

fn sums(samples: &[PrintedSample]) -> Sums {
    let mut sums = Sums::new();
    for sample in samples {
        let function = sample.stack.first().map_or_else(String::new, |(name, _)| name.clone());
        let sum = sums.entry((sample.event.clone(), sample.tid, function)).or_default();
        *sum = (sum.0 + 1, sum.1 + sample.period);
    }
    sums
}

/// The sums that `simpleperf report --csv` prints.
fn reported_sums(text: &str) -> Sums {
    let rows = text.lines().map(|line| line.split(';').collect::<Vec<_>>());
    let rows = rows.filter(|row| row.len() == 6 && row[0] != "Overhead");
    let mut sums = Sums::new();
    for row in rows {
        let number = |at: usize| row[at].parse::<u64>().unwrap();
        let function = row[3].trim_start_matches('*').to_owned();
        // Functions of one name in two files have a row each.
        let sum = sums.entry((row[5].to_owned(), row[2].parse().unwrap(), function)).or_default();
        *sum = (sum.0 + number(1), sum.1 + number(0));
    }
    sums
}

/// Compares samples: of a recording of the whole machine without callers, because frame pointers of programs
/// that keep none lead to any address, and simpleperf leaves some of these out.
#[track_caller]
fn assert_equal(found: &[PrintedSample], want: &[PrintedSample], options: &[&str], what: &str) {
    let depth = if options.contains(&"-a") { 1 } else { usize::MAX };
    let cut = |samples: &[PrintedSample]| {
        let mut samples = samples.to_vec();
        samples.iter_mut().for_each(|sample| sample.stack.truncate(depth));
        samples
    };
    let found = cut(found);
    let want = cut(want);
    let different = found.iter().zip(&want).find(|(found, want)| found != want);
    assert_eq!((found.len(), different), (want.len(), None), "{what} of simpleperf record {options:?}");
}

/// Reads one recording in each way. Returns its number of samples.
fn compare(bench: &Bench, options: &[&str]) -> usize {
    let path = bench.record(options);
    let (found, reading) = read(&path);
    let text = bench.report(&["report-sample", "--show-callchain", "--remove-gaps", "0"], &path).exited(0);
    let mut want = printed_samples(&text);
    comparable(&mut want);
    let is_counter = |name: &str| options.contains(&"--add-counter") && name != "cpu-clock";
    if options.contains(&"--add-counter") {
        // Each count is one of the samples that simpleperf prints, or lies between two of them: both add up
        // to the same, up to the last sample.
        let (counts, own): (Vec<_>, Vec<_>) =
            found.iter().cloned().partition(|sample| is_counter(&sample.event));
        let (printed, want): (Vec<_>, Vec<_>) =
            want.iter().cloned().partition(|sample| is_counter(&sample.event));
        assert_equal(&own, &want, options, "perf.data");
        let total = |samples: &[PrintedSample]| samples.iter().map(|sample| sample.period).sum::<u64>();
        assert!(total(&counts) >= total(&printed), "{options:?}: {counts:?}");
    } else {
        assert_equal(&found, &want, options, "perf.data");
    }
    let report = bench.dir.path().join("report.trace");
    let words = [
        "report-sample",
        "--show-callchain",
        "--remove-gaps",
        "0",
        "--protobuf",
        "-o",
        report.to_str().unwrap(),
    ];
    bench.report(&words, &path).exited(0);
    assert_equal(&read(&report).0, &want, options, "report-sample");

    // In a recording with --trace-offcpu its report weighs a sample by the time to the next one of the
    // thread. It dies of a segmentation fault where an added counter has samples of its own.
    if !options.contains(&"--trace-offcpu") && !options.contains(&"--add-counter") {
        let words = ["report", "--csv", "--csv-separator", ";", "-n", "--raw-period", "--sort", "tid,symbol"];
        let report = bench.report(&words, &path).exited(0);
        let mut want = reported_sums(&report.stdout);
        want.retain(|(_, tid, function), _| *tid >= 0 && !function.contains("::"));
        let mut found = sums(&found);
        found.retain(|(_, tid, function), _| *tid >= 0 && function != MANGLED);
        let different: Vec<_> =
            want.keys().chain(found.keys()).filter(|key| found.get(key) != want.get(key)).collect();
        assert!(different.is_empty(), "{options:?}: {different:?}");
    }
    let is_not_unwound = options.contains(&"--no-unwind")
        && reading.report.notes.iter().any(|note| note.contains("not unwound"));
    assert!(
        !options.contains(&"--no-unwind") || is_not_unwound || found.is_empty(),
        "{:?}",
        reading.report.notes
    );
    found.len()
}

#[test]
fn recordings_of_simpleperf_equal_its_own_reports() {
    let Some(_machine) = machine() else { return };
    let Some(bench) = Bench::new() else { return };
    let recordings = support::rounds(RECORDINGS, RECORDINGS_OF_FULL_RUN);
    let mut random = Random(2026);
    let mut samples = 0;
    for number in 0..recordings {
        let mut one_of =
            |lists: &[&[&'static str]]| lists[random.range(0, lists.len() as u64) as usize].to_vec();
        let options = [
            EVENTS[(number % EVENTS.len() as u64) as usize].to_vec(),
            one_of(&CALL_GRAPHS),
            one_of(&CLOCKS),
            one_of(&THREADS),
        ]
        .concat();
        samples += compare(&bench, &options);
    }
    assert!(samples as u64 > 20 * recordings, "{samples} samples in {recordings} recordings");
}

#[test]
fn info_and_profile_of_a_real_recording_say_what_simpleperf_reports() {
    let Some(_machine) = machine() else { return };
    let Some(bench) = Bench::new() else { return };
    let path =
        bench.record(&["-f", "2000", "-e", "task-clock", "--call-graph", "fp", "--clockid", "boottime"]);
    let report =
        bench.report(&["report", "--csv", "-n", "--raw-period", "--sort", "symbol"], &path).exited(0);
    let row = report.stdout.lines().find(|line| line.contains(",inner_sum,")).expect("the busy function");
    let [period, samples] = [0, 1].map(|at| row.split(',').nth(at).unwrap().parse::<u64>().unwrap());
    let profile = tracebridge().args(["profile", "--json"]).arg(&path).run().exited(0).json();
    let busiest = &profile["rows"][0];
    assert_eq!(busiest["name"], "inner_sum");
    assert_eq!(busiest["weight_exclusive"].as_u64(), Some(period), "{busiest}");
    assert!(busiest["samples"].as_u64() >= Some(samples), "{busiest}");
    let info = tracebridge().arg("info").arg(&path).run().exited(0);
    assert!(
        info.stdout.contains("perf.data of simpleperf") && info.stdout.contains("clock: boot"),
        "{}",
        info.stdout
    );
}
