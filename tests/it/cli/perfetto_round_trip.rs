//! What tracebridge writes for Perfetto reads back, and packets that it does not understand stay.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::Value;

use support::scenario::{Era, Scenario};
use support::{run_in, tracebridge};

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
        let (direct, back) = (calls(&path("direct.json")), calls(&path("back.json")));
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
fn bytes(out: &mut Vec<u8>, field: u8, content: &[u8]) {
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
    let (mut unknown, mut track, mut out) = (Vec::new(), vec![8, 77], Vec::new());
    bytes(&mut unknown, 15, b"nobody knows this");
    unknown.extend([10 << 3, 1]);
    bytes(&mut out, 1, &unknown);
    bytes(&mut track, 2, track_name);
    // `TracePacket.track_descriptor` is field 60: its tag takes two bytes.
    let mut packet = vec![10 << 3, 1, 0xe2, 3, track.len() as u8];
    packet.extend(&track);
    bytes(&mut out, 1, &packet);
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
    let (ours, text) = (&out[..at], |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned());
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
    let refused =
        tracebridge().args(["convert", "one.pftrace", "-o", "one.json"]).current_dir(dir.path()).output();
    let refused = refused.unwrap();
    let said = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(1), "{said}");
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
