//! The programs that people open our files with read them without a complaint: speedscope's own importer,
//! from its npm package, run by Node.

use std::fs;
use std::path::{Path, PathBuf};
use support::Command;

use serde_json::Value;

use support::scenario::{Era, Scenario};
use support::{self, tracebridge};

/// The directory of speedscope's npm package: `TRACEBRIDGE_SPEEDSCOPE`, which scripts/test sets where Node
/// and npm are installed. Where the package or Node is missing, this function reports a skipped test.
fn speedscope() -> Option<PathBuf> {
    let dir = std::env::var_os("TRACEBRIDGE_SPEEDSCOPE").map(PathBuf::from);
    let dir = dir.filter(|dir| dir.join("dist/release").is_dir());
    let has_node = support::has_program("node");
    if dir.is_none() || !has_node {
        let why = "set TRACEBRIDGE_SPEEDSCOPE to the unpacked npm package speedscope, and install node";
        support::skip("speedscope", why);
        return None;
    }
    dir
}

/// The answer of speedscope's importer about each file.
fn imported(package: &Path, files: &[PathBuf]) -> Vec<Value> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/speedscope_import.mjs");
    let done = Command::new("node").arg(script).arg(package).args(files).run().exited(0);
    done.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Converts and profiles `trace`, and returns the files that speedscope opens.
fn written(dir: &Path, trace: &Path) -> Vec<PathBuf> {
    let [json, speedscope, folded] = ["m.json", "m.speedscope.json", "m.folded"].map(|name| dir.join(name));
    let run = |arguments: &[&dyn AsRef<std::ffi::OsStr>]| {
        let done = tracebridge().args(arguments.iter().map(|a| a.as_ref())).run();
        assert!(matches!(done.code(), Some(0 | 3)), "{}", done.stderr);
    };
    run(&[&"convert", &trace, &"-o", &json]);
    run(&[&"profile", &trace, &"--speedscope", &speedscope, &"--folded", &folded]);
    vec![json, speedscope, folded]
}

/// Checks that the importer opened every file without a warning, and that the Chrome JSON has the depth of
/// the speedscope file.
fn assert_clean(files: &[Value]) {
    let deepest = |file: &Value| {
        file["profiles"].as_array().unwrap().iter().filter_map(|p| p["deepest"].as_u64()).max()
    };
    for file in files {
        assert_eq!((&file["error"], &file["warnings"]), (&Value::Null, &serde_json::json!([])), "{file}");
        assert!(deepest(file) > Some(0), "{file}");
    }
    assert_eq!(deepest(&files[0]), deepest(&files[1]), "{files:?}");
}

#[test]
fn speedscope_opens_chrome_json_speedscope_files_and_folded_stacks_without_a_warning() {
    let Some(package) = speedscope() else { return };
    let dir = support::tempdir();
    let made = Scenario::new(14, Era::ArtMono).make();
    let dat = dir.path().join("app.dat");
    let trace = dir.path().join("app.trace");
    fs::write(&dat, made.dat).unwrap();
    fs::write(&trace, made.trace).unwrap();
    assert_clean(&imported(&package, &written(dir.path(), &trace)));
    // A recording: times of threads on CPUs that follow each other, and markers.
    let merged = dir.path().join("merged.json");
    tracebridge().arg("merge").args([&dat, &trace]).arg("-o").arg(&merged).run().exited(0);
    let file = &imported(&package, &[merged])[0];
    assert_eq!((&file["error"], &file["warnings"]), (&Value::Null, &serde_json::json!([])));
}

#[test]
fn speedscope_opens_what_becomes_of_real_method_traces_without_a_warning() {
    let (Some(package), Some(corpus)) = (speedscope(), support::corpus()) else { return };
    let dir = support::tempdir();
    for name in [
        "Grigory-Rylov__android-methods-profiler__legacy.trace",
        "firefox-devtools__profiler__art-trace-regular.trace",
        "firefox-devtools__profiler__art-trace-streaming.trace",
    ] {
        assert_clean(&imported(&package, &written(dir.path(), &corpus.join("method-trace").join(name))));
    }
}
