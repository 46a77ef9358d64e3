//! Perfetto's own classes read what `merge` writes for Perfetto.

use std::fs;
use std::path::Path;
use support::Command;

use serde_json::Value;

use support::scenario::{Era, Scenario};
use support::{skip, tracebridge};

/// Finds a Python interpreter that has Perfetto's classes.
fn python() -> Option<Command> {
    let name = std::env::var("TRACEBRIDGE_PYTHON").unwrap_or_else(|_| "python3".into());
    let has =
        Command::new(&name).args(["-c", "import perfetto.protos.perfetto.trace.perfetto_trace_pb2"]).output();
    if has.is_ok_and(|o| o.status.success()) {
        return Some(Command::new(name));
    }
    skip(
        "python",
        &format!("{name} has no package perfetto: pip install perfetto, or set TRACEBRIDGE_PYTHON"),
    );
    None
}

fn json(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap_or_else(|e| panic!("{e}: {}", String::from_utf8_lossy(bytes)))
}

#[test]
fn perfettos_classes_decode_a_merged_trace_with_every_event_and_call() {
    let Some(mut python) = python() else { return };
    let dir = support::tempdir();
    let path = |name: &str| dir.path().join(name);
    let made = Scenario::new(11, Era::Art14).make();
    fs::write(path("app.dat"), &made.dat).unwrap();
    fs::write(path("app.trace"), &made.trace).unwrap();
    let out = tracebridge()
        .args(["merge", "--json", "-o"])
        .args([path("out.pftrace"), path("app.dat"), path("app.trace")])
        .output()
        .unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let merged = json(&out.stdout);

    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/count_pftrace.py");
    let out = python.arg(script).arg(path("out.pftrace")).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let read = json(&out.stdout);
    let count = |name: &str| read["counts"][name].as_u64().unwrap_or(0);
    for none in ["unknown", "unmatched", "unnamed", "open"] {
        assert_eq!(count(none), 0, "{none}");
    }
    let outcome = &merged["outcome"];
    assert_eq!(Some(count("events")), outcome["inputs"][0]["events"].as_u64());
    assert_eq!(Some(count("prints")), outcome["markers"].as_u64());
    assert_eq!(count("switches"), count("events") - count("prints"));
    assert_eq!(Some(count("begins")), outcome["methods"].as_u64());
    assert_eq!(count("begins"), count("ends"));
    for (tid, truth) in &made.truth {
        let slices = read["slices"][tid.to_string()].as_array().unwrap();
        assert_eq!(slices.len(), truth.len(), "thread {tid}");
        for (read, really) in slices.iter().zip(truth) {
            let apart = read.as_u64().unwrap().abs_diff(*really);
            assert!(apart <= 20_000, "{apart} ns");
        }
    }
    let names: Vec<&str> = read["names"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert_eq!(names[0], "com.example.app.Main.draw");
}

#[test]
fn an_input_that_cannot_be_aligned_is_refused_with_the_options_that_help() {
    let dir = support::tempdir();
    let path = |name: &str| dir.path().join(name);
    let made = Scenario { markers: false, ..Scenario::new(12, Era::Art14) }.make();
    let other = Scenario { suspended: 900_000_000_000, ..Scenario::new(12, Era::Art14) }.make();
    fs::write(path("app.dat"), &made.dat).unwrap();
    fs::write(path("app.trace"), &other.trace).unwrap();
    let merge = |more: &[&str]| {
        let mut command = tracebridge();
        command.args(["merge", "-o"]).args([path("out.pftrace"), path("app.dat"), path("app.trace")]);
        command.args(more).output().unwrap()
    };
    let out = merge(&[]);
    let messages = String::from_utf8_lossy(&out.stderr).into_owned();
    assert_eq!(out.status.code(), Some(1), "{messages}");
    assert!(messages.contains("--clock") && messages.contains("--offset"), "{messages}");
    assert!(!path("out.pftrace").exists(), "half a file was left");
    let out = merge(&["--offset", "900000000000"]);
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
}

#[test]
fn info_names_an_unsupported_format_and_a_program_that_opens_it() {
    let dir = support::tempdir();
    let file = dir.path().join("memory.hprof");
    fs::write(&file, b"JAVA PROFILE 1.0.3\0").unwrap();
    let out = tracebridge().arg("info").arg(&file).output().unwrap();
    let messages = String::from_utf8_lossy(&out.stderr).into_owned();
    assert_eq!(out.status.code(), Some(1));
    assert!(messages.contains("this is a heap dump (hprof); it is not read here: "), "{messages}");
}

#[test]
fn events_of_two_equal_recordings_appear_once_in_any_order() {
    let dir = support::tempdir();
    let path = |name: &str| dir.path().join(name);
    let made = Scenario::new(13, Era::ArtMono).make();
    fs::write(path("one.dat"), &made.dat).unwrap();
    // The same events in a file with other bytes. A file with the same bytes is taken once.
    let copied = tracebridge().arg("convert").arg(path("one.dat")).arg("-o").arg(path("two.dat")).output();
    assert!(copied.unwrap().status.success());
    let events = |file: &str| {
        let out = tracebridge().args(["info", "--json"]).arg(path(file)).output().unwrap();
        json(&out.stdout)["events"].as_u64()
    };
    for file in ["out.dat", "out.pftrace"] {
        let out = tracebridge()
            .args(["merge", "--json", "-o"])
            .args([path(file), path("one.dat"), path("two.dat")])
            .output()
            .unwrap();
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        assert_eq!(json(&out.stdout)["outcome"]["inputs"][1]["duplicates"].as_u64(), events("one.dat"));
        assert_eq!(events(file), events("one.dat"), "{file}");
    }
}
