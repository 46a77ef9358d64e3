//! The output of each exporter for small fixed inputs, byte for byte as it is kept in `expected`.
//!
//! `UPDATE_GOLDEN=1 cargo test --test it golden::` writes the files anew; look at the difference before
//! committing it.

use std::fs;
use std::path::{Path, PathBuf};

use support::art_generate::{self, Size};
use support::python::{PERFETTO, python_with};
use support::{Command, TempDir};

use super::golden;

/// Compares with the kept file, or writes it.
#[track_caller]
pub fn assert_golden(name: &str, bytes: &[u8]) {
    let path = golden("expected").join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        return fs::write(&path, bytes).unwrap();
    }
    let kept = fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    if kept == bytes {
        return;
    }
    let ours = String::from_utf8_lossy(bytes);
    let kept = String::from_utf8_lossy(&kept);
    for (n, (ours, kept)) in ours.lines().zip(kept.lines()).enumerate() {
        assert_eq!(ours, kept, "expected/{name}: line {}", n + 1);
    }
    panic!("expected/{name}: {} lines instead of {}", ours.lines().count(), kept.lines().count());
}

/// Runs the product and returns its standard output.
fn output(arguments: &[&str], input: &Path) -> Vec<u8> {
    // By its name alone: some formats hold the path as it was given.
    let dir = input.parent().unwrap();
    let name = input.file_name().unwrap();
    let done = support::tracebridge().current_dir(dir).args(arguments).arg(name).output().unwrap();
    let messages = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{arguments:?}: {messages}");
    done.stdout
}

/// A method trace of 60 records, two threads and ten methods: the same every time.
fn method_trace() -> (TempDir, PathBuf) {
    let dir = support::tempdir();
    let path = dir.path().join("method.trace");
    let mut bytes = Vec::new();
    art_generate::write(&mut bytes, Size { records: 60, threads: 2, methods: 10, depth: 5 }).unwrap();
    fs::write(&path, bytes).unwrap();
    (dir, path)
}

/// The output of `convert` for an input.
fn assert_timeline(name: &str, input: &Path, format: &str, ending: &str) {
    let mut bytes = output(&["convert", "--format", format, "-o", "-"], input);
    if format == "chrome-json" {
        // Behind the events stand sentences about how the inputs were aligned.
        let end = bytes.windows(2).position(|w| w == b"\n]").unwrap();
        bytes.truncate(end + 1);
    }
    assert_golden(&format!("{name}.{ending}"), &bytes);
}

#[test]
fn a_kernel_recording_in_each_text_format() {
    assert_timeline("kernel", &golden("dat/split.dat"), "systrace", "systrace.txt");
    assert_timeline("kernel", &golden("dat/split.dat"), "chrome-json", "chrome.json");
    assert_timeline("kernel", &golden("dat/split.dat"), "csv", "csv");
}

#[test]
fn a_method_trace_on_the_timeline_in_each_text_format() {
    let (_dir, trace) = method_trace();
    assert_timeline("method", &trace, "systrace", "systrace.txt");
    assert_timeline("method", &trace, "chrome-json", "chrome.json");
    assert_timeline("method", &trace, "csv", "csv");
}

#[test]
fn a_profile_in_each_text_format() {
    let (_dir, trace) = method_trace();
    let outputs: [(&[&str], &str); 7] = [
        (&["profile", "--csv"], "profile.csv"),
        (&["profile", "--folded", "-"], "profile.folded"),
        (&["profile", "--folded", "-", "--merge-threads", "--clock", "cpu"], "profile.merged.folded"),
        (&["profile", "--dot", "-"], "profile.dot"),
        (&["profile", "--speedscope", "-"], "profile.speedscope.json"),
        (&["dmtracedump"], "dmtracedump.txt"),
        (&["dmtracedump", "-o"], "dmtracedump.records.txt"),
    ];
    for (arguments, name) in outputs {
        assert_golden(name, &output(arguments, &trace));
    }
}

/// Perfetto's protobuf, decoded by Perfetto's own classes.
#[test]
fn perfetto_s_own_classes_decode_what_they_decoded_before() {
    let Some(python) = python_with(PERFETTO) else { return };
    let (dir, method) = method_trace();
    for (name, input) in [("kernel", golden("dat/split.dat")), ("method", method)] {
        let pftrace = dir.path().join("out.pftrace");
        fs::write(&pftrace, output(&["convert", "--format", "perfetto", "-o", "-"], &input)).unwrap();
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/print_pftrace.py");
        let printed = Command::new(&python).arg(script).arg(&pftrace).run().exited(0).stdout;
        let version = concat!("tracebridge ", env!("CARGO_PKG_VERSION"));
        let text = printed.replace(version, "tracebridge VERSION");
        assert_golden(&format!("{name}.pftrace.txt"), text.as_bytes());
    }
}
