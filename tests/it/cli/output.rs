//! Messages about data that an output format cannot hold, and the behaviour of commands whose standard output
//! is a closed pipe or a full disk.

use std::fs::{self, File};
use std::path::Path;
use std::process::Stdio;

use serde_json::Value;
use support::art_writer::{Action, ArtTrace, Method, Record};
use support::scenario::{Era, Scenario};
use support::{run_in, tracebridge};

/// A recording in µs text with a flag and no fraction of a µs, and the method trace of the same moments.
fn recording_and_method_trace(dir: &Path) {
    let scenario = Scenario::new(14, Era::ArtMono).make();
    fs::write(dir.join("app.dat"), scenario.dat).unwrap();
    fs::write(dir.join("app.trace"), scenario.trace).unwrap();
}

/// Runs the product in `dir` with `--json`, and returns its exit status and its summary.
fn summary(dir: &Path, arguments: &[&str]) -> (Option<i32>, Value) {
    let ran = tracebridge().current_dir(dir).args(arguments).arg("--json").run();
    (ran.code(), ran.json())
}

#[test]
fn method_calls_that_a_format_cannot_hold_are_counted_as_dropped_and_change_the_exit_status() {
    let dir = support::tempdir();
    recording_and_method_trace(dir.path());
    for (format, has_place) in
        [("trace-dat", false), ("systrace", true), ("systrace-html", true), ("perfetto", true), ("csv", true)]
    {
        let merge = ["merge", "app.dat", "app.trace", "-o", "out", "--format", format];
        let (status, said) = summary(dir.path(), &merge);
        let calls = said["outcome"]["methods"].as_u64().unwrap();
        assert!(calls > 0);
        let dropped = if has_place { serde_json::json!({}) } else { serde_json::json!({ "methods": calls }) };
        assert_eq!(said["dropped"], dropped, "{format}: {said}");
        assert_eq!((status, &said["lossy"]), (Some(if has_place { 0 } else { 3 }), &(!has_place).into()));
        if !has_place {
            let out = tracebridge().current_dir(dir.path()).args(merge).run();
            let line = format!("dropped: {calls} methods: {format} has no place for them\n");
            assert!(out.stdout.contains(&line), "{out:?}");
        }
    }
}

#[test]
fn a_summary_counts_calls_methods_and_threads_and_says_what_a_time_is_of() {
    let dir = support::tempdir();
    let methods = vec![Method::new("a.B", "one"), Method::new("a.B", "two"), Method::new("a.B", "three")];
    let call = |thread, method, from| {
        [
            Record::new(thread, method, Action::Enter, from, from),
            Record::new(thread, method, Action::Exit, from + 9, from + 9),
        ]
    };
    let trace = ArtTrace {
        threads: vec![(1, "main".into()), (2, "worker".into())],
        methods,
        records: [call(1, 0, 1), call(1, 1, 20), call(2, 2, 40), call(1, 0, 60)].concat(),
        elapsed_us: 500,
        ..ArtTrace::default()
    };
    fs::write(dir.path().join("app.trace"), trace.to_bytes()).unwrap();
    let said = run_in(dir.path(), &["convert", "app.trace", "-o", "x.pftrace"]).exited(0).stdout;
    assert!(said.contains("total: 0 events, 0 markers, 4 calls of 3 methods, 2 threads\n"), "{said}");
    assert!(said.contains("time: 0.000068 s from the first event to the last, clock "), "{said}");
    let info = run_in(dir.path(), &["info", "app.trace"]).exited(0).stdout;
    assert!(info.contains("duration: 0.000500 s, as the header says\n"), "{info}");
    assert!(info.contains("  methods: 3 (") && info.contains("  threads: 2 ("), "{info}");
}

#[test]
fn the_help_names_the_files_that_are_written() {
    let help = |words: &[&str]| tracebridge().args(words).arg("--help").run().exited(0).stdout;
    for command in ["merge", "convert"] {
        assert!(help(&[command]).contains("  parquet       .parquet\n"), "{command}");
    }
    let launch = help(&["adb", "launch"]);
    for name in ["start-1.pftrace", "start-a-1.pftrace", "start-b-1.pftrace"] {
        assert!(launch.contains(name), "no {name}: {launch}");
    }
}

#[test]
fn a_method_trace_alone_is_refused_by_a_format_without_methods_and_the_old_output_stays() {
    let dir = support::tempdir();
    recording_and_method_trace(dir.path());
    fs::write(dir.path().join("out.dat"), "an older file").unwrap();
    let said = run_in(dir.path(), &["convert", "app.trace", "-o", "out.dat"]).exited(1).stderr;
    for part in
        ["trace-dat has no place for methods", "nothing is written", "perfetto (.pftrace)", "csv (.csv)"]
    {
        assert!(said.contains(part), "{part} in {said}");
    }
    assert_eq!(fs::read_to_string(dir.path().join("out.dat")).unwrap(), "an older file");
}

#[test]
fn an_input_that_no_reader_accepts_leaves_an_older_output_as_it_is() {
    let dir = support::tempdir();
    fs::write(dir.path().join("notes.txt"), "no trace\n").unwrap();
    fs::write(dir.path().join("out.dat"), "an older file").unwrap();
    run_in(dir.path(), &["convert", "notes.txt", "-o", "out.dat"]).exited(1);
    assert_eq!(fs::read_to_string(dir.path().join("out.dat")).unwrap(), "an older file");
}

#[test]
fn a_detail_that_the_output_lacks_is_counted_and_changes_the_exit_status_with_strict_only() {
    let dir = support::tempdir();
    let line =
        |us: u64, flags: &str| format!(" a-7 (    7) [000] {flags} 1.{us:06}: tracing_mark_write: I|7|x\n");
    let text = format!("# tracer: nop\n#\n{}{}", line(1, "d..1"), line(2, "...."));
    fs::write(dir.path().join("a.txt"), text).unwrap();
    let convert = ["convert", "a.txt", "-o", "out.csv"];
    let (status, said) = summary(dir.path(), &convert);
    assert_eq!(said["reduced"], serde_json::json!({ "flags": 1, "preempt_counts": 1 }));
    assert_eq!((status, &said["lossy"], &said["irregular"]), (Some(0), &false.into(), &true.into()));
    let (status, said) = summary(dir.path(), &[&convert[..], &["--strict"]].concat());
    assert_eq!((status, &said["lossy"]), (Some(3), &false.into()));
}

#[test]
fn calls_that_were_open_at_the_end_exit_with_0_and_with_strict_3() {
    let dir = support::tempdir();
    let trace = ArtTrace {
        threads: vec![(7, "main".to_owned())],
        methods: vec![Method::new("a.B", "run")],
        records: vec![Record { thread: 7, method: 0, action: Action::Enter, cpu_us: 5, wall_us: 5 }],
        ..ArtTrace::default()
    };
    fs::write(dir.path().join("app.trace"), trace.to_bytes()).unwrap();
    let commands: [&[&str]; 4] = [
        &["info", "app.trace"],
        &["profile", "app.trace"],
        &["dmtracedump", "app.trace"],
        &["convert", "app.trace", "-o", "out.json"],
    ];
    for command in commands {
        let status = |more: &[&str]| {
            let out = tracebridge().current_dir(dir.path()).args(command).args(more).run();
            assert!(out.said().contains("1 calls were open at"), "{command:?}");
            out.code()
        };
        assert_eq!((status(&[]), status(&["--strict"])), (Some(0), Some(3)), "{command:?}");
    }
}

#[test]
fn one_file_given_twice_is_taken_once_and_a_note_says_so() {
    let dir = support::tempdir();
    recording_and_method_trace(dir.path());
    fs::copy(dir.path().join("app.trace"), dir.path().join("copy.trace")).unwrap();
    let merge = |inputs: &[&str]| {
        let (status, said) = summary(dir.path(), &[&["merge", "-o", "out.json"], inputs].concat());
        assert_eq!(status, Some(0), "{said}");
        said["outcome"].clone()
    };
    let once = merge(&["app.dat", "app.trace"]);
    assert_eq!(once["report"]["notes"], serde_json::json!([]));
    for again in ["app.trace", "./app.trace", "copy.trace"] {
        let twice = merge(&["app.dat", "app.trace", again]);
        assert_eq!(twice["methods"], once["methods"]);
        let note = format!("{again}: has the same contents as app.trace: it is taken once");
        assert_eq!(twice["report"]["notes"], serde_json::json!([note]));
    }
}

#[test]
fn a_value_that_does_not_fit_its_field_in_a_trace_dat_is_counted_as_dropped() {
    let dir = support::tempdir();
    let line = |n: u32, function: &str| {
        format!(
            " a-7 (    7) [000] d..1 1.00000{n}: hrtimer_expire_entry: hrtimer=00000000deadbeef function={function} now=5\n"
        )
    };
    let text = format!("# tracer: nop\n#\n{}{}", line(1, "tick_sched_timer"), line(2, "hrtimer_wakeup"));
    fs::write(dir.path().join("a.txt"), text).unwrap();
    let (status, said) = summary(dir.path(), &["convert", "a.txt", "-o", "out.dat"]);
    assert_eq!((status, &said["dropped"]), (Some(3), &serde_json::json!({ "field_values": 2 })), "{said}");
    let (status, said) = summary(dir.path(), &["convert", "a.txt", "-o", "out.txt"]);
    assert_eq!((status, &said["dropped"]), (Some(0), &serde_json::json!({})), "{said}");
}

#[test]
fn lost_events_are_in_every_output() {
    let dir = support::tempdir();
    let line = |us: u32| format!(" a-7 (    7) [001] d..1 1.{us:06}: tracing_mark_write: I|7|x\n");
    let text = format!("# tracer: nop\n#\n{}CPU:1 [LOST 5 EVENTS]\n{}", line(1), line(9));
    fs::write(dir.path().join("a.txt"), text).unwrap();
    for (out, line) in [
        ("out.csv", "lost,1000001000,,1,,,,events lost,5,,,,,,\n"),
        ("out.txt", "CPU:1 [LOST 5 EVENTS]"),
        ("out.json", "\"name\":\"events lost\",\"cat\":\"ftrace\",\"s\":\"t\",\"args\":{\"count\":5}"),
        ("out.firefox.json", "events lost"),
    ] {
        let (status, said) = summary(dir.path(), &["convert", "a.txt", "-o", out]);
        assert_eq!((status, &said["outcome"]["report"]["cpus"]["1"]["lost"]), (Some(3), &5.into()));
        let written = fs::read_to_string(dir.path().join(out)).unwrap();
        assert!(written.contains(line), "{line} in {written}");
    }
    let (_, said) = summary(dir.path(), &["convert", "a.txt", "-o", "out.dat"]);
    assert_eq!(said["dropped"], serde_json::json!({}));
    let (_, said) = summary(dir.path(), &["info", "out.dat"]);
    assert_eq!(said["lost"], 5);
}

#[test]
fn a_csv_of_a_recording_and_its_method_trace_has_names_signatures_and_files_of_every_call() {
    let dir = support::tempdir();
    recording_and_method_trace(dir.path());
    let (_, said) = summary(dir.path(), &["merge", "app.dat", "app.trace", "-o", "out.csv"]);
    let written = fs::read_to_string(dir.path().join("out.csv")).unwrap();
    let columns: Vec<&str> = written.lines().next().unwrap().split(',').collect();
    let column = |name: &str| columns.iter().position(|c| *c == name).unwrap();
    let mut calls = 0;
    for line in written.lines().filter(|line| line.starts_with("method,")) {
        let fields: Vec<&str> = line.split(',').collect();
        for name in ["pid", "tid", "depth", "name", "thread", "process", "signature", "file", "cpu_dur_ns"] {
            assert!(!fields[column(name)].is_empty(), "{name} in {line}");
        }
        calls += 1;
    }
    assert_eq!(said["outcome"]["methods"], calls);
}

#[test]
fn info_succeeds_silently_on_a_closed_pipe_and_fails_with_one_message_on_a_full_disk() {
    let dir = support::tempdir();
    let path = dir.path().join("app.trace");
    fs::write(&path, Scenario::new(15, Era::ArtMono).make().trace).unwrap();
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let out = tracebridge().arg("info").arg(&path).stdout(writer).run().exited(0);
    assert_eq!(out.stderr, "");
    if let Ok(full) = File::options().write(true).open("/dev/full") {
        let out = tracebridge().arg("info").arg(&path).stdout(full).stderr(Stdio::piped()).run().exited(1);
        let said = &out.stderr;
        assert!(said.starts_with("tracebridge: ") && said.lines().count() == 1, "{said}");
    }
}

/// The device's commands.
#[cfg(target_os = "linux")]
mod of_the_device {
    use super::*;
    use support::Command;

    /// Commands that print a report, whether or not this machine has a tracefs.
    const REPORTS: [&[&str]; 5] =
        [&["doctor"], &["doctor", "--json"], &["list"], &["list", "--json"], &["restore"]];

    fn device_command(args: &[&str], state_dir: &std::path::Path) -> Command {
        let mut command = tracebridge();
        command.args(args).arg("--state-dir").arg(state_dir);
        command
    }

    #[test]
    fn a_closed_pipe_is_no_failure() {
        let dir = support::tempdir();
        for args in REPORTS {
            let (reader, writer) = std::io::pipe().unwrap();
            drop(reader);
            let out = device_command(args, dir.path()).stdout(Stdio::from(writer)).run();
            assert_eq!((out.code(), out.stderr.as_str()), (Some(0), ""), "{args:?}");
        }
    }

    #[test]
    fn a_full_disk_does_not_cause_a_panic() {
        let dir = support::tempdir();
        for args in REPORTS {
            let full = File::options().write(true).open("/dev/full").unwrap();
            let out = device_command(args, dir.path()).stdout(full).run();
            let said = &out.stderr;
            assert!(out.code().is_some_and(|code| code < 2), "{args:?}: {said}");
            assert!(!said.contains("panicked"), "{args:?}: {said}");
        }
    }
}
