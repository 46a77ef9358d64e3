//! The report of reading one file: counts, losses and damage. Every reader returns a report, also for a
//! damaged file.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};

use super::art_method::CallAnomalies;
use super::losses::{Loss, LossCount, LossKind, LossPlace, Losses};
use crate::clock::Timestamp;
use crate::ids::{Cpu, Tid};

/// A place where the file is damaged, and what is missing because of that.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Damage {
    /// Bytes from the start of the file, or of the decompressed data for compressed inputs.
    pub offset: u64,
    /// The fault, what is missing because of it, and the way to mend it where there is one.
    pub what: String,
}

/// One CPU's share of a recording.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct CpuCount {
    /// Events read.
    pub events: u64,
    /// Events the kernel counted as lost (overrun, dropped, or missed between pages).
    pub lost: u64,
    /// Gaps whose lost events the kernel did not count.
    pub gaps: u64,
}

impl CpuCount {
    /// Counts missing events; `count` is how many, where the kernel counted them.
    pub fn add_loss(&mut self, count: Option<u64>) {
        match count {
            Some(count) => self.lost = self.lost.saturating_add(count),
            None => self.gaps += 1,
        }
    }
}

/// How many events of tracks there are: slices, instants and counters that programs write themselves, and
/// frames.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct TrackEventCounts {
    /// Slices that begin, calls of methods among them.
    pub slices: u64,
    /// Instants.
    pub instants: u64,
    /// Values of counters.
    pub counter_values: u64,
    /// Frames of FrameTimeline, expected ones and actual ones.
    pub frames: u64,
}

impl TrackEventCounts {
    /// All but the frames, which are a kind of data of their own.
    pub fn total(&self) -> u64 {
        self.slices + self.instants + self.counter_values
    }

    /// Adds the counts of another file.
    pub fn add(&mut self, other: TrackEventCounts) {
        self.slices += other.slices;
        self.instants += other.instants;
        self.counter_values += other.counter_values;
        self.frames += other.frames;
    }
}

/// The report of reading one file.
#[derive(Debug, Clone, Default, PartialEq, Eq, schemars::JsonSchema)]
#[schemars(with = "ReportJson")]
pub struct ReadReport {
    /// Counts per CPU; CPUs without events are listed where the file names them.
    pub cpus: BTreeMap<Cpu, CpuCount>,
    /// Missing data that belongs to no CPU.
    pub losses: Losses,
    /// Time of the earliest event, in the file's clock.
    pub first_ts: Option<Timestamp>,
    /// Time of the latest event, in the file's clock.
    pub last_ts: Option<Timestamp>,
    /// Damaged places of the file.
    pub damage: Vec<Damage>,
    /// Irregularities that the reader resolved by a rule (calls without an end, ids used twice). Each line
    /// begins with the number of cases. Nothing is missing because of them.
    pub irregular: Vec<String>,
    /// Notes for people that are no damage (a guest buffer was skipped, an option is not known).
    pub notes: Vec<String>,
    /// Contents that the reader names and counts but does not read, by kind: the types of packets of a
    /// Perfetto trace that hold no events of the kernel or of tracks (`perf_sample`: 7977). Only an output of
    /// the same format keeps them.
    pub unread: BTreeMap<String, u64>,
    /// Events of tracks.
    pub track_events: TrackEventCounts,
}

impl ReadReport {
    /// The number of events of all CPUs.
    pub fn events(&self) -> u64 {
        self.cpus.values().map(|c| c.events).sum()
    }

    /// The number of events known to be lost, of all CPUs.
    pub fn lost(&self) -> u64 {
        self.cpus.values().fold(self.losses.events(), |sum, cpu| sum.saturating_add(cpu.lost))
    }

    /// Counts an event at `ts` of the file's clock.
    #[inline]
    pub fn count(&mut self, cpu: Cpu, ts: Timestamp) {
        self.cpus.entry(cpu).or_default().events += 1;
        self.cover(ts);
    }

    /// Extends the time range to `ts` of the file's clock.
    #[inline]
    pub fn cover(&mut self, ts: Timestamp) {
        self.first_ts = Some(self.first_ts.map_or(ts, |first| first.min(ts)));
        self.last_ts = Some(self.last_ts.map_or(ts, |last| last.max(ts)));
    }

    /// Extends the time range to that of another file of the same clock.
    pub fn cover_range(&mut self, first: Option<Timestamp>, last: Option<Timestamp>) {
        self.first_ts = [self.first_ts, first].into_iter().flatten().min();
        self.last_ts = self.last_ts.max(last);
    }

    /// Adds the report of another file whose times are in the same clock.
    pub fn add(&mut self, other: ReadReport) {
        // Without `..`, so that no member is forgotten.
        let ReadReport { cpus, losses, first_ts, last_ts, damage, irregular, notes, unread, track_events } =
            other;
        for (cpu, CpuCount { events, lost, gaps }) in cpus {
            let sum = self.cpus.entry(cpu).or_default();
            sum.events += events;
            sum.lost = sum.lost.saturating_add(lost);
            sum.gaps += gaps;
        }
        self.losses.extend(losses);
        self.cover_range(first_ts, last_ts);
        self.damage.extend(damage);
        self.irregular.extend(irregular);
        self.notes.extend(notes);
        for (kind, count) in unread {
            *self.unread.entry(kind).or_default() += count;
        }
        self.track_events.add(track_events);
    }

    /// Adds what following the call stacks of a method trace has found.
    pub fn add_anomalies(&mut self, anomalies: &CallAnomalies) {
        self.irregular.extend(anomalies.lines());
        self.losses.add(LossKind::UnmatchedExits, LossPlace::Recording, anomalies.unmatched_exits);
    }

    /// The account of all missing data: of each CPU, and what belongs to no CPU.
    pub fn account(&self) -> Losses {
        let mut account = self.losses.clone();
        let of_cpu = |(cpu, &CpuCount { lost, gaps, .. }): (&Cpu, &CpuCount)| Loss {
            kind: LossKind::CpuEvents,
            place: LossPlace::Cpu(*cpu),
            input: None,
            count: LossCount { count: lost, gaps },
        };
        self.cpus.iter().map(of_cpu).for_each(|loss| account.add_loss(loss));
        account
    }

    /// Whether events are missing, or the file is damaged. The program's exit status is then 3.
    pub fn is_lossy(&self) -> bool {
        !self.damage.is_empty() || !self.account().is_empty()
    }
}

/// The report as `--json` prints it.
#[derive(Serialize, schemars::JsonSchema)]
struct ReportJson<'a> {
    /// Counts of each CPU, by the CPU's number.
    cpus: &'a BTreeMap<Cpu, CpuCount>,
    /// The account of missing data: one element for each kind and place.
    losses: Vec<Loss>,
    /// Lost events whose CPU the file does not name.
    lost_anywhere: u64,
    /// Time of the earliest event, ns.
    first_ts: Option<Timestamp>,
    /// Time of the latest event, ns.
    last_ts: Option<Timestamp>,
    /// Damaged places.
    damage: &'a [Damage],
    /// Irregularities that the reader resolved by a rule. Each line begins with the number of cases.
    /// Nothing is missing because of them.
    irregular: &'a [String],
    /// Other remarks.
    notes: &'a [String],
    /// Packets of a Perfetto trace that only Perfetto outputs can hold, by kind.
    unread: &'a BTreeMap<String, u64>,
    track_events: TrackEventCounts,
}

impl Serialize for ReadReport {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // Without `..`, so that no member is forgotten.
        let ReadReport { cpus, losses, first_ts, last_ts, damage, irregular, notes, unread, track_events } =
            self;
        ReportJson {
            cpus,
            losses: self.account().iter().collect(),
            lost_anywhere: losses.events(),
            first_ts: *first_ts,
            last_ts: *last_ts,
            damage,
            irregular,
            notes,
            unread,
            track_events: *track_events,
        }
        .serialize(serializer)
    }
}

/// The kernel gives no thread an id from here on (`PID_MAX_LIMIT` of 64-bit kernels).
const PID_MAX_LIMIT: i32 = 1 << 22;

/// A set of thread ids.
#[derive(Debug, Default)]
pub(crate) struct ThreadIds {
    /// A bit for each id, as far as the highest id in the set.
    words: Vec<u64>,
}

impl ThreadIds {
    /// Adds a thread id. A number that no thread can have is left out.
    #[inline]
    pub(crate) fn add(&mut self, tid: Tid) {
        self.insert(tid);
    }

    /// Adds a thread id. Returns whether the id was missing, and `None` for a number that no thread can have,
    /// which is left out.
    #[inline]
    pub(super) fn insert(&mut self, tid: Tid) -> Option<bool> {
        let Tid(number @ 0..PID_MAX_LIMIT) = tid else { return None };
        let word = (number / 64) as usize;
        if self.words.len() <= word {
            self.words.resize(word + 1, 0);
        }
        let bit = 1 << (number % 64);
        let was_missing = self.words[word] & bit == 0;
        self.words[word] |= bit;
        Some(was_missing)
    }

    /// How many ids are in the set.
    pub(crate) fn count(&self) -> u64 {
        self.words.iter().map(|word| u64::from(word.count_ones())).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_id_counts_once_and_impossible_ids_do_not_count() {
        let mut ids = ThreadIds::default();
        for tid in [7, 0, PID_MAX_LIMIT - 1, 7, 64, PID_MAX_LIMIT, i32::MAX, -1] {
            ids.add(Tid(tid));
        }
        assert_eq!(ids.count(), 4);
    }
}
