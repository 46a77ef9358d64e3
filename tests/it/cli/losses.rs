//! No loss is silent: each kind of loss is in the account of every command and output, with its number, and
//! the exit status is 3.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use tracebridge::formats::LossKind;

use super::many_events::{bytes, number};
use super::mcp::Session;
use support::art_writer::{Action, ArtTrace, Method, Record};
use support::perf_writer::{MONOTONIC, perf_data_with_records, perf_record};
use support::report_page::Page;
use support::run_in;

/// An input with a loss.
struct LossyInput {
    file: String,
    contents: Vec<u8>,
    kind: LossKind,
    count: u64,
    gaps: u64,
}

impl LossyInput {
    fn new(file: &str, contents: impl Into<Vec<u8>>, kind: LossKind, count: u64) -> LossyInput {
        LossyInput { file: file.into(), contents: contents.into(), kind, count, gaps: 0 }
    }
}

/// The message that `fill` fills.
fn message(fill: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    fill(&mut out);
    out
}

/// A Perfetto trace with a marker and these packets.
fn pftrace(packets: &[Vec<u8>]) -> Vec<u8> {
    let print = message(|print| bytes(print, 2, b"B|7|draw\n"));
    let event = message(|event| {
        number(event, 1, 5_000);
        number(event, 2, 7);
        bytes(event, 3, &print);
    });
    let bundle = message(|bundle| {
        number(bundle, 1, 0);
        bytes(bundle, 2, &event);
    });
    let first = message(|packet| bytes(packet, 1, &bundle));
    message(|trace| [first].iter().chain(packets).for_each(|packet| bytes(trace, 1, packet)))
}

fn packet(field: u64, body: &[u8]) -> Vec<u8> {
    message(|packet| bytes(packet, field, body))
}

/// A packet of `TraceStats` with one number.
fn trace_stats(field: u64, count: u64) -> Vec<u8> {
    packet(35, &message(|stats| number(stats, field, count)))
}

/// A packet of `TraceStats` with one number of its second buffer.
fn buffer_stats(field: u64, count: u64) -> Vec<u8> {
    let stats = message(|stats| {
        bytes(stats, 1, &[]);
        bytes(stats, 1, &message(|buffer| number(buffer, field, count)));
    });
    packet(35, &stats)
}

fn ftrace_stats(phase: u64, fill: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let stats = message(|stats| {
        number(stats, 1, phase);
        fill(stats);
    });
    packet(34, &stats)
}

/// `FtraceStats` of CPU 1 at the start and at the end, of which one number differs.
fn cpu_stats(field: u64, count: u64) -> Vec<Vec<u8>> {
    let of = |count| {
        message(|cpu| {
            number(cpu, 1, 1);
            number(cpu, field, count);
        })
    };
    [(1, 40), (2, 40 + count)]
        .map(|(phase, count)| ftrace_stats(phase, |stats| bytes(stats, 2, &of(count))))
        .to_vec()
}

/// A slice of a track event at 6 µs on track 9, with members of its packet.
fn slice(fill: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let event = message(|event| {
        number(event, 9, 1);
        number(event, 11, 9);
        bytes(event, 23, b"made");
    });
    message(|packet| {
        number(packet, 8, 6_000);
        number(packet, 10, 3);
        fill(packet);
        bytes(packet, 11, &event);
    })
}

const HEADER: &str = "# tracer: nop\n#\n";
const LINES: &str = "  a-7 (    7) [001] ...1 1.500000: tracing_mark_write: B|7|x\n  a-7 (    7) [001] ...1 \
                     1.600000: tracing_mark_write: E|7\n";

/// A text with a line between its header and its events.
fn text(line: &str) -> String {
    format!("{HEADER}{line}\n{LINES}")
}

fn json(event: &str) -> String {
    format!(r#"[{{"ph":"X","pid":1,"tid":1,"ts":5,"dur":9,"name":"whole"}},{event}]"#)
}

fn texts() -> Vec<LossyInput> {
    use LossKind::{CpuEvents, OverwrittenEntries};
    let whole = |line: &str, kind, count| LossyInput::new("a.txt", text(line), kind, count);
    let html = format!(
        "<!DOCTYPE html><html><body><script class=\"trace-data\" type=\"application/text\">\n{}</script></body></html>",
        text("# entries-in-buffer/entries-written: 2/12   #P:2")
    );
    vec![
        whole("# entries-in-buffer/entries-written: 2/24   #P:2", OverwrittenEntries, 22),
        whole("# entries-in-buffer/entries-written: 2/3   #P:8", OverwrittenEntries, 1),
        LossyInput::new("a.html", html, OverwrittenEntries, 10),
        whole("CPU:1 [LOST 17 EVENTS]", CpuEvents, 17),
        whole("CPU:0 [LOST 1 EVENTS]", CpuEvents, 1),
        LossyInput { gaps: 1, ..whole("CPU:1 [LOST EVENTS]", CpuEvents, 0) },
    ]
}

fn jsons() -> Vec<LossyInput> {
    use LossKind::{CounterValues, HomelessEvents, TimelessEvents};
    [
        (r#"{"ph":"X","pid":1,"tid":1,"dur":9,"name":"late"}"#, TimelessEvents, 1),
        (r#"{"ph":"X","pid":1,"tid":1,"ts":-3,"dur":9,"name":"early"}"#, TimelessEvents, 1),
        (r#"{"ph":"B","pid":1,"tid":1,"ts":"x","name":"word"}"#, TimelessEvents, 1),
        (r#"{"ph":"i","pid":1,"tid":1,"ts":-1,"name":"a","s":"t"},{"ph":"i","pid":1,"tid":1,"name":"b","s":"t"}"#, TimelessEvents, 2),
        (r#"{"ph":"X","pid":1,"tid":1,"ts":20,"name":"no length"}"#, HomelessEvents, 1),
        (r#"{"ph":"X","pid":1,"tid":1,"ts":20,"dur":-4,"name":"negative"}"#, HomelessEvents, 1),
        (r#"{"ph":"b","pid":1,"tid":1,"ts":20,"cat":"c","name":"no id"}"#, HomelessEvents, 1),
        (r#"{"ph":"C","pid":1,"tid":1,"ts":20,"name":"c","args":{"a":"x"}}"#, CounterValues, 1),
        (r#"{"ph":"C","pid":1,"tid":1,"ts":20,"name":"c","args":{"a":"x","b":[1],"c":4}}"#, CounterValues, 2),
        (r#"{"ph":"C","pid":1,"tid":1,"ts":20,"name":"c","args":{"a":null}}"#, CounterValues, 1),
    ]
    .map(|(event, kind, count)| LossyInput::new("a.json", json(event), kind, count))
    .into()
}

fn perfetto_stats() -> Vec<LossyInput> {
    use LossKind as Kind;
    let of = |packets: &[Vec<u8>], kind, count| LossyInput::new("a.pftrace", pftrace(packets), kind, count);
    vec![
        of(&[buffer_stats(19, 3)], Kind::WriterPackets, 3),
        of(&[buffer_stats(19, 1), buffer_stats(19, 4)], Kind::WriterPackets, 4),
        of(&[buffer_stats(6, 7)], Kind::FailedPatches, 7),
        of(&[buffer_stats(9, 2)], Kind::AbiViolations, 2),
        of(&[trace_stats(10, 5)], Kind::InvalidPackets, 5),
        of(&[packet(35, &message(|s| bytes(s, 11, &message(|f| number(f, 4, 6)))))], Kind::FilterErrors, 6),
        of(&[trace_stats(14, 2)], Kind::FailedFlushes, 2),
        of(&[trace_stats(15, 2)], Kind::FailedFinalFlush, 1),
        of(&[ftrace_stats(2, |stats| number(stats, 9, 4))], Kind::FtraceParseErrors, 1),
        of(
            &[ftrace_stats(2, |stats| {
                number(stats, 9, 4);
                number(stats, 9, 16);
            })],
            Kind::FtraceParseErrors,
            2,
        ),
        of(&[ftrace_stats(2, |stats| bytes(stats, 7, b"sched/sched_made"))], Kind::FailedFtraceEvents, 1),
        of(
            &[1, 2].map(|phase| ftrace_stats(phase, |s| bytes(s, 10, &message(|k| number(k, 2, phase * 8))))),
            Kind::MissedKprobes,
            8,
        ),
        of(&cpu_stats(3, 11), Kind::CpuEvents, 11),
        of(&cpu_stats(8, 13), Kind::CpuEvents, 13),
    ]
}

fn perfetto_packets() -> Vec<LossyInput> {
    let of = |packets: &[Vec<u8>], kind, count| LossyInput::new("a.pftrace", pftrace(packets), kind, count);
    let after_loss = message(|bundle| {
        number(bundle, 1, 1);
        number(bundle, 3, 1);
    });
    vec![
        LossyInput { gaps: 1, ..of(&[packet(1, &after_loss)], LossKind::CpuEvents, 0) },
        of(
            &[slice(|packet| {
                number(packet, 42, 1);
                number(packet, 13, 2);
            })],
            LossKind::TrackEventsOfLostPackets,
            1,
        ),
        of(&[slice(|packet| number(packet, 58, 77))], LossKind::TimelessTrackEvents, 1),
        of(
            &[slice(|packet| number(packet, 58, 77)), slice(|packet| number(packet, 58, 78))],
            LossKind::TimelessTrackEvents,
            2,
        ),
        of(&[skipped_sample(1)], LossKind::Samples, 1),
        of(&[skipped_sample(1), skipped_sample(1)], LossKind::Samples, 2),
    ]
}

/// A sample that the profiler dropped.
fn skipped_sample(reason: u64) -> Vec<u8> {
    let sample = message(|sample| {
        number(sample, 1, 0);
        number(sample, 2, 7);
        number(sample, 3, 7);
        number(sample, 18, reason);
    });
    message(|packet| {
        number(packet, 8, 6_000);
        number(packet, 10, 4);
        bytes(packet, 66, &sample);
    })
}

fn method_traces() -> Vec<LossyInput> {
    let of = |exits: u32| {
        let mut records = vec![Record::new(1, 0, Action::Enter, 1, 1)];
        records.extend((0..exits).map(|n| Record::new(1, 1, Action::Exit, 2 + n, 2 + n)));
        records.push(Record::new(1, 0, Action::Exit, 50, 50));
        let methods = vec![Method::new("a.B", "run"), Method::new("a.B", "other")];
        let threads = vec![(1, "main".into())];
        let trace = ArtTrace { elapsed_us: 100, pid: 7, threads, methods, records, ..ArtTrace::default() };
        LossyInput::new("a.trace", trace.to_bytes(), LossKind::UnmatchedExits, exits.into())
    };
    vec![of(1), of(3)]
}

fn perf_files() -> Vec<LossyInput> {
    let of = |records: &[Vec<u8>], kind, count| {
        let samples = [(1_000, 7, 7), (2_000, 7, 7)];
        let file = perf_data_with_records(MONOTONIC, &samples, &records.concat());
        LossyInput::new("perf.data", file, kind, count)
    };
    let piece = |bytes: u64| {
        let mut record = perf_record(71, &[bytes, 0, 0, 7 << 32, 0], false);
        record.extend(vec![0; bytes as usize]);
        record
    };
    vec![
        of(&[perf_record(2, &[0, 9], true)], LossKind::Samples, 9),
        of(&[perf_record(2, &[0, 4], true), perf_record(2, &[0, 6], true)], LossKind::Samples, 10),
        of(&[perf_record(13, &[5], true)], LossKind::Samples, 5),
        of(&[perf_record(70, &[1], false), piece(16)], LossKind::AuxData, 1),
        of(&[perf_record(70, &[3], false), piece(8), piece(24)], LossKind::AuxData, 2),
        of(&[perf_record(11, &[0, 64, 1], true)], LossKind::IncompleteAuxData, 1),
        of(
            &[perf_record(11, &[0, 64, 4], true), perf_record(11, &[64, 8, 0], true)],
            LossKind::IncompleteAuxData,
            1,
        ),
    ]
}

fn all_inputs() -> Vec<LossyInput> {
    let all = [texts(), jsons(), perfetto_stats(), perfetto_packets(), method_traces(), perf_files()];
    all.into_iter().flatten().collect()
}

/// A Perfetto trace with a slice, and a reading of BOOTTIME and CLOCK_REALTIME, ns.
fn recorded_at(boottime: u64, realtime: u64) -> Vec<u8> {
    let snapshot = message(|snapshot| {
        for (clock, reading) in [(6, boottime), (1, realtime)] {
            let reading = message(|of| {
                number(of, 1, clock);
                number(of, 2, reading);
            });
            bytes(snapshot, 1, &reading);
        }
    });
    pftrace(&[packet(6, &snapshot)])
}

#[test]
fn recordings_of_two_boots_are_not_consistent() {
    const SECOND: u64 = 1_000_000_000;
    const WALL: u64 = 1_700_000_000 * SECOND;
    let dir = support::tempdir();
    let dir = dir.path();
    let boots = [("first", 1, 1), ("same", 3_601, 3_601), ("second", 1, 2), ("year", 40, 31_536_000)];
    for (name, boottime, realtime) in boots {
        let trace = recorded_at(boottime * SECOND, WALL + realtime * SECOND);
        fs::write(dir.join(format!("{name}.pftrace")), trace).unwrap();
        let dat = run_in(dir, &["convert", &format!("{name}.pftrace"), "-o", &format!("{name}.dat")]);
        dat.exited(0);
    }
    for ending in ["pftrace", "dat"] {
        let merged = |other: &str, output: &str| {
            let [first, other] = ["first", other].map(|name| format!("{name}.{ending}"));
            run_in(dir, &["merge", "--json", &first, &other, "-o", output])
        };
        let same = merged("same", "same.csv").exited(0).json();
        assert_ne!(same["outcome"]["inputs"][1]["verdict"], "assumed", "{same}");
        for (other, shift) in [("second", SECOND), ("year", (31_536_000 - 40) * SECOND)] {
            let json = merged(other, "other.csv").exited(0).json();
            let input = &json["outcome"]["inputs"][1];
            assert_eq!(
                (&input["verdict"], &input["offset_ns"]),
                (&"assumed".into(), &shift.into()),
                "{input}"
            );
            assert!(input["why"].as_str().unwrap().contains("CLOCK_REALTIME"), "{input}");
        }
    }
    let refused = run_in(dir, &["merge", "first.pftrace", "year.pftrace", "-o", "x.pftrace"]).exited(1);
    assert!(refused.said().contains("year.pftrace: ") && refused.said().contains("--only-ftrace"));
    run_in(dir, &["merge", "first.pftrace", "year.pftrace", "--only-ftrace", "-o", "x.pftrace"]).exited(0);
}

/// The number and the gaps of a kind in the account of a report.
fn counted(report: &Value, kind: LossKind) -> (u64, u64) {
    let of_kind = |loss: &&Value| loss["kind"] == kind.key();
    let losses = report["losses"].as_array().unwrap().iter().filter(of_kind);
    losses.fold((0, 0), |(count, gaps), loss| {
        (count + loss["count"].as_u64().unwrap(), gaps + loss["gaps"].as_u64().unwrap())
    })
}

const OUTPUTS: [&str; 9] = [
    "x.pftrace",
    "x.json",
    "x.csv",
    "x.firefox.json",
    "x.html",
    "x.txt",
    "x.dat",
    "x.systrace.html",
    "x.parquet",
];

/// Runs a command, whose report of the input must be at `report` of its JSON.
fn check(dir: &Path, input: &LossyInput, args: &[&str], report: &str, faults: &mut Vec<String>) {
    let ran = run_in(dir, args);
    let expected = (input.count, input.gaps);
    // A copy leaves no packet out.
    if input.kind == LossKind::TimelessTrackEvents && args.contains(&"x.pftrace") {
        return;
    }
    // An output without a place for all data of the input is refused.
    if ran.code() == Some(1) && args[0] != "info" {
        return;
    }
    let what = format!("{} {args:?} {:?} {}", input.file, input.kind, ran.said());
    if ran.code() != Some(3) {
        faults.push(format!("status {:?}: {what}", ran.code()));
        return;
    }
    let json = ran.json();
    let account = json.pointer(report).unwrap_or(&Value::Null);
    if account["losses"].is_null() || counted(account, input.kind) != expected {
        faults.push(format!("not {expected:?}: {what}"));
    }
}

#[test]
fn every_kind_of_loss_is_in_the_account_of_every_command_and_output() {
    let inputs = all_inputs();
    let covered: BTreeSet<LossKind> = inputs.iter().map(|input| input.kind).collect();
    let missing: Vec<_> = LossKind::ALL.iter().filter(|kind| !covered.contains(kind)).collect();
    assert!(missing.is_empty(), "no input has a loss of these kinds: {missing:?}");
    let mut faults = Vec::new();
    for input in &inputs {
        let dir = support::tempdir();
        let dir = dir.path();
        let file = input.file.as_str();
        fs::write(dir.join(file), &input.contents).unwrap();
        check(dir, input, &["info", "--json", file], "/report", &mut faults);
        for output in OUTPUTS {
            check(dir, input, &["convert", "--json", file, "-o", output], "/outcome/report", &mut faults);
        }
        if input.kind == LossKind::CpuEvents {
            continue;
        }
        let is_profile = file.ends_with(".trace") || file.ends_with(".data");
        let convert = ["convert", file, "-o", if is_profile { "y.pftrace" } else { "y.csv" }];
        let mut commands = vec![vec!["info", file], convert.to_vec()];
        if is_profile {
            commands.push(vec!["profile", file]);
        }
        if !file.ends_with(".data") {
            commands.push(vec!["dataset", "add", "set", file]);
        }
        for args in commands {
            let ran = run_in(dir, &args);
            if ran.code() != Some(3) || !ran.said().contains(&format!("lost: {} ", input.count)) {
                faults.push(format!("{:?} {args:?}: {:?}: {}", input.kind, ran.code(), ran.said()));
            }
        }
    }
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

#[test]
fn an_output_reads_back_with_the_account_of_its_input() {
    let mut faults = Vec::new();
    let mut seen = BTreeSet::new();
    for input in all_inputs().iter().filter(|input| input.kind != LossKind::CpuEvents) {
        if !seen.insert(input.kind) {
            continue;
        }
        let dir = support::tempdir();
        let dir = dir.path();
        fs::write(dir.join(&input.file), &input.contents).unwrap();
        for output in ["x.pftrace", "x.json", "x.txt", "x.dat", "x.systrace.html"] {
            // An output without a place for all data of the input is refused.
            if run_in(dir, &["convert", &input.file, "-o", output]).code() == Some(3) {
                check(dir, input, &["info", "--json", output], "/report", &mut faults);
            }
        }
    }
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

#[test]
fn why_the_gate_and_the_server_have_the_account() {
    let mut faults = Vec::new();
    let dir = support::tempdir();
    let dir = dir.path();
    fs::write(dir.join("whole.txt"), format!("{HEADER}{LINES}")).unwrap();
    let is_measured = |input: &LossyInput| matches!(input.file.as_str(), "a.txt" | "a.json");
    for input in all_inputs().iter().filter(|input| is_measured(input)) {
        let file = input.file.as_str();
        fs::write(dir.join(file), &input.contents).unwrap();
        let slice = if file == "a.txt" { "x" } else { "whole" };
        check(dir, input, &["why", "--json", "--slice", slice, file], "", &mut faults);
        if file == "a.txt" {
            let sides = ["gate", "--json", "--baseline", "whole.txt", "--candidate", file];
            let gate = run_in(dir, &[&sides[..], &["--fail-if", "slice.x > +5%"]].concat());
            let told = gate.exited(3).json();
            let (count, gaps) = counted(&told["candidate"], input.kind);
            if (count, gaps) != (input.count, input.gaps) || told["lossy"] != true {
                faults.push(format!("gate: {:?} {told}", input.kind));
            }
        }
        let mut session = Session::start(dir, &[]);
        for (tool, report) in [("info", "/files/0/report"), ("thread_states", ""), ("launches", "/files/0")] {
            let arguments = json!({ "files": [file], "max_bytes": 64_000 });
            let answer = session.answer(tool, arguments);
            let account = answer.pointer(report).unwrap_or(&Value::Null);
            if account["losses"].is_null() || counted(account, input.kind) != (input.count, input.gaps) {
                faults.push(format!("{tool}: {:?} {answer}", input.kind));
            }
        }
    }
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

#[test]
fn the_page_has_the_text_of_each_loss() {
    let dir = support::tempdir();
    let dir = dir.path();
    fs::write(dir.join("a.txt"), text("# entries-in-buffer/entries-written: 2/24   #P:2")).unwrap();
    run_in(dir, &["report", "a.txt", "-o", "a.html"]).exited(3);
    let page = Page::read(&dir.join("a.html"));
    let losses = &page.index["summary"]["report"]["losses"];
    assert!(losses[0]["text"].as_str().unwrap().starts_with("22 events were overwritten"), "{losses}");
}

#[test]
fn switches_that_an_idle_cpu_lacks_are_named() {
    let switch = |at: &str, from: &str, to: &str| {
        let [comm, next] = [from, to].map(|task| task.rsplit_once('-').unwrap());
        format!(
            "  {from} (    7) [000] d..2 {at}: sched_switch: prev_comm={} prev_pid={} prev_prio=120 prev_state=S ==> \
             next_comm={} next_pid={} next_prio=120\n",
            comm.0, comm.1, next.0, next.1
        )
    };
    let text = [("1.1", "a-7", "swapper-0"), ("1.2", "a-7", "swapper-0"), ("1.3", "swapper-0", "a-7")];
    let text = text.map(|(at, from, to)| switch(at, from, to)).concat();
    let dir = support::tempdir();
    let dir = dir.path();
    fs::write(dir.join("a.txt"), format!("{HEADER}{text}")).unwrap();
    for args in [
        &["info", "a.txt"][..],
        &["convert", "a.txt", "-o", "a.pftrace"],
        &["info", "a.pftrace"],
        &["why", "--thread", "7", "a.txt"],
    ] {
        let said = run_in(dir, args).exited(0).said();
        assert!(said.contains("1 switches from an idle CPU are missing"), "{args:?}: {said}");
    }
}
