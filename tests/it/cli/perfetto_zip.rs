//! A zip for Perfetto holds the recording, the method traces as they were, and a manifest that relates their
//! clocks.

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

use serde_json::Value;

use support::scenario::{Era, Scenario};
use support::tracebridge;

/// Reads the files of a zip in order, and checks that each is stored in a way that Perfetto's zip reader
/// supports.
fn members(path: &Path) -> Vec<(String, Vec<u8>)> {
    let bytes = fs::read(path).unwrap();
    let mut zip = zip::ZipArchive::new(File::open(path).unwrap()).unwrap();
    (0..zip.len())
        .map(|n| {
            let mut file = zip.by_index(n).unwrap();
            let header = &bytes[file.header_start() as usize..][..30];
            let word = |at: usize| u16::from_le_bytes([header[at], header[at + 1]]);
            let long = |at: usize| u64::from(word(at)) | u64::from(word(at + 2)) << 16;
            assert!(word(4) <= 20, "needs version {}", word(4));
            assert_eq!(word(6), 0, "flags: no data descriptor, no UTF-8 names");
            assert_eq!(word(8), 0, "stored");
            assert_eq!((long(18), long(22)), (file.size(), file.size()), "sizes stand before the data");
            let mut content = Vec::new();
            file.read_to_end(&mut content).unwrap();
            (file.name().unwrap().into_owned(), content)
        })
        .collect()
}

#[test]
fn the_manifest_relates_the_clock_of_the_method_trace_to_that_of_the_recording() {
    let dir = support::tempdir();
    let path = |name: &str| dir.path().join(name);
    for era in [Era::Dalvik, Era::ArtMono, Era::ArtCounter, Era::Art14] {
        let scenario = Scenario::new(12, era);
        let made = scenario.make();
        fs::write(path("app.dat"), &made.dat).unwrap();
        fs::write(path("мой app.trace"), &made.trace).unwrap();
        let out = tracebridge()
            .args(["merge", "--json", "-o"])
            .args([path("out.zip"), path("app.dat"), path("мой app.trace")])
            .output()
            .unwrap();
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        let members = members(&path("out.zip"));
        let names: Vec<&str> = members.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["recording.pftrace", "0-____app.trace", "perfetto_manifest.json"]);
        assert!(members[1].1 == made.trace, "the method trace is the file it was");

        // Perfetto recognises a manifest by its first characters.
        let manifest = String::from_utf8(members[2].1.clone()).unwrap();
        let squeezed: String = manifest.split_whitespace().collect();
        assert!(squeezed.starts_with("{\"perfetto_manifest\""), "{manifest}");
        let manifest: Value = serde_json::from_str(&manifest).unwrap();
        let manifest = &manifest["perfetto_manifest"];
        assert_eq!(manifest["version"], 1);
        assert_eq!(manifest["trace_time"]["clock"], "BOOTTIME");
        let files = manifest["files"].as_array().unwrap();
        assert_eq!((&files[0]["path"], &files[1]["path"]), (&names[0].into(), &names[1].into()));
        let clocks = &files[1]["clocks"];
        assert_eq!(clocks["clock"], "MONOTONIC", "in which Perfetto takes it to be");
        assert_eq!(clocks["sync_to"], serde_json::json!({"file": names[0], "clock": "BOOTTIME"}));
        // The time of the first record by the file's own clock, plus the offset in the manifest, is the true
        // time of the first call.
        let own = own_first_record(&made.trace);
        let truth = made.truth.iter().filter_map(|(_, times)| times.first()).min().unwrap();
        let moved = own.wrapping_add_signed(clocks["offset_ns"].as_i64().unwrap());
        assert!(moved.abs_diff(*truth) < 50_000, "{era:?}: {moved} is not {truth}");
        assert!(manifest["attributes"].as_object().unwrap().values().all(Value::is_string));

        // The recording in the zip holds as many events as the original.
        fs::write(path("recording.pftrace"), &members[0].1).unwrap();
        let out = tracebridge().args(["info", "--json"]).arg(path("recording.pftrace")).output().unwrap();
        let info: Value = serde_json::from_slice(&out.stdout).unwrap();
        let of = |file: &str| {
            let out =
                tracebridge().args(["convert", "-o", "-", "--format", "systrace"]).arg(path(file)).output();
            out.unwrap().stdout.split(|b| *b == b'\n').filter(|line| line.first() == Some(&b' ')).count()
        };
        assert!(of("app.dat") > 100 && of("app.dat") == of("recording.pftrace"), "{info}");
    }
}

/// The time of the first record in the file's own clock, ns: the start in the header plus the record's
/// offset.
fn own_first_record(trace: &[u8]) -> u64 {
    let magic = trace.windows(4).rposition(|w| w == b"SLOW").unwrap();
    let data = &trace[magic..];
    let word = |at: usize, len: usize| (0..len).rev().fold(0u64, |sum, n| sum << 8 | u64::from(data[at + n]));
    let (offset, start, size) = (word(6, 2) as usize, word(8, 8), word(16, 2) as usize);
    let records = data[offset..].chunks_exact(size);
    let first = records.map(|r| u64::from(u32::from_le_bytes([r[10], r[11], r[12], r[13]]))).min();
    (start + first.unwrap()) * 1_000
}

#[test]
fn inputs_that_cannot_go_into_a_zip_are_refused() {
    let dir = support::tempdir();
    let made = Scenario::new(13, Era::ArtMono).make();
    fs::write(dir.path().join("app.dat"), &made.dat).unwrap();
    fs::write(dir.path().join("app.trace"), &made.trace).unwrap();
    for (args, status, why) in [
        (&["merge", "app.dat", "-o", "out.zip"][..], 1, "give it both"),
        (&["merge", "app.trace", "-o", "out.zip"], 1, "give it both"),
        (&["merge", "app.dat", "app.trace", "--format", "perfetto-zip", "-o", "-"], 2, "to a file"),
    ] {
        let out = tracebridge().args(args).current_dir(dir.path()).output().unwrap();
        let messages = String::from_utf8_lossy(&out.stderr);
        assert_eq!(out.status.code(), Some(status), "{messages}");
        assert!(messages.contains(why), "{messages}");
        assert!(!dir.path().join("out.zip").exists(), "nothing is left behind");
    }
}

#[test]
fn methods_on_tracks_of_a_recording_are_told_as_dropped_by_the_zip() {
    let dir = support::tempdir();
    let made = Scenario::new(13, Era::Art14).make();
    fs::write(dir.path().join("app.dat"), &made.dat).unwrap();
    fs::write(dir.path().join("app.trace"), &made.trace).unwrap();
    let merge = |arguments: &[&str]| {
        let out = tracebridge().arg("merge").args(arguments).arg("--json").current_dir(dir.path()).output();
        let out = out.unwrap();
        let told: Value = serde_json::from_slice(&out.stdout).unwrap_or_else(|_| panic!("{out:?}"));
        (out.status.code(), told)
    };
    let (status, merged) = merge(&["app.dat", "app.trace", "-o", "app.pftrace"]);
    assert_eq!(status, Some(0), "{merged}");
    let (status, zipped) = merge(&["app.pftrace", "app.trace", "-o", "app.zip"]);
    // The zip holds the method trace as a file, and its recording without the methods of its tracks.
    assert_eq!(status, Some(3), "{zipped}");
    assert_eq!(zipped["dropped"]["methods"], merged["outcome"]["methods"], "{zipped}");
}
