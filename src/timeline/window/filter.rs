//! The adapter that passes a part of a timeline on to an exporter.

use std::collections::BTreeMap;
use std::io;

use super::state::State;
use crate::formats::{
    CounterValue, CpuCount, Event, EventType, EventTypeId, Order, SinkAdapter, ThreadIds, Track, TrackEvent,
    TrackEventKind,
};
use crate::markers::Marker;
use crate::timeline::data_kind::{DataCounts, DataKind};
use crate::timeline::event_counts::EventCounts;
use crate::timeline::event_role::EventRole;
use crate::timeline::sink::{Edge, EdgeKind, TimelineAdapter, TimelineSink};
use crate::timeline::summary::{MergeSummary, Window};

/// Passes on what overlaps a part of a timeline. Slices, calls, states and counters that began before the
/// part begin with it: the events that set them are passed on with the time of its begin. Calls that end
/// behind it end with it.
pub struct WindowFilter<'a> {
    to: &'a mut dyn TimelineSink,
    window: Window,
    /// Whether edges come in order of time, over all threads.
    edges_in_order: bool,
    /// By event type: its role, and the type.
    kinds: Vec<(EventRole, EventType)>,
    state: State,
    /// Whether the state at the part's begin has been passed on.
    begun: bool,
    threads: BTreeMap<u32, MethodStack>,
    tracks: Vec<TrackStack>,
    cpus: BTreeMap<u32, CpuLosses>,
    counted: Counted,
}

/// The calls of a thread of a method trace.
#[derive(Default)]
struct MethodStack {
    /// The open calls, the innermost one last.
    open: Vec<Edge>,
    /// The thread's CPU time at its last edge, ns.
    cpu: Option<u64>,
    begun: bool,
    ended: bool,
}

/// A track that a program writes itself.
struct TrackStack {
    track: crate::formats::TrackId,
    open: Vec<Vec<u8>>,
    counter: Option<CounterValue>,
    begun: bool,
}

/// The losses of a CPU.
#[derive(Default)]
struct CpuLosses {
    last_event: Option<u64>,
    /// Losses behind the last event.
    pending: Vec<Option<u64>>,
    all: CpuCount,
    inside: CpuCount,
}

/// Counts of what is passed on.
#[derive(Default)]
struct Counted {
    events: EventCounts,
    markers: u64,
    methods: u64,
    with_cpu_time: u64,
    track_events: crate::formats::TrackEventCounts,
    tids: ThreadIds,
}

impl Counted {
    /// Passes edges on, and counts the calls that begin with them.
    fn pass_edges(&mut self, thread: u32, edges: &[Edge], to: &mut dyn TimelineSink) -> io::Result<()> {
        let enters = edges.iter().filter(|edge| edge.kind == EdgeKind::Enter);
        self.methods += enters.clone().count() as u64;
        self.with_cpu_time += enters.filter(|edge| edge.cpu.is_some()).count() as u64;
        if edges.is_empty() { Ok(()) } else { to.edges(thread, edges) }
    }
}

impl<'a> WindowFilter<'a> {
    /// An adapter that passes `window` on to `to`.
    pub fn new(to: &'a mut dyn TimelineSink, window: Window) -> WindowFilter<'a> {
        let edges_in_order = to.edge_order() == Order::Time;
        WindowFilter {
            to,
            window,
            edges_in_order,
            kinds: Vec::new(),
            state: State::default(),
            begun: false,
            threads: BTreeMap::new(),
            tracks: Vec::new(),
            cpus: BTreeMap::new(),
            counted: Counted::default(),
        }
    }

    /// Changes the summary of the whole timeline to that of the part.
    pub fn restrict(&self, summary: &mut MergeSummary) {
        summary.window = Some(self.window);
        summary.markers = self.counted.markers;
        summary.methods = self.counted.methods;
        summary.threads = self.counted.tids.count();
        let report = &mut summary.report;
        (report.first_ts, report.last_ts) = (Some(self.window.from), Some(self.window.to));
        report.track_events = self.counted.track_events;
        for (cpu, count) in &mut report.cpus {
            let Some(seen) = self.cpus.get(cpu) else { continue };
            // What the readers count without saying where it is missing stays.
            count.events = seen.inside.events;
            count.lost = count.lost.saturating_sub(seen.all.lost) + seen.inside.lost;
            count.gaps = count.gaps.saturating_sub(seen.all.gaps) + seen.inside.gaps;
        }
        let lost = report.lost();
        let mut counts: BTreeMap<DataKind, u64> = summary.contents.iter().collect();
        let is_counted = |kind: &DataKind| *kind != DataKind::ProcessNames;
        counts.extend(self.counted.events.by_kind().into_iter().filter(|(kind, _)| is_counted(kind)));
        counts.extend([
            (DataKind::Markers, self.counted.markers),
            (DataKind::Methods, self.counted.methods),
            (DataKind::TrackEvents, self.counted.track_events.total()),
            (DataKind::LostEvents, lost),
        ]);
        let cpu_times = counts.entry(DataKind::MethodCpuTimes).or_default();
        *cpu_times = (*cpu_times).min(self.counted.with_cpu_time);
        summary.contents = DataCounts::default();
        counts.into_iter().for_each(|(kind, count)| summary.contents.add(kind, count));
    }

    /// Passes on the state at the part's begin, once.
    fn begin(&mut self) -> io::Result<()> {
        if std::mem::replace(&mut self.begun, true) {
            return Ok(());
        }
        for event in self.state.take() {
            let Some((_, kind)) = self.kinds.get(event.kind.0 as usize) else { continue };
            event.push(self.window.from, kind, self.to)?;
        }
        for track in &mut self.tracks {
            track.begin(self.window.from, self.to)?;
        }
        if self.edges_in_order {
            for (thread, stack) in &mut self.threads {
                self.counted.pass_edges(*thread, &stack.begin(self.window.from), self.to)?;
            }
        }
        Ok(())
    }

    /// Ends the open calls of all threads at the part's end.
    fn end_calls(&mut self) -> io::Result<()> {
        for (thread, stack) in &mut self.threads {
            let mut edges = stack.begin(self.window.from);
            edges.extend(stack.end(self.window.to));
            self.counted.pass_edges(*thread, &edges, self.to)?;
        }
        Ok(())
    }

    /// Passes on the losses of a CPU before the time `until`, as far as they lie in the part.
    fn pass_losses(&mut self, cpu: u32, until: u64) -> io::Result<()> {
        let Some(losses) = self.cpus.get_mut(&cpu) else { return Ok(()) };
        let since = losses.last_event.unwrap_or(0);
        for count in std::mem::take(&mut losses.pending) {
            losses.all.add_loss(count);
            if since <= self.window.to && until >= self.window.from {
                losses.inside.add_loss(count);
                self.to.lost(cpu, count)?;
            }
        }
        Ok(())
    }
}

impl MethodStack {
    /// Follows an edge before the part's begin.
    fn follow(&mut self, edge: &Edge) {
        self.cpu = edge.cpu.or(self.cpu);
        match edge.kind {
            EdgeKind::Enter => self.open.push(*edge),
            EdgeKind::Exit => _ = self.open.pop(),
        }
    }

    /// The begins, at `ts`, of the calls that are open; once.
    fn begin(&mut self, ts: u64) -> Vec<Edge> {
        if std::mem::replace(&mut self.begun, true) {
            return Vec::new();
        }
        // The CPU time at the part's begin is not known, but that of the last edge before it is.
        let cpu = self.cpu;
        self.open.iter().map(|edge| Edge { ts, cpu: edge.cpu.and(cpu), ..*edge }).collect()
    }

    /// The ends, at `ts`, of the calls that are open; once.
    fn end(&mut self, ts: u64) -> Vec<Edge> {
        if std::mem::replace(&mut self.ended, true) {
            return Vec::new();
        }
        let cpu = self.cpu;
        let end = |edge: Edge| Edge { ts, cpu: edge.cpu.and(cpu), kind: EdgeKind::Exit, ..edge };
        self.open.drain(..).rev().map(end).collect()
    }
}

impl TrackStack {
    /// Passes on what is open at the part's begin, and the counter's value; once.
    fn begin(&mut self, ts: u64, to: &mut dyn TimelineSink) -> io::Result<()> {
        if std::mem::replace(&mut self.begun, true) {
            return Ok(());
        }
        let begins = self.open.iter().map(|name| TrackEventKind::Begin { name });
        for kind in begins.chain(self.counter.map(TrackEventKind::Counter)) {
            to.track_event(&TrackEvent { ts, track: self.track, kind, thread_ns: None, flows: &[] })?;
        }
        Ok(())
    }
}

impl<'a> SinkAdapter for WindowFilter<'a> {
    type Next = dyn TimelineSink + 'a;

    fn next(&mut self) -> &mut Self::Next {
        self.to
    }

    fn event_type(&mut self, id: EventTypeId, kind: &EventType) -> io::Result<()> {
        self.kinds.push((EventRole::of(kind), kind.clone()));
        self.to.event_type(id, kind)
    }

    fn event(&mut self, event: &Event<'_>, kind: &EventType) -> io::Result<()> {
        self.cpus.entry(event.cpu).or_default();
        self.pass_losses(event.cpu, event.ts)?;
        let losses = self.cpus.entry(event.cpu).or_default();
        losses.last_event = Some(event.ts);
        let role = self.kinds.get(event.kind.0 as usize).map_or(EventRole::Other, |(role, _)| *role);
        if event.ts < self.window.from {
            self.state.follow(event, kind, role);
            return Ok(());
        }
        if event.ts > self.window.to {
            return Ok(());
        }
        losses.inside.events += 1;
        let counted = &mut self.counted;
        counted.events.count(event, matches!(role, EventRole::Waking { .. }));
        counted.tids.add(event.tid as u64);
        if let EventRole::Print { buf } = role {
            counted.markers += u64::from(event.text(kind, buf).is_some_and(|t| Marker::parse(t).is_some()));
        }
        self.begin()?;
        self.to.event(event, kind)
    }

    fn track(&mut self, track: &Track<'_>) -> io::Result<()> {
        self.tracks.push(TrackStack { track: track.id, open: Vec::new(), counter: None, begun: false });
        self.to.track(track)
    }

    fn track_event(&mut self, event: &TrackEvent<'_>) -> io::Result<()> {
        let Some(track) = self.tracks.get_mut(event.track.0 as usize) else { return Ok(()) };
        if event.ts < self.window.from {
            match event.kind {
                TrackEventKind::Begin { name } => track.open.push(name.to_vec()),
                TrackEventKind::End => _ = track.open.pop(),
                TrackEventKind::Counter(value) => track.counter = Some(value),
                TrackEventKind::Instant { .. } => {}
            }
            return Ok(());
        }
        track.begin(self.window.from, self.to)?;
        if event.ts > self.window.to {
            return Ok(());
        }
        let counts = &mut self.counted.track_events;
        match event.kind {
            TrackEventKind::Begin { .. } => counts.slices += 1,
            TrackEventKind::Instant { .. } => counts.instants += 1,
            TrackEventKind::Counter(_) => counts.counter_values += 1,
            TrackEventKind::End => {}
        }
        self.begin()?;
        self.to.track_event(event)
    }

    fn lost(&mut self, cpu: u32, count: Option<u64>) -> io::Result<()> {
        self.cpus.entry(cpu).or_default().pending.push(count);
        Ok(())
    }
}

impl TimelineAdapter for WindowFilter<'_> {
    /// The state at the part's begin is that of all CPUs.
    fn order(&mut self) -> Order {
        Order::Time
    }

    fn edges(&mut self, thread: u32, edges: &[Edge]) -> io::Result<()> {
        let Window { from, to, .. } = self.window;
        let before = edges.partition_point(|edge| edge.ts < from);
        let stack = self.threads.entry(thread).or_default();
        edges[..before].iter().for_each(|edge| stack.follow(edge));
        if before == edges.len() {
            return Ok(());
        }
        if self.edges_in_order {
            self.begin()?;
        }
        let stack = self.threads.entry(thread).or_default();
        let mut inside = stack.begin(from);
        let end = edges.partition_point(|edge| edge.ts <= to);
        edges[before..end].iter().for_each(|edge| stack.follow(edge));
        inside.extend_from_slice(&edges[before..end]);
        if end < edges.len() && !self.edges_in_order {
            inside.extend(stack.end(to));
        }
        self.counted.pass_edges(thread, &inside, self.to)
    }

    fn finish(&mut self, summary: &MergeSummary) -> io::Result<()> {
        self.begin()?;
        self.end_calls()?;
        for cpu in self.cpus.keys().copied().collect::<Vec<_>>() {
            self.pass_losses(cpu, u64::MAX)?;
        }
        let mut summary = summary.clone();
        self.restrict(&mut summary);
        self.to.finish(&summary)
    }
}
