//! Messages about data that an output format cannot hold, and the behaviour of commands whose standard output
//! is a closed pipe or a full disk.

use std::fs::{self, File};
use std::process::Stdio;

use serde_json::Value;

use crate::scenario::{Era, Scenario};
use crate::support::tracebridge;

#[test]
fn method_calls_that_a_format_cannot_hold_are_counted_and_change_the_exit_status() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("app.trace"), Scenario::new(14, Era::ArtMono).make().trace).unwrap();
    for (format, has_place) in [("systrace", false), ("trace-dat", false), ("perfetto", true), ("csv", true)]
    {
        let run = |json: &[&str]| {
            let mut command = tracebridge();
            command.current_dir(dir.path()).args(["convert", "app.trace", "-o", "out", "--format", format]);
            command.args(json).output().unwrap()
        };
        let out = run(&["--json"]);
        let said: Value = serde_json::from_slice(&out.stdout).unwrap();
        let calls = said["outcome"]["methods"].as_u64().unwrap();
        assert!(calls > 0);
        let (status, not_written) = match has_place {
            true => (0, Value::Null),
            false => (3, serde_json::json!({ "method_calls": calls })),
        };
        assert_eq!(
            (out.status.code(), &said["not_written"]),
            (Some(status), &not_written),
            "{format}: {said}"
        );
        assert_eq!(said["lossy"], !has_place, "{format}");
        let said = String::from_utf8(run(&[]).stdout).unwrap();
        let note =
            format!("note: {calls} method calls are not in this output: {format} has no place for them\n");
        assert_eq!(said.contains(&note), !has_place, "{said}");
    }
}

#[test]
fn info_succeeds_silently_on_a_closed_pipe_and_fails_with_one_message_on_a_full_disk() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("app.trace");
    fs::write(&path, Scenario::new(15, Era::ArtMono).make().trace).unwrap();
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let out = tracebridge().arg("info").arg(&path).stdout(writer).output().unwrap();
    assert_eq!((out.status.code(), &out.stderr[..]), (Some(0), &b""[..]));
    if let Ok(full) = File::options().write(true).open("/dev/full") {
        let out = tracebridge().arg("info").arg(&path).stdout(full).stderr(Stdio::piped()).output().unwrap();
        let said = String::from_utf8_lossy(&out.stderr);
        assert_eq!(out.status.code(), Some(1), "{said}");
        assert!(said.starts_with("tracebridge: ") && said.lines().count() == 1, "{said}");
    }
}
