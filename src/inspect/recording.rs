//! Counts the events and threads of a recording.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

use crate::clock::Clock;
use crate::formats::{
    Event, EventType, EventTypeId, Order, ReadReport, Recording, Sink, SinkAdapter, ThreadInfo,
};
use crate::measure::{Cancelled, FinderSink, Frame, FrameSummary, Launch, summarize};
use crate::timeline::{MergeSummary, TimelineSink};
use crate::tracks::TrackBuilder;

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
    /// The launches of apps, in the order of their begins.
    pub launches: Vec<Launch>,
    /// Launches that came to nothing.
    pub cancelled_launches: Vec<Cancelled>,
    /// The frames of each app and layer in numbers.
    pub frames: Vec<FrameSummary>,
    /// Every frame, in the order of the begins.
    #[serde(skip)]
    pub every_frame: Vec<Frame>,
}

fn as_map<S: Serializer>(counts: &[(String, u64)], serializer: S) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(Some(counts.len()))?;
    for (name, count) in counts {
        map.serialize_entry(name, count)?;
    }
    map.end()
}

/// A sink that counts the events of each type and collects the listed threads.
struct EventTypeCounter {
    /// Finds launches and frames.
    finder: TrackBuilder<FinderSink>,
    event_types: Vec<(String, u64)>,
    /// Each listed thread's process, where known.
    threads: BTreeMap<i32, Option<i32>>,
}

impl SinkAdapter for EventTypeCounter {
    type Next = TrackBuilder<FinderSink>;

    fn next(&mut self) -> &mut Self::Next {
        &mut self.finder
    }

    fn event_type(&mut self, id: EventTypeId, kind: &EventType) -> io::Result<()> {
        let colon = if kind.system.is_empty() { "" } else { ":" };
        self.event_types.push((format!("{}{colon}{}", kind.system, kind.name), 0));
        self.finder.event_type(id, kind)
    }

    fn thread(&mut self, thread: &ThreadInfo<'_>) -> io::Result<()> {
        let tgid = self.threads.entry(thread.tid).or_default();
        *tgid = thread.tgid.or(*tgid);
        self.finder.thread(thread)
    }

    fn event(&mut self, event: &Event<'_>, kind: &EventType) -> io::Result<()> {
        if let Some((_, count)) = self.event_types.get_mut(event.kind.0 as usize) {
            *count += 1;
        }
        self.finder.event(event, kind)
    }
}

/// Reads all of a recording, counts its events and threads, and finds the launches and frames in it.
pub(super) fn inspect(recording: &dyn Recording) -> io::Result<RecordingReport> {
    let finder = TrackBuilder::of_markers(FinderSink::default());
    let mut counter = EventTypeCounter { finder, event_types: Vec::new(), threads: BTreeMap::new() };
    // Slices that begin on one CPU may end on another one.
    let report = recording.read(Order::Markers, &mut counter)?;
    let head = recording.head();
    let EventTypeCounter { mut finder, mut event_types, threads } = counter;
    finder.finish(&MergeSummary::new(head.clock, Vec::new(), report.clone()))?;
    let measured = std::mem::take(&mut finder.sink().measured);
    let mut report = report;
    if measured.left_out > 0 {
        let left_out = measured.left_out;
        report
            .notes
            .push(format!("{left_out} marks of launches and frames are left out: there are too many"));
    }
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
        launches: measured.launches,
        cancelled_launches: measured.cancelled,
        frames: summarize(&measured.frames),
        every_frame: measured.frames,
        report,
    })
}
