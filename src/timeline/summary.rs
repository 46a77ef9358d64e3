//! What a merge came to: for the summary, for `--json`, and for the output file itself.

use serde::Serialize;

use crate::clock::Clock;
use crate::formats::ReadReport;
use crate::formats::art_method::CallAnomalies;

/// How sure the place of an input on the timeline is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Nothing speaks against it, and nothing but the file's own word for it.
    Assumed,
    /// The clocks fit, and what both contain does not contradict.
    Consistent,
    /// What both contain coincides, to the residual.
    Proven,
}

impl Verdict {
    /// The word for people.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Assumed => "assumed",
            Verdict::Consistent => "consistent",
            Verdict::Proven => "proven",
        }
    }
}

/// One input's part in a timeline.
#[derive(Debug, Clone, Serialize)]
pub struct InputSummary {
    /// The path as given.
    pub name: String,
    /// Bytes on disk.
    pub size: u64,
    /// The format for people: `trace.dat v7 (zstd)`.
    pub format: String,
    /// The clock its times are in: as it says, or as chosen.
    pub clock: Clock,
    /// Why this clock; a sentence for people.
    pub why: String,
    /// What was added to its times to come to the timeline's, ns (at its first moment).
    pub offset_ns: i64,
    /// How sure that is.
    pub verdict: Verdict,
    /// Median distance between what should coincide in this input and in the others, ns.
    pub residual_median_ns: Option<u64>,
    /// 99th percentile of the same, ns.
    pub residual_p99_ns: Option<u64>,
    /// What was tried to find that out, for `--explain`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub explain: Vec<String>,
    /// Kernel events (markers are such too); 0 for a method trace.
    pub events: u64,
    /// Events left out because another input has the very same.
    pub duplicates: u64,
    /// Method enters and exits; 0 for a kernel recording.
    pub method_edges: u64,
}

/// What a whole timeline came to.
#[derive(Debug, Clone, Serialize)]
pub struct MergeSummary {
    /// The one clock.
    pub clock: Clock,
    /// The inputs, in the order given.
    pub inputs: Vec<InputSummary>,
    /// Events, losses and damage of all inputs together.
    pub report: ReadReport,
    /// atrace markers among the events.
    pub markers: u64,
    /// Method enters, each of which has its exit in the output.
    pub methods: u64,
    /// What did not fit together in the method traces. A timeline has no place for calls whose entry is not recorded:
    /// they are left out.
    pub problems: CallAnomalies,
    /// Threads with a name or an event.
    pub threads: u64,
}

impl MergeSummary {
    /// A summary before anything is counted.
    pub(crate) fn new(clock: Clock, inputs: Vec<InputSummary>, report: ReadReport) -> MergeSummary {
        MergeSummary {
            clock,
            inputs,
            report,
            markers: 0,
            methods: 0,
            problems: CallAnomalies::default(),
            threads: 0,
        }
    }
}
