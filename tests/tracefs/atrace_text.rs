//! The text that atrace prints against the kernel's own `trace` file, and against captures of real phones.

use std::fs;
use std::io::Read;
use std::process::Stdio;

use tracebridge::formats::{Event, EventType, Order, Sink, ftrace_text};

use crate::atrace::{atrace, output};
use crate::recording::{Busy, run_programs};
use crate::tracefs_fixture::machine;
use support::corpus;

/// Collects the events that the product's own reader finds in a text, one line per event.
#[derive(Default)]
struct Events(Vec<String>);

impl Sink for Events {
    fn event(&mut self, e: &Event<'_>, kind: &EventType) -> std::io::Result<()> {
        let Event { ts, cpu, tid, flags, preempt_count, comm, tgid, payload, .. } = e;
        let comm = comm.map(String::from_utf8_lossy);
        self.0.push(format!(
            "{ts} {cpu} {tid} {tgid:?} {comm:?} {flags} {preempt_count} {} {payload:?}",
            kind.name
        ));
        Ok(())
    }
}

fn events(text: &str) -> Vec<String> {
    let mut events = Events::default();
    let report = ftrace_text::read(text.as_bytes(), Order::Any, &mut events).unwrap();
    assert_eq!(report.damage, [], "our own reader finds it sound");
    events.0
}

#[test]
fn our_text_and_the_trace_file_hold_the_same_events() {
    let Some(machine) = machine() else { return };
    let state = support::tempdir();
    let file = state.path().join("out");
    let start = ["--async_start", "-b", "4096", "sched", "irq", "workq"];
    assert!(atrace(&machine, state.path(), &start).stdout(Stdio::null()).status().unwrap().success());
    run_programs(100);
    // Neither the buffer nor the names that the kernel remembers change from here on, so that both texts hold
    // the same. `trace` is read before the dump, because the dump empties the buffer.
    fs::write(machine.root.join("tracing_on"), "0").unwrap();
    fs::write(machine.root.join("events/enable"), "0").unwrap();
    let by_hand = fs::read_to_string(machine.root.join("trace")).unwrap();
    let (_, done) = output(atrace(&machine, state.path(), &["--async_dump", "-o", file.to_str().unwrap()]));
    assert!(done.status.success(), "{done:?}");
    let ours = fs::read_to_string(&file).unwrap();
    let stop = atrace(&machine, state.path(), &["--async_stop"]).stdout(Stdio::null()).status().unwrap();
    assert!(stop.success());
    assert_eq!(ours.strip_prefix("TRACE:\n").unwrap(), by_hand);
    let (ours, by_hand) = (events(&ours), events(&by_hand));
    assert!(ours.len() > 500, "{} events", ours.len());
    assert_eq!(ours, by_hand);
}

/// Whether a line has atrace's columns: task and pid, process, CPU, four flags (five since Linux 5.12),
/// seconds with µs.
fn has_the_columns(line: &str) -> Option<()> {
    let digits = |text: &str| (!text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())).then_some(());
    let (task, rest) = line.split_once(" (")?;
    digits(task.trim_end().rsplit_once('-')?.1)?;
    let (process, rest) = rest.split_once(") [")?;
    // An unknown process is five dashes, or seven where the kernel's column is wider.
    digits(process.trim()).or((process.len() >= 5 && process.bytes().all(|b| b == b'-')).then_some(()))?;
    let (cpu, rest) = rest.split_once("] ")?;
    digits(cpu).filter(|()| cpu.len() == 3)?;
    let (flags, rest) = rest.split_once(' ')?;
    let (seconds, micros) = rest.trim_start().split_once(": ")?.0.split_once('.')?;
    digits(seconds).and(digits(micros))?;
    ((4..=5).contains(&flags.len()) && micros.len() == 6).then_some(())
}

/// The lines of a text that are neither comments nor empty.
fn event_lines(text: &str) -> Vec<&str> {
    text.lines().filter(|l| !l.starts_with('#') && !l.trim().is_empty()).collect()
}

/// Texts of the corpus with a column for the process, which AOSP's atrace recorded on phones.
const PHONES: [&str; 6] = [
    "catapult-project__catapult__compressed_atrace_data.txt",
    "catapult-project__catapult__decompressed_atrace_data.txt",
    "catapult-project__catapult__atrace_missing_tgids",
    "eclipse-tracecompass-incubator__org.eclipse.tracecompass.incubator__atrace-test",
    "google__perfetto__cpu_frequency_limits.systrace",
    "google__perfetto__sched_blocked_systrace.systrace",
];

#[test]
fn event_lines_of_real_phones_have_the_expected_columns() {
    let Some(corpus) = corpus() else { return };
    for phone in PHONES {
        let bytes = fs::read(corpus.join("systrace").join(phone)).unwrap();
        let start = bytes.windows(7).position(|w| w == b"TRACE:\n").map_or(0, |at| at + 7);
        let mut text = String::new();
        if bytes[start..].starts_with(b"\x78") {
            flate2::read::ZlibDecoder::new(&bytes[start..]).read_to_string(&mut text).unwrap();
        } else {
            text = String::from_utf8_lossy(&bytes[start..]).into_owned();
        }
        let lines = event_lines(&text);
        let wrong: Vec<_> = lines.iter().filter(|l| has_the_columns(l).is_none()).collect();
        assert!(lines.len() > 5 && wrong.is_empty(), "{phone}: {} lines, of these: {wrong:#?}", lines.len());
    }
}

#[test]
fn our_event_lines_have_the_expected_columns() {
    let Some(machine) = machine() else { return };
    let state = support::tempdir();
    let _busy = Busy::start();
    let (text, _) = output(atrace(&machine, state.path(), &["-t", "1", "sched", "irq", "freq", "workq"]));
    let text = text.strip_prefix("capturing trace... done\nTRACE:\n").expect("the lines before");
    let lines = event_lines(text);
    let wrong: Vec<_> = lines.iter().filter(|l| has_the_columns(l).is_none()).collect();
    assert!(lines.len() > 500 && wrong.is_empty(), "{} lines, of these: {wrong:#?}", lines.len());
}
