//! The summary of a merge: how the inputs were placed, and how much of each kind of data the timeline has.
//! It is printed for people or as JSON, and written into output formats that have a place for it.

use std::collections::BTreeMap;

use serde::Serialize;

use super::align::reason::{PlaceReason, Trial};
use crate::clock::{Clock, Timestamp};
use crate::formats::ReadReport;
use crate::formats::ScreenVideo;
use crate::formats::art_method::CallAnomalies;

/// A kind of data on a timeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DataKind {
    /// Kernel events of every type, markers among them.
    KernelEvents,
    /// atrace's markers: slices, asynchronous slices, instants and counters.
    Markers,
    /// Method calls of method traces.
    Methods,
    /// Samples: what threads executed at moments in time, each with its stack.
    Samples,
    /// Slices, instants and counters of Perfetto's track events.
    TrackEvents,
    /// Arguments of the system calls of a strace text.
    SystemCallArguments,
    /// Frames of SurfaceFlinger's FrameTimeline, expected ones and actual ones.
    Frames,
    /// Packets of a Perfetto trace that become nothing on the timeline: samples, logs, statistics.
    PerfettoPackets,
    /// Values of fields of kernel events.
    FieldValues,
    /// How many events are missing, and where.
    LostEvents,
    /// Names of threads.
    ThreadNames,
    /// Names of processes.
    ProcessNames,
    /// Times that are no whole µs.
    TimesBelowMicrosecond,
    /// Flags of kernel events: interrupts off, need-resched, interrupt context.
    Flags,
    /// Preempt counts of kernel events.
    PreemptCounts,
    /// Wakeups: which thread woke which thread.
    Wakeups,
    /// Readings of several clocks that were taken while recording.
    ClockSnapshots,
    /// Signatures and source files of methods.
    MethodSignatures,
    /// CPU times of method calls.
    MethodCpuTimes,
    /// Ends of slices and of interrupts whose begin was not recorded.
    UnmatchedEnds,
}

impl DataKind {
    /// Every kind, in the order of the tables.
    pub const ALL: [DataKind; 20] = [
        DataKind::KernelEvents,
        DataKind::Markers,
        DataKind::Methods,
        DataKind::Samples,
        DataKind::TrackEvents,
        DataKind::SystemCallArguments,
        DataKind::Frames,
        DataKind::PerfettoPackets,
        DataKind::FieldValues,
        DataKind::LostEvents,
        DataKind::ThreadNames,
        DataKind::ProcessNames,
        DataKind::TimesBelowMicrosecond,
        DataKind::Flags,
        DataKind::PreemptCounts,
        DataKind::Wakeups,
        DataKind::ClockSnapshots,
        DataKind::MethodSignatures,
        DataKind::MethodCpuTimes,
        DataKind::UnmatchedEnds,
    ];

    /// The kind's name in JSON: `kernel_events`.
    pub fn key(self) -> &'static str {
        match self {
            DataKind::KernelEvents => "kernel_events",
            DataKind::Markers => "markers",
            DataKind::Methods => "methods",
            DataKind::Samples => "samples",
            DataKind::TrackEvents => "track_events",
            DataKind::SystemCallArguments => "system_call_arguments",
            DataKind::Frames => "frames",
            DataKind::PerfettoPackets => "perfetto_packets",
            DataKind::FieldValues => "field_values",
            DataKind::LostEvents => "lost_events",
            DataKind::ThreadNames => "thread_names",
            DataKind::ProcessNames => "process_names",
            DataKind::TimesBelowMicrosecond => "times_below_microsecond",
            DataKind::Flags => "flags",
            DataKind::PreemptCounts => "preempt_counts",
            DataKind::Wakeups => "wakeups",
            DataKind::ClockSnapshots => "clock_snapshots",
            DataKind::MethodSignatures => "method_signatures",
            DataKind::MethodCpuTimes => "method_cpu_times",
            DataKind::UnmatchedEnds => "unmatched_ends",
        }
    }

    /// The kind's name for people, in the plural: `kernel events`.
    pub fn name(self) -> &'static str {
        match self {
            DataKind::KernelEvents => "kernel events",
            DataKind::Markers => "markers",
            DataKind::Methods => "methods",
            DataKind::Samples => "samples",
            DataKind::TrackEvents => "track events",
            DataKind::SystemCallArguments => "arguments of system calls",
            DataKind::Frames => "frames of FrameTimeline",
            DataKind::PerfettoPackets => "other Perfetto packets",
            DataKind::FieldValues => "values of fields",
            DataKind::LostEvents => "lost events",
            DataKind::ThreadNames => "names of threads",
            DataKind::ProcessNames => "names of processes",
            DataKind::TimesBelowMicrosecond => "times below 1 µs",
            DataKind::Flags => "flags of events",
            DataKind::PreemptCounts => "preempt counts",
            DataKind::Wakeups => "wakeups",
            DataKind::ClockSnapshots => "clock snapshots",
            DataKind::MethodSignatures => "signatures of methods",
            DataKind::MethodCpuTimes => "CPU times of methods",
            DataKind::UnmatchedEnds => "ends without a begin",
        }
    }

    /// Whether the kind is a detail of other data. A format without this detail still shows the data, so
    /// that the exit status does not change. Everything else is lost where a format does not hold it.
    pub fn is_detail(self) -> bool {
        match self {
            DataKind::KernelEvents
            | DataKind::Markers
            | DataKind::Methods
            | DataKind::Samples
            | DataKind::TrackEvents
            | DataKind::Frames
            | DataKind::PerfettoPackets
            | DataKind::FieldValues
            | DataKind::LostEvents => false,
            DataKind::ThreadNames
            | DataKind::ProcessNames
            | DataKind::SystemCallArguments
            | DataKind::TimesBelowMicrosecond
            | DataKind::Flags
            | DataKind::PreemptCounts
            | DataKind::Wakeups
            | DataKind::ClockSnapshots
            | DataKind::MethodSignatures
            | DataKind::MethodCpuTimes
            | DataKind::UnmatchedEnds => true,
        }
    }
}

/// The amount of each kind of data in a timeline. Kinds without data are left out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(transparent)]
pub struct DataCounts(BTreeMap<DataKind, u64>);

impl DataCounts {
    /// Adds `count` to a kind.
    pub fn add(&mut self, kind: DataKind, count: u64) {
        if count > 0 {
            *self.0.entry(kind).or_default() += count;
        }
    }

    /// The count of a kind.
    pub fn get(&self, kind: DataKind) -> u64 {
        self.0.get(&kind).copied().unwrap_or(0)
    }

    /// The kinds that the timeline has, each with its count.
    pub fn iter(&self) -> impl Iterator<Item = (DataKind, u64)> {
        self.0.iter().map(|(kind, count)| (*kind, *count))
    }
}

/// How sure the place of an input on the timeline is. [`InputSummary::error_ns`] says how exact it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The place rests on the input's own times, or on the user's options; nothing confirms or contradicts
    /// it.
    Assumed,
    /// The clocks fit, and both files have been compared and do not contradict the place; but what was
    /// compared would fit other places too.
    Consistent,
    /// Markers or context switches of both files coincide here, and nowhere else.
    Proven,
}

impl Verdict {
    /// The share of inputs of this verdict whose place is as exact as [`InputSummary::error_ns`] states;
    /// docs/clocks.md has the measurement. `None` where nothing was compared.
    pub fn confidence(self) -> Option<f64> {
        match self {
            Verdict::Assumed => None,
            Verdict::Consistent => Some(0.95),
            Verdict::Proven => Some(0.99),
        }
    }

    /// The verdict's name for people.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Assumed => "assumed",
            Verdict::Consistent => "consistent",
            Verdict::Proven => "proven",
        }
    }
}

/// A part of a timeline, in the timeline's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Window {
    /// Where the whole timeline begins.
    pub start: Timestamp,
    /// Where the part begins.
    pub from: Timestamp,
    /// Where the part ends.
    pub to: Timestamp,
}

/// The summary of one input.
#[derive(Debug, Clone, Serialize, schemars::JsonSchema)]
pub struct InputSummary {
    /// The path as given.
    pub name: String,
    /// Bytes on disk.
    pub size: u64,
    /// The format for people: `trace.dat v7 (zstd)`.
    pub format: String,
    /// The clock of the input's times, as the file names it or as the merge found it.
    pub clock: Clock,
    /// Why the input lies where it does.
    #[schemars(with = "String")]
    pub why: PlaceReason,
    /// The offset that was added to the input's first time to get the timeline's time, ns.
    pub offset_ns: i64,
    /// How sure the input's place is.
    pub verdict: Verdict,
    /// The offset of a method trace or of samples may be wrong by at most this, ns.
    pub error_ns: Option<u64>,
    /// The share of such places that are as exact as `error_ns` states.
    pub confidence: Option<f64>,
    /// Median, ns, of the distances between calls of this input and their markers in the recordings, of the
    /// differences between the CPU times of both, or of the distances of samples from the nearest time that
    /// their thread had a CPU.
    pub residual_median_ns: Option<u64>,
    /// 99th percentile of the same distances, ns.
    pub residual_p99_ns: Option<u64>,
    /// The places that were tried, for `--explain`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<String>")]
    pub explain: Vec<Trial>,
    /// Kernel events, markers among them; 0 for a method trace.
    pub events: u64,
    /// Events left out because another input holds the same events.
    pub duplicates: u64,
    /// Method enters and exits; 0 for a kernel recording.
    pub method_edges: u64,
    /// Samples.
    pub samples: u64,
    /// The header of a method trace, for people: keys and values.
    #[serde(skip)]
    pub header: Vec<(String, String)>,
    /// The frames of a video of the screen, at times of the timeline.
    #[serde(skip)]
    pub video: Option<ScreenVideo>,
}

/// The summary of a whole timeline.
#[derive(Debug, Clone, Serialize, schemars::JsonSchema)]
pub struct MergeSummary {
    /// The timeline's clock.
    pub clock: Clock,
    /// The part of the timeline that was chosen; `None` is the whole timeline.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<Window>,
    /// The inputs, in the order given.
    pub inputs: Vec<InputSummary>,
    /// Events, losses and damage of all inputs together.
    pub report: ReadReport,
    /// atrace markers among the events.
    pub markers: u64,
    /// Method enters, each of which has its exit in the output.
    pub methods: u64,
    /// Switches from an idle CPU that the recordings lack.
    #[serde(skip)]
    pub missing_switches: u64,
    /// The methods in the method traces.
    #[serde(skip)]
    pub traced_methods: u64,
    /// The threads in the method traces.
    #[serde(skip)]
    pub traced_threads: u64,
    /// Irregularities of the method traces' calls, such as exits without an enter. Calls whose enter is not
    /// recorded are left out of the output.
    pub problems: CallAnomalies,
    /// Threads with a name or an event.
    pub threads: u64,
    /// How much the timeline has of each kind of data.
    pub contents: DataCounts,
    /// The data that the exporter met and could not write; see
    /// [`TimelineSink::not_written`](super::TimelineSink::not_written).
    #[serde(skip)]
    pub not_written: DataCounts,
}

impl MergeSummary {
    /// A summary before anything is counted.
    pub(crate) fn new(clock: Clock, inputs: Vec<InputSummary>, report: ReadReport) -> MergeSummary {
        MergeSummary {
            clock,
            window: None,
            inputs,
            report,
            markers: 0,
            methods: 0,
            missing_switches: 0,
            traced_methods: 0,
            traced_threads: 0,
            problems: CallAnomalies::default(),
            threads: 0,
            contents: DataCounts::default(),
            not_written: DataCounts::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_has_the_same_name_in_json_as_a_key_and_in_a_list() {
        for (at, kind) in DataKind::ALL.into_iter().enumerate() {
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.key());
            assert_eq!(kind as usize, at, "{kind:?} has its place in ALL");
        }
        let mut counts = DataCounts::default();
        counts.add(DataKind::Methods, 3);
        counts.add(DataKind::Flags, 0);
        assert_eq!(serde_json::to_string(&counts).unwrap(), r#"{"methods":3}"#);
    }
}
