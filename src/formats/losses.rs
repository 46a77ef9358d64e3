//! The account of missing data that belongs to no CPU: the kinds of losses, their places, and how many there
//! are. Every reader fills the account, and every command prints it. [`CpuCount`](super::CpuCount) counts the
//! events that a CPU lost.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::ser::{Serialize, Serializer};

use crate::ids::{Cpu, Tid};

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

            /// The kind with this name in JSON.
            fn of_key(key: &str) -> Option<LossKind> {
                LossKind::ALL.iter().copied().find(|kind| kind.key() == key)
            }

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
    /// Blocks of AUX data, which a CPU's own tracer writes (`PERF_RECORD_AUXTRACE`).
    AuxData: "aux_data", Reader, false,
        "blocks of a CPU's own tracer (AUX data such as Intel PT) are not decoded";
    /// AUX data that had no place in its buffer (`PERF_AUX_FLAG_TRUNCATED`, `PERF_AUX_FLAG_PARTIAL`).
    IncompleteAuxData: "incomplete_aux_data", Kernel, false,
        "times data of a CPU's own tracer (AUX data) was cut, because its buffer was full";
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
    /// A packet sequence of a Perfetto trace, by its id.
    Sequence(u32),
    /// A thread, by its id.
    Thread(Tid),
}

impl LossPlace {
    /// The place for people: `CPU 1`; `None` for the whole recording.
    fn text(self) -> Option<String> {
        match self {
            LossPlace::Recording => None,
            LossPlace::Cpu(cpu) => Some(format!("CPU {cpu}")),
            LossPlace::Buffer(index) => Some(format!("buffer {index}")),
            LossPlace::Sequence(id) => Some(format!("packet sequence {id}")),
            LossPlace::Thread(tid) => Some(format!("thread {tid}")),
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
#[derive(Debug, Clone, PartialEq, Eq, schemars::JsonSchema)]
#[schemars(with = "LossJson<'static>")]
pub struct Loss {
    /// The kind of the missing data.
    pub kind: LossKind,
    /// The place of the loss.
    pub place: LossPlace,
    /// The name of the input, where there are several.
    pub input: Option<Arc<str>>,
    /// The number of losses.
    pub count: LossCount,
}

impl Loss {
    /// The loss in one sentence without a full stop.
    pub fn sentence(&self) -> String {
        let Loss { kind, place, input, count: LossCount { count, gaps } } = self;
        let reporter = kind.reporter().name();
        let what = kind.text();
        let places: Vec<String> = input.iter().map(|name| name.to_string()).chain(place.text()).collect();
        let at = if places.is_empty() { String::new() } else { format!(" ({})", places.join(", ")) };
        match (count, gaps) {
            (_, 0) => format!("{count} {what}{at}, as {reporter} reports"),
            (0, _) => format!("an unknown number of {what}{at}, as {reporter} reports: {gaps} gaps"),
            _ => format!("{count} {what}{at}, as {reporter} reports, and {gaps} gaps of unknown size"),
        }
    }
}

impl fmt::Display for Loss {
    /// `lost: 22 events were overwritten …, as the kernel reports`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "lost: {}", self.sentence())
    }
}

/// A loss as `--json` prints it.
#[derive(serde::Serialize, schemars::JsonSchema)]
struct LossJson<'l> {
    /// The kind of the missing data, such as `overwritten_entries`.
    kind: &'static str,
    reported_by: LossReporter,
    /// The input, where there are several.
    input: Option<&'l str>,
    /// The CPU, where the loss belongs to one.
    cpu: Option<Cpu>,
    /// The index of Perfetto's buffer, where the loss belongs to one.
    buffer: Option<u32>,
    /// The id of Perfetto's packet sequence, where the loss belongs to one.
    sequence: Option<u32>,
    /// The thread, where the loss belongs to one.
    thread: Option<Tid>,
    /// Losses with a known number.
    count: u64,
    /// Gaps with an unknown number of losses.
    gaps: u64,
    /// The loss as a sentence.
    text: String,
}

impl Serialize for Loss {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // Without `..`, so that no member is forgotten.
        let Loss { kind, place, input, count: LossCount { count, gaps } } = self;
        let mut json = LossJson {
            kind: kind.key(),
            reported_by: kind.reporter(),
            input: input.as_deref(),
            cpu: None,
            buffer: None,
            sequence: None,
            thread: None,
            count: *count,
            gaps: *gaps,
            text: self.sentence(),
        };
        match *place {
            LossPlace::Recording => {}
            LossPlace::Cpu(cpu) => json.cpu = Some(cpu),
            LossPlace::Buffer(index) => json.buffer = Some(index),
            LossPlace::Sequence(id) => json.sequence = Some(id),
            LossPlace::Thread(tid) => json.thread = Some(tid),
        }
        json.serialize(serializer)
    }
}

/// The key of one line of the account.
type LossKey = (LossKind, LossPlace, Option<Arc<str>>);

/// The losses of a recording that [`CpuCount`](super::CpuCount) does not count.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Losses(BTreeMap<LossKey, LossCount>);

impl Losses {
    /// Reads the account of a file that tracebridge has written: the JSON of a list of [`Loss`]. Lines of
    /// unknown kinds are left out.
    pub fn from_json(text: &[u8]) -> Losses {
        let mut losses = Losses::default();
        let Ok(serde_json::Value::Array(lines)) = serde_json::from_slice(text) else { return losses };
        for line in &lines {
            let number = |name: &str| line[name].as_u64();
            let small = |name: &str| number(name).and_then(|number| u32::try_from(number).ok());
            let Some(kind) = line["kind"].as_str().and_then(LossKind::of_key) else { continue };
            let thread = line["thread"].as_i64().and_then(|tid| Tid::try_from(tid).ok());
            let place = small("cpu").map(|cpu| LossPlace::Cpu(Cpu(cpu)));
            let place = place.or_else(|| small("buffer").map(LossPlace::Buffer));
            let place = place.or_else(|| small("sequence").map(LossPlace::Sequence));
            let place = place.or_else(|| thread.map(LossPlace::Thread)).unwrap_or_default();
            let input = line["input"].as_str().map(Arc::from);
            let count = number("count").unwrap_or(0);
            let gaps = number("gaps").unwrap_or(0);
            losses.add_loss(Loss { kind, place, input, count: LossCount { count, gaps } });
        }
        losses
    }

    /// The account as [`Losses::from_json`] reads it; `None` where nothing is missing.
    pub fn to_json(&self) -> Option<String> {
        let lines: Vec<Loss> = self.iter().collect();
        serde_json::to_string(&lines).ok().filter(|_| !lines.is_empty())
    }

    /// Adds `count` losses; 0 adds nothing.
    pub fn add(&mut self, kind: LossKind, place: LossPlace, count: u64) {
        self.add_loss(Loss { kind, place, input: None, count: LossCount { count, gaps: 0 } });
    }

    /// Adds a line of another account.
    pub fn add_loss(&mut self, Loss { kind, place, input, count: added }: Loss) {
        if added != LossCount::default() {
            let LossCount { count, gaps } = self.0.entry((kind, place, input)).or_default();
            *count = count.saturating_add(added.count);
            *gaps = gaps.saturating_add(added.gaps);
        }
    }

    /// Adds the losses of another file.
    pub fn extend(&mut self, other: Losses) {
        other.iter().for_each(|loss| self.add_loss(loss));
    }

    /// Names the input of every loss.
    pub fn name_input(&mut self, name: &str) {
        let name: Arc<str> = name.into();
        let losses = std::mem::take(&mut self.0);
        let named = |((kind, place, input), count): (LossKey, LossCount)| {
            ((kind, place, input.or(Some(name.clone()))), count)
        };
        self.0 = losses.into_iter().map(named).collect();
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
        let line = |((kind, place, input), count): (&LossKey, &LossCount)| Loss {
            kind: *kind,
            place: *place,
            input: input.clone(),
            count: *count,
        };
        self.0.iter().map(line)
    }

    /// One line for each kind, whatever its places and inputs.
    pub fn by_kind(&self) -> Losses {
        let mut kinds = Losses::default();
        self.iter().for_each(|loss| {
            kinds.add_loss(Loss { place: LossPlace::Recording, input: None, ..loss });
        });
        kinds
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
        losses.name_input("a.txt");
        losses.add(LossKind::OverwrittenEntries, LossPlace::Thread(Tid(7)), 1);
        let kinds: Vec<String> = losses.by_kind().iter().map(|loss| loss.sentence()).collect();
        assert!(kinds[0].starts_with("23 events") && kinds.len() == 2, "{kinds:?}");
        let last = losses.iter().last().unwrap();
        assert!(last.to_string().contains("buffer (a.txt, buffer 1), as"), "{last}");
        let json = serde_json::to_value(&last).unwrap();
        assert_eq!((&json["input"], &json["buffer"]), (&"a.txt".into(), &1.into()), "{json}");
        losses.add(LossKind::CpuEvents, LossPlace::Cpu(Cpu(3)), 5);
        losses.add(LossKind::TimelessTrackEvents, LossPlace::Sequence(9), 5);
        assert_eq!(Losses::from_json(losses.to_json().unwrap().as_bytes()), losses);
        assert_eq!(Losses::default().to_json(), None);
        for damaged in ["", "{}", "[1]", r#"[{"kind":"other","count":1}]"#, r#"[{"kind":"samples"}]"#] {
            assert!(Losses::from_json(damaged.as_bytes()).is_empty(), "{damaged}");
        }
    }

    #[test]
    fn names_of_kinds_differ() {
        let mut keys: Vec<&str> = LossKind::ALL.iter().map(|kind| kind.key()).collect();
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), LossKind::ALL.len());
    }
}
