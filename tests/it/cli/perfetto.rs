//! Traces for Perfetto: its own classes read them, they read back, packets of unknown types stay, and a zip
//! holds the recording, the method traces as they were, and a manifest that relates their clocks.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

use serde_json::Value;
use support::python::{PERFETTO, python_with};
use support::scenario::{Era, Scenario};
use support::{Command, run_in, tracebridge};

#[test]
fn perfettos_classes_decode_a_merged_trace_with_every_event_and_call() {
    let Some(python) = python_with(PERFETTO) else { return };
    let dir = support::tempdir();
    let path = |name: &str| dir.path().join(name);
    let made = Scenario::new(11, Era::Art14).make();
    fs::write(path("app.dat"), &made.dat).unwrap();
    fs::write(path("app.trace"), &made.trace).unwrap();
    let out = tracebridge()
        .args(["merge", "--json", "-o"])
        .args([path("out.pftrace"), path("app.dat"), path("app.trace")])
        .run()
        .exited(0);
    let merged = out.json();

    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/count_pftrace.py");
    let read = Command::new(python).arg(script).arg(path("out.pftrace")).run().exited(0).json();
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
        command.args(more).run()
    };
    let messages = merge(&[]).exited(1).stderr;
    assert!(messages.contains("--clock") && messages.contains("--offset"), "{messages}");
    assert!(!path("out.pftrace").exists(), "half a file was left");
    merge(&["--offset", "900000000000"]).exited(0);
}

#[test]
fn info_names_an_unsupported_format_and_a_program_that_opens_it() {
    let dir = support::tempdir();
    let file = dir.path().join("memory.hprof");
    fs::write(&file, b"JAVA PROFILE 1.0.3\0").unwrap();
    let out = tracebridge().arg("info").arg(&file).run();
    let messages = &out.stderr;
    assert_eq!(out.code(), Some(1));
    assert!(messages.contains("this is a heap dump (hprof); it is not read here: "), "{messages}");
}

#[test]
fn events_of_two_equal_recordings_appear_once_in_any_order() {
    let dir = support::tempdir();
    let path = |name: &str| dir.path().join(name);
    let made = Scenario::new(13, Era::ArtMono).make();
    fs::write(path("one.dat"), &made.dat).unwrap();
    // The same events in a file with other bytes. A file with the same bytes is taken once.
    run_in(dir.path(), &["convert", "one.dat", "-o", "two.dat"]).exited(0);
    let events = |file: &str| {
        let out = tracebridge().args(["info", "--json"]).arg(path(file)).run();
        out.json()["events"].as_u64()
    };
    for file in ["out.dat", "out.pftrace"] {
        let out = tracebridge()
            .args(["merge", "--json", "-o"])
            .args([path(file), path("one.dat"), path("two.dat")])
            .run()
            .exited(0);
        assert_eq!(out.json()["outcome"]["inputs"][1]["duplicates"].as_u64(), events("one.dat"));
        assert_eq!(events(file), events("one.dat"), "{file}");
    }
}

/// Runs tracebridge in `dir`, and returns its JSON. The inputs may have lost events.
#[track_caller]
fn summary(dir: &Path, args: &[&str]) -> Value {
    run_in(dir, &[args, &["--json"]].concat()).exited_with_one_of(&[0, 3]).json()
}

/// Every method call of a Chrome JSON file: thread, begin, duration and name, and how often.
fn calls(path: &Path) -> BTreeMap<String, u64> {
    let json: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    let events = json["traceEvents"].as_array().unwrap();
    let mut threads = BTreeMap::new();
    for event in events.iter().filter(|e| e["ph"] == "M" && e["name"] == "thread_name") {
        threads
            .insert((event["pid"].to_string(), event["tid"].to_string()), event["args"]["name"].to_string());
    }
    let mut calls = BTreeMap::new();
    for event in events.iter().filter(|e| e["cat"] == "method") {
        let thread = (event["pid"].to_string(), event["tid"].to_string());
        let name = threads.get(&thread).cloned().unwrap_or_default();
        let call = format!("{thread:?} {name} {} {} {}", event["ts"], event["ph"], event["name"]);
        *calls.entry(call).or_default() += 1;
    }
    calls
}

#[test]
fn a_merge_written_for_perfetto_reads_back_with_every_call_at_its_time_on_its_thread() {
    let dir = support::tempdir();
    let path = |name: &str| dir.path().join(name);
    for era in [Era::Dalvik, Era::Art14] {
        let made = Scenario::new(21, era).make();
        fs::write(path("app.dat"), &made.dat).unwrap();
        fs::write(path("app.trace"), &made.trace).unwrap();
        let merged = summary(dir.path(), &["merge", "app.dat", "app.trace", "-o", "app.pftrace"]);
        summary(dir.path(), &["merge", "app.dat", "app.trace", "-o", "direct.json"]);
        let back = summary(dir.path(), &["convert", "app.pftrace", "-o", "back.json"]);
        let methods = merged["outcome"]["methods"].as_u64().unwrap();
        assert!(methods > 50);
        assert_eq!(back["outcome"]["methods"].as_u64(), Some(methods), "{era:?}");
        let direct = calls(&path("direct.json"));
        let back = calls(&path("back.json"));
        // A begin and an end for each call.
        assert_eq!(direct.values().sum::<u64>(), 2 * methods);
        assert_eq!(direct, back, "{era:?}");
        // Written anew from what was read, and read again.
        summary(dir.path(), &["convert", "app.pftrace", "--only-ftrace", "-o", "again.pftrace"]);
        summary(dir.path(), &["convert", "again.pftrace", "-o", "again.json"]);
        assert_eq!(calls(&path("again.json")), direct, "{era:?}");
        let csv = summary(dir.path(), &["convert", "app.pftrace", "-o", "app.csv"]);
        assert_eq!(csv["outcome"]["methods"].as_u64(), Some(methods));
        let rows = fs::read_to_string(path("app.csv")).unwrap();
        assert_eq!(rows.lines().filter(|row| row.starts_with("method,")).count() as u64, methods);
    }
}

#[test]
fn an_archive_for_perfetto_reads_back_with_its_recording_and_its_method_traces() {
    let dir = support::tempdir();
    let made = Scenario::new(22, Era::Art14).make();
    fs::write(dir.path().join("app.dat"), &made.dat).unwrap();
    fs::write(dir.path().join("app.trace"), &made.trace).unwrap();
    let merged = summary(dir.path(), &["merge", "app.dat", "app.trace", "-o", "app.zip"]);
    let back = summary(dir.path(), &["convert", "app.zip", "-o", "back.json"]);
    for count in ["/outcome/methods", "/outcome/markers", "/outcome/report/cpus", "/outcome/threads"] {
        assert_eq!(merged.pointer(count), back.pointer(count), "{count}");
    }
    let offsets = |json: &Value| json["outcome"]["inputs"][1]["offset_ns"].as_i64().unwrap();
    assert!(offsets(&merged).abs_diff(offsets(&back)) < 100_000, "{} {}", offsets(&merged), offsets(&back));
}

/// Appends a field of wire type 2.
fn put_bytes(out: &mut Vec<u8>, field: u8, content: &[u8]) {
    out.extend([field << 3 | 2]);
    let mut len = content.len();
    while len >= 128 {
        out.push(len as u8 | 128);
        len >>= 7;
    }
    out.push(len as u8);
    out.extend(content);
}

/// A trace that only holds a packet of a type that nobody knows (field 15 of `TracePacket`), on the packet
/// sequence 1, and a described track.
fn foreign(track_name: &[u8]) -> Vec<u8> {
    let mut unknown = Vec::new();
    let mut track = vec![8, 77];
    let mut out = Vec::new();
    put_bytes(&mut unknown, 15, b"nobody knows this");
    unknown.extend([10 << 3, 1]);
    put_bytes(&mut out, 1, &unknown);
    put_bytes(&mut track, 2, track_name);
    // `TracePacket.track_descriptor` is field 60: its tag takes two bytes.
    let mut packet = vec![10 << 3, 1, 0xe2, 3, track.len() as u8];
    packet.extend(&track);
    put_bytes(&mut out, 1, &packet);
    out
}

#[test]
fn packets_of_unknown_types_stay_when_a_method_trace_joins_and_ids_are_kept_apart() {
    let dir = support::tempdir();
    let made = Scenario::new(23, Era::ArtMono).make();
    fs::write(dir.path().join("app.trace"), &made.trace).unwrap();
    fs::write(dir.path().join("one.pftrace"), foreign(b"one")).unwrap();
    fs::write(dir.path().join("two.pftrace"), foreign(b"two")).unwrap();
    let args = ["merge", "one.pftrace", "two.pftrace", "app.trace", "--offset", "0", "-o", "out.pftrace"];
    summary(dir.path(), &args);
    let out = fs::read(dir.path().join("out.pftrace")).unwrap();
    let one = foreign(b"one");
    let at = out.windows(one.len()).position(|window| window == one).expect("the first trace is there whole");
    let two = &out[at + one.len()..];
    // The new uuid takes ten bytes in place of one.
    assert_eq!(two.len(), one.len() + 9, "nothing follows the second trace: {two:?}");
    let ours = &out[..at];
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(text(two).contains("nobody knows this") && text(two).contains("two"));
    assert!(!two.windows(2).any(|pair| pair == [10 << 3, 1]), "the second trace has another sequence id");
    assert!(!two.windows(2).any(|pair| pair == [8, 77]), "the second track has another uuid");
    // The absolute path of an input is nobody's business.
    assert!(text(ours).contains("app.trace: ") && !text(ours).contains(&*dir.path().to_string_lossy()));
    let absolute = dir.path().join("app.trace").display().to_string();
    summary(dir.path(), &["convert", &absolute, "-o", "alone.pftrace"]);
    let alone = text(&fs::read(dir.path().join("alone.pftrace")).unwrap());
    assert!(alone.contains("app.trace: ") && !alone.contains(&absolute));
}

#[test]
fn what_an_output_has_no_place_for_is_named_by_type() {
    let dir = support::tempdir();
    fs::write(dir.path().join("one.pftrace"), foreign(b"one")).unwrap();
    let said = run_in(dir.path(), &["convert", "one.pftrace", "-o", "one.json"]).exited(1).stderr;
    assert!(
        said.contains("has no place for 1 packet field 15") && said.contains("perfetto (.pftrace)"),
        "{said}"
    );
    let info = summary(dir.path(), &["info", "one.pftrace"]);
    assert_eq!(info["report"]["unread"], serde_json::json!({ "packet_field_15": 1 }));
}

#[test]
fn kernel_functions_of_a_text_keep_their_names_through_perfetto() {
    let dir = support::tempdir();
    let text = "# tracer: nop\n#\n \
         kworker-7 (7) [000] d..1 1.000000: workqueue_execute_start: work struct 00000000a: function devfreq_monitor\n \
         kworker-7 (7) [000] d..1 1.000010: workqueue_execute_end: work struct 00000000a\n \
         kworker-7 (7) [000] d..1 1.000020: sched_blocked_reason: pid=8 iowait=0 caller=__fdget_pos+0x44/0x50\n";
    fs::write(dir.path().join("a.txt"), text).unwrap();
    summary(dir.path(), &["convert", "a.txt", "-o", "a.pftrace"]);
    let written = fs::read(dir.path().join("a.pftrace")).unwrap();
    assert!(written.windows(15).any(|w| w == b"devfreq_monitor"), "the name is interned");
    summary(dir.path(), &["convert", "a.pftrace", "-o", "b.txt"]);
    let back = fs::read_to_string(dir.path().join("b.txt")).unwrap();
    assert!(back.contains("function devfreq_monitor") && back.contains("caller=__fdget_pos"), "{back}");
}

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
        tracebridge()
            .args(["merge", "--json", "-o"])
            .args([path("out.zip"), path("app.dat"), path("мой app.trace")])
            .run()
            .exited(0);
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
        let out = tracebridge().args(["info", "--json"]).arg(path("recording.pftrace")).run();
        let info: Value = out.json();
        let of = |file: &str| {
            let text = run_in(dir.path(), &["convert", "-o", "-", "--format", "systrace", file]).stdout;
            text.lines().filter(|line| line.starts_with(' ')).count()
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
    let offset = word(6, 2) as usize;
    let start = word(8, 8);
    let size = word(16, 2) as usize;
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
        let out = tracebridge().args(args).current_dir(dir.path()).run();
        let messages = &out.stderr;
        assert_eq!(out.code(), Some(status), "{messages}");
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
        let out = run_in(dir.path(), &[&["merge", "--json"], arguments].concat());
        (out.code(), out.json())
    };
    let (status, merged) = merge(&["app.dat", "app.trace", "-o", "app.pftrace"]);
    assert_eq!(status, Some(0), "{merged}");
    let (status, zipped) = merge(&["app.pftrace", "app.trace", "-o", "app.zip"]);
    // The zip holds the method trace as a file, and its recording without the methods of its tracks.
    assert_eq!(status, Some(3), "{zipped}");
    assert_eq!(zipped["dropped"]["methods"], merged["outcome"]["methods"], "{zipped}");
}

/// A Perfetto trace with a slice, without the packet that begins it.
const SLICE: &[u8] = &[
    0x0a, 7, 0xe2, 0x03, 4, 0x08, 1, 0x10, 1, // a descriptor of track 1, beside an unknown field
    0x0a, 14, 0x40, 100, 0x50, 1, 0x5a, 8, 0x48, 1, 0x58, 1, 0xba, 1, 1, b'a', // begins at 100
    0x0a, 11, 0x40, 0xac, 0x02, 0x50, 1, 0x5a, 4, 0x48, 2, 0x58, 1, // ends at 300
];

#[test]
fn what_the_tests_of_perfettos_importer_open_is_opened_and_holds_nothing_of_ours() {
    let Some(python) = python_with(PERFETTO) else { return };
    let dir = support::tempdir();
    let dir = dir.path();
    let text = "#           TASK-PID    CPU#  ||||    TIMESTAMP  FUNCTION\n app-1 [000] d...1.000001: tracing_mark_write: B|1|a\n \
        app-1 [000] ....  1.000002: tracing_mark_write: E\n";
    let json = r#"{"ph":"X","pid":"browser","tid":"main","ts":"1.5","dur":2.25,"name":"a"}"#;
    let files: [(&str, Vec<u8>); 9] = [
        ("plain.pftrace", SLICE.to_vec()),
        ("empty-first.pftrace", [b"\x0a\0\x0a\0", SLICE].concat()),
        ("one.zip", support::files::zip(&[("deep/trace", SLICE)])),
        ("packed.pftrace.gz", support::files::gzip(SLICE)),
        ("feed.json", format!("\n     [{json}]").into_bytes()),
        ("blanks.json", format!("     {{\"traceEvents\":[{json},]}}").into_bytes()),
        ("spaces.systrace", text.into()),
        ("calls.strace", b"7 1700000052.3 a() = 0 <0.1>\n--- SIGCHLD {} ---\nno line of strace\n".to_vec()),
        ("in.txt.gz", support::files::gzip(text.as_bytes())),
    ];
    let script = format!(
        r#"
import sys
from {PERFETTO} import Trace
for name in sys.argv[1:]:
    trace = Trace()
    trace.ParseFromString(open(name, 'rb').read())
    events = ['%d %s' % (p.track_event.type, p.track_event.name) for p in trace.packet if p.HasField('track_event')]
    events += [e.print.buf for p in trace.packet for e in p.ftrace_events.event]
    print(name.split('/')[-1], events)
"#
    );
    let mut outputs = Vec::new();
    for (name, bytes) in files {
        fs::write(dir.join(name), bytes).unwrap();
        let out = format!("{name}.out");
        run_in(dir, &["convert", name, "--format", "perfetto", "-o", &out]).exited(0);
        outputs.push(out);
    }
    let printed = Command::new(&python).current_dir(dir).args(["-c", &script]).args(&outputs).run().exited(0);
    let slice = "['1 a', '2 ']";
    let markers = "['B|1|a', 'E']";
    let json = "['1 a', '2 a']";
    let want = [
        ("plain.pftrace", slice),
        ("empty-first.pftrace", slice),
        ("one.zip", slice),
        ("packed.pftrace.gz", slice),
        ("feed.json", json),
        ("blanks.json", json),
        ("spaces.systrace", markers),
        ("calls.strace", slice),
        ("in.txt.gz", markers),
    ];
    let want: String = want.iter().map(|(name, events)| format!("{name}.out {events}\n")).collect();
    assert_eq!(printed.stdout, want);
}
