//! Compares how the reader reads the Perfetto traces of the corpus with how Perfetto's own classes decode
//! them.

use std::path::{Path, PathBuf};

use support::Command;
use support::files::gzip;
use support::python::{PERFETTO, python_with};
use tracebridge::formats::{self, FormatId, Order, perfetto};

use crate::texts::DeliveredTrace;

#[test]
fn each_perfetto_trace_has_the_events_that_perfettos_own_classes_count() {
    let Some(corpus) = support::corpus() else { return };
    let index = std::fs::read_to_string(corpus.join("INDEX.tsv")).unwrap();
    let mut seen = 0;
    for line in index.lines().filter(|l| l.starts_with("perfetto/")) {
        let (name, rest) = line.split_once('\t').unwrap();
        let count = rest.split("ftrace-events=").nth(1).unwrap();
        let want: usize = count.split(|c: char| !c.is_ascii_digit()).next().unwrap().parse().unwrap();
        let data = std::fs::read(corpus.join(name)).unwrap();
        assert_eq!(formats::identify_bytes(&data).map(FormatId::name), Ok("Perfetto trace"), "{name}");
        for order in [Order::Any, Order::Time] {
            let mut delivered = DeliveredTrace::default();
            let report = perfetto::read(&data, order, &mut delivered).unwrap();
            assert_eq!(delivered.events.len(), want, "{name}: {report:?}");
            assert_eq!(report.events(), want as u64);
            if order == Order::Time {
                assert!(delivered.events.is_sorted_by_key(|e| e.ts), "{name}");
            }
        }
        seen += 1;
    }
    assert_eq!(seen, 4);
}

/// Decodes a trace by Perfetto's published classes: time, CPU, thread, name and fields of every 40th event.
const BY_PERFETTOS_CLASSES: &str = r#"
import json, sys
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as p
trace = p.Trace()
trace.ParseFromString(open(sys.argv[1], 'rb').read())
n = 0
for packet in trace.packet:
    for e in packet.ftrace_events.event:
        n += 1
        if n % 40:
            continue
        what = [d for d in e.ListFields() if d[0].message_type][0]
        fields = {}
        for f in what[1].DESCRIPTOR.fields:
            value = getattr(what[1], f.name)
            if not f.is_repeated:
                fields[f.name] = str(int(value) if isinstance(value, bool) else value)
        print(json.dumps([e.timestamp, packet.ftrace_events.cpu, e.pid, what[0].name, fields]))
"#;

#[test]
fn sampled_events_say_what_perfettos_own_classes_say() {
    let Some(corpus) = support::corpus() else { return };
    let Some(python) = python_with(PERFETTO) else { return };
    for name in [
        "microsoft__Microsoft-Performance-Tools-Linux-Android__test_trace.perfetto-trace",
        "microsoft__Microsoft-Performance-Tools-Linux-Android__perfetto_android12_cpuschedstack.pftrace",
    ] {
        let path = corpus.join("perfetto").join(name);
        let decoded =
            Command::new(&python).args(["-c", BY_PERFETTOS_CLASSES]).arg(&path).run().exited(0).stdout;
        let mut delivered = DeliveredTrace::default();
        perfetto::read(&std::fs::read(&path).unwrap(), Order::Any, &mut delivered).unwrap();
        let mut compared = 0;
        for line in decoded.lines() {
            let want: serde_json::Value = serde_json::from_str(line).unwrap();
            let ts = want[0].as_u64().unwrap();
            let cpu = want[1].as_u64().unwrap() as u32;
            let found = delivered.events.iter().any(|e| {
                let fields = want[4].as_object().unwrap();
                e.ts == ts
                    && e.cpu == cpu
                    && i64::from(e.tid) == want[2].as_i64().unwrap()
                    && e.name == want[3].as_str().unwrap()
                    && fields.iter().all(|(k, v)| e.fields.get(k).map(String::as_str) == v.as_str())
            });
            assert!(found, "{name}: {line}");
            compared += 1;
        }
        assert!(compared > 800, "{name}: {compared}");
    }
}

/// Runs tracebridge, which must succeed or find losses, and returns its JSON.
fn summary(args: &[&str], inputs: &[PathBuf], out: &Path) -> serde_json::Value {
    let mut command = support::tracebridge();
    command.args(args).args(inputs).arg("-o").arg(out).run().exited_with_one_of(&[0, 3]).json()
}

fn traces(corpus: &Path) -> Vec<PathBuf> {
    let dir = std::fs::read_dir(corpus.join("perfetto")).unwrap();
    let mut traces: Vec<PathBuf> = dir.map(|entry| entry.unwrap().path()).collect();
    traces.sort();
    traces
}

#[test]
fn a_trace_that_is_converted_to_itself_is_equal_byte_for_byte() {
    let Some(corpus) = support::corpus() else { return };
    let dir = support::tempdir();
    for trace in traces(&corpus) {
        let bytes = std::fs::read(&trace).unwrap();
        let out = dir.path().join("out.pftrace");
        let inputs = [trace.clone()];
        let copied = summary(&["convert", "--json"], &inputs, &out);
        assert!(std::fs::read(&out).unwrap() == bytes, "{}", trace.display());
        assert_eq!(copied["dropped"], serde_json::json!({}), "{}", trace.display());
        // What the fast count finds is what reading finds.
        let read = summary(&["convert", "--json", "--only-ftrace"], &inputs, &out);
        for count in ["/outcome/report/cpus", "/outcome/markers", "/outcome/report/damage"] {
            assert_eq!(copied.pointer(count), read.pointer(count), "{}: {count}", trace.display());
        }
        for packed in [zstd::encode_all(&bytes[..], 1).unwrap(), gzip(&bytes)] {
            let packed_path = dir.path().join("packed");
            std::fs::write(&packed_path, packed).unwrap();
            summary(&["convert", "--json"], &[packed_path], &out);
            assert!(std::fs::read(&out).unwrap() == bytes, "{}", trace.display());
        }
    }
}

#[test]
fn a_merge_adds_packets_to_those_of_perfetto_traces_and_changes_only_sequence_ids() {
    let Some(corpus) = support::corpus() else { return };
    let Some(python) = python_with(PERFETTO) else { return };
    let dir = support::tempdir();
    let out = dir.path().join("out.pftrace");
    let methods = corpus.join("method-trace/firefox-devtools__profiler__art-trace-regular.trace");
    // The traces are of several boots, and are not merged with each other as packets.
    for set in traces(&corpus).into_iter().map(|trace| vec![trace]) {
        let mut inputs = set.clone();
        inputs.push(methods.clone());
        let merged = summary(&["merge", "--json", "--offset", "0"], &inputs, &out);
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/compare_pftrace.py");
        let compared = Command::new(&python).arg(script).arg(&out).args(&set).run().exited(0).json();
        assert_eq!(compared["faults"], serde_json::json!([]), "{set:?}");
        // Begin and end of each call, and an instant for each input.
        let methods = merged["outcome"]["methods"].as_u64().unwrap();
        assert!(methods > 6_000, "{merged}");
        let added = compared["added"]["track_event"].as_u64().unwrap();
        assert_eq!(added, 2 * methods + inputs.len() as u64, "{set:?}");
        assert_eq!(compared["added"]["ftrace_events"], serde_json::Value::Null, "{set:?}");
        // Reading the output finds the inputs' events and the calls.
        let read = summary(&["convert", "--json"], std::slice::from_ref(&out), &dir.path().join("out.json"));
        assert_eq!(read["outcome"]["methods"].as_u64(), Some(methods), "{set:?}");
        let events = |json: &serde_json::Value| {
            let cpus = json["outcome"]["report"]["cpus"].as_object().unwrap().clone();
            cpus.values().map(|cpu| cpu["events"].as_u64().unwrap()).sum::<u64>()
        };
        assert_eq!(events(&read), events(&merged), "{set:?}");
    }
}
