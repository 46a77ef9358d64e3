//! The account of missing data that belongs to no CPU: the kinds of losses, their places, and how many there
//! are. Every reader fills the account, and every command prints it. [`CpuCount`](super::CpuCount) counts the
//! events that a CPU lost.

use std::collections::BTreeMap;
use std::fmt;

use serde::ser::{Serialize, Serializer};

use crate::ids::Cpu;

/// The party that reports a loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LossReporter {
    /// The kernel that was traced.
    Kernel,
    /// The program that recorded: Perfetto, perf, simpleperf, ART.
    Recorder,
    /// The reader of the file.
    Reader,
}

impl LossReporter {
    fn name(self) -> &'static str {
        match self {
            LossReporter::Kernel => "the kernel",
            LossReporter::Recorder => "the recorder",
            LossReporter::Reader => "the reader",
        }
    }
}

macro_rules! loss_kinds {
    ($($(#[$doc:meta])* $kind:ident: $key:literal, $reporter:ident, $is_events:literal, $what:literal;)*) => {
        /// A kind of missing data.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum LossKind {
            $($(#[$doc])* $kind,)*
        }

        impl LossKind {
            /// Every kind.
            pub const ALL: &[LossKind] = &[$(LossKind::$kind,)*];

            /// The kind's name in JSON.
            pub fn key(self) -> &'static str {
                match self { $(LossKind::$kind => $key,)* }
            }

            /// The party that reports losses of this kind.
            pub fn reporter(self) -> LossReporter {
                match self { $(LossKind::$kind => LossReporter::$reporter,)* }
            }

            /// The kind counts events, records or samples, and not packets, flushes or the like.
            pub fn counts_events(self) -> bool {
                match self { $(LossKind::$kind => $is_events,)* }
            }

            /// The kind's text behind a number: `events were overwritten …`.
            fn text(self) -> &'static str {
                match self { $(LossKind::$kind => $what,)* }
            }
        }
    };
}

loss_kinds! {
    /// Events that a CPU's ring buffer lost; [`CpuCount`](super::CpuCount) counts them.
    CpuEvents: "cpu_events", Kernel, true, "events were lost";
    /// `entries-written` less `entries-in-buffer` in the header of an ftrace text.
    OverwrittenEntries: "overwritten_entries", Kernel, true,
        "events were overwritten in the ring buffer before it was read";
    /// Events of a JSON trace without a usable time.
    TimelessEvents: "timeless_events", Reader, true,
        "events are left out: they have no time, or one before the clock's zero";
    /// Events of a JSON trace without an owner or a length.
    HomelessEvents: "homeless_events", Reader, true,
        "events are left out: the file does not say to what they belong, or how long they take";
    /// Values of counters that are no numbers.
    CounterValues: "counter_values", Reader, true, "values of counters are left out: they are no numbers";
    /// Track events that refer to data of lost packets.
    TrackEventsOfLostPackets: "track_events_of_lost_packets", Reader, true,
        "track events are left out: packets of their sequence that they need are lost";
    /// Track events in a clock that no snapshot relates to another one.
    TimelessTrackEvents: "timeless_track_events", Reader, true,
        "track events are left out: nothing relates their clock to another one";
    /// Samples and records of a profiler.
    Samples: "samples", Recorder, true, "records were lost when the samples were taken";
    /// Exits of a method trace that match no open call.
    UnmatchedExits: "unmatched_exits", Reader, true, "exits match no open call and are left out";
    /// `TraceStats.BufferStats.trace_writer_packet_loss`.
    WriterPackets: "writer_packets", Recorder, false,
        "times Perfetto noticed that a program's packets were lost before they reached a buffer";
    /// `TraceStats.BufferStats.patches_failed`.
    FailedPatches: "failed_patches", Recorder, false,
        "patches of packets failed: the packets were gone from Perfetto's buffer";
    /// `TraceStats.BufferStats.abi_violations`.
    AbiViolations: "abi_violations", Recorder, false,
        "chunks of programs broke the rules of Perfetto's shared memory";
    /// `TraceStats.invalid_packets`.
    InvalidPackets: "invalid_packets", Recorder, false, "packets of programs were invalid, and Perfetto dropped them";
    /// `TraceStats.FilterStats.errors`.
    FilterErrors: "filter_errors", Recorder, false, "packets could not be filtered, and Perfetto dropped them";
    /// `TraceStats.flushes_failed`.
    FailedFlushes: "failed_flushes", Recorder, false,
        "flushes failed: programs did not hand over their last events in time";
    /// `TraceStats.final_flush_outcome`.
    FailedFinalFlush: "failed_final_flush", Recorder, false,
        "final flush failed: the last events before the end are missing";
    /// `FtraceStats.ftrace_parse_errors`.
    FtraceParseErrors: "ftrace_parse_errors", Recorder, false,
        "kinds of errors kept Perfetto from reading pages of the kernel's buffers";
    /// `FtraceStats.failed_ftrace_events`.
    FailedFtraceEvents: "failed_ftrace_events", Recorder, false,
        "event types of the recorder's settings could not be enabled";
    /// `FtraceKprobeStats.misses`.
    MissedKprobes: "missed_kprobes", Kernel, true, "hits of kprobes were missed";
}

/// The part of a recording that a loss belongs to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum LossPlace {
    /// The whole recording, or the file does not name the place.
    #[default]
    Recording,
    /// A CPU.
    Cpu(Cpu),
    /// A buffer of Perfetto's service, by its index.
    Buffer(u32),
}

impl fmt::Display for LossPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LossPlace::Recording => Ok(()),
            LossPlace::Cpu(cpu) => write!(f, " (CPU {cpu})"),
            LossPlace::Buffer(index) => write!(f, " (buffer {index})"),
        }
    }
}

/// The number of losses of one kind at one place.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LossCount {
    /// Losses with a known number.
    pub count: u64,
    /// Gaps with an unknown number of losses.
    pub gaps: u64,
}

/// One line of the account.
#[derive(Debug, Clone, Copy, PartialEq, Eq, schemars::JsonSchema)]
#[schemars(with = "LossJson")]
pub struct Loss {
    /// The kind of the missing data.
    pub kind: LossKind,
    /// The place of the loss.
    pub place: LossPlace,
    /// The number of losses.
    pub count: LossCount,
}

impl fmt::Display for Loss {
    /// `lost: 22 events were overwritten …, as the kernel reports`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Loss { kind, place, count: LossCount { count, gaps } } = *self;
        let reporter = kind.reporter().name();
        match (count, gaps) {
            (_, 0) => write!(f, "lost: {count} {}{place}, as {reporter} reports", kind.text()),
            (0, _) => write!(
                f,
                "lost: an unknown number of {}{place}, as {reporter} reports: {gaps} gaps",
                kind.text()
            ),
            _ => write!(
                f,
                "lost: {count} {}{place}, as {reporter} reports, and {gaps} gaps of unknown size",
                kind.text()
            ),
        }
    }
}

/// A loss as `--json` prints it.
#[derive(serde::Serialize, schemars::JsonSchema)]
struct LossJson {
    /// The kind of the missing data, such as `overwritten_entries`.
    kind: &'static str,
    reported_by: LossReporter,
    /// The CPU, where the loss belongs to one.
    cpu: Option<Cpu>,
    /// The index of Perfetto's buffer, where the loss belongs to one.
    buffer: Option<u32>,
    /// Losses with a known number.
    count: u64,
    /// Gaps with an unknown number of losses.
    gaps: u64,
}

impl Serialize for Loss {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Loss { kind, place, count: LossCount { count, gaps } } = *self;
        let (cpu, buffer) = match place {
            LossPlace::Recording => (None, None),
            LossPlace::Cpu(cpu) => (Some(cpu), None),
            LossPlace::Buffer(index) => (None, Some(index)),
        };
        LossJson { kind: kind.key(), reported_by: kind.reporter(), cpu, buffer, count, gaps }
            .serialize(serializer)
    }
}

/// The losses of a recording that [`CpuCount`](super::CpuCount) does not count.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Losses(BTreeMap<(LossKind, LossPlace), LossCount>);

impl Losses {
    /// Adds `count` losses; 0 adds nothing.
    pub fn add(&mut self, kind: LossKind, place: LossPlace, count: u64) {
        self.add_count(kind, place, LossCount { count, gaps: 0 });
    }

    fn add_count(&mut self, kind: LossKind, place: LossPlace, added: LossCount) {
        if added != LossCount::default() {
            let LossCount { count, gaps } = self.0.entry((kind, place)).or_default();
            *count = count.saturating_add(added.count);
            *gaps = gaps.saturating_add(added.gaps);
        }
    }

    /// Adds the losses of another file.
    pub fn extend(&mut self, other: Losses) {
        other.0.into_iter().for_each(|((kind, place), count)| self.add_count(kind, place, count));
    }

    /// Nothing is missing.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The number of events, records and samples that are known to be lost.
    pub fn events(&self) -> u64 {
        let events = self.iter().filter(|loss| loss.kind.counts_events());
        events.fold(0, |sum, loss| sum.saturating_add(loss.count.count))
    }

    /// The lines of the account.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Loss> + '_ {
        self.0.iter().map(|(&(kind, place), &count)| Loss { kind, place, count })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loss_names_its_number_its_place_and_who_reports_it() {
        let mut losses = Losses::default();
        losses.add(LossKind::OverwrittenEntries, LossPlace::Recording, 20);
        losses.add(LossKind::OverwrittenEntries, LossPlace::Recording, 2);
        losses.add(LossKind::FailedPatches, LossPlace::Buffer(1), 7);
        losses.add(LossKind::Samples, LossPlace::Recording, 0);
        let lines: Vec<String> = losses.iter().map(|loss| loss.to_string()).collect();
        assert_eq!(
            lines,
            [
                "lost: 22 events were overwritten in the ring buffer before it was read, as the kernel reports",
                "lost: 7 patches of packets failed: the packets were gone from Perfetto's buffer (buffer 1), as the recorder reports",
            ]
        );
        assert_eq!(losses.events(), 22);
    }

    #[test]
    fn names_of_kinds_differ() {
        let mut keys: Vec<&str> = LossKind::ALL.iter().map(|kind| kind.key()).collect();
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), LossKind::ALL.len());
    }
}
