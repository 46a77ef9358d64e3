//! One reading of a recording: for evidence, or to push its events to the exporter.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use super::align::clock_map::ClockMap;
use super::align::kernel_evidence::KernelEvidence;
use super::align::placement::Placement;
use super::align::reason::PlaceReason;
use super::align::running_times::RunningTimes;
use super::content_counter::{ContentCounter, CountedType};
use super::dedup::DuplicateFilter;
use super::event_buffer::{EventBuffer, TimelineBuffer};
use super::method_slices::{self, MethodCounts};
use super::missing_switches::MissingSwitches;
use super::sink::{Edge, TimelineAdapter, TimelineSink, Unannounced};
use super::summary::{DataKind, MergeSummary, Verdict};
use super::track_pass::{NextNumbers, TrackOutput, TrackPass};
use crate::clock::Timestamp;
use crate::formats::art_method::MethodTrace;
use crate::formats::samples::PACKETS_OF_SAMPLES;
use crate::formats::{
    Event, EventType, EventTypeId, Head, Order, OwnedTrackEvent, ProcessInfo, ReadReport, Recording, Sink,
    SinkAdapter, ThreadInfo, TimelineFrame, Track, TrackEvent, TrackEventKind,
};
use crate::formats::{ScreenVideo, VideoFrame};
use crate::ftrace::print_fmt::Symbolizer;
use crate::ids::Cpu;

/// A recording among the inputs, and its place on the timeline.
pub struct RecordingInput<'a> {
    /// The recording's number among the inputs.
    pub index: usize,
    /// The opened file.
    pub recording: Box<dyn Recording + 'a>,
    /// From the recording's clock to the timeline's.
    pub map: ClockMap,
    /// How sure `map` is.
    pub verdict: Verdict,
    /// Why `map` was chosen.
    pub why: PlaceReason,
    /// Whether the exporter takes the recording's contents from the file itself.
    pub passes_through: bool,
    /// Whether the recording holds samples beside its events, which are pushed by themselves.
    pub has_samples: bool,
}

/// Collects the evidence from a recording, with which method traces and other recordings are compared.
pub struct EvidencePass<'e, 's> {
    /// From the recording's clock to the timeline's.
    pub map: &'e ClockMap,
    /// Filled where method traces are to be placed.
    pub evidence: Option<&'e mut KernelEvidence>,
    /// Filled where samples are to be placed.
    pub running: Option<&'e mut RunningTimes>,
    /// Filled where other recordings may hold the same events.
    pub duplicates: Option<&'e mut DuplicateFilter>,
    /// The exporter's scout.
    pub scout: Option<&'e mut (dyn TimelineSink + 's)>,
}

#[cfg(test)]
impl<'e> EvidencePass<'e, '_> {
    /// A pass that collects nothing; `map` leads from the recording's clock to the timeline's.
    pub fn new(map: &'e ClockMap) -> Self {
        EvidencePass { map, evidence: None, running: None, duplicates: None, scout: None }
    }
}

impl Sink for EvidencePass<'_, '_> {
    fn head(&mut self, head: &Head) -> io::Result<()> {
        if let Some(running) = &mut self.running {
            running.begin_recording();
        }
        if let Some(evidence) = &mut self.evidence {
            evidence.begin_recording();
        }
        self.scout.as_mut().map_or(Ok(()), |scout| scout.head(head))
    }

    fn event_type(&mut self, id: EventTypeId, kind: &EventType) -> io::Result<()> {
        if let Some(evidence) = &mut self.evidence {
            evidence.add_event_type(kind);
        }
        if let Some(running) = &mut self.running {
            running.add_event_type(kind);
        }
        self.scout.as_mut().map_or(Ok(()), |scout| scout.event_type(id, kind))
    }

    fn thread(&mut self, thread: &ThreadInfo<'_>) -> io::Result<()> {
        if let Some(evidence) = &mut self.evidence {
            evidence.add_thread(thread);
        }
        self.scout.as_mut().map_or(Ok(()), |scout| scout.thread(thread))
    }

    fn process(&mut self, process: &ProcessInfo<'_>) -> io::Result<()> {
        self.scout.as_mut().map_or(Ok(()), |scout| scout.process(process))
    }

    fn event(&mut self, event: &Event<'_>, kind: &EventType) -> io::Result<()> {
        let event = &Event { ts: self.map.map(event.ts), ..*event };
        if let Some(evidence) = &mut self.evidence {
            evidence.add_event(event, kind);
        }
        if let Some(running) = &mut self.running {
            running.add_event(event, kind);
        }
        if let Some(duplicates) = &mut self.duplicates {
            duplicates.remember(event, kind);
        }
        self.scout.as_mut().map_or(Ok(()), |scout| scout.event(event, kind))
    }

    fn lost(&mut self, cpu: Cpu, _: Option<u64>) -> io::Result<()> {
        if let Some(running) = &mut self.running {
            running.add_loss(cpu);
        }
        Ok(())
    }

    fn track(&mut self, track: &Track<'_>) -> io::Result<()> {
        self.scout.as_mut().map_or(Ok(()), |scout| scout.track(track))
    }

    fn track_event(&mut self, event: &TrackEvent<'_>) -> io::Result<()> {
        let Some(scout) = &mut self.scout else { return Ok(()) };
        with_moved(event, self.map, |event| scout.track_event(event))
    }
}

/// Calls `with` with the event at its time in the timeline's clock.
fn with_moved<R>(event: &TrackEvent<'_>, map: &ClockMap, with: impl FnOnce(&TrackEvent<'_>) -> R) -> R {
    let mut event = *event;
    event.ts = map.map(event.ts);
    let TrackEventKind::Frame(frame) = event.kind else { return with(&event) };
    let frame = TimelineFrame { end: frame.end.map(|end| map.map(end)), ..*frame };
    event.kind = TrackEventKind::Frame(&frame);
    with(&event)
}

/// Pushes the timeline to the exporter: numbers event types over all inputs, counts events, and buffers
/// events and edges that come too early for an exporter that wants everything in order of time.
pub struct Timeline<'o> {
    pub(super) summary: MergeSummary,
    /// The counts of all recordings, and the threads of method traces.
    pub(super) counter: ContentCounter,
    next_event_type: u32,
    next: NextNumbers,
    pub(super) buffer: TimelineBuffer,
    duplicates: DuplicateFilter,
    pub(super) out: &'o mut dyn TimelineSink,
}

/// The events of a recording that was pushed.
struct PushedRecording {
    /// How many events were pushed.
    events: u64,
    /// How many events were left out of each CPU, because another recording holds them.
    duplicates: BTreeMap<Cpu, u64>,
    /// The offset that was added to the first event's time, ns.
    offset_ns: i64,
}

impl<'o> Timeline<'o> {
    /// A timeline from which nothing has been pushed yet; `duplicates` holds the events of the recording
    /// that is pushed last.
    pub fn new(
        out: &'o mut dyn TimelineSink,
        summary: MergeSummary,
        duplicates: DuplicateFilter,
    ) -> Timeline<'o> {
        Timeline {
            summary,
            counter: ContentCounter::default(),
            next_event_type: 0,
            next: NextNumbers::default(),
            buffer: TimelineBuffer::default(),
            duplicates,
            out,
        }
    }

    /// The order that the exporter wants.
    pub fn order(&mut self) -> Order {
        self.out.order()
    }

    /// The order in which the exporter wants edges.
    pub fn edge_order(&mut self) -> Order {
        self.out.edge_order()
    }

    /// Pushes the timeline's head.
    pub fn head(&mut self, head: &Head) -> io::Result<()> {
        self.out.head(head)
    }

    /// Hands the summary to the exporter, which ends the output.
    pub fn finish(mut self) -> io::Result<MergeSummary> {
        self.summary.threads = self.counter.threads();
        self.summary.markers = self.counter.markers;
        let lost = self.summary.report.lost();
        self.add_contents(&self.counter.of_events());
        self.add_contents(&[self.counter.process_names(), (DataKind::LostEvents, lost)]);
        self.out.finish(&self.summary)?;
        self.summary.report.notes.extend(self.out.notes());
        self.summary.not_written = self.out.not_written();
        Ok(self.summary)
    }

    /// Adds to the counts of each kind of data.
    pub fn add_contents(&mut self, counts: &[(DataKind, u64)]) {
        for (kind, count) in counts {
            self.summary.contents.add(*kind, *count);
        }
    }

    /// Pushes all method traces at once.
    pub fn push_method_traces(&mut self, placed: &[(usize, &MethodTrace<'_>, Placement)]) -> io::Result<()> {
        for (index, trace, placement) in placed {
            let counts = method_slices::push(trace, placement, &mut self.next.methods, self.out)?;
            self.add_method_trace(*index, trace, placement, counts);
        }
        Ok(())
    }

    /// Pushes the names of all method traces, and buffers their edges until the timeline reaches their times.
    pub fn buffer_method_traces(
        &mut self,
        placed: &[(usize, &MethodTrace<'_>, Placement)],
    ) -> io::Result<()> {
        for (index, trace, placement) in placed {
            let mut edges = EdgeBuffering { buffer: &mut self.buffer, out: self.out };
            let counts = method_slices::push(trace, placement, &mut self.next.methods, &mut edges)?;
            self.add_method_trace(*index, trace, placement, counts);
        }
        self.buffer.sort_edges();
        Ok(())
    }

    /// Pushes everything buffered whose time is `ts` or earlier.
    #[inline]
    pub fn push_buffered_until(&mut self, ts: Timestamp) -> io::Result<()> {
        self.buffer.push_until(ts, self.out)
    }

    /// Pushes one recording. With `drop_duplicates`, events that an earlier recording holds too are left out.
    /// With `is_buffered`, the events are buffered until the timeline reaches their times.
    pub fn push_recording(
        &mut self,
        input: &RecordingInput<'_>,
        drop_duplicates: bool,
        is_buffered: bool,
    ) -> io::Result<()> {
        self.duplicates.next_recording();
        let sorted = self.buffer.sorted_length();
        let events_before = self.counter.events;
        let order = self.out.order();
        let mut pass = PushPass {
            map: (input.map != ClockMap::default()).then_some(&input.map),
            event_types: Vec::new(),
            counted_types: Vec::new(),
            first_offset: None,
            drop_duplicates,
            passes_through: input.passes_through,
            switches: MissingSwitches::default(),
            tracks: TrackPass::default(),
            edges: BTreeMap::new(),
            at_once: self.out.edge_order() == Order::Time,
            is_buffered,
            duplicates: BTreeMap::new(),
            events: (is_buffered && !input.passes_through).then(EventBuffer::default),
            timeline: self,
        };
        let mut report = input.recording.read(order, &mut pass)?;
        pass.end_tracks()?;
        let missing_switches = pass.switches.times();
        let method_calls = pass.tracks.method_calls;
        let arguments = pass.tracks.arguments;
        report.track_events.slices = report.track_events.slices.saturating_sub(method_calls);
        let offset_ns = pass.first_offset.unwrap_or(0);
        let mut duplicates = pass.duplicates;
        let buffered = pass.events;
        if input.has_samples {
            PACKETS_OF_SAMPLES.iter().for_each(|kind| _ = report.unread.remove(*kind));
        }
        if input.passes_through {
            // The output has all packets of the recording.
            report.unread.clear();
            let twice: u64 = std::mem::take(&mut duplicates).values().sum();
            if twice > 0 {
                let note = format!("{twice} events are in another input too; the output has both");
                report.notes.push(note);
            }
        }
        report.notes.extend(MissingSwitches::sentence(missing_switches));
        if let Some(events) = buffered {
            self.buffer.end_recording(events, sorted);
        }
        let snapshots = input.recording.head().snapshots.list.len() as u64;
        self.add_contents(&[
            (DataKind::ClockSnapshots, snapshots),
            (DataKind::Methods, method_calls),
            (DataKind::TrackEvents, report.track_events.total()),
            (DataKind::SystemCallArguments, arguments),
            (DataKind::Frames, report.track_events.frames),
        ]);
        self.summary.missing_switches += missing_switches;
        self.summary.methods += method_calls;
        self.summary.inputs[input.index].method_edges = 2 * method_calls;
        let events = self.counter.events - events_before;
        self.add_recording(input, report, &PushedRecording { events, duplicates, offset_ns });
        Ok(())
    }

    /// Adds a recording to the summary.
    fn add_recording(
        &mut self,
        input: &RecordingInput<'_>,
        mut report: ReadReport,
        pushed: &PushedRecording,
    ) {
        let offset_ns = pushed.offset_ns;
        for (cpu, count) in &pushed.duplicates {
            if let Some(counted) = report.cpus.get_mut(cpu) {
                counted.events = counted.events.saturating_sub(*count);
                // The same ring buffer: its losses were counted with the recording that is kept.
                counted.lost = 0;
                counted.gaps = 0;
            }
        }
        let duplicates: u64 = pushed.duplicates.values().sum();
        let head = input.recording.head();
        let summary = &mut self.summary.inputs[input.index];
        summary.format = head.format.clone();
        summary.clock = head.clock;
        summary.verdict = if duplicates > 0 { Verdict::Proven } else { input.verdict };
        summary.why = PlaceReason { shared_events: duplicates, ..input.why.clone() };
        summary.offset_ns = offset_ns;
        summary.events = pushed.events;
        summary.duplicates = duplicates;
        summary.video = input.recording.video().map(|video| placed(video, &input.map));
        let moved = |ts: Option<Timestamp>| ts.map(|t| t.saturating_add_signed(offset_ns));
        let first_ts = moved(report.first_ts);
        let last_ts = moved(report.last_ts);
        self.add_report(input.index, ReadReport { first_ts, last_ts, ..report });
    }

    /// Adds a method trace to the summary.
    fn add_method_trace(
        &mut self,
        index: usize,
        trace: &MethodTrace<'_>,
        placement: &Placement,
        counts: MethodCounts,
    ) {
        let finding = &placement.finding;
        let summary = &mut self.summary.inputs[index];
        summary.format = trace.format();
        summary.clock = finding.clock;
        summary.header = trace.header().described();
        summary.verdict = finding.verdict;
        summary.why = finding.basis.clone().into();
        summary.offset_ns = placement.time(0, 0, placement.start).wrapping_since(placement.start);
        summary.error_ns = finding.error_ns;
        summary.confidence = finding.error_ns.and(finding.verdict.confidence());
        summary.residual_median_ns = finding.median;
        summary.residual_p99_ns = finding.p99;
        summary.explain = finding.trials.clone();
        summary.method_edges = 2 * counts.enters;
        self.summary.methods += counts.enters;
        self.summary.traced_methods += trace.methods().len() as u64;
        self.summary.traced_threads += trace.threads().len() as u64;
        self.summary.problems.add(counts.problems);
        for (kind, count) in counts.contents.iter() {
            self.summary.contents.add(kind, count);
        }
        let mut report = trace.report().clone();
        report.add_anomalies(&counts.problems);
        self.add_report(index, ReadReport { first_ts: counts.first, last_ts: counts.last, ..report });
        for (thread, identity) in trace.threads().iter().zip(&placement.identities) {
            if let Some(tid) = identity.tid {
                self.counter.method_thread(tid);
            }
            if let Some(doubt) = &identity.doubt {
                let name = thread.label();
                self.summary.report.notes.push(format!("thread {name} (id {}): {doubt}", thread.id));
            }
        }
    }

    /// Adds an input's report, whose times are the timeline's, to the summary. Where there are several
    /// inputs, each line of damage, irregularities and notes names its own.
    pub fn add_report(&mut self, index: usize, mut report: ReadReport) {
        let several = self.summary.inputs.len() > 1;
        let name = self.summary.inputs[index].name.clone();
        let named = |line: String| if several { format!("{name}: {line}") } else { line };
        report.damage.iter_mut().for_each(|damage| damage.what = named(std::mem::take(&mut damage.what)));
        report.irregular.iter_mut().for_each(|line| *line = named(std::mem::take(line)));
        report.notes.iter_mut().for_each(|line| *line = named(std::mem::take(line)));
        if several {
            report.losses.name_input(&name);
        }
        self.summary.contents.add(DataKind::PerfettoPackets, report.unread.values().sum());
        self.summary.report.add(report);
    }
}

/// A video whose frames are at times of the timeline.
fn placed(video: &ScreenVideo, map: &ClockMap) -> ScreenVideo {
    let frames = video.frames.iter().map(|frame| VideoFrame { ts: map.map(frame.ts), ..*frame });
    ScreenVideo { frames: frames.collect(), ..*video }
}

/// Buffers the edges of method traces, and passes every other call on.
struct EdgeBuffering<'t> {
    buffer: &'t mut TimelineBuffer,
    out: &'t mut dyn TimelineSink,
}

impl<'t> SinkAdapter for EdgeBuffering<'t> {
    type Next = dyn TimelineSink + 't;

    fn next(&mut self) -> &mut Self::Next {
        self.out
    }
}

impl TimelineAdapter for EdgeBuffering<'_> {
    fn edges(&mut self, thread: u32, edges: &[Edge]) -> io::Result<()> {
        self.buffer.add_edges(thread, edges);
        Ok(())
    }
}

/// Passes one recording's events on to the exporter, or into `buffer`: numbers event types over all
/// inputs, and converts times to the timeline's clock.
struct PushPass<'t, 'o> {
    map: Option<&'t ClockMap>,
    event_types: Vec<EventTypeId>,
    /// By event type.
    counted_types: Vec<CountedType>,
    /// The offset that was added to the first event's time, ns.
    first_offset: Option<i64>,
    drop_duplicates: bool,
    /// Whether everything is counted and nothing is pushed.
    passes_through: bool,
    switches: MissingSwitches,
    tracks: TrackPass,
    /// Edges that wait to be pushed, by method thread. They come in pieces, because an exporter may have much
    /// to do for each call.
    edges: BTreeMap<u32, Vec<Edge>>,
    /// Whether each edge is pushed at once.
    at_once: bool,
    /// Whether everything is buffered until the timeline reaches its time.
    is_buffered: bool,
    /// Events left out per CPU, since another recording holds them.
    duplicates: BTreeMap<Cpu, u64>,
    /// The buffered events, unless the recording passes through.
    events: Option<EventBuffer>,
    timeline: &'t mut Timeline<'o>,
}

/// The number of edges of one thread that are pushed together.
const EDGE_BATCH: usize = 1024;

impl PushPass<'_, '_> {
    /// Pushes a track event whose time is in the timeline's clock.
    fn moved_track_event(&mut self, event: &TrackEvent<'_>) -> io::Result<()> {
        let Timeline { next, out, .. } = &mut *self.timeline;
        match self.tracks.event(event, next, (!self.passes_through).then_some(&mut **out))? {
            TrackOutput::Nothing => Ok(()),
            TrackOutput::Edge(thread, edge) => self.push_edge(thread, edge),
            TrackOutput::Event(_) if self.passes_through => Ok(()),
            TrackOutput::Event(event) if self.is_buffered => {
                self.timeline.buffer.add_track_event(OwnedTrackEvent::new(&event));
                Ok(())
            }
            TrackOutput::Event(event) => {
                self.timeline.push_buffered_until(event.ts)?;
                self.timeline.out.track_event(&event)
            }
        }
    }

    fn push_edge(&mut self, thread: u32, edge: Edge) -> io::Result<()> {
        if self.passes_through {
            return Ok(());
        }
        if self.is_buffered && self.at_once {
            self.timeline.buffer.add_edges(thread, &[edge]);
            return Ok(());
        }
        if self.at_once {
            self.timeline.push_buffered_until(edge.ts)?;
            return self.timeline.out.edges(thread, &[edge]);
        }
        let batch = self.edges.entry(thread).or_default();
        batch.push(edge);
        if batch.len() < EDGE_BATCH {
            return Ok(());
        }
        self.timeline.out.edges(thread, &std::mem::take(batch))
    }

    /// Ends the methods that are still open, and pushes the edges that wait.
    fn end_tracks(&mut self) -> io::Result<()> {
        for (thread, edge) in self.tracks.exits_of_open_methods() {
            self.push_edge(thread, edge)?;
        }
        for (thread, batch) in std::mem::take(&mut self.edges) {
            if !batch.is_empty() {
                self.timeline.out.edges(thread, &batch)?;
            }
        }
        Ok(())
    }
}

impl<'o> SinkAdapter for PushPass<'_, 'o> {
    type Next = dyn TimelineSink + 'o;

    fn next(&mut self) -> &mut Self::Next {
        self.timeline.out
    }

    /// The recording's head is dropped, because the timeline has a head of its own.
    fn head(&mut self, _: &Head) -> io::Result<()> {
        Ok(())
    }

    fn kernel(&mut self, symbolizer: &Arc<Symbolizer>) -> io::Result<()> {
        if self.passes_through { Ok(()) } else { self.timeline.out.kernel(symbolizer) }
    }

    fn thread(&mut self, thread: &ThreadInfo<'_>) -> io::Result<()> {
        if self.passes_through { Ok(()) } else { self.timeline.out.thread(thread) }
    }

    fn process(&mut self, process: &ProcessInfo<'_>) -> io::Result<()> {
        if process.name.is_some() {
            self.timeline.counter.process_name();
        }
        if self.passes_through { Ok(()) } else { self.timeline.out.process(process) }
    }

    fn lost(&mut self, cpu: Cpu, count: Option<u64>) -> io::Result<()> {
        self.switches.lost(cpu);
        if self.passes_through { Ok(()) } else { self.timeline.out.lost(cpu, count) }
    }

    fn track(&mut self, track: &Track<'_>) -> io::Result<()> {
        let Timeline { next, out, .. } = &mut *self.timeline;
        self.tracks.track(track, next, (!self.passes_through).then_some(&mut **out))
    }

    fn track_event(&mut self, event: &TrackEvent<'_>) -> io::Result<()> {
        let Some(map) = self.map else { return self.moved_track_event(event) };
        self.first_offset.get_or_insert(map.offset_at(event.ts));
        with_moved(event, map, |event| self.moved_track_event(event))
    }

    fn event_type(&mut self, _: EventTypeId, kind: &EventType) -> io::Result<()> {
        let id = EventTypeId(self.timeline.next_event_type);
        self.event_types.push(id);
        self.counted_types.push(CountedType::new(kind));
        self.switches.add_event_type(kind);
        if self.passes_through {
            return Ok(());
        }
        self.timeline.next_event_type += 1;
        if let Some(events) = &mut self.events {
            events.add_event_type(kind);
        }
        self.timeline.out.event_type(id, kind)
    }

    #[inline]
    fn event(&mut self, event: &Event<'_>, kind: &EventType) -> io::Result<()> {
        let index = event.kind.0 as usize;
        self.switches.add(event, kind, index);
        let mut event = *event;
        event.kind = *self.event_types.get(index).ok_or(Unannounced::EventType(event.kind.0))?;
        if let Some(map) = &self.map {
            let offset = map.offset_at(event.ts);
            self.first_offset.get_or_insert(offset);
            event.ts = event.ts.saturating_add_signed(offset);
        }
        if self.drop_duplicates {
            if self.timeline.duplicates.is_duplicate(&event, kind) {
                *self.duplicates.entry(event.cpu).or_default() += 1;
                if !self.passes_through {
                    return Ok(());
                }
            }
            self.timeline.duplicates.remember(&event, kind);
        }
        self.timeline.counter.event(&event, kind, self.counted_types[index]);
        if self.passes_through {
            return Ok(());
        }
        if let Some(events) = &mut self.events {
            events.push(&event, index);
            return Ok(());
        }
        self.timeline.push_buffered_until(event.ts)?;
        self.timeline.out.event(&event, kind)
    }
}
