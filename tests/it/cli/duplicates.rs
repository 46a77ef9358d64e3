//! An event that several recordings hold appears once in the output. An event that one recording holds twice
//! appears twice.

use std::fs;
use std::path::Path;

use serde_json::Value;

use support::{run_in, tracebridge};

/// A text with a marker at each of these times, ns. `print` gives the timestamp of a line.
fn text(times: &[u64], print: impl Fn(u64) -> String) -> String {
    let line = |ns: &u64| {
        let cpu = ns / 1_000 % 2;
        let time = print(*ns);
        format!(
            "             app-100     (    100) [00{cpu}] ...1 {time}: tracing_mark_write: I|100|at {}\n",
            ns / 1_000
        )
    };
    format!("# tracer: nop\n#\n{}", times.iter().map(line).collect::<String>())
}

fn nanos(ns: u64) -> String {
    format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000)
}

fn cut(ns: u64) -> String {
    format!("{}.{:06}", ns / 1_000_000_000, ns % 1_000_000_000 / 1_000)
}

fn rounded(ns: u64) -> String {
    cut(ns + 500)
}

/// Merges the files. Returns the markers of the output in order of time, and the number of events of each
/// input that were left out as duplicates.
fn merged(dir: &Path, inputs: &[&str]) -> (Vec<String>, Vec<u64>) {
    let mut all = Vec::new();
    for format in ["systrace", "csv"] {
        let out = tracebridge()
            .current_dir(dir)
            .args(["merge", "--json", "--format", format, "-o", "out"])
            .args(inputs)
            .run()
            .exited(0);
        let said: Value = out.json();
        let inputs = said["outcome"]["inputs"].as_array().unwrap();
        let left_out = inputs.iter().map(|i| i["duplicates"].as_u64().unwrap()).collect();
        let written = fs::read_to_string(dir.join("out")).unwrap();
        let markers: Vec<String> = written
            .lines()
            .filter_map(|l| Some(l[l.find("at ")? + 3..].split([',', '"']).next()?.trim().to_owned()))
            .collect();
        all.push((markers, left_out));
    }
    // The text is sorted by time and the CSV table need not be, but both hold the same markers.
    let sorted = |n: usize| {
        let mut markers: Vec<String> = all[n].0.clone();
        markers.sort();
        markers
    };
    assert_eq!(sorted(0), sorted(1));
    all.swap_remove(0)
}

/// Times in ns, about 10 µs apart.
fn times(from: u64, to: u64) -> Vec<u64> {
    (from..to).map(|n| 5_000_000_000 + n * 10_000 + n * 123 % 1_000).collect()
}

fn labels(times: &[u64]) -> Vec<String> {
    times.iter().map(|ns| (ns / 1_000).to_string()).collect()
}

#[test]
fn each_event_of_overlapping_texts_appears_once() {
    let dir = support::tempdir();
    let put = |name: &str, from, to| fs::write(dir.path().join(name), text(&times(from, to), cut)).unwrap();
    put("a.txt", 0, 50);
    put("b.txt", 40, 80);
    put("c.txt", 60, 100);
    let (markers, left_out) = merged(dir.path(), &["a.txt", "b.txt", "c.txt"]);
    assert_eq!(markers, labels(&times(0, 100)));
    assert_eq!(left_out.iter().sum::<u64>(), 10 + 20);
    // The order of the inputs makes no difference.
    assert_eq!(merged(dir.path(), &["c.txt", "a.txt", "b.txt"]).0, labels(&times(0, 100)));
}

#[test]
fn an_event_of_a_trace_dat_is_recognised_in_a_text_that_cuts_or_rounds_its_time() {
    let dir = support::tempdir();
    let put = |name: &str, text: String| fs::write(dir.path().join(name), text).unwrap();
    let all = times(0, 400);
    put("ns.txt", text(&all, nanos));
    run_in(dir.path(), &["convert", "ns.txt", "-o", "ns.dat"]).exited(0);
    put("cut.txt", text(&all, cut));
    put("rounded.txt", text(&all, rounded));
    for other in ["cut.txt", "rounded.txt"] {
        for inputs in [["ns.dat", other], [other, "ns.dat"]] {
            let (markers, left_out) = merged(dir.path(), &inputs);
            assert_eq!(markers, labels(&all), "{inputs:?}");
            assert_eq!(left_out.iter().sum::<u64>(), 400, "{inputs:?}");
            // The events with exact times stay; their copies with cut or rounded times are left out.
            assert_eq!(left_out[usize::from(inputs[0] == "ns.dat")], 400, "{inputs:?}");
        }
    }
    let (markers, left_out) = merged(dir.path(), &["cut.txt", "ns.dat", "rounded.txt"]);
    assert_eq!((markers, left_out), (labels(&all), vec![400, 0, 400]));
}

#[test]
fn an_event_that_one_recording_holds_twice_appears_twice() {
    let dir = support::tempdir();
    let put = |name: &str, times: &[u64]| fs::write(dir.path().join(name), text(times, cut)).unwrap();
    let once = times(3, 4);
    let twice = times(5, 6);
    let thrice = times(7, 8);
    let repeated: Vec<u64> =
        [&once, &twice, &twice, &thrice, &thrice].into_iter().flatten().copied().collect();
    put("a.txt", &repeated);
    put("more.txt", &[&repeated[..], &thrice].concat());
    assert_eq!(merged(dir.path(), &["a.txt", "a.txt"]), (labels(&repeated), vec![0]), "taken once");
    let (markers, left_out) = merged(dir.path(), &["a.txt", "more.txt"]);
    assert_eq!(markers, labels(&[&repeated[..], &thrice].concat()), "the third is new");
    assert_eq!(left_out, [0, 5]);
}
