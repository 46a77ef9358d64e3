//! One reading of a recording: for evidence, or to push its events to the exporter.

use std::collections::BTreeMap;
use std::io;

use super::clock_map::ClockMap;
use super::data_kind::DataKind;
use super::dedup::DuplicateFilter;
use super::event_buffer::EventBuffer;
use super::kernel_evidence::KernelEvidence;
use super::method_slices::{self, MethodCounts, NextIds};
use super::placement::Placement;
use super::sink::{Edge, TimelineAdapter, TimelineSink};
use super::summary::{MergeSummary, Verdict};
use crate::formats::art_method::MethodTrace;
use crate::formats::{
    Damage, Event, EventType, EventTypeId, Head, Order, ProcessInfo, ReadReport, Recording, Sink,
    SinkAdapter, ThreadInfo,
};
use crate::markers::Marker;

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
    /// Why `map` was chosen: a sentence for people.
    pub why: String,
}

/// Collects the evidence from a recording, with which method traces and other recordings are compared.
pub struct EvidencePass<'e> {
    /// From the recording's clock to the timeline's.
    pub map: &'e ClockMap,
    /// Filled where method traces are to be placed.
    pub evidence: Option<&'e mut KernelEvidence>,
    /// Filled where other recordings may hold the same events.
    pub duplicates: Option<&'e mut DuplicateFilter>,
}

impl Sink for EvidencePass<'_> {
    fn head(&mut self, _: &Head) -> io::Result<()> {
        if let Some(evidence) = &mut self.evidence {
            evidence.begin_recording();
        }
        Ok(())
    }

    fn event_type(&mut self, _: EventTypeId, kind: &EventType) -> io::Result<()> {
        if let Some(evidence) = &mut self.evidence {
            evidence.add_event_type(kind);
        }
        Ok(())
    }

    fn thread(&mut self, thread: &ThreadInfo<'_>) -> io::Result<()> {
        if let Some(evidence) = &mut self.evidence {
            evidence.add_thread(thread);
        }
        Ok(())
    }

    fn event(&mut self, event: &Event<'_>, kind: &EventType) -> io::Result<()> {
        let event = &Event { ts: self.map.map(event.ts), ..*event };
        if let Some(evidence) = &mut self.evidence {
            evidence.add_event(event, kind);
        }
        if let Some(duplicates) = &mut self.duplicates {
            duplicates.remember(event, kind);
        }
        Ok(())
    }
}

/// Pushes the timeline to the exporter: numbers event types over all inputs, counts events, and holds
/// events and edges that come too early for an exporter that wants everything in order of time.
pub struct Timeline<'o> {
    summary: MergeSummary,
    /// A bit for each thread id seen.
    seen_tids: Vec<u64>,
    next_event_type: u32,
    /// Edges of method traces that are held, each with its thread's index, the latest first.
    held_edges: Vec<(u32, Edge)>,
    /// Events of recordings that are held.
    buffers: Vec<EventBuffer>,
    duplicates: DuplicateFilter,
    out: &'o mut dyn TimelineSink,
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
            seen_tids: Vec::new(),
            next_event_type: 0,
            held_edges: Vec::new(),
            buffers: Vec::new(),
            duplicates,
            out,
        }
    }

    /// The order that the exporter wants.
    pub fn order(&mut self) -> Order {
        self.out.order()
    }

    /// Pushes the timeline's head.
    pub fn head(&mut self, head: &Head) -> io::Result<()> {
        self.out.head(head)
    }

    /// Hands the summary to the exporter, which ends the output.
    pub fn finish(mut self) -> io::Result<MergeSummary> {
        self.summary.threads = self.seen_tids.iter().map(|word| u64::from(word.count_ones())).sum();
        let lost = self.summary.report.lost();
        self.add_contents(&[(DataKind::LostEvents, lost), (DataKind::Markers, self.summary.markers)]);
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
        let mut next = NextIds::default();
        for (index, trace, placement) in placed {
            let counts = method_slices::push(trace, placement, &mut next, self.out)?;
            self.add_method_trace(*index, trace, placement, counts);
        }
        Ok(())
    }

    /// Pushes the names of all method traces, and holds their edges until the timeline reaches their times.
    pub fn hold_method_traces(&mut self, placed: &[(usize, &MethodTrace<'_>, Placement)]) -> io::Result<()> {
        let mut next = NextIds::default();
        for (index, trace, placement) in placed {
            let mut holder = EdgeHolder { held: &mut self.held_edges, out: self.out };
            let counts = method_slices::push(trace, placement, &mut next, &mut holder)?;
            self.add_method_trace(*index, trace, placement, counts);
        }
        // A stable sort keeps each thread's own order where times are equal.
        self.held_edges.sort_by_key(|(_, edge)| edge.ts);
        self.held_edges.reverse();
        Ok(())
    }

    /// Pushes everything held whose time is `ts` or earlier.
    #[inline]
    pub fn push_held_until(&mut self, ts: u64) -> io::Result<()> {
        if self.held_edges.is_empty() && self.buffers.is_empty() { Ok(()) } else { self.push_held(ts) }
    }

    fn push_held(&mut self, ts: u64) -> io::Result<()> {
        loop {
            let next = self.buffers.iter_mut().min_by_key(|b| b.next_ts().unwrap_or(u64::MAX));
            let Some(next) = next.filter(|b| b.next_ts().is_some_and(|t| t <= ts)) else { break };
            if let Some(at) = next.next_ts() {
                while let Some((thread, edge)) = self.held_edges.pop_if(|(_, edge)| edge.ts <= at) {
                    self.out.edges(thread, &[edge])?;
                }
            }
            next.pop(self.out)?;
        }
        while let Some((thread, edge)) = self.held_edges.pop_if(|(_, edge)| edge.ts <= ts) {
            self.out.edges(thread, &[edge])?;
        }
        Ok(())
    }

    /// Pushes one recording. With `drop_duplicates`, events that an earlier recording holds too are left out.
    /// With `hold`, the events are held until the timeline reaches their times.
    pub fn push_recording(
        &mut self,
        input: &RecordingInput<'_>,
        drop_duplicates: bool,
        hold: bool,
    ) -> io::Result<()> {
        self.duplicates.next_recording();
        let order = self.out.order();
        let mut pass = PushPass {
            map: (input.map != ClockMap::default()).then_some(&input.map),
            event_types: Vec::new(),
            marker_fields: Vec::new(),
            waking: Vec::new(),
            counts: EventCounts::default(),
            first_offset: None,
            drop_duplicates,
            duplicates: BTreeMap::new(),
            buffer: hold.then(EventBuffer::default),
            timeline: self,
        };
        let report = input.recording.read(order, &mut pass)?;
        let (counts, offset) = (pass.counts, pass.first_offset.unwrap_or(0));
        let (duplicates, buffer) = (pass.duplicates, pass.buffer);
        if let Some(mut buffer) = buffer {
            buffer.sort();
            self.buffers.push(buffer);
        }
        let snapshots = input.recording.head().snapshots.list.len() as u64;
        self.add_contents(&counts.by_kind());
        self.add_contents(&[(DataKind::ClockSnapshots, snapshots)]);
        self.add_recording(input, report, &duplicates, (counts.events, offset));
        Ok(())
    }

    /// Adds a recording to the summary: its report, the duplicates of each CPU, the number of events that
    /// were pushed, and the offset that was added to the first event's time, ns.
    fn add_recording(
        &mut self,
        input: &RecordingInput<'_>,
        mut report: ReadReport,
        duplicates_by_cpu: &BTreeMap<u32, u64>,
        (events, offset_ns): (u64, i64),
    ) {
        for (cpu, count) in duplicates_by_cpu {
            if let Some(counted) = report.cpus.get_mut(cpu) {
                counted.events = counted.events.saturating_sub(*count);
                // The same ring buffer: its losses were counted with the recording that is kept.
                (counted.lost, counted.gaps) = (0, 0);
            }
        }
        let duplicates: u64 = duplicates_by_cpu.values().sum();
        let (mut verdict, mut why) = (input.verdict, input.why.clone());
        if duplicates > 0 {
            verdict = Verdict::Proven;
            why =
                format!("{why}; {duplicates} of its events are in another recording too, at the same times");
        }
        let head = input.recording.head();
        let summary = &mut self.summary.inputs[input.index];
        summary.format = head.format.clone();
        summary.clock = head.clock;
        (summary.verdict, summary.why) = (verdict, why);
        (summary.offset_ns, summary.events, summary.duplicates) = (offset_ns, events, duplicates);
        let total = &mut self.summary.report;
        for (cpu, count) in std::mem::take(&mut report.cpus) {
            let sum = total.cpus.entry(cpu).or_default();
            sum.events += count.events;
            sum.lost += count.lost;
            sum.gaps += count.gaps;
        }
        let moved = |ts: Option<u64>| ts.map(|t| t.saturating_add_signed(offset_ns));
        extend_time_range(total, moved(report.first_ts), moved(report.last_ts));
        self.add_problems(input.index, report);
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
        summary.verdict = finding.verdict;
        summary.why = finding.why.clone();
        summary.offset_ns = placement.time(0, 0, placement.start).wrapping_sub(placement.start) as i64;
        summary.residual_median_ns = finding.median;
        summary.residual_p99_ns = finding.p99;
        summary.explain = finding.explain.clone();
        summary.method_edges = 2 * counts.enters;
        self.summary.methods += counts.enters;
        self.summary.problems.add(counts.problems);
        for (kind, count) in counts.contents.iter() {
            self.summary.contents.add(kind, count);
        }
        extend_time_range(&mut self.summary.report, counts.first, counts.last);
        let mut report = trace.report().clone();
        report.irregular.extend(counts.problems.lines());
        self.add_problems(index, report);
        for (thread, identity) in trace.threads().iter().zip(&placement.identities) {
            if let Some(tid) = identity.tid {
                mark_tid(&mut self.seen_tids, tid);
            }
            if let Some(doubt) = &identity.doubt {
                let name = thread.label();
                self.summary.report.notes.push(format!("thread {name} (id {}): {doubt}", thread.id));
            }
        }
    }

    /// Adds an input's damage, irregularities and notes to the summary. Where there are several inputs, each
    /// line names its own.
    pub fn add_problems(&mut self, index: usize, report: ReadReport) {
        let several = self.summary.inputs.len() > 1;
        let name = self.summary.inputs[index].name.clone();
        let named = |line: String| if several { format!("{name}: {line}") } else { line };
        let total = &mut self.summary.report;
        total.damage.extend(report.damage.into_iter().map(|d| Damage { what: named(d.what), ..d }));
        total.irregular.extend(report.irregular.into_iter().map(named));
        total.notes.extend(report.notes.into_iter().map(named));
        for (kind, count) in report.perfetto_only {
            *total.perfetto_only.entry(kind).or_default() += count;
            self.summary.contents.add(DataKind::PerfettoPackets, count);
        }
    }
}

fn extend_time_range(report: &mut ReadReport, first: Option<u64>, last: Option<u64>) {
    report.first_ts = [report.first_ts, first].into_iter().flatten().min();
    report.last_ts = report.last_ts.max(last);
}

/// Sets the bit of a thread id. Thread ids go up to 2^22 (`PID_MAX_LIMIT`).
fn mark_tid(seen: &mut Vec<u64>, tid: i32) {
    let Ok(bit) = usize::try_from(tid) else { return };
    if bit >= 1 << 22 {
        return;
    }
    if seen.len() <= bit / 64 {
        seen.resize(bit / 64 + 1, 0);
    }
    seen[bit / 64] |= 1 << (bit % 64);
}

/// Collects the edges of method traces in `held`, and passes every other call on.
struct EdgeHolder<'t> {
    held: &'t mut Vec<(u32, Edge)>,
    out: &'t mut dyn TimelineSink,
}

impl<'t> SinkAdapter for EdgeHolder<'t> {
    type Next = dyn TimelineSink + 't;

    fn next(&mut self) -> &mut Self::Next {
        self.out
    }
}

impl TimelineAdapter for EdgeHolder<'_> {
    fn edges(&mut self, thread: u32, edges: &[Edge]) -> io::Result<()> {
        self.held.extend(edges.iter().map(|edge| (thread, *edge)));
        Ok(())
    }
}

/// Counts of the events that were pushed.
#[derive(Clone, Copy, Default)]
struct EventCounts {
    events: u64,
    /// Events whose times are no whole µs.
    below_microsecond: u64,
    /// Events with a flag.
    with_flags: u64,
    /// Events with a preempt count.
    with_preempt_count: u64,
    wakeups: u64,
    /// Names of processes.
    process_names: u64,
}

impl EventCounts {
    #[inline]
    fn count(&mut self, event: &Event<'_>, is_wakeup: bool) {
        self.events += 1;
        self.below_microsecond += u64::from(!event.ts.is_multiple_of(1000));
        self.with_flags += u64::from(event.flags != 0);
        self.with_preempt_count += u64::from(event.preempt_count != 0);
        self.wakeups += u64::from(is_wakeup);
    }

    fn by_kind(&self) -> [(DataKind, u64); 6] {
        [
            (DataKind::KernelEvents, self.events),
            (DataKind::TimesBelowMicrosecond, self.below_microsecond),
            (DataKind::Flags, self.with_flags),
            (DataKind::PreemptCounts, self.with_preempt_count),
            (DataKind::Wakeups, self.wakeups),
            (DataKind::ProcessNames, self.process_names),
        ]
    }
}

/// Passes one recording's events on to the exporter, or into `buffer`: numbers event types over all
/// inputs, and converts times to the timeline's clock.
struct PushPass<'t, 'o> {
    map: Option<&'t ClockMap>,
    event_types: Vec<EventTypeId>,
    /// For each event type, the index of the field that holds a marker's text; `None` where there is none.
    marker_fields: Vec<Option<usize>>,
    /// For each event type, whether its events are wakeups.
    waking: Vec<bool>,
    counts: EventCounts,
    /// The offset that was added to the first event's time, ns.
    first_offset: Option<i64>,
    drop_duplicates: bool,
    /// Events left out per CPU, since another recording holds them.
    duplicates: BTreeMap<u32, u64>,
    buffer: Option<EventBuffer>,
    timeline: &'t mut Timeline<'o>,
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

    fn event_type(&mut self, _: EventTypeId, kind: &EventType) -> io::Result<()> {
        let id = EventTypeId(self.timeline.next_event_type);
        self.timeline.next_event_type += 1;
        self.event_types.push(id);
        self.waking.push(matches!(kind.name.as_str(), "sched_waking" | "sched_wakeup" | "sched_wakeup_new"));
        self.marker_fields.push((kind.name == "print").then(|| kind.field("buf")).flatten());
        if let Some(buffer) = &mut self.buffer {
            buffer.add_event_type(kind);
        }
        self.timeline.out.event_type(id, kind)
    }

    fn process(&mut self, process: &ProcessInfo<'_>) -> io::Result<()> {
        self.counts.process_names += u64::from(process.name.is_some());
        self.timeline.out.process(process)
    }

    #[inline]
    fn event(&mut self, event: &Event<'_>, kind: &EventType) -> io::Result<()> {
        let index = event.kind.0 as usize;
        let mut event = *event;
        event.kind = *self.event_types.get(index).ok_or_else(|| io::Error::other("an event of no kind"))?;
        if let Some(map) = &self.map {
            let offset = map.offset_at(event.ts);
            self.first_offset.get_or_insert(offset);
            event.ts = event.ts.saturating_add_signed(offset);
        }
        if self.drop_duplicates {
            if self.timeline.duplicates.is_duplicate(&event, kind) {
                *self.duplicates.entry(event.cpu).or_default() += 1;
                return Ok(());
            }
            self.timeline.duplicates.remember(&event, kind);
        }
        mark_tid(&mut self.timeline.seen_tids, event.tid);
        if let Some(buf) = self.marker_fields[index]
            && event.text(kind, buf).is_some_and(|text| Marker::parse(text).is_some())
        {
            self.timeline.summary.markers += 1;
        }
        self.counts.count(&event, self.waking[index]);
        if let Some(buffer) = &mut self.buffer {
            buffer.push(&event, index);
            return Ok(());
        }
        self.timeline.push_held_until(event.ts)?;
        self.timeline.out.event(&event, kind)
    }
}
