//! A method trace's place on the timeline: its clock, and which kernel thread each of its threads is.

use super::clock_map::ClockMap;
use super::summary::Verdict;
use crate::clock::Clock;

/// What the user decides about method traces, instead of the evidence.
#[derive(Debug, Clone, Copy, Default)]
pub struct MergeOptions {
    /// ns to add to the method trace's times.
    pub offset_ns: Option<i64>,
    /// The clock of the method trace's start.
    pub clock: Option<Clock>,
}

/// Which of the kernel's threads a method trace's thread is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ThreadIdentity {
    /// The kernel's thread, where it was found.
    pub tid: Option<i32>,
    /// Its process.
    pub tgid: Option<i32>,
    /// Why `tid` is missing or not certain.
    pub doubt: Option<String>,
}

/// Where a method trace lies on the timeline.
#[derive(Debug, Clone, Default)]
pub struct Placement {
    /// The header's start, ns in the trace's clock.
    pub start: u64,
    /// From the trace's clock to the timeline's; several where that clock was set, or stood still, in between.
    pub segments: Vec<ClockMap>,
    /// Per thread: at which of its records the next segment begins.
    pub changes: Vec<Vec<u64>>,
    /// Per thread.
    pub identities: Vec<ThreadIdentity>,
    /// How the place was found.
    pub finding: Finding,
}

/// How a place was found, and how good it is.
#[derive(Debug, Clone)]
pub struct Finding {
    /// The clock of the trace's start.
    pub clock: Clock,
    /// How sure that is.
    pub verdict: Verdict,
    /// Why; a sentence for people.
    pub why: String,
    /// Median distance of what should coincide, ns.
    pub median: Option<u64>,
    /// 99th percentile of the same.
    pub p99: Option<u64>,
    /// What was tried and found, line by line, for `--explain`.
    pub explain: Vec<String>,
}

impl Default for Finding {
    fn default() -> Finding {
        Finding {
            clock: Clock::Unknown,
            verdict: Verdict::Assumed,
            why: String::new(),
            median: None,
            p99: None,
            explain: Vec::new(),
        }
    }
}

impl Placement {
    /// The timeline's ns for a record: number `record` of `thread`, at `at` of the trace's clock.
    #[inline]
    pub fn time(&self, thread: u32, record: u64, at: u64) -> u64 {
        match self.segments.as_slice() {
            [] => at,
            [only] => only.map(at),
            segments => {
                let changes = self.changes.get(thread as usize).map_or(&[][..], |c| c);
                let segment = changes.partition_point(|first| *first <= record);
                segments.get(segment).or(segments.last()).map_or(at, |map| map.map(at))
            }
        }
    }

    /// Which kernel thread `thread` is.
    pub fn identity(&self, thread: u32) -> &ThreadIdentity {
        const NOBODY: &ThreadIdentity = &ThreadIdentity { tid: None, tgid: None, doubt: None };
        self.identities.get(thread as usize).unwrap_or(NOBODY)
    }
}
