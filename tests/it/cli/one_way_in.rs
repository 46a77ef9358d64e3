//! Every command finds the same inputs in the same files: key files with their data files, archives with a
//! manifest, bug reports, copies. Parts of a file that a command leaves out are named.

use std::fs;
use std::path::Path;

use serde_json::Value;

use support::art_always_on::{self, Stream, anr_dump};
use support::files::{gzip, zip};
use support::scenario::{Era, Scenario};
use support::{TempDir, run_line};

/// The standard output of a command line that must succeed without losses.
fn stdout(dir: &Path, line: &str) -> String {
    run_line(dir, line).exited(0).stdout
}

/// The names of the inputs that a `merge`, `convert` or `report` of these files has.
fn merged(dir: &Path, command: &str, files: &str) -> Vec<String> {
    let said = stdout(dir, &format!("{command} --json {files} -o merged.html"));
    let summary: Value = serde_json::from_str(&said).unwrap();
    let inputs = summary["outcome"]["inputs"].as_array().unwrap().iter();
    inputs.map(|input| input["name"].as_str().unwrap().to_owned()).collect()
}

/// The notes of a merge of these files.
fn notes(dir: &Path, files: &str) -> String {
    let said = stdout(dir, &format!("merge --json {files} -o merged.html"));
    let summary: Value = serde_json::from_str(&said).unwrap();
    summary["outcome"]["report"]["notes"].to_string()
}

/// The rows of the profile of each trace in these files.
fn profiled(dir: &Path, files: &str) -> Vec<Value> {
    let said = stdout(dir, &format!("profile --json {files}"));
    said.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["rows"].take()).collect()
}

/// A recording `app.dat`, and the method trace of the same moments: whole as `app.trace`, and split into
/// `old.key` and `old.data`.
fn sample() -> TempDir {
    let dir = support::tempdir();
    let write = |name: &str, bytes: &[u8]| fs::write(dir.path().join(name), bytes).unwrap();
    let made = Scenario { threads: 2, length: 100_000_000, ..Scenario::new(51, Era::ArtMono) }.make();
    let records_at = made.trace.windows(4).position(|word| word == b"SLOW").unwrap();
    write("app.dat", &made.dat);
    write("app.trace", &made.trace);
    write("old.key", &made.trace[..records_at]);
    write("old.data", &made.trace[records_at..]);
    dir
}

/// The number of traces in the dataset `name` after these files have been added.
fn added(dir: &Path, name: &str, files: &str) -> usize {
    stdout(dir, &format!("dataset add {name} {files}"));
    let said = stdout(dir, &format!("dataset list --json {name}"));
    serde_json::from_str::<Value>(&said).unwrap()["traces"].as_array().unwrap().len()
}

#[test]
fn every_command_joins_a_key_file_with_its_data_file() {
    let dir = sample();
    let dir = dir.path();
    let whole = profiled(dir, "app.trace");
    for files in ["old.key", "old.key old.data", "old.data old.key", "old"] {
        assert_eq!(profiled(dir, files), whole, "{files}");
        assert_eq!(merged(dir, "merge", files), ["old.key"], "{files}");
        assert_eq!(merged(dir, "report", files), ["old.key"], "{files}");
        let reports = stdout(dir, &format!("info --json {files}"));
        assert_eq!(reports.lines().count(), 1, "{files}: {reports}");
        let report: Value = serde_json::from_str(&reports).unwrap();
        assert!(report["counts"]["records"].as_u64().unwrap() > 0, "{files}: {report}");
    }
    assert_eq!(merged(dir, "convert", "old.key"), ["old.key"]);
    let text = |files: &str| {
        stdout(dir, &format!("merge {files} -o out.csv"));
        fs::read_to_string(dir.join("out.csv")).unwrap()
    };
    assert_eq!(text("app.dat old.key old.data"), text("app.dat app.trace"));
    assert_eq!(
        stdout(dir, "dmtracedump old.data old.key"),
        stdout(dir, "dmtracedump app.trace"),
        "the order in which a shell lists the files"
    );
}

#[test]
fn a_dataset_takes_a_key_file_and_its_data_file_as_one_trace() {
    let dir = sample();
    let dir = dir.path();
    assert_eq!(added(dir, "pair", "old.data old.key"), 1);
    fs::rename(dir.join("app.dat"), dir.join("old.dat")).unwrap();
    assert_eq!(added(dir, "recording", "old.dat old.data old.key"), 1);
    let trace = stdout(dir, "dataset list --json recording");
    assert!(trace.contains("old.dat + old"), "{trace}");
    // The contents are those of another trace that the dataset has already.
    assert_eq!(added(dir, "recording", "--pair old.dat,app.trace"), 1);
}

#[test]
fn no_output_replaces_a_data_file_that_is_read_with_its_key_file() {
    let dir = sample();
    let dir = dir.path();
    let before = fs::read(dir.join("old.data")).unwrap();
    for line in [
        "merge old.key --format csv -o old.data",
        "convert old --format csv -o old.data",
        "report old.key -o old.data",
        "profile old --folded old.data",
    ] {
        let ran = run_line(dir, line);
        assert_eq!(ran.code(), Some(1), "{line}: {}", ran.stderr);
        assert!(ran.stderr.contains("old.data"), "{line}: {}", ran.stderr);
        assert_eq!(fs::read(dir.join("old.data")).unwrap(), before, "{line}");
    }
}

#[test]
fn every_command_opens_the_archive_that_merge_writes() {
    let dir = sample();
    let dir = dir.path();
    stdout(dir, "merge app.dat app.trace -o x.zip");
    let members = ["x.zip/recording.pftrace", "x.zip/0-app.trace"];
    for command in ["merge", "convert", "report"] {
        assert_eq!(merged(dir, command, "x.zip"), members, "{command}");
    }
    let ran = run_line(dir, "profile --json x.zip");
    assert_eq!(ran.code(), Some(0), "{}", ran.stderr);
    assert_eq!(profiled(dir, "x.zip"), profiled(dir, "app.trace"));
    assert!(ran.stderr.contains("x.zip/recording.pftrace: ") && ran.stderr.contains("no method calls"));
    assert_eq!(stdout(dir, "dmtracedump x.zip"), stdout(dir, "dmtracedump app.trace"));
    let reports = stdout(dir, "info --json x.zip");
    let reports: Vec<Value> = reports.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let paths: Vec<&str> = reports.iter().map(|report| report["path"].as_str().unwrap()).collect();
    assert_eq!(paths, ["x.zip", members[0], members[1]]);
    assert_eq!(added(dir, "set", "x.zip"), 1);
}

#[test]
fn the_members_of_an_archive_may_be_compressed() {
    let dir = sample();
    let dir = dir.path();
    let recording = fs::read(dir.join("app.dat")).unwrap();
    let methods = fs::read(dir.join("app.trace")).unwrap();
    let manifest =
        r#"{"perfetto_manifest":{"version":1,"files":[{"path":"a.dat.zst"},{"path":"a.trace.gz"}]}}"#;
    let files: [(&str, &[u8]); 4] = [
        ("perfetto_manifest.json", manifest.as_bytes()),
        ("a.dat.zst", &zstd::encode_all(&recording[..], 1).unwrap()),
        ("a.trace.gz", &gzip(&methods)),
        ("readme.txt", b"nothing\n"),
    ];
    fs::write(dir.join("y.zip"), zip(&files)).unwrap();
    assert_eq!(merged(dir, "merge", "y.zip"), ["y.zip/a.dat.zst", "y.zip/a.trace.gz"]);
    assert_eq!(profiled(dir, "y.zip"), profiled(dir, "app.trace"));
    assert_eq!(stdout(dir, "info --json y.zip").lines().count(), 3);
}

#[test]
fn traces_beside_the_dumps_of_a_bug_report_are_named_by_the_commands_that_leave_them_out() {
    let dir = sample();
    let dir = dir.path();
    let art = Scenario { threads: 2, length: 100_000_000, ..Scenario::new(51, Era::ArtMono) }.make().art;
    let dump = anr_dump(77, &art_always_on::to_bytes(&art, Stream::Anr));
    let recording = fs::read(dir.join("app.dat")).unwrap();
    let report = zip(&[
        ("FS/data/anr/anr_1.gz", &gzip(dump.as_bytes())),
        ("FS/data/system.dat", &recording),
        ("version.txt", b"1.0\n"),
    ]);
    fs::write(dir.join("bug.zip"), report).unwrap();
    let inside = ["bug.zip (pid 77, com.example.app, 2026-11-22 15:00:00)"];
    assert_eq!(merged(dir, "merge", "bug.zip"), inside);
    assert_eq!(profiled(dir, "bug.zip").len(), 1);
    assert_eq!(stdout(dir, "info --json bug.zip").lines().count(), 2);
    for said in [notes(dir, "bug.zip"), run_line(dir, "profile bug.zip").stderr] {
        let named = said.contains("bug.zip/FS/data/system.dat: ") && said.contains("trace.dat");
        assert!(named && !said.contains("version.txt"), "{said}");
    }
}

#[test]
fn contents_that_are_given_twice_are_on_a_timeline_once_and_a_note_names_the_copy() {
    let dir = sample();
    let dir = dir.path();
    fs::copy(dir.join("app.trace"), dir.join("copy.trace")).unwrap();
    stdout(dir, "merge app.dat app.trace -o x.zip");
    let profile = profiled(dir, "app.trace");
    for (files, copy, of) in [
        ("app.trace copy.trace", "copy.trace", "app.trace"),
        ("app.trace app.trace", "app.trace", "app.trace"),
        ("app.trace old.key old.data", "old.key", "app.trace"),
        ("app.trace x.zip", "x.zip/0-app.trace", "app.trace"),
    ] {
        let told = format!("{copy}: has the same contents as {of}: it is taken once");
        assert!(notes(dir, files).contains(&told), "{files}");
        // A profile is of each trace by itself.
        assert_eq!(profiled(dir, files), [profile.clone(), profile.clone()].concat(), "{files}");
    }
    assert_eq!(added(dir, "set", "app.trace copy.trace"), 1);
}

/// A JSON trace with a slice of this name at 2 ms.
fn slice_at_2_ms(name: &str) -> String {
    format!(r#"{{"traceEvents":[{{"name":"{name}","ph":"X","ts":2000,"dur":500,"pid":1,"tid":1}}]}}"#)
}

/// The begin, ns, of each slice of a CSV.
fn begins(dir: &Path, csv: &str) -> Vec<(String, i64)> {
    let text = fs::read_to_string(dir.join(csv)).unwrap();
    let mut lines = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let head = lines.next().unwrap();
    let column = |name: &str| head.iter().position(|column| *column == name).unwrap();
    let [kind, ts, name] = ["kind", "ts_ns", "name"].map(column);
    let slices = lines.filter(|line| line[kind] == "slice");
    slices.map(|line| (line[name].to_owned(), line[ts].parse().unwrap())).collect()
}

#[test]
fn the_manifest_of_an_archive_places_its_files_and_names_their_machines() {
    let dir = support::tempdir();
    let dir = dir.path();
    let manifest = r#"{"perfetto_manifest":{"version":1,"attributes":{"run":7},"files":[
        {"path":"b.json","machine":{"name":"watch"},
         "clocks":{"offset_ns":500,"sync_to":{"file":"a.json"}}},
        {"path":"c.json","clocks":{"offset_ns":-40,"sync_to":{"file":"b.json"}}},
        {"path":"a.json","machine":{"name":"phone"}}]}}"#;
    let [a, b, c, other] = ["a", "b", "c", "other"].map(slice_at_2_ms);
    let files =
        [("m.json", manifest), ("a.json", &a), ("b.json", &b), ("c.json", &c), ("other.json", &other)];
    fs::write(dir.join("x.zip"), zip(&files.map(|(name, text)| (name, text.as_bytes())))).unwrap();
    let told = support::run_in(dir, &["convert", "--json", "x.zip", "-o", "x.csv"]).exited(0).json();
    let mut slices = begins(dir, "x.csv");
    slices.sort();
    let at = |name: &str, ns: i64| (name.to_owned(), 2_000_000 + ns);
    assert_eq!(slices, [at("a", 0), at("b", 500), at("c", 460), at("other", 0)]);
    let inputs = told["outcome"]["inputs"].as_array().unwrap();
    assert!(inputs.iter().all(|input| input["verdict"] == "assumed"), "{told}");
    assert!(inputs[0]["why"].as_str().unwrap().contains("the clock of a.json reads 500 ns more"), "{told}");
    let notes = told["outcome"]["report"]["notes"].to_string();
    assert!(notes.contains("phone, watch") && notes.contains("run = 7"), "{notes}");
}

#[test]
fn several_traces_of_an_archive_without_a_manifest_are_one_timeline() {
    let dir = support::tempdir();
    let dir = dir.path();
    let [a, b] = ["a", "b"].map(slice_at_2_ms);
    fs::write(dir.join("x.zip"), zip(&[("b.json", b.as_bytes()), ("a.json", a.as_bytes())])).unwrap();
    support::run_in(dir, &["convert", "x.zip", "-o", "x.csv"]).exited(0);
    assert_eq!(begins(dir, "x.csv").len(), 2);
    let said = support::run_in(dir, &["convert", "x.zip//a.json", "-o", "a.csv"]).exited(0).said();
    assert_eq!(begins(dir, "a.csv").len(), 1, "{said}");
    let text = "# tracer: nop\n# entries-in-buffer/entries-written: 1/1\n a-1 [000] 1.5: print: I|1|x\n";
    let utf16: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    fs::write(dir.join("y.zip"), zip(&[("readme.md", b"hello"), ("a.txt", &utf16)])).unwrap();
    support::run_in(dir, &["convert", "y.zip", "-o", "y.csv"]).exited(0);
}
