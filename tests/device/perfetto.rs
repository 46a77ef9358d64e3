//! The merged trace as Perfetto's own protobuf classes decode it, and how far methods lie from the markers
//! around them.

use std::collections::{BTreeMap, HashMap};
use std::io::Write;
use std::path::Path;
use std::sync::OnceLock;
use support::Command;

use crate::adb;
use crate::capture;
use crate::journey::{Journey, another_journey, journey};

/// How far a method's edge may lie from its marker. The project's goal is a fifth of each limit: the emulated
/// device's processors are slow, and other programs on the host delay it.
const MEDIAN_LIMIT_NS: u64 = 5 * 20_000;
const P99_LIMIT_NS: u64 = 5 * 100_000;

/// The fields of each line that pftrace.py prints of the journey's trace, decoded once for all tests. Without
/// Python the test is skipped: `None`.
fn decoded(pftrace: &Path) -> Option<&'static [Vec<String>]> {
    static LINES: OnceLock<Option<Vec<Vec<String>>>> = OnceLock::new();
    LINES.get_or_init(|| decode(pftrace)).as_deref()
}

fn decode(pftrace: &Path) -> Option<Vec<Vec<String>>> {
    let python = adb::python()?;
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/device/pftrace.py");
    let output = Command::new(python).arg(script).arg(pftrace).run().exited(0);
    let text = &output.stdout;
    Some(text.lines().map(|line| line.split('\t').map(str::to_owned).collect()).collect())
}

#[test]
fn perfetto_finds_exactly_what_was_merged() {
    let Some(journey) = journey() else { return };
    let Some(lines) = decoded(&journey.pftrace) else { return };
    let count = |what: &str| lines.iter().filter(|l| l[0] == what).count() as u64;
    let recorded = capture::read(&journey.dat);
    let of = |name: &str| recorded.iter().filter(|l| l.name == name).count() as u64;

    assert_eq!(count("switch"), of("sched_switch"));
    assert_eq!(count("waking"), of("sched_waking"));
    assert_eq!(count("print"), of("print"));
    let all = count("switch") + count("waking") + count("print") + count("other");
    assert_eq!(all, recorded.len() as u64, "kernel events of all kinds");
    let records = journey.app["records"].as_u64();
    assert_eq!(Some(count("enter") + count("exit")), records, "method records that the app wrote");
    assert_eq!(count("enter"), count("exit"));
    let outcome = &journey.merged["outcome"];
    assert_eq!(outcome["methods"].as_u64(), Some(count("enter")), "{outcome}");
    assert_eq!(outcome["markers"].as_u64(), Some(count("print")), "{outcome}");
    assert_eq!(outcome["report"]["cpus"].as_object().map(|cpus| cpus.len()), Some(2));
    let lost: u64 =
        lines.iter().filter(|l| l[0] == "lost").map(|l| l[2].parse::<u64>().expect("a count")).sum();
    assert_eq!(lost, 0);
}

/// The edges of one thread's slices in order: whether the edge is a begin, its time (ns), and the name if it
/// is a begin.
type Edges = Vec<(bool, u64, String)>;

/// How often the journey is made at most. Whatever else the host computes delays the emulated device, so a
/// single bad measurement says nothing about the alignment.
const MAX_JOURNEYS: usize = 3;

#[test]
fn methods_lie_on_the_markers_around_them() {
    let Some(first) = journey() else { return };
    let Some(mut measured) = distances_from_markers(first) else { return };
    let within = |measured: &Result<(u64, u64), String>| {
        measured.as_ref().is_ok_and(|(median, p99)| *median <= MEDIAN_LIMIT_NS && *p99 <= P99_LIMIT_NS)
    };
    for _ in 1..MAX_JOURNEYS {
        if within(&measured) {
            break;
        }
        let Some(again) = another_journey().as_ref().and_then(distances_from_markers) else { return };
        measured = again;
    }
    assert!(within(&measured), "median and 99th percentile, ns: {measured:?}");
}

/// Measures how far each begin and end of a method lies from its marker. Returns the median and the 99th
/// percentile, ns; an error if the kernel refused a marker of the app, which lets nothing be measured; `None`
/// without Perfetto's classes.
fn distances_from_markers(journey: &Journey) -> Option<Result<(u64, u64), String>> {
    let lines = decode(&journey.pftrace)?;
    let threads = journey.app["threads"].as_array().expect("threads");
    if let Some(thread) = threads.iter().find(|thread| thread["markers_failed"] != 0) {
        return Some(Err(format!("the kernel refused a marker: {thread}")));
    }
    let mut methods: HashMap<i64, Edges> = HashMap::new();
    let mut markers: HashMap<i64, Edges> = HashMap::new();
    let pid = journey.app["pid"].as_i64().expect("the app's pid");
    for line in lines {
        let number = |index: usize| line[index].parse::<i64>().expect("a number");
        let ts = |index: usize| line[index].parse::<u64>().expect("a time");
        match line[0].as_str() {
            "enter" => methods.entry(number(3)).or_default().push((true, ts(1), line[4].clone())),
            "exit" => methods.entry(number(3)).or_default().push((false, ts(1), String::new())),
            "print" => {
                let edge = match line[3].strip_prefix(&format!("B|{pid}|")) {
                    Some(name) => (true, ts(1), name.to_owned()),
                    None if line[3] == format!("E|{pid}") => (false, ts(1), String::new()),
                    None => continue,
                };
                markers.entry(number(2)).or_default().push(edge);
            }
            _ => {}
        }
    }

    let mut distances = Vec::new();
    let mut per_thread = BTreeMap::new();
    for thread in threads {
        let tid = thread["tid"].as_i64().expect("a tid");
        let mut marked = markers.remove(&tid).unwrap_or_default();
        marked.sort_by_key(|(_, ts, _)| *ts);
        let called =
            methods.remove(&tid).unwrap_or_else(|| panic!("no methods on the kernel's thread: {thread}"));
        assert_eq!(called.len(), marked.len(), "methods and markers of {thread}");
        let names =
            |edges: &Edges| edges.iter().map(|(begin, _, name)| (*begin, name.clone())).collect::<Vec<_>>();
        assert_eq!(names(&called), names(&marked), "methods and markers of {thread}");
        let of_thread: Vec<u64> = called.iter().zip(&marked).map(|(a, b)| a.1.abs_diff(b.1)).collect();
        per_thread.insert(tid, quantile(&of_thread, 50));
        distances.extend(of_thread);
    }
    assert!(methods.is_empty(), "methods on threads that are not the app's: {:?}", methods.keys());

    let median = quantile(&distances, 50);
    let p99 = quantile(&distances, 99);
    // Written directly: the test harness swallows what a passing test prints with println.
    let _ = writeln!(
        std::io::stderr(),
        "methods against their markers: {} edges, median {:.1} µs, 99th percentile {:.1} µs (threads' medians, ns: {per_thread:?})",
        distances.len(),
        median as f64 / 1e3,
        p99 as f64 / 1e3,
    );
    Some(Ok((median, p99)))
}

fn quantile(values: &[u64], percent: usize) -> u64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    sorted[(sorted.len() * percent / 100).min(sorted.len() - 1)]
}
