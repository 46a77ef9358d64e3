//! Profiles of the corpus's samples, compared with perf, with the sums over simpleperf's report by its
//! published proto, and with files for viewers by their published formats.

use std::collections::BTreeMap;
use std::path::Path;

use support::python::{PERFETTO, python_with};
use support::{Command, corpus, has_program, skip};

use crate::samples::file;

/// The rows of a profile as functions, each with its weight without and with its callees.
fn rows(trace: &Path) -> Vec<(String, u64, u64)> {
    rows_of(trace, &[])
}

/// The same with more options.
fn rows_of(trace: &Path, args: &[&str]) -> Vec<(String, u64, u64)> {
    let mut command = support::tracebridge();
    // 3 where samples were lost when they were taken.
    let json =
        command.args(["profile", "--json"]).args(args).arg(trace).run().exited_with_one_of(&[0, 3]).json();
    let rows = json["rows"].as_array().unwrap().iter().map(|row| {
        let name = row["name"].as_str().unwrap().to_owned();
        let number = |key: &str| row[key].as_u64().unwrap();
        (name, number("weight_exclusive"), number("weight_inclusive"))
    });
    rows.collect()
}

#[test]
fn folded_stacks_and_firefox_profiles_read_back_have_the_same_top_functions() {
    let dir = support::tempdir();
    for name in ["perf_display_bitmaps.data", "simpleperf-task-clock.trace", "sleep.data"] {
        let Some(trace) = file(name) else { return };
        let want = rows(&trace);
        for (flag, written) in [("--folded", "x.folded"), ("--firefox", "x.json")] {
            let written = dir.path().join(written);
            support::tracebridge().args(["profile"]).arg(&trace).arg(flag).arg(&written).run().exited(0);
            let found = rows(&written);
            for figure in [|row: &(String, u64, u64)| row.1, |row: &(String, u64, u64)| row.2] {
                let top = |rows: &[(String, u64, u64)]| {
                    let mut top: Vec<_> = rows.iter().map(|row| (figure(row), row.0.clone())).collect();
                    top.sort_by(|a, b| b.cmp(a));
                    top.truncate(20);
                    top
                };
                assert_eq!(top(&found), top(&want), "{name} {flag}");
            }
        }
    }
}

#[test]
fn every_file_for_a_viewer_has_the_functions_of_the_table_by_its_published_format() {
    let Some(python) = python_with(PERFETTO) else { return };
    let dir = support::tempdir();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/read_profiles.py");
    for name in ["perf_display_bitmaps.data", "perf_with_trace_offcpu.data", "perf_with_two_event_types.data"]
    {
        let Some(trace) = file(name) else { return };
        let all = rows(&trace);
        // Two files of one name may have a function of one name: the files for viewers do not tell them
        // apart.
        let is_one = |name: &str| all.iter().filter(|row| row.0 == name).count() == 1;
        let want: BTreeMap<&str, [u64; 2]> = all
            .iter()
            .filter(|(name, own, with_callees)| own + with_callees > 0 && is_one(name))
            .map(|(name, own, with_callees)| (name.as_str(), [*own, *with_callees]))
            .collect();
        let weighed = all.iter().filter(|(_, own, with_callees)| own + with_callees > 0).count();
        assert!(want.len() * 10 >= weighed * 9, "{} of {weighed}", want.len());
        for ending in ["pb.gz", "firefox.json", "speedscope.json", "folded"] {
            let written = dir.path().join(format!("x.{ending}"));
            let mut command = support::tracebridge();
            match ending {
                "pb.gz" => command.args(["profile", "--pprof"]),
                "firefox.json" => command.args(["profile", "--firefox"]),
                "speedscope.json" => command.args(["profile", "--speedscope"]),
                _ => command.args(["profile", "--folded"]),
            };
            command.arg(&written).arg(&trace).run().exited_with_one_of(&[0, 3]);
            let summed = Command::new(&python).arg(&script).arg(&written).run().exited(0).json();
            let mut found: BTreeMap<String, [u64; 2]> = serde_json::from_value(summed).unwrap();
            // Names in folded stacks have no semicolons.
            found.retain(|_, figures| *figures != [0, 0]);
            for (name, figures) in &want {
                let clean = if ending == "folded" { name.replace(';', ":") } else { (*name).to_owned() };
                assert_eq!(found.get(&clean), Some(figures), "{clean} in {}", written.display());
            }
        }
    }
}

/// One sample as `perf script` prints it: process and thread, time in ns, period, event.
type ScriptLine = (String, u64, u64, String);

#[test]
fn samples_threads_times_and_events_are_those_of_perf_where_perf_opens_the_file() {
    let Some(corpus) = corpus() else { return };
    if !has_program("perf") {
        return skip("perf", "apt-get install linux-perf");
    }
    let mut compared = 0;
    for name in [
        "perf_display_bitmaps.data",
        "perf_need_proguard_mapping.data",
        "perf_no_unwind.data",
        "perf_with_multiple_pids_and_tids.data",
        "perf_with_symbols.data",
        "perf_with_two_event_types.data",
    ] {
        let path = file(name).unwrap_or_else(|| panic!("{name} in {}", corpus.display()));
        let args = ["script", "--ns", "-F", "pid,tid,time,period,event", "-i"];
        let printed = Command::new("perf").args(args).arg(&path).run().exited(0).stdout;
        let line = |line: &str| -> ScriptLine {
            let words: Vec<&str> = line.split_whitespace().collect();
            let time = words[1].trim_end_matches(':').replace('.', "").parse().unwrap();
            // `cycles:HG:` is perf's name of cpu-cycles without hypervisor and guest.
            let event = words[3].split(':').next().unwrap().replace("cycles", "cpu-cycles");
            (words[0].to_owned(), time, words[2].parse().unwrap(), event)
        };
        let mut want: Vec<ScriptLine> =
            printed.lines().filter(|line| !line.trim().is_empty()).map(line).collect();
        let mut found: Vec<ScriptLine> = crate::samples::script_lines(&path);
        want.sort();
        found.sort();
        assert_eq!(found, want, "{name}");
        compared += want.len();
    }
    assert!(compared > 2_000, "{compared}");
}

#[test]
fn a_report_of_simpleperf_has_the_sums_of_its_published_proto() {
    let Some(python) = python_with(PERFETTO) else { return };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/sum_report_sample.py");
    for name in ["display_bitmaps.proto_data", "simpleperf-task-clock.trace"] {
        let Some(path) = file(name) else { return };
        let want = Command::new(&python).arg(&script).arg(&path).run().exited(0).json();
        let info = support::tracebridge().args(["info", "--json"]).arg(&path).run().json();
        let samples = &info["samples"];
        assert_eq!(samples["lost"], want["lost"], "{name}");
        let events = samples["events"].as_array().unwrap().iter().filter(|event| event["samples"] != 0);
        let mut off_cpu = Vec::new();
        for event in events {
            let of_event = &want["events"][event["name"].as_str().unwrap()];
            assert_eq!(event["samples"], of_event[0], "{name}: {event}");
            // The period of a sample where a thread stops is the time until it runs again, and no count.
            if event["is_off_cpu"] == true {
                off_cpu.push(event["name"].as_str().unwrap().to_owned());
            } else {
                assert_eq!(event["period"], of_event[1], "{name}: {event}");
            }
        }
        let mut threads: Vec<(u64, u64, &str, u64)> = samples["threads"]
            .as_array()
            .unwrap()
            .iter()
            .map(|thread| {
                let number = |key: &str| thread[key].as_u64().unwrap();
                (number("tid"), number("pid"), thread["name"].as_str().unwrap(), number("samples"))
            })
            .collect();
        threads.sort_unstable();
        assert_eq!(serde_json::to_value(&threads).unwrap(), want["threads"], "{name}");
        let ways = want["sums"].as_object().unwrap().iter();
        let all = ways.flat_map(|(way, events)| {
            events.as_object().unwrap().iter().map(move |(event, sums)| (way, event, sums))
        });
        let mut compared = 0;
        for (way, event, sums) in all.filter(|(_, event, _)| !off_cpu.contains(event)) {
            let args = ["--event", event, "--by", way];
            let mut found = rows_of(&path, &args);
            // Threads of one name are told apart by their ids.
            for row in found.iter_mut().filter(|_| way == "thread") {
                let is_id = |id: &str| id.bytes().all(|byte| byte.is_ascii_digit());
                if let Some((name, id)) = row.0.trim_end_matches(')').rsplit_once(" (")
                    && is_id(id)
                {
                    row.0 = name.to_owned();
                }
            }
            let mut ours: BTreeMap<String, [u64; 2]> = BTreeMap::new();
            for (name, own, with_callees) in found {
                let sums = ours.entry(name).or_default();
                sums[0] += own;
                sums[1] += with_callees;
            }
            ours.retain(|_, sums| *sums != [0, 0]);
            let sums: BTreeMap<String, [u64; 2]> = serde_json::from_value(sums.clone()).unwrap();
            // Two files may have a function of one name: then the profile names it with its file.
            let is_whole = |name: &str| way != "method" || ours.contains_key(name);
            for (row, figures) in sums.iter().filter(|(row, _)| is_whole(row)) {
                assert_eq!(ours.get(row), Some(figures), "{name}, {event} by {way}: {row}");
                compared += 1;
            }
            for figure in 0..2 {
                let top = |sums: &BTreeMap<String, [u64; 2]>| {
                    let mut top: Vec<(u64, String)> =
                        sums.iter().map(|(name, figures)| (figures[figure], name.clone())).collect();
                    top.sort_by(|a, b| b.cmp(a));
                    top.truncate(20);
                    top
                };
                assert_eq!(top(&ours), top(&sums), "{name}, {event} by {way}");
            }
        }
        assert!(compared > 500, "{name}: {compared} rows");
    }
}
