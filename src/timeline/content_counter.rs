//! Counts how much of each kind of data a timeline, or a part of one, has.

use std::collections::BTreeMap;

use super::sink::{Edge, EdgeKind};
use super::summary::{DataCounts, DataKind};
use crate::formats::{Event, EventType, ThreadIds, TrackEventCounts, TrackEventKind};
use crate::ids::Tid;
use crate::markers::Marker;

/// The facts of an event type that decide how its events are counted.
#[derive(Debug, Clone, Copy)]
pub(super) struct CountedType {
    /// The index of the field that holds a marker's text; `None` where there is none.
    marker_text: Option<usize>,
    /// Whether the events wake threads.
    is_wakeup: bool,
}

impl CountedType {
    pub(super) fn new(kind: &EventType) -> CountedType {
        let is_wakeup = matches!(kind.name.as_str(), "sched_waking" | "sched_wakeup" | "sched_wakeup_new");
        CountedType { marker_text: (kind.name == "print").then(|| kind.field("buf")).flatten(), is_wakeup }
    }
}

/// The counts of the events and calls that were passed on.
#[derive(Debug, Default)]
pub(super) struct ContentCounter {
    /// Kernel events.
    pub(super) events: u64,
    /// atrace's markers among them.
    pub(super) markers: u64,
    /// Events and edges whose times are no whole µs.
    below_microsecond: u64,
    /// Events with a flag.
    with_flags: u64,
    /// Events with a preempt count.
    with_preempt_count: u64,
    wakeups: u64,
    /// Names of processes.
    process_names: u64,
    /// Calls of methods.
    pub(super) methods: u64,
    /// Calls of methods that have a CPU time.
    method_cpu_times: u64,
    /// Samples.
    pub(super) samples: u64,
    /// Slices, instants and counters of tracks.
    pub(super) track_events: TrackEventCounts,
    /// The threads with an event or a method call.
    tids: ThreadIds,
}

impl ContentCounter {
    /// Counts an event of a type that is counted so.
    #[inline]
    pub(super) fn event(&mut self, event: &Event<'_>, kind: &EventType, counted: CountedType) {
        self.events += 1;
        self.below_microsecond += u64::from(event.ts.is_finer_than_us());
        self.with_flags += u64::from(event.flags != 0);
        self.with_preempt_count += u64::from(event.preempt_count != 0);
        self.wakeups += u64::from(counted.is_wakeup);
        self.tids.add(event.tid);
        if let Some(field) = counted.marker_text {
            let is_marker = event.text(kind, field).is_some_and(|text| Marker::parse(text).is_some());
            self.markers += u64::from(is_marker);
        }
    }

    /// Counts the name of a process.
    pub(super) fn process_name(&mut self) {
        self.process_names += 1;
    }

    /// Counts a thread that has a method call.
    pub(super) fn method_thread(&mut self, tid: Tid) {
        self.tids.add(tid);
    }

    /// Counts the calls that begin with these edges of a thread, whose id is `tid` where it is known, and the
    /// times of the edges.
    pub(super) fn edges(&mut self, tid: Option<Tid>, edges: &[Edge]) {
        let below = edges.iter().filter(|edge| edge.ts.is_finer_than_us());
        self.below_microsecond += below.count() as u64;
        let enters = edges.iter().filter(|edge| edge.kind == EdgeKind::Enter);
        self.method_cpu_times += enters.clone().filter(|edge| edge.cpu.is_some()).count() as u64;
        let enters = enters.count() as u64;
        self.methods += enters;
        if let Some(tid) = tid.filter(|_| enters > 0) {
            self.method_thread(tid);
        }
    }

    /// Counts a sample of a thread.
    pub(super) fn sample(&mut self, tid: Tid) {
        self.samples += 1;
        self.tids.add(tid);
    }

    /// Counts an event of a track.
    pub(super) fn track_event(&mut self, kind: &TrackEventKind<'_>) {
        match kind {
            TrackEventKind::Begin { .. } => self.track_events.slices += 1,
            TrackEventKind::Instant { .. } => self.track_events.instants += 1,
            TrackEventKind::Counter(_) => self.track_events.counter_values += 1,
            TrackEventKind::Frame(_) => self.track_events.frames += 1,
            TrackEventKind::End => {}
        }
    }

    /// How many threads have an event or a method call.
    pub(super) fn threads(&self) -> u64 {
        self.tids.count()
    }

    /// The counts of the kinds of data that kernel events have.
    pub(super) fn of_events(&self) -> [(DataKind, u64); 6] {
        [
            (DataKind::KernelEvents, self.events),
            (DataKind::TimesBelowMicrosecond, self.below_microsecond),
            (DataKind::Flags, self.with_flags),
            (DataKind::PreemptCounts, self.with_preempt_count),
            (DataKind::Wakeups, self.wakeups),
            (DataKind::Markers, self.markers),
        ]
    }

    /// The number of names of processes.
    pub(super) fn process_names(&self) -> (DataKind, u64) {
        (DataKind::ProcessNames, self.process_names)
    }

    /// Changes the contents of a whole timeline to the contents of the part that was counted. Names,
    /// signatures and snapshots of clocks have no time and stay as they are.
    pub(super) fn restrict(&self, contents: &DataCounts, lost: u64) -> DataCounts {
        let mut counts: BTreeMap<DataKind, u64> = contents.iter().collect();
        counts.extend(self.of_events());
        counts.extend([
            (DataKind::Methods, self.methods),
            (DataKind::Samples, self.samples),
            (DataKind::TrackEvents, self.track_events.total()),
            (DataKind::Frames, self.track_events.frames),
            (DataKind::LostEvents, lost),
        ]);
        // Some methods of the whole timeline may have a CPU time that their part of it does not tell.
        let cpu_times = counts.entry(DataKind::MethodCpuTimes).or_default();
        *cpu_times = (*cpu_times).min(self.method_cpu_times);
        let mut part = DataCounts::default();
        counts.into_iter().for_each(|(kind, count)| part.add(kind, count));
        part
    }
}
