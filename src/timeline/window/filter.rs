//! The adapter that passes a part of a timeline on to an exporter.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use super::WindowState;
use crate::clock::Timestamp;
use crate::formats::samples::{Sample, SampleTables};
use crate::formats::{
    CounterValue, CpuCount, Event, EventType, EventTypeId, Order, OwnedTrackEvent, SinkAdapter,
    TimelineFrame, Track, TrackEvent, TrackEventKind,
};
use crate::ids::{Cpu, Tid};
use crate::timeline::content_counter::{ContentCounter, CountedType};
use crate::timeline::event_role::EventRole;
use crate::timeline::sink::{Edge, EdgeKind, MethodThread, TimelineAdapter, TimelineSink};
use crate::timeline::summary::{MergeSummary, Window};

/// Passes on what overlaps a part of a timeline. Slices, calls, states and counters that began before the
/// part begin with it: the events that set them are passed on with the time of its begin. Calls that end
/// behind it end with it, and frames that end behind it have no end.
pub struct WindowFilter<'a> {
    to: &'a mut dyn TimelineSink,
    window: Window,
    /// Whether edges come in order of time, over all threads.
    edges_in_order: bool,
    /// By event type.
    kinds: Vec<KnownType>,
    state: WindowState,
    /// Whether the state at the part's begin has been passed on.
    begun: bool,
    threads: BTreeMap<u32, WindowedCalls>,
    tracks: Vec<TrackStack>,
    cpus: BTreeMap<Cpu, CpuLosses>,
    /// By the number of the set: the tables of samples.
    samples: Vec<Arc<SampleTables>>,
    counter: ContentCounter,
}

/// An event type, and its meaning for the state of the machine.
struct KnownType {
    role: EventRole,
    counted: CountedType,
    kind: EventType,
}

/// The calls of a thread of a method trace.
#[derive(Default)]
struct WindowedCalls {
    /// The kernel's thread id, where it is known.
    tid: Option<Tid>,
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
    /// The begins of the open slices.
    open: Vec<OwnedTrackEvent>,
    counter: Option<CounterValue>,
    /// Frames that began before the part and end in it or behind it.
    frames: Vec<OwnedTrackEvent>,
    begun: bool,
}

/// The losses of a CPU.
#[derive(Default)]
struct CpuLosses {
    last_event: Option<Timestamp>,
    /// Losses behind the last event.
    pending: Vec<Option<u64>>,
    all: CpuCount,
    inside: CpuCount,
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
            state: WindowState::default(),
            begun: false,
            threads: BTreeMap::new(),
            tracks: Vec::new(),
            cpus: BTreeMap::new(),
            samples: Vec::new(),
            counter: ContentCounter::default(),
        }
    }

    /// Changes the summary of the whole timeline to the summary of the part.
    pub fn restrict(&self, summary: &mut MergeSummary) {
        summary.window = Some(self.window);
        summary.markers = self.counter.markers;
        summary.methods = self.counter.methods;
        summary.threads = self.counter.threads();
        let report = &mut summary.report;
        report.first_ts = Some(self.window.from);
        report.last_ts = Some(self.window.to);
        report.track_events = self.counter.track_events;
        for (cpu, count) in &mut report.cpus {
            let Some(seen) = self.cpus.get(cpu) else { continue };
            // What the readers count without saying where it is missing stays.
            count.events = seen.inside.events;
            count.lost = count.lost.saturating_sub(seen.all.lost) + seen.inside.lost;
            count.gaps = count.gaps.saturating_sub(seen.all.gaps) + seen.inside.gaps;
        }
        let lost = report.lost();
        summary.contents = self.counter.restrict(&summary.contents, lost);
    }

    /// Passes on the state at the part's begin, once.
    fn begin(&mut self) -> io::Result<()> {
        if std::mem::replace(&mut self.begun, true) {
            return Ok(());
        }
        for event in self.state.take() {
            let Some(known) = self.kinds.get(event.kind().0 as usize) else { continue };
            event.with_event_at(self.window.from, |event| self.to.event(event, &known.kind))?;
        }
        for track in &mut self.tracks {
            track.begin(self.window.from, self.to)?;
        }
        if self.edges_in_order {
            for (thread, stack) in &mut self.threads {
                let edges = stack.begin(self.window.from);
                stack.pass(*thread, &edges, &mut self.counter, self.to)?;
            }
        }
        Ok(())
    }

    /// Ends the open calls of all threads at the part's end.
    fn end_calls(&mut self) -> io::Result<()> {
        for (thread, stack) in &mut self.threads {
            let mut edges = stack.begin(self.window.from);
            edges.extend(stack.end(self.window.to));
            stack.pass(*thread, &edges, &mut self.counter, self.to)?;
        }
        Ok(())
    }

    /// Passes on the losses of a CPU before the time `until`, as far as they lie in the part.
    fn pass_losses(&mut self, cpu: Cpu, until: Timestamp) -> io::Result<()> {
        let Some(losses) = self.cpus.get_mut(&cpu) else { return Ok(()) };
        let since = losses.last_event.unwrap_or_default();
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

impl WindowedCalls {
    /// Follows an edge before the part's begin.
    fn follow(&mut self, edge: &Edge) {
        self.cpu = edge.cpu.or(self.cpu);
        match edge.kind {
            EdgeKind::Enter => self.open.push(*edge),
            EdgeKind::Exit => _ = self.open.pop(),
        }
    }

    /// Passes edges of the thread with this index on, and counts the calls that begin with them.
    fn pass(
        &self,
        thread: u32,
        edges: &[Edge],
        counter: &mut ContentCounter,
        to: &mut dyn TimelineSink,
    ) -> io::Result<()> {
        counter.edges(self.tid, edges);
        if edges.is_empty() { Ok(()) } else { to.edges(thread, edges) }
    }

    /// The begins, at `ts`, of the calls that are open; once.
    fn begin(&mut self, ts: Timestamp) -> Vec<Edge> {
        if std::mem::replace(&mut self.begun, true) {
            return Vec::new();
        }
        // The CPU time at the part's begin is not known, but that of the last edge before it is.
        let cpu = self.cpu;
        self.open.iter().map(|edge| Edge { ts, cpu: edge.cpu.and(cpu), ..*edge }).collect()
    }

    /// The ends, at `ts`, of the calls that are open; once.
    fn end(&mut self, ts: Timestamp) -> Vec<Edge> {
        if std::mem::replace(&mut self.ended, true) {
            return Vec::new();
        }
        let cpu = self.cpu;
        let end = |edge: Edge| Edge { ts, cpu: edge.cpu.and(cpu), kind: EdgeKind::Exit, ..edge };
        self.open.drain(..).rev().map(end).collect()
    }
}

impl TrackStack {
    /// Passes on, once, the slices that are open at the part's begin, and the counter's value.
    fn begin(&mut self, ts: Timestamp, to: &mut dyn TimelineSink) -> io::Result<()> {
        if std::mem::replace(&mut self.begun, true) {
            return Ok(());
        }
        for begin in &self.open {
            let begins = |event: &TrackEvent<'_>| {
                to.track_event(&TrackEvent { ts, thread_ns: None, flows: &[], ..*event })
            };
            begin.with_event(begins)?;
        }
        if let Some(value) = self.counter {
            let kind = TrackEventKind::Counter(value);
            to.track_event(&TrackEvent {
                ts,
                track: self.track,
                kind,
                thread_ns: None,
                flows: &[],
                args: &[],
            })?;
        }
        for frame in std::mem::take(&mut self.frames) {
            frame.with_event(|event| to.track_event(&TrackEvent { ts, ..*event }))?;
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
        let counted = CountedType::new(kind);
        self.kinds.push(KnownType { role: EventRole::new(kind), counted, kind: kind.clone() });
        self.to.event_type(id, kind)
    }

    fn event(&mut self, event: &Event<'_>, kind: &EventType) -> io::Result<()> {
        self.cpus.entry(event.cpu).or_default();
        self.pass_losses(event.cpu, event.ts)?;
        let losses = self.cpus.entry(event.cpu).or_default();
        losses.last_event = Some(event.ts);
        let Some(known) = self.kinds.get(event.kind.0 as usize) else { return Ok(()) };
        if event.ts < self.window.from {
            self.state.follow(event, kind, known.role);
            return Ok(());
        }
        if event.ts > self.window.to {
            return Ok(());
        }
        losses.inside.events += 1;
        self.counter.event(event, kind, known.counted);
        self.begin()?;
        self.to.event(event, kind)
    }

    fn track(&mut self, track: &Track<'_>) -> io::Result<()> {
        self.tracks.push(TrackStack {
            track: track.id,
            open: Vec::new(),
            counter: None,
            frames: Vec::new(),
            begun: false,
        });
        self.to.track(track)
    }

    fn track_event(&mut self, event: &TrackEvent<'_>) -> io::Result<()> {
        let Some(track) = self.tracks.get_mut(event.track.0 as usize) else { return Ok(()) };
        let cut_frame;
        let mut event = *event;
        if let TrackEventKind::Frame(frame) = event.kind {
            cut_frame = TimelineFrame { end: frame.end.filter(|end| *end <= self.window.to), ..*frame };
            let is_before = frame.end.is_some_and(|end| end < self.window.from);
            event.kind = TrackEventKind::Frame(&cut_frame);
            if event.ts < self.window.from {
                // Without an end it is not known whether the frame reaches the part.
                if frame.end.is_some() && !is_before {
                    self.counter.track_event(&event.kind);
                    track.frames.push(OwnedTrackEvent::new(&event));
                }
                return Ok(());
            }
        }
        let event = &event;
        if event.ts < self.window.from {
            match event.kind {
                TrackEventKind::Begin { .. } => track.open.push(OwnedTrackEvent::new(event)),
                TrackEventKind::End => _ = track.open.pop(),
                TrackEventKind::Counter(value) => track.counter = Some(value),
                TrackEventKind::Instant { .. } | TrackEventKind::Frame(_) => {}
            }
            return Ok(());
        }
        track.begin(self.window.from, self.to)?;
        if event.ts > self.window.to {
            return Ok(());
        }
        self.counter.track_event(&event.kind);
        self.begin()?;
        self.to.track_event(event)
    }

    fn lost(&mut self, cpu: Cpu, count: Option<u64>) -> io::Result<()> {
        self.cpus.entry(cpu).or_default().pending.push(count);
        Ok(())
    }
}

impl TimelineAdapter for WindowFilter<'_> {
    /// The state at the part's begin is that of all CPUs.
    fn order(&mut self) -> Order {
        Order::Time
    }

    fn method_thread(&mut self, thread: &MethodThread) -> io::Result<()> {
        self.threads.entry(thread.index).or_default().tid = thread.tid;
        self.to.method_thread(thread)
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
        stack.pass(thread, &inside, &mut self.counter, self.to)
    }

    fn sample_set(&mut self, set: u32, tables: &Arc<SampleTables>) -> io::Result<()> {
        self.samples.push(Arc::clone(tables));
        self.to.sample_set(set, tables)
    }

    fn sample(&mut self, set: u32, sample: &Sample) -> io::Result<()> {
        let Window { from, to, .. } = self.window;
        if sample.time < from || sample.time > to {
            return Ok(());
        }
        if self.edges_in_order {
            self.begin()?;
        }
        self.counter.sample(self.samples[set as usize].threads[sample.thread as usize].tid);
        self.to.sample(set, sample)
    }

    fn finish(&mut self, summary: &MergeSummary) -> io::Result<()> {
        self.begin()?;
        self.end_calls()?;
        for cpu in self.cpus.keys().copied().collect::<Vec<_>>() {
            self.pass_losses(cpu, Timestamp::MAX)?;
        }
        let mut summary = summary.clone();
        self.restrict(&mut summary);
        self.to.finish(&summary)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;
    use crate::formats::{Field, FieldType, ReadReport, Sink, TrackId, TrackKind, TrackOwner};
    use crate::ids::Pid;
    use crate::timeline::sink::MethodId;
    use crate::timeline::summary::DataKind;
    use crate::timeline::test_data::first_type_event;
    use crate::timeline::window::NullSink;

    /// The summary of the part from 100 to 200 of what `push` pushes.
    fn summary_of_part(push: impl FnOnce(&mut dyn TimelineSink)) -> MergeSummary {
        let mut sink = NullSink;
        let mut filter = WindowFilter::new(
            &mut sink,
            Window { start: Timestamp(0), from: Timestamp(100), to: Timestamp(200) },
        );
        push(&mut filter);
        let mut summary = MergeSummary::new(Clock::Boottime, Vec::new(), ReadReport::default());
        TimelineSink::finish(&mut filter, &summary).unwrap();
        filter.restrict(&mut summary);
        summary
    }

    #[test]
    fn the_thread_of_a_method_call_counts_also_without_kernel_events() {
        let thread = |index, tid| MethodThread {
            index,
            tid: Some(tid),
            tgid: None,
            name: "main".into(),
            trace_id: 1,
            doubt: None,
            edge_cost_ns: 0,
        };
        let edge = |ts, kind| Edge { ts, cpu: None, method: MethodId(0), kind };
        let summary = summary_of_part(|sink| {
            sink.method_thread(&thread(0, Tid(7))).unwrap();
            sink.method_thread(&thread(1, Tid(8))).unwrap();
            sink.edges(0, &[edge(Timestamp(50), EdgeKind::Enter), edge(Timestamp(150), EdgeKind::Exit)])
                .unwrap();
            sink.edges(1, &[edge(Timestamp(50), EdgeKind::Enter), edge(Timestamp(90), EdgeKind::Exit)])
                .unwrap();
        });
        assert_eq!((summary.methods, summary.threads), (1, 1));
    }

    #[test]
    fn the_times_of_calls_count_as_in_the_whole_timeline() {
        let edge = |ts, kind| Edge { ts, cpu: None, method: MethodId(0), kind };
        let summary = summary_of_part(|sink| {
            sink.edges(0, &[edge(Timestamp(110), EdgeKind::Enter), edge(Timestamp(150), EdgeKind::Exit)])
                .unwrap();
        });
        assert_eq!(summary.contents.get(DataKind::TimesBelowMicrosecond), 2);
    }

    /// Remembers frames: begin, end and token.
    #[derive(Default)]
    struct FrameSink(Vec<(u64, Option<u64>, i64)>);

    impl Sink for FrameSink {
        fn event(&mut self, _: &Event<'_>, _: &EventType) -> io::Result<()> {
            Ok(())
        }
        fn track_event(&mut self, event: &TrackEvent<'_>) -> io::Result<()> {
            let TrackEventKind::Frame(frame) = event.kind else { return Ok(()) };
            self.0.push((event.ts.0, frame.end.map(|end| end.0), frame.token()));
            Ok(())
        }
    }

    impl TimelineSink for FrameSink {
        fn finish(&mut self, _: &MergeSummary) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn frames_that_reach_into_the_part_begin_with_it_and_those_that_leave_it_have_no_end() {
        let mut sink = FrameSink::default();
        let mut filter = WindowFilter::new(
            &mut sink,
            Window { start: Timestamp(0), from: Timestamp(100), to: Timestamp(200) },
        );
        let id = TrackId(0);
        let owner = TrackOwner::Process(Pid(7));
        let part: &mut dyn TimelineSink = &mut filter;
        part.track(&Track { id, name: b"", owner_name: b"", owner, kind: TrackKind::Frames }).unwrap();
        let frames = [
            (10, Some(99)),
            (20, Some(100)),
            (30, Some(250)),
            (40, None),
            (150, Some(200)),
            (160, Some(201)),
            (170, None),
            (201, Some(210)),
        ];
        for (number, (ts, end)) in frames.into_iter().enumerate() {
            let end = end.map(Timestamp);
            let frame =
                TimelineFrame { end, pid: Pid(7), display_token: number as i64, surface: None, actual: None };
            let kind = TrackEventKind::Frame(&frame);
            let event =
                TrackEvent { ts: Timestamp(ts), track: id, kind, thread_ns: None, flows: &[], args: &[] };
            part.track_event(&event).unwrap();
        }
        let mut summary = MergeSummary::new(Clock::Boottime, Vec::new(), ReadReport::default());
        TimelineSink::finish(&mut filter, &summary).unwrap();
        filter.restrict(&mut summary);
        assert_eq!(summary.contents.get(DataKind::Frames), 5);
        let want = [(100, Some(100), 1), (100, None, 2), (150, Some(200), 4), (160, None, 5), (170, None, 6)];
        assert_eq!(sink.0, want);
    }

    #[test]
    fn a_wakeup_without_the_name_of_its_thread_is_a_wakeup() {
        let pid = Field { name: "pid".into(), ctype: "pid_t".into(), ty: FieldType::Int, offset: 8, size: 4 };
        let kind = EventType {
            system: "sched".into(),
            name: "sched_waking".into(),
            fields: vec![pid],
            print_fmt: None,
        };
        let event = first_type_event(150, &[]);
        let summary = summary_of_part(|sink| {
            sink.event_type(EventTypeId(0), &kind).unwrap();
            sink.event(&event, &kind).unwrap();
        });
        assert_eq!(summary.contents.get(DataKind::Wakeups), 1);
        assert_eq!(summary.threads, 1);
    }
}
