//! A method trace's place on the timeline: its clock, and which kernel thread each of its threads is.

use std::fmt;

use super::clock_map::ClockMap;
use super::reason::{PlaceBasis, Trial};
use crate::clock::{Clock, Timestamp};
use crate::ids::{Pid, Tid};
use crate::timeline::summary::Verdict;

/// The user's decisions about the place of method traces, which take precedence over the evidence.
#[derive(Debug, Clone, Copy, Default)]
pub struct MergeOptions {
    /// The offset to add to the method trace's times, ns; `None` finds the offset.
    pub offset_ns: Option<i64>,
    /// The clock of the method trace's start; `None` finds the clock.
    pub clock: Option<Clock>,
}

/// The kernel thread that a method trace's thread is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ThreadIdentity {
    /// The kernel's thread id, where the thread was found.
    pub tid: Option<Tid>,
    /// The thread's process, where it is known.
    pub tgid: Option<Pid>,
    /// Why `tid` is missing.
    pub doubt: Option<IdentityDoubt>,
}

/// Why it is not known which of the kernel's threads a thread of a method trace is. Displayed as a sentence
/// for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IdentityDoubt {
    /// No thread of the recording has its name and process.
    NoThread,
    /// Only this thread has its name and process, and did something else.
    DidSomethingElse(Tid),
    /// These threads have its name and process, and nothing tells them apart.
    Several(Vec<Tid>),
}

impl fmt::Display for IdentityDoubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            IdentityDoubt::NoThread => f.write_str("no thread of the recording has its name and process"),
            IdentityDoubt::DidSomethingElse(tid) => {
                write!(f, "thread {tid} has its name, but did something else")
            }
            IdentityDoubt::Several(tids) => {
                let tids: Vec<String> = tids.iter().map(Tid::to_string).collect();
                write!(f, "threads {} have its name, and nothing tells them apart", tids.join(", "))
            }
        }
    }
}

/// A method trace's place on the timeline.
#[derive(Debug, Clone, Default)]
pub struct Placement {
    /// The start that the trace's header names, in the trace's clock.
    pub start: Timestamp,
    /// The maps from the trace's clock to the timeline's. There are several where a clock was set, or stood
    /// still, during the recording.
    pub segments: Vec<ClockMap>,
    /// For each thread, the number of the record from which on the second map applies, then the third, and
    /// so on.
    pub changes: Vec<Vec<u64>>,
    /// For each thread, the kernel thread that it is.
    pub identities: Vec<ThreadIdentity>,
    /// How the place was found.
    pub finding: Finding,
}

/// How a place was found, and how good it is.
#[derive(Debug, Clone)]
pub struct Finding {
    /// The clock of the trace's start.
    pub clock: Clock,
    /// How sure the place is.
    pub verdict: Verdict,
    /// Why this place was chosen.
    pub basis: PlaceBasis,
    /// The offset may be wrong by at most this, ns, with the confidence of the verdict. `None` where the
    /// place is assumed, and for samples that a clock places.
    pub error_ns: Option<u64>,
    /// Median of the residuals, ns.
    pub median: Option<u64>,
    /// 99th percentile of the residuals, ns.
    pub p99: Option<u64>,
    /// The places that were tried, for `--explain`.
    pub trials: Vec<Trial>,
}

impl Default for Finding {
    fn default() -> Finding {
        Finding {
            clock: Clock::Unknown,
            verdict: Verdict::Assumed,
            basis: PlaceBasis::NotPlaced,
            error_ns: None,
            median: None,
            p99: None,
            trials: Vec::new(),
        }
    }
}

impl Placement {
    /// The time on the timeline of the record with number `record` among the records of `thread`, whose
    /// own time is `at` of the trace's clock.
    #[inline(always)]
    pub fn time(&self, thread: u32, record: u64, at: Timestamp) -> Timestamp {
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

    /// The kernel thread that the thread with number `thread` is.
    pub fn identity(&self, thread: u32) -> &ThreadIdentity {
        const NOBODY: &ThreadIdentity = &ThreadIdentity { tid: None, tgid: None, doubt: None };
        self.identities.get(thread as usize).unwrap_or(NOBODY)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_a_record_decides_its_segment() {
        let placement = Placement {
            segments: vec![ClockMap::offset(100), ClockMap::offset(5_000)],
            changes: vec![vec![3]],
            ..Placement::default()
        };
        assert_eq!(
            [0, 2, 3, 9].map(|record| placement.time(0, record, Timestamp(10)).0),
            [110, 110, 5_010, 5_010]
        );
        assert_eq!(
            placement.time(1, 9, Timestamp(10)),
            Timestamp(110),
            "a thread of which no change is known stays in the first"
        );
        assert_eq!(Placement::default().time(0, 0, Timestamp(10)), Timestamp(10));
    }
}
