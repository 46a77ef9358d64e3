//! The text of a trace in one form, whoever printed it: the kernel, trace-cmd, or the product.

use std::path::Path;
use support::Command;

use super::capture;

/// One event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// `comm-tid`.
    pub task: String,
    pub cpu: u32,
    /// The column of flags, such as `d..2.`; trace-cmd's report has none.
    pub flags: String,
    /// As it was printed.
    pub time: String,
    pub name: String,
    pub fields: String,
}

impl Event {
    /// The time without its point: nanoseconds where all nine digits were printed.
    pub fn ns(&self) -> u64 {
        self.time.replace('.', "").parse().unwrap_or_else(|e| panic!("{e}: {}", self.time))
    }
}

/// The events among the lines of a text.
pub fn events(text: &str) -> Vec<Event> {
    let is_event = |line: &&str| !line.starts_with('#') && line.contains(" [0") && line.contains(": ");
    text.lines().filter(is_event).map(event).collect()
}

/// `  comm-1 [000] flags 1.000001: name: fields`, with the thread group `(    1)` before the CPU or without
/// it, and with the flags or without.
fn event(line: &str) -> Event {
    let parse = || {
        let (task, rest) = line.split_once(" [0")?;
        let (cpu, rest) = rest.split_once(']')?;
        let (before, rest) = rest.split_once(": ")?;
        let (flags, time) = before.trim().split_once(' ').unwrap_or(("", before.trim()));
        let (name, fields) = rest.split_once(':')?;
        // The product prints a column for the thread group.
        let task = task.rsplit_once(" (").map_or(task, |(task, _)| task);
        Some(Event {
            task: task.trim().to_owned(),
            cpu: cpu.parse().ok()?,
            flags: flags.to_owned(),
            time: time.trim().to_owned(),
            name: name.trim().to_owned(),
            fields: fields.trim().to_owned(),
        })
    };
    parse().unwrap_or_else(|| panic!("no event: {line}"))
}

/// The text of `trace-cmd report` for a file: whole nanoseconds, and each event by its own format.
pub fn trace_cmd_report(dat: &Path) -> String {
    let report = Command::new("trace-cmd").args(["report", "-t", "-N", "-i"]).arg(dat).run();
    let text = report.stdout;
    assert!(report.status.success(), "{text}{}", report.stderr);
    text
}

/// The text of the product for a file, in systrace's form. Exit status 3 says that events were lost.
pub fn systrace(dat: &Path, exit_status: i32) -> String {
    let mut convert = support::tracebridge();
    let done = convert.args(["convert", "--format", "systrace", "-o", "-"]).arg(dat).run();
    let messages = &done.stderr;
    assert_eq!(done.code(), Some(exit_status), "{}: {messages}", dat.display());
    done.stdout
}

/// Takes the names of those threads away that the kernel's list did not have when it printed `golden`, or
/// trace-cmd when it did: the product learns names from the events too. `task` is an event's thread.
pub fn without_learned_names<T>(mut ours: Vec<T>, golden: &[T], task: fn(&mut T) -> &mut String) -> Vec<T>
where
    T: Clone,
{
    for (ours, golden) in ours.iter_mut().zip(golden) {
        let golden = task(&mut golden.clone()).clone();
        let tid = golden.strip_prefix("<...>-");
        if tid.is_some_and(|tid| task(ours).rsplit_once('-').is_some_and(|(_, ours)| ours == tid)) {
            *task(ours) = golden;
        }
    }
    ours
}

/// Time in nanoseconds, CPU, thread and name of each event, as the product's reader delivers them.
pub fn exact_times(dat: &Path) -> Vec<(u64, u32, String, String)> {
    capture::read(dat).into_iter().map(|l| (l.ts, l.cpu, format!("{}-{}", l.comm, l.tid), l.name)).collect()
}

/// The same of a report of trace-cmd.
pub fn reported_times(report: &str) -> Vec<(u64, u32, String, String)> {
    events(report).into_iter().map(|e| (e.ns(), e.cpu, e.task, e.name)).collect()
}

/// Nanoseconds as the kernel prints them: rounded to microseconds, with a point.
pub fn rounded(ns: u64) -> String {
    let us = (ns + 500) / 1_000;
    format!("{}.{:06}", us / 1_000_000, us % 1_000_000)
}
