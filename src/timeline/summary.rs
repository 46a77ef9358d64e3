//! The summary of a merge. It is printed for people or as JSON, and written into output formats that have a
//! place for it.

use serde::Serialize;

use super::align::reason::{PlaceReason, Trial};
use super::data_kind::DataCounts;
use crate::clock::Clock;
use crate::formats::ReadReport;
use crate::formats::art_method::CallAnomalies;

/// How sure the place of an input on the timeline is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The place rests on the input's own times, or on the user's options; nothing confirms or contradicts
    /// it.
    Assumed,
    /// The clocks fit, and no marker or context switch of the two files contradicts the place.
    Consistent,
    /// Markers or context switches of both files coincide, up to the residual.
    Proven,
}

impl Verdict {
    /// The verdict's name for people.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Assumed => "assumed",
            Verdict::Consistent => "consistent",
            Verdict::Proven => "proven",
        }
    }
}

/// A part of a timeline, ns of the timeline's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Window {
    /// Where the whole timeline begins.
    pub start: u64,
    /// Where the part begins.
    pub from: u64,
    /// Where the part ends.
    pub to: u64,
}

/// The summary of one input.
#[derive(Debug, Clone, Serialize)]
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
    pub why: PlaceReason,
    /// The offset that was added to the input's first time to get the timeline's time, ns.
    pub offset_ns: i64,
    /// How sure the input's place is.
    pub verdict: Verdict,
    /// Median, ns, of the distances between calls of this input and their markers in the recordings, or of
    /// the differences between the CPU times of both.
    pub residual_median_ns: Option<u64>,
    /// 99th percentile of the same distances, ns.
    pub residual_p99_ns: Option<u64>,
    /// The places that were tried, for `--explain`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub explain: Vec<Trial>,
    /// Kernel events, markers among them; 0 for a method trace.
    pub events: u64,
    /// Events left out because another input holds the same events.
    pub duplicates: u64,
    /// Method enters and exits; 0 for a kernel recording.
    pub method_edges: u64,
    /// The header of a method trace, for people: keys and values.
    #[serde(skip)]
    pub header: Vec<(String, String)>,
}

/// The summary of a whole timeline.
#[derive(Debug, Clone, Serialize)]
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
            problems: CallAnomalies::default(),
            threads: 0,
            contents: DataCounts::default(),
            not_written: DataCounts::default(),
        }
    }
}
