//! Counts the records, threads and methods of a method trace.

use serde::Serialize;

use crate::clock::Clock;
use crate::formats::ReadReport;
use crate::formats::art_method::{CallAnomalies, Counts, MethodTrace};
use crate::profile::count::flat::FlatProfile;
use crate::profile::count::selection::ProfileSelection;

/// The report of one method trace.
#[derive(Debug, Clone, Serialize)]
pub struct MethodTraceReport {
    /// The format's name for people: `method trace v3, streaming, dual clock`.
    pub format: String,
    /// The format's version: 1 to 6; 0 in files of the always-on tracer, which have no header.
    pub version: u16,
    /// Whether the file was written while the app ran, not at the end.
    pub streaming: bool,
    /// The clocks that records carry, as the file's `clock=` names them.
    pub clock_mode: &'static str,
    /// When the trace began, ns of [`MethodTraceReport::start_clock`], or of a clock that the file does not
    /// name.
    pub start_ns: u64,
    /// The clock of the start, where the format decides it.
    pub start_clock: Option<Clock>,
    /// Duration of the trace, ns, where the file states it.
    pub elapsed_ns: Option<u64>,
    /// The runtime: `art` or `dalvik`.
    pub vm: Option<String>,
    /// The traced process.
    pub pid: Option<i32>,
    /// Whether the buffer was full before the trace was stopped.
    pub overflow: bool,
    /// Counts from opening the file.
    pub counts: Counts,
    /// Calls whose enters and exits do not fit together.
    pub problems: CallAnomalies,
    /// Threads that the file declares, and threads that occur only in records.
    pub threads: Vec<ThreadReport>,
    /// Number of methods, declared or not.
    pub methods: usize,
    /// Damage, irregularities and notes.
    pub report: ReadReport,
}

/// One thread of a method trace.
#[derive(Debug, Clone, Serialize)]
pub struct ThreadReport {
    /// The thread's id in the trace.
    pub id: u32,
    /// The thread's name; empty where the file does not name the thread.
    pub name: String,
    /// Records of this thread.
    pub records: u64,
    /// The thread's name, or `thread ID` where the file does not name the thread.
    #[serde(skip)]
    pub label: String,
}

/// Follows the calls of all records and counts those whose enters and exits do not fit together.
pub(super) fn inspect(trace: &MethodTrace<'_>) -> MethodTraceReport {
    let header = trace.header();
    let problems = FlatProfile::from_trace(trace, &ProfileSelection::default()).anomalies;
    let mut report = trace.report().clone();
    report.irregular.extend(problems.lines());
    let threads = trace.threads().iter().map(|thread| ThreadReport {
        id: thread.id,
        name: thread.name.to_string(),
        records: thread.records,
        label: thread.label().into_owned(),
    });
    MethodTraceReport {
        format: trace.format(),
        version: header.version,
        streaming: header.streaming,
        clock_mode: header.clock.name(),
        start_ns: header.start_ns(),
        start_clock: header.start_clock,
        elapsed_ns: header.elapsed_ns,
        vm: header.vm.clone(),
        pid: header.pid,
        overflow: header.overflow,
        counts: *trace.counts(),
        problems,
        threads: threads.collect(),
        methods: trace.methods().len(),
        report,
    }
}
