//! Measures a run while its timeline passes.
//!
//! Which part of a run is measured, and which thread is its main thread, is known only at the end: the marker
//! that completes a launch comes behind the launch. Until then the meter keeps every span in a few bytes.
//! [`PartMeter`] then cuts the spans to the part and adds them up. A run with too many spans is read a second
//! time, with the part known.

use std::io;

use rustc_hash::FxHashMap;

use super::finder::Finder;
use super::run::{LaunchSpan, Measure, MeasureKind, MeasuredPart, MeasuredRun, state_name};
use super::span_log::{NamedSpan, SpanLog, SpanNames};
use crate::clock::Timestamp;
use crate::ids::{Pid, Tid};
use crate::timeline::{MergeSummary, WindowError, WindowRequest};
use crate::tracks::{
    AsyncEdge, AsyncSlice, MethodCall, OwnTrack, Span, Task, Tasks, ThreadState, TrackObserver, TrackSink,
};

/// The most slices of the name that the user gave for the end of a launch whose ends are kept.
const MAX_NAMED_ENDS: usize = 1 << 16;
/// The memory for spans, bytes: some 25 million spans. A run with more is read a second time.
const MAX_KEPT_BYTES: usize = 256 << 20;

/// A begin and an end.
type PartExtent = (Timestamp, Timestamp);

/// The spans of a thread.
#[derive(Debug, Default)]
struct ThreadSpans {
    /// The number of open slices.
    open: usize,
    slices: SpanLog,
    states: SpanLog,
    /// The slices that lie in no other one: their times together, ns, the begin of the first one, and the end
    /// of the last one.
    stages_ns: u64,
    stages: Option<PartExtent>,
}

/// Adds up the spans within the measured part of a run.
#[derive(Default)]
struct PartMeter {
    from: Timestamp,
    to: Timestamp,
    main_tid: Option<Tid>,
    measures: FxHashMap<(MeasureKind, u32), Measure>,
    /// By thread, and by the number of spans around: the time, ns, of ended slices whose outer slice is open.
    inner_slices: FxHashMap<Tid, Vec<u64>>,
    /// The same for the methods of each method thread.
    inner_methods: FxHashMap<u32, Vec<u64>>,
}

/// The time of a span without the spans in it, ns. `inner` has the times of ended spans by the number of
/// spans around.
fn own_ns(inner: &mut Vec<u64>, depth: usize, ns: u64) -> u64 {
    if inner.len() < depth + 2 {
        inner.resize(depth + 2, 0);
    }
    inner[depth] += ns;
    ns.saturating_sub(std::mem::take(&mut inner[depth + 1]))
}

impl PartMeter {
    /// The span, cut to the part. A span that only touches the part is not in it.
    fn cut(&self, span: NamedSpan) -> Option<NamedSpan> {
        let start = span.start.max(self.from);
        let end = span.end.min(self.to);
        let is_within = start < end || start == end && span.start == span.end;
        is_within.then_some(NamedSpan { start, end, ..span })
    }

    /// Adds `ns` of a span that is cut to the part.
    fn add(&mut self, kind: MeasureKind, cut: NamedSpan, ns: u64) {
        self.measures.entry((kind, cut.name)).or_default().add(ns, cut.start, cut.length());
    }

    fn slice(&mut self, tid: Tid, span: NamedSpan) {
        let Some(cut) = self.cut(span) else { return };
        let own = own_ns(self.inner_slices.entry(tid).or_default(), span.depth, cut.length());
        self.add(MeasureKind::Slice, cut, own);
        if span.depth == 0 && self.main_tid == Some(tid) {
            self.add(MeasureKind::Stage, cut, cut.length());
        }
    }

    fn state(&mut self, tid: Tid, span: NamedSpan) {
        if self.main_tid == Some(tid)
            && let Some(cut) = self.cut(span)
        {
            self.add(MeasureKind::State, cut, cut.length());
        }
    }

    fn method(&mut self, thread: u32, span: NamedSpan) {
        let Some(cut) = self.cut(span) else { return };
        let own = own_ns(self.inner_methods.entry(thread).or_default(), span.depth, cut.length());
        self.add(MeasureKind::Method, cut, own);
    }

    /// A slice of a program's own track. Slices of such tracks need not lie within each other.
    fn track_slice(&mut self, span: NamedSpan) {
        if let Some(cut) = self.cut(span) {
            self.add(MeasureKind::Slice, cut, cut.length());
        }
    }
}

/// Measures a run while its timeline passes.
#[derive(Default)]
pub(crate) struct RunMeter {
    finder: Finder,
    /// A part of the name of the slice with which the launch ends, and when slices of such a name ended.
    until: Option<String>,
    named_ends: Vec<Timestamp>,
    /// The period that the user named.
    window: WindowRequest,
    window_error: Option<WindowError>,
    names: SpanNames,
    threads: FxHashMap<Tid, ThreadSpans>,
    /// By the index of the method thread.
    methods: FxHashMap<u32, SpanLog>,
    track_slices: SpanLog,
    /// The threads of method traces called `main`, and how long their outermost calls took, ns.
    method_mains: FxHashMap<Tid, u64>,
    /// The size of the kept spans, and of as many as may be kept, bytes.
    kept_bytes: usize,
    max_kept_bytes: usize,
    /// The measured part, in a second reading.
    part: Option<PartMeter>,
    run: MeasuredRun,
}

impl RunMeter {
    /// A launch ends with the first slice whose name contains `until`, where that is given. A window that is
    /// not the whole timeline is measured in place of the launch.
    pub fn new(until: Option<&str>, window: WindowRequest) -> RunMeter {
        let until = until.map(str::to_owned);
        RunMeter { until, window, max_kept_bytes: MAX_KEPT_BYTES, ..RunMeter::default() }
    }

    /// The meter for a second reading of the timeline, if it had too many spans to keep.
    pub fn for_second_reading(&mut self) -> Option<RunMeter> {
        if self.kept_bytes <= self.max_kept_bytes || self.window_error.is_some() {
            return None;
        }
        let part = self.part.take();
        Some(RunMeter { part, run: std::mem::take(&mut self.run), ..RunMeter::default() })
    }

    /// The run, when the timeline has ended.
    ///
    /// # Errors
    /// The timeline does not have the part that the user named.
    pub fn into_run(self) -> Result<MeasuredRun, WindowError> {
        self.window_error.map_or(Ok(self.run), Err)
    }

    fn slice_ended(&mut self, ts: Timestamp, name: &[u8]) {
        let Some(until) = &self.until else { return };
        if self.named_ends.len() < MAX_NAMED_ENDS && String::from_utf8_lossy(name).contains(until.as_str()) {
            self.named_ends.push(ts);
        }
    }

    /// Counts a span that is kept. Too many of them are dropped.
    fn kept(&mut self, bytes: usize) {
        self.kept_bytes += bytes;
        if !self.keeps_spans() {
            for thread in self.threads.values_mut() {
                thread.slices = SpanLog::default();
                thread.states = SpanLog::default();
            }
            self.methods.clear();
            self.track_slices = SpanLog::default();
        }
    }

    fn keeps_spans(&self) -> bool {
        self.kept_bytes <= self.max_kept_bytes
    }

    /// The main thread of the program: of the launched one, else of the one with a method trace, else the
    /// main thread with the longest stages.
    fn main_thread(&self, tasks: &Tasks) -> Option<Tid> {
        let is_main = |tid: Tid| tasks.threads.tgid(tid).is_some_and(|process| tid.is_main_of(process));
        let launched = self.run.launch.as_ref().and_then(|launch| launch.main_tid);
        let traced = || self.method_mains.iter().max_by_key(|(tid, ns)| (**ns, **tid)).map(|(tid, _)| *tid);
        let staged = self.threads.iter().filter(|(_, thread)| thread.stages.is_some());
        let longest = || staged.max_by_key(|(tid, thread)| (is_main(**tid), thread.stages_ns, **tid));
        launched.or_else(traced).or_else(|| longest().map(|(tid, _)| *tid))
    }

    /// Finds the part that is measured, its begin and its end, in a timeline that reaches from `all.0` to
    /// `all.1`.
    fn choose_part(
        &self,
        tasks: &Tasks,
        all: PartExtent,
        period: PartExtent,
    ) -> (MeasuredPart, Option<Tid>, PartExtent) {
        let main = self.main_thread(tasks);
        let launch = self.run.launch.as_ref().map(|span| (MeasuredPart::Launch, (span.from, span.to)));
        let stages = main.and_then(|tid| self.threads.get(&tid)?.stages);
        let stages = stages.map(|span| (MeasuredPart::MainThread, span));
        let found = launch.or(stages).filter(|(_, (from, to))| from < to);
        let (part, extent) = match found {
            _ if !self.window.is_whole() => (MeasuredPart::Period, period),
            Some(found) => found,
            None => (MeasuredPart::Recording, all),
        };
        (part, main, extent)
    }

    /// Adds up the spans that were kept.
    fn measure_kept(&mut self, part: &mut PartMeter) {
        for (tid, thread) in &self.threads {
            thread.slices.spans().for_each(|span| part.slice(*tid, span));
            if part.main_tid == Some(*tid) {
                thread.states.spans().for_each(|span| part.state(*tid, span));
            }
        }
        for (thread, calls) in &self.methods {
            calls.spans().for_each(|span| part.method(*thread, span));
        }
        self.track_slices.spans().for_each(|span| part.track_slice(span));
    }

    /// Takes the measures of the part over to the run.
    fn end_part(&mut self, part: PartMeter) {
        for ((kind, name), measure) in part.measures {
            let sum = self.run.measures.entry((kind, self.names.name(name).to_owned())).or_default();
            // SpanNames that differ in bytes that are no text are one.
            sum.ns += measure.ns;
            sum.count += measure.count;
            sum.longest = sum.longest.max(measure.longest);
        }
    }
}

impl TrackSink for RunMeter {
    fn observer(&mut self) -> Option<&mut dyn TrackObserver> {
        self.part.is_none().then_some(&mut self.finder)
    }

    fn begin(&mut self, at: Task, _: Timestamp, _: &[u8]) -> io::Result<()> {
        self.threads.entry(at.tid).or_default().open += 1;
        Ok(())
    }

    fn end(&mut self, _: &Tasks, at: Task, span: Span, name: &[u8]) -> io::Result<()> {
        if !span.open {
            self.slice_ended(span.end, name);
        }
        let keeps_spans = self.keeps_spans();
        let thread = self.threads.entry(at.tid).or_default();
        thread.open = thread.open.saturating_sub(1);
        let named = NamedSpan::new(self.names.number(name)?, thread.open, span);
        if let Some(part) = &mut self.part {
            part.slice(at.tid, named);
            return Ok(());
        }
        if named.depth == 0 {
            thread.stages_ns += span.end.since(span.start);
            let (start, end) = thread.stages.unwrap_or((span.start, span.end));
            thread.stages = Some((start.min(span.start), end.max(span.end)));
        }
        if keeps_spans {
            let bytes = thread.slices.push(named);
            self.kept(bytes);
        }
        Ok(())
    }

    fn async_edge(&mut self, _: &Tasks, _: Pid, slice: &AsyncSlice<'_>) -> io::Result<()> {
        if matches!(slice.edge, AsyncEdge::End { open: false, .. } | AsyncEdge::EndWithoutBegin) {
            self.slice_ended(slice.ts, slice.name);
        }
        Ok(())
    }

    fn state(&mut self, _: &Tasks, at: Task, state: &ThreadState) -> io::Result<()> {
        let name = state_name(state.state.name());
        let named = NamedSpan::new(self.names.number(name.as_bytes())?, 0, state.span);
        if let Some(part) = &mut self.part {
            part.state(at.tid, named);
        } else if self.keeps_spans() {
            let bytes = self.threads.entry(at.tid).or_default().states.push(named);
            self.kept(bytes);
        }
        Ok(())
    }

    fn method(&mut self, _: &Tasks, call: &MethodCall<'_>) -> io::Result<()> {
        let name = self.names.number(call.method.full.as_bytes())?;
        let named = NamedSpan::new(name, call.depth, call.span);
        if let Some(part) = &mut self.part {
            part.method(call.at.index, named);
            return Ok(());
        }
        if call.depth == 0
            && call.at.name == "main"
            && let Some(tid) = call.at.tid
        {
            *self.method_mains.entry(tid).or_default() += call.span.end.since(call.span.start);
        }
        if self.keeps_spans() {
            let bytes = self.methods.entry(call.at.index).or_default().push(named);
            self.kept(bytes);
        }
        Ok(())
    }

    fn track_slice(&mut self, _: &OwnTrack, span: Span, name: &[u8], _: usize) -> io::Result<()> {
        let named = NamedSpan::new(self.names.number(name)?, 0, span);
        if let Some(part) = &mut self.part {
            part.track_slice(named);
        } else if self.keeps_spans() {
            let bytes = self.track_slices.push(named);
            self.kept(bytes);
        }
        Ok(())
    }

    fn finish(&mut self, tasks: &Tasks, summary: &MergeSummary) -> io::Result<()> {
        if let Some(part) = self.part.take() {
            self.end_part(part);
            return Ok(());
        }
        let all = summary.report.first_ts.zip(summary.report.last_ts);
        let (first, last) = all.unwrap_or_default();
        let period = match self.window.of_timeline(first, last) {
            Ok(window) => (window.from, window.to),
            Err(error) => {
                self.window_error = Some(error);
                return Ok(());
            }
        };
        let measured = std::mem::take(&mut self.finder).finish(tasks, summary);
        self.run.launch = LaunchSpan::first(&measured, &self.named_ends, period.0, period.1);
        let launched = self.run.launch.as_ref().and_then(|launch| launch.main_tid);
        let of_app =
            measured.frames.iter().filter(|frame| launched.is_none_or(|main| main.is_main_of(frame.pid)));
        of_app.for_each(|frame| self.run.frames.add(frame.duration_cpu(), frame.overrun()));
        let (part, main_tid, (from, to)) = self.choose_part(tasks, (first, last), period);
        self.run.part = part;
        self.run.main_tid = main_tid;
        self.run.extent = all.map(|_| (from, to));
        self.run.total_ns = to.since(from);
        let mut part = PartMeter { from, to, main_tid, ..PartMeter::default() };
        if self.keeps_spans() {
            self.measure_kept(&mut part);
            self.end_part(part);
        } else {
            self.part = Some(part);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;
    use crate::formats::{Order, ftrace_text};
    use crate::timeline::TimelineSink;
    use crate::tracks::TrackBuilder;

    /// Slices in slices and states on two threads; nothing marks a launch.
    fn text() -> String {
        let mark = |us: u64, tid: u32, what: &str| {
            format!("  app-{tid} (    7) [00{}] .... 1.{us:06}: tracing_mark_write: {what}\n", tid - 7)
        };
        let switch = |us: u64, prev: u32, next: u32| {
            let cpu = prev.max(next) - 7;
            format!(
                "  x-{prev} (    7) [00{cpu}] .... 1.{us:06}: sched_switch: prev_comm=x prev_pid={prev} prev_prio=120 \
                 prev_state=S ==> next_comm=x next_pid={next} next_prio=120\n"
            )
        };
        [
            switch(5, 0, 7),
            mark(10, 8, "B|7|other"),
            mark(20, 7, "B|7|outer"),
            mark(30, 7, "B|7|inner"),
            switch(40, 7, 0),
            switch(60, 0, 7),
            mark(70, 7, "E|7"),
            mark(90, 7, "E|7"),
            mark(95, 8, "E|7"),
            switch(99, 7, 0),
        ]
        .concat()
    }

    fn read(meter: RunMeter) -> RunMeter {
        let mut builder = TrackBuilder::new(meter);
        let report = ftrace_text::read(text().as_bytes(), Order::Time, &mut builder).unwrap();
        let summary = MergeSummary::new(Clock::Boottime, Vec::new(), report);
        TimelineSink::finish(&mut builder, &summary).unwrap();
        std::mem::take(builder.sink())
    }

    #[test]
    fn a_run_with_too_many_spans_is_read_twice_and_measured_the_same() {
        let mut once = read(RunMeter::new(None, WindowRequest::default()));
        assert!(once.for_second_reading().is_none());
        let once = once.into_run().unwrap();
        assert_eq!(once.total_ns, 70_000);
        let ns = |kind, name: &str| once.measures[&(kind, name.to_owned())].ns;
        assert_eq!((ns(MeasureKind::Slice, "outer"), ns(MeasureKind::Slice, "inner")), (30_000, 40_000));
        assert_eq!((ns(MeasureKind::Slice, "other"), ns(MeasureKind::Stage, "outer")), (70_000, 70_000));
        assert_eq!((ns(MeasureKind::State, "running"), ns(MeasureKind::State, "sleeping")), (50_000, 20_000));
        for max_kept_bytes in [0, 12, 30] {
            let meter = RunMeter { max_kept_bytes, ..RunMeter::new(None, WindowRequest::default()) };
            let again = read(meter).for_second_reading().expect("too many spans");
            let twice = read(again).into_run().unwrap();
            assert_eq!((twice.total_ns, twice.main_tid), (once.total_ns, once.main_tid));
            assert_eq!(twice.measures, once.measures, "{max_kept_bytes} bytes");
        }
    }
}
