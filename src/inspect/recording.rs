//! Counts the events and threads of a recording.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

use crate::clock::Clock;
use crate::formats::{Event, EventType, EventTypeId, Order, ReadReport, Recording, Sink, ThreadInfo};

/// The report of one recording.
#[derive(Debug, Clone, Serialize)]
pub struct RecordingReport {
    /// The format's name for people: `trace.dat v7 (zstd)`.
    pub format: String,
    /// The clock of the events' times.
    pub clock: Clock,
    /// Decimals of a second that the times really have.
    pub precision: u8,
    /// `uname -a` or the like of the recording machine.
    pub machine: Option<String>,
    /// The recording device: `Pixel 8, Android 15`.
    pub device: Option<String>,
    /// Events read.
    pub events: u64,
    /// Events known to be lost.
    pub lost: u64,
    /// Events of each type, the most frequent type first: `sched:sched_switch` and how many.
    #[serde(rename = "kinds", serialize_with = "as_map")]
    pub event_types: Vec<(String, u64)>,
    /// Losses, damage and notes.
    pub report: ReadReport,
    /// Threads that the file lists.
    pub thread_count: usize,
    /// Processes that the listed threads belong to.
    pub process_count: usize,
    /// Number of clock snapshots that were taken while recording.
    pub snapshots: usize,
    /// Frequency of the CPU's counter, Hz.
    pub counter_hz: Option<u64>,
    /// The clocks that the snapshots have readings of.
    #[serde(skip)]
    pub snapshot_clocks: Vec<Clock>,
}

fn as_map<S: Serializer>(counts: &[(String, u64)], serializer: S) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(Some(counts.len()))?;
    for (name, count) in counts {
        map.serialize_entry(name, count)?;
    }
    map.end()
}

/// A sink that counts the events of each type and collects the listed threads.
#[derive(Default)]
struct EventTypeCounter {
    event_types: Vec<(String, u64)>,
    /// Each listed thread's process, where known.
    threads: BTreeMap<i32, Option<i32>>,
}

impl Sink for EventTypeCounter {
    fn event_type(&mut self, _: EventTypeId, kind: &EventType) -> io::Result<()> {
        let colon = if kind.system.is_empty() { "" } else { ":" };
        self.event_types.push((format!("{}{colon}{}", kind.system, kind.name), 0));
        Ok(())
    }

    fn thread(&mut self, thread: &ThreadInfo<'_>) -> io::Result<()> {
        let tgid = self.threads.entry(thread.tid).or_default();
        *tgid = thread.tgid.or(*tgid);
        Ok(())
    }

    fn event(&mut self, event: &Event<'_>, _: &EventType) -> io::Result<()> {
        if let Some((_, count)) = self.event_types.get_mut(event.kind.0 as usize) {
            *count += 1;
        }
        Ok(())
    }
}

/// Reads all of a recording and counts its events and threads.
pub(super) fn inspect(recording: &dyn Recording) -> io::Result<RecordingReport> {
    let mut counter = EventTypeCounter::default();
    let report = recording.read(Order::Any, &mut counter)?;
    let head = recording.head();
    let EventTypeCounter { mut event_types, threads } = counter;
    event_types.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let clocks = [Clock::Realtime, Clock::Monotonic, Clock::MonotonicRaw, Clock::Boottime, Clock::Counter];
    let is_told = |clock: &Clock| {
        head.snapshots.list.iter().any(|s| s.get(*clock, None).is_some_and(|reading| reading > 0))
    };
    Ok(RecordingReport {
        format: head.format.clone(),
        clock: head.clock,
        precision: head.precision,
        machine: head.machine.clone(),
        device: head.device.clone(),
        events: report.events(),
        lost: report.lost(),
        event_types,
        process_count: threads.values().flatten().collect::<BTreeSet<_>>().len(),
        thread_count: threads.len(),
        snapshots: head.snapshots.list.len(),
        counter_hz: head.snapshots.counter_hz,
        snapshot_clocks: clocks.into_iter().filter(is_told).collect(),
        report,
    })
}
