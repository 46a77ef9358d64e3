//! Compares how the reader reads the Perfetto traces of the corpus with how Perfetto's own classes decode
//! them.

use tracebridge::formats::{self, Order, perfetto};

use crate::support;
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
        assert_eq!(formats::identify(&data).map(|format| format.name), Ok("Perfetto trace"), "{name}");
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
    let python = |code: &str| {
        let name = std::env::var_os("TRACEBRIDGE_PYTHON").unwrap_or_else(|| "python3".into());
        let mut command = std::process::Command::new(name);
        command.arg("-c").arg(code);
        command
    };
    let import = python("import perfetto.protos.perfetto.trace.perfetto_trace_pb2").output();
    if !import.is_ok_and(|done| done.status.success()) {
        let cure = "Python has no package perfetto: pip install perfetto, or set TRACEBRIDGE_PYTHON";
        return support::skip("python", cure);
    }
    for name in [
        "microsoft__Microsoft-Performance-Tools-Linux-Android__test_trace.perfetto-trace",
        "microsoft__Microsoft-Performance-Tools-Linux-Android__perfetto_android12_cpuschedstack.pftrace",
    ] {
        let path = corpus.join("perfetto").join(name);
        let done = python(BY_PERFETTOS_CLASSES).arg(&path).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        let mut delivered = DeliveredTrace::default();
        perfetto::read(&std::fs::read(&path).unwrap(), Order::Any, &mut delivered).unwrap();
        let mut compared = 0;
        for line in String::from_utf8_lossy(&done.stdout).lines() {
            let want: serde_json::Value = serde_json::from_str(line).unwrap();
            let (ts, cpu) = (want[0].as_u64().unwrap(), want[1].as_u64().unwrap() as u32);
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
