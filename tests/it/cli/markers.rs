//! Runs `mark`, `doctor` and `list` with a directory of plain files in place of a tracefs.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Stdio;

use support::{Child, Ran, TempDir, tracebridge, within_limit, write_program};

/// Makes a directory with the files of a tracefs that these commands use: a marker file, and `events`
/// switched off.
fn tracefs(events: &[&str]) -> TempDir {
    let dir = support::tempdir();
    fs::write(dir.path().join("tracing_on"), "1\n").unwrap();
    fs::write(dir.path().join("trace_marker"), "").unwrap();
    fs::write(dir.path().join("trace_clock"), "[local] global mono\n").unwrap();
    for event in events {
        let event = dir.path().join("events").join(event);
        fs::create_dir_all(&event).unwrap();
        fs::write(event.join("enable"), "0\n").unwrap();
    }
    dir
}

/// A directory for `--android-root` with a stand-in for Android's `getprop`.
fn android(properties: &str) -> TempDir {
    let dir = support::tempdir();
    write_program(&dir.path().join("bin/getprop"), format!("#!/bin/sh\ncase $1 in\n{properties}\nesac\n"));
    dir
}

fn mark(tracefs: &Path, args: &[&str]) -> Ran {
    tracebridge().arg("mark").arg("--tracefs").arg(tracefs).args(args).run()
}

/// Starts `mark -`, which reads lines from a pipe.
fn start_stream(tracefs: &Path) -> Child {
    let mut mark = tracebridge();
    mark.args(["mark", "-", "--pid", "9", "--tracefs"]).arg(tracefs);
    mark.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn marked(tracefs: &Path) -> String {
    fs::read_to_string(tracefs.join("trace_marker")).unwrap()
}

#[test]
fn mark_writes_its_slices_for_the_process_of_the_calling_script() {
    let tracefs = tracefs(&[]);
    mark(tracefs.path(), &["async-begin", "load it", "7"]).exited(0);
    assert_eq!(marked(tracefs.path()), format!("S|{}|load it|7", std::process::id()));
    mark(tracefs.path(), &["counter", "queue", "-3", "--pid", "5"]).exited(0);
    assert!(marked(tracefs.path()).starts_with("C|5|queue|-3"));
}

#[test]
fn a_stream_continues_after_a_bad_line_and_reports_the_number_of_the_line() {
    let tracefs = tracefs(&[]);
    let mut child = start_stream(tracefs.path());
    child.feed("begin a b\n\nnonsense\nend\n");
    let ran = child.finish().exited(3);
    assert!(ran.stderr.contains("line 3"), "{ran}");
    assert_eq!(marked(tracefs.path()), "B|9|a bE|9");
}

#[test]
fn a_marker_with_a_tag_is_written_only_while_the_tag_is_on() {
    let tracefs = tracefs(&[]);
    let android = android("debug.atrace.tags.enableflags) echo 0x8;;");
    let run = |tag| {
        let mut mark = tracebridge();
        mark.arg("--android-root")
            .arg(android.path())
            .args(["mark", "instant", "x", "--pid", "1", "--tag", tag]);
        mark.arg("--tracefs").arg(tracefs.path()).run().exited(0);
    };
    run("gfx");
    assert_eq!(marked(tracefs.path()), "");
    run("view");
    assert_eq!(marked(tracefs.path()), "I|1|x");
    run("always");
}

#[test]
fn without_a_tracefs_the_error_says_how_to_mount_one() {
    let dir = support::tempdir();
    let ran = mark(dir.path(), &["end"]).exited(1);
    assert!(ran.stderr.contains("trace_marker"), "{ran}");
    let doctor = tracebridge().args(["doctor", "--tracefs"]).arg(dir.path()).run().exited(1);
    assert!(doctor.stdout.contains("mount -t tracefs"), "{doctor}");
}

#[test]
fn list_shows_which_categories_work_and_why_others_do_not() {
    let tracefs = tracefs(&["sched/sched_switch", "sched/sched_wakeup"]);
    let list = || {
        let mut list = tracebridge();
        list.args(["list", "--tracefs"]).arg(tracefs.path());
        list
    };
    let text = list().run().stdout;
    assert!(text.contains("ok  sched "), "{text}");
    assert!(text.contains("no  irq            IRQ Events (not in this kernel: irq)"), "{text}");
    assert!(text.contains("this is no Android"), "{text}");
    let android = android("ro.atrace.core.services) echo com.android.phone;;");
    let text = list().arg("--android-root").arg(android.path()).run().stdout;
    assert!(text.contains("ok  gfx ") && text.contains("ok  core_services "), "{text}");
}

#[test]
fn doctor_names_file_and_kernel_option_for_scripts() {
    let tracefs = tracefs(&["sched/sched_switch", "sched/sched_wakeup"]);
    let ran = tracebridge().args(["doctor", "--json", "--tracefs"]).arg(tracefs.path()).run();
    assert_eq!(ran.code(), Some(1), "no trace_pipe_raw, so nothing can be recorded");
    let report = ran.json();
    assert_eq!(report["clock"], "mono");
    let path =
        |name: &str| report["paths"].as_array().unwrap().iter().find(|p| p["path"] == name).unwrap().clone();
    assert_eq!(path("tracing_on")["reason"], serde_json::Value::Null);
    assert_eq!(path("buffer_percent")["obstacle"], "kernel");
    assert_eq!(path("buffer_percent")["reason"], "not there: needs Linux 5.0");
}

#[test]
fn a_stream_goes_on_after_bytes_that_are_no_text_and_lines_without_an_end() {
    let tracefs = tracefs(&[]);
    let mut child = start_stream(tracefs.path());
    let mut stdin = child.stdin.take().unwrap();
    let mut stdin = within_limit("the command to read 64 MiB", move || {
        stdin.write_all(b"begin a\xffb\nB|9|raw\xff\ninstant ").unwrap();
        let piece = vec![b'x'; 1 << 20];
        for _ in 0..64 {
            stdin.write_all(&piece).unwrap();
        }
        stdin
    });
    let kib = support::processes::resident_kib(child.id()).unwrap();
    assert!(kib < 32 << 10, "{kib} KiB");
    stdin.write_all(b"\nend\n").unwrap();
    drop(stdin);
    let said = child.finish().exited(3).stderr;
    assert!(said.contains("line 1: ") && said.contains("line 3: ") && !said.contains("line 2"), "{said}");
    let written = fs::read(tracefs.path().join("trace_marker")).unwrap();
    assert!(written.starts_with("B|9|a\u{fffd}b".as_bytes()), "{written:?}");
    assert!(written.windows(10).any(|w| w == b"B|9|raw\xffI|") && written.ends_with(b"xE|9"));
}
