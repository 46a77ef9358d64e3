//! Compares how the reader reads trace-cmd's trace.dat files with how `trace-cmd report` prints them.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use support::Command;

use tracebridge::formats::trace_dat::TraceDat;
use tracebridge::formats::{Event, EventType, EventTypeId, Order, ReadReport, Sink, ThreadInfo, Value};
use tracebridge::ids::Cpu;

use crate::capture::{Line, UNKNOWN_COMM, parse_reported};

/// Every trace.dat of the corpus.
fn files() -> Vec<PathBuf> {
    let Some(corpus) = support::corpus() else { return Vec::new() };
    let mut files: Vec<PathBuf> = ["trace-cmd", "trace-cmd-derived"]
        .iter()
        .flat_map(|dir| std::fs::read_dir(corpus.join(dir)).unwrap())
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "dat"))
        .collect();
    files.sort();
    assert!(!files.is_empty(), "no .dat in the corpus");
    files
}

/// One event, as `trace-cmd report -R` prints it or as the reader delivers it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ReportedEvent {
    cpu: u32,
    ts: u64,
    tid: i32,
    comm: String,
    name: String,
    /// `name=value` of each field in order, as trace-cmd prints them.
    fields: String,
}

/// Collects the events, the names of the threads, and the names of each event's fields.
#[derive(Default)]
struct EventCollector {
    comms: BTreeMap<i32, String>,
    names: BTreeMap<String, Vec<String>>,
    lines: Vec<ReportedEvent>,
}

impl EventCollector {
    fn field(&self, event: &Event<'_>, kind: &EventType, index: usize) -> String {
        let field = &kind.fields[index];
        let value = match event.value(kind, index) {
            // trace-cmd knows the fields that the kernel's format would print in hexadecimal; numbers()
            // undoes that.
            Some(Value::Int(v)) => v.to_string(),
            Some(Value::Uint(v)) => v.to_string(),
            Some(Value::Str(s)) => String::from_utf8_lossy(s).into_owned(),
            Some(Value::Bytes(b)) => {
                let bytes: Vec<String> = b.iter().map(|b| format!("{b:02x}")).collect();
                format!("ARRAY[{}]", bytes.join(", "))
            }
            None => "?".into(),
        };
        format!(" {}={value}", field.name)
    }
}

impl Sink for EventCollector {
    fn event_type(&mut self, id: EventTypeId, kind: &EventType) -> io::Result<()> {
        assert_eq!(id.0 as usize, self.names.len());
        self.names.insert(kind.name.clone(), kind.fields.iter().map(|f| f.name.clone()).collect());
        Ok(())
    }

    fn thread(&mut self, thread: &ThreadInfo<'_>) -> io::Result<()> {
        if let Some(name) = thread.name {
            self.comms.insert(thread.tid.0, String::from_utf8_lossy(name).into_owned());
        }
        Ok(())
    }

    fn event(&mut self, event: &Event<'_>, kind: &EventType) -> io::Result<()> {
        let fields = (0..kind.fields.len()).map(|i| self.field(event, kind, i)).collect();
        let comm = match event.tid.0 {
            0 => "<idle>".to_owned(),
            tid => self.comms.get(&tid).cloned().unwrap_or_else(|| UNKNOWN_COMM.to_owned()),
        };
        let cpu = event.cpu.0;
        let ts = event.ts.0;
        let tid = event.tid.0;
        self.lines.push(ReportedEvent { cpu, ts, tid, comm, name: kind.name.clone(), fields });
        Ok(())
    }
}

fn read(path: &PathBuf, order: Order) -> (EventCollector, ReadReport) {
    let bytes = std::fs::read(path).unwrap();
    let dat = TraceDat::open(&bytes).unwrap();
    let mut collected = EventCollector::default();
    let report = dat.read(order, &mut collected).unwrap();
    (collected, report)
}

fn parse(line: &str) -> Option<ReportedEvent> {
    let (Line { ts, cpu, tid, name, comm }, fields) = parse_reported(line)?;
    Some(ReportedEvent { cpu, ts, tid, comm, name, fields: format!(" {}", fields.trim()) })
}

fn trace_cmd_lines(path: &PathBuf) -> Vec<ReportedEvent> {
    let out = Command::new("trace-cmd").args(["report", "-t", "-R", "-i"]).arg(path).run();
    let text = &out.stdout;
    text.lines().filter_map(parse).collect()
}

/// The values in a line of fields with these names; hexadecimal numbers in decimal, and a `sym+0x1` as it is.
fn values(line: &str, names: &[&str]) -> Vec<String> {
    let mut rest = line;
    let mut out = Vec::new();
    for (i, name) in names.iter().enumerate() {
        let start = rest.find(&format!(" {name}=")).unwrap_or_else(|| panic!("no {name} in {line}"));
        rest = &rest[start + name.len() + 2..];
        let next = names.get(i + 1).and_then(|n| rest.find(&format!(" {n}="))).unwrap_or(rest.len());
        let value = rest[..next].trim();
        let value = if value == "(nil)" { "0" } else { value };
        let hex = value.strip_prefix("0x").and_then(|h| u64::from_str_radix(h, 16).ok());
        let signed = value.parse::<i64>().ok().map(|v| v as u64);
        out.push(hex.or(signed).map_or(value.to_owned(), |v| v.to_string()));
        rest = &rest[next..];
    }
    out
}

#[test]
fn every_event_is_as_trace_cmd_reports_it() {
    if !support::has_program("trace-cmd") {
        return support::skip("trace-cmd", "no trace-cmd: apt-get install trace-cmd");
    }
    for path in files() {
        let (ours, report) = read(&path, Order::Time);
        let theirs = trace_cmd_lines(&path);
        assert_eq!(report.damage, [], "{}", path.display());
        assert_eq!(ours.lines.len(), theirs.len(), "{}", path.display());
        assert_eq!(report.events(), theirs.len() as u64);
        let mut per_cpu: BTreeMap<Cpu, u64> = BTreeMap::new();
        theirs.iter().for_each(|line| *per_cpu.entry(Cpu(line.cpu)).or_default() += 1);
        for (cpu, count) in &per_cpu {
            assert_eq!(report.cpus[cpu].events, *count, "{} cpu {cpu}", path.display());
        }
        // Each event's time, CPU, thread and name; of a thousand, the fields too.
        let step = (theirs.len() / 1000).max(1);
        for (i, (our, their)) in ours.lines.iter().zip(&theirs).enumerate() {
            let key = |l: &ReportedEvent| (l.ts, l.cpu, l.tid, l.name.clone());
            assert_eq!(key(our), key(their), "{} event {i}", path.display());
            // Of the events trace-cmd takes names from sched_switch only, for the events after it.
            if their.comm != UNKNOWN_COMM {
                assert_eq!(our.comm, their.comm, "{} event {i}", path.display());
            }
            if i % step == 0 {
                let names: Vec<&str> = ours.names[&our.name].iter().map(String::as_str).collect();
                let pairs = values(&our.fields, &names).into_iter().zip(values(&their.fields, &names));
                for ((mine, want), name) in pairs.zip(&names) {
                    // An address that trace-cmd turned into a symbol.
                    let address = mine.parse::<u64>().is_ok_and(|v| v > 0xc000_0000);
                    let symbol = address && want.starts_with(|c: char| c.is_alphabetic() || c == '_');
                    // trace-cmd has no value for an array to the end of the record.
                    let tail = mine.starts_with("ARRAY") && want == "0";
                    assert!(mine == want || symbol || tail, "{} {i} {name}: {mine} {want}", path.display());
                }
            }
        }
    }
}

#[test]
fn one_cpu_after_the_other_gives_the_same_events() {
    for path in files() {
        let (by_time, a) = read(&path, Order::Time);
        let (mut any, b) = read(&path, Order::Any);
        assert_eq!(a.cpus, b.cpus);
        assert!(by_time.lines.is_sorted_by_key(|l| (l.ts, l.cpu)));
        any.lines.sort_by_key(|l| (l.ts, l.cpu));
        assert!(any.lines == by_time.lines, "{}", path.display());
    }
}
