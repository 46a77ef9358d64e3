//! Reads a trace.dat with the product's reader and with `trace-cmd report` into the same form, for
//! comparison.

#![allow(dead_code)] // Each test program uses what it needs.

use std::collections::{HashMap, HashSet};
use std::io;
use std::path::Path;
use support::Command;

use tracebridge::formats::trace_dat::TraceDat;
use tracebridge::formats::{Event, EventType, Order, Sink, ThreadInfo};

/// One event of either reader.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Line {
    /// ns in the capture's clock.
    pub ts: u64,
    pub cpu: u32,
    pub tid: i32,
    pub name: String,
    pub comm: String,
}

/// The name that trace-cmd gives a thread whose name it does not know.
pub const UNKNOWN_COMM: &str = "<...>";

/// Asserts that the product's reader and trace-cmd read the same events. Those of one time may come in any
/// order. trace-cmd knows fewer names: of the events it takes those of sched_switch only, and does not name
/// the events before it. A thread that was renamed meanwhile may have its earlier name there: the kernel does
/// not store a name while the other CPU stores one (`trace_save_cmdline`).
pub fn assert_same_events(mut ours: Vec<Line>, mut theirs: Vec<Line>) {
    ours.sort();
    theirs.sort();
    let renamed: HashSet<i32> =
        ours.iter().filter(|line| line.name == "task_rename").map(|line| line.tid).collect();
    let same = |(a, b): &(&Line, &Line)| {
        let named_as = |comm: &str| Line { comm: comm.to_owned(), ..(*a).clone() };
        a == b || named_as(UNKNOWN_COMM) == **b || renamed.contains(&a.tid) && named_as(&b.comm) == **b
    };
    let differing: Vec<_> = ours.iter().zip(&theirs).filter(|pair| !same(pair)).take(5).collect();
    assert!(differing.is_empty(), "read here, and printed by trace-cmd: {differing:#?}");
    assert_eq!(ours.len(), theirs.len(), "events read here, and printed by trace-cmd");
}

#[derive(Default)]
struct LineCollector {
    comms: HashMap<i32, String>,
    lines: Vec<Line>,
}

impl Sink for LineCollector {
    fn thread(&mut self, thread: &ThreadInfo<'_>) -> io::Result<()> {
        if let Some(name) = thread.name {
            self.comms.insert(thread.tid.0, String::from_utf8_lossy(name).into_owned());
        }
        Ok(())
    }

    fn event(&mut self, event: &Event<'_>, kind: &EventType) -> io::Result<()> {
        self.lines.push(Line {
            ts: event.ts.0,
            cpu: event.cpu.0,
            tid: event.tid.0,
            comm: String::new(),
            name: kind.name.clone(),
        });
        Ok(())
    }
}

/// All events of a capture, by time, with the names that the capture gives its threads.
pub fn read(dat: &Path) -> Vec<Line> {
    let bytes = std::fs::read(dat).expect("the capture");
    let mut collect = LineCollector::default();
    let capture = TraceDat::open(&bytes).expect("a capture");
    let report = capture.read(Order::Time, &mut collect).expect("no sink fails");
    assert!(report.damage.is_empty(), "{:?}", report.damage);
    for line in &mut collect.lines {
        let idle = if line.tid == 0 { "<idle>" } else { UNKNOWN_COMM };
        line.comm = collect.comms.get(&line.tid).map_or(idle, String::as_str).to_owned();
    }
    collect.lines
}

/// All events of a capture as `trace-cmd report -t` prints them, by time.
pub fn trace_cmd_report(dat: &Path) -> Vec<Line> {
    let output = Command::new("trace-cmd").args(["report", "-t", "-i"]).arg(dat).run().exited(0);
    let lines = &output.stdout;
    lines.lines().filter_map(parse_reported).map(|(line, _)| line).collect()
}

/// Parses `   comm-123   [001] 12.345678901: name:   …`, a line of `trace-cmd report -t`, with as many digits
/// as the clock has, into the event and what follows its name. `None` for other lines.
pub fn parse_reported(line: &str) -> Option<(Line, &str)> {
    // A thread's name may hold anything, `[pango] FcInit` for one.
    line.match_indices(" [").find_map(|(at, _)| parse_reported_at(line, at))
}

/// As [`parse_reported`], where the processor stands in brackets at byte `at` of the line.
fn parse_reported_at(line: &str, at: usize) -> Option<(Line, &str)> {
    let (comm, tid) = line[..at].trim().rsplit_once('-')?;
    let (cpu, rest) = line[at + 2..].split_once(']')?;
    let (time, rest) = rest.trim_start().split_once(": ")?;
    let (name, fields) = rest.trim_start().split_once(':').unwrap_or((rest.trim(), ""));
    let event = Line {
        ts: time.split_whitespace().next_back()?.replace('.', "").parse().ok()?,
        cpu: cpu.parse().ok()?,
        tid: tid.parse().ok()?,
        comm: comm.to_owned(),
        name: name.to_owned(),
    };
    Some((event, fields))
}
