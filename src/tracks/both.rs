//! Two sinks of tracks that both receive everything.

use std::io;
use std::sync::Arc;

use super::sink::ObservedSink;
use super::{
    Arrow, AsyncSlice, CounterSample, CounterScope, CpuSwitch, MethodCall, MethodLabel, OpenMethod, OwnTrack,
    Span, TakenSample, Task, Tasks, ThreadState, TrackSink,
};
use crate::clock::Timestamp;
use crate::formats::samples::SampleTables;
use crate::formats::{CounterValue, Event, EventType, Flow, Head, TimelineFrame};
use crate::ftrace::print_fmt::Symbolizer;
use crate::ids::{Cpu, Pid, Tid};
use crate::timeline::{MergeSummary, MethodThread};

/// Passes each call on to the first sink, and then to the second.
pub(crate) struct Both<A, B> {
    pub first: ObservedSink<A>,
    pub second: ObservedSink<B>,
}

impl<A, B> Both<A, B> {
    pub fn new(first: A, second: B) -> Both<A, B> {
        Both { first: ObservedSink(first), second: ObservedSink(second) }
    }

    /// The two sinks.
    pub fn parts(&mut self) -> (&mut A, &mut B) {
        (&mut self.first.0, &mut self.second.0)
    }
}

impl<A: TrackSink, B: TrackSink> TrackSink for Both<A, B> {
    fn head(&mut self, head: &Head) {
        self.first.head(head);
        self.second.head(head);
    }

    fn begin(&mut self, at: Task, ts: Timestamp, name: &[u8]) -> io::Result<()> {
        self.first.begin(at, ts, name)?;
        self.second.begin(at, ts, name)
    }

    fn end(&mut self, names: &Tasks, at: Task, span: Span, name: &[u8]) -> io::Result<()> {
        self.first.end(names, at, span, name)?;
        self.second.end(names, at, span, name)
    }

    fn async_edge(&mut self, names: &Tasks, pid: Pid, slice: &AsyncSlice<'_>) -> io::Result<()> {
        self.first.async_edge(names, pid, slice)?;
        self.second.async_edge(names, pid, slice)
    }

    fn instant(&mut self, names: &Tasks, at: Task, ts: Timestamp, name: &[u8]) -> io::Result<()> {
        self.first.instant(names, at, ts, name)?;
        self.second.instant(names, at, ts, name)
    }

    fn counter(&mut self, names: &Tasks, scope: CounterScope, at: CounterSample<'_>) -> io::Result<()> {
        self.first.counter(names, scope, at)?;
        self.second.counter(names, scope, at)
    }

    fn thread_ended(&mut self, names: &Tasks, at: Task) -> io::Result<()> {
        self.first.thread_ended(names, at)?;
        self.second.thread_ended(names, at)
    }

    fn event_type(&mut self) {
        self.first.event_type();
        self.second.event_type();
    }

    fn kernel(&mut self, symbolizer: &Arc<Symbolizer>) {
        self.first.kernel(symbolizer);
        self.second.kernel(symbolizer);
    }

    fn seen(&mut self, event: &Event<'_>) {
        self.first.seen(event);
        self.second.seen(event);
    }

    fn switch(&mut self, at: &CpuSwitch) {
        self.first.switch(at);
        self.second.switch(at);
    }

    fn wake(&mut self, event: &Event<'_>, kind: &EventType, woken: Tid) {
        self.first.wake(event, kind, woken);
        self.second.wake(event, kind, woken);
    }

    fn wants_states(&self) -> bool {
        self.first.wants_states() || self.second.wants_states()
    }

    fn wants_markers_alone(&self) -> bool {
        self.first.wants_markers_alone() && self.second.wants_markers_alone()
    }

    fn run_begin(&mut self, tid: Tid, ts: Timestamp) {
        self.first.run_begin(tid, ts);
        self.second.run_begin(tid, ts);
    }

    fn on_cpu(&mut self, names: &Tasks, cpu: Cpu, at: Task, span: Span, prio: i64) -> io::Result<()> {
        self.first.on_cpu(names, cpu, at, span, prio)?;
        self.second.on_cpu(names, cpu, at, span, prio)
    }

    fn state(&mut self, names: &Tasks, at: Task, state: &ThreadState) -> io::Result<()> {
        self.first.state(names, at, state)?;
        self.second.state(names, at, state)
    }

    fn arrow(&mut self, arrow: &Arrow) -> io::Result<()> {
        self.first.arrow(arrow)?;
        self.second.arrow(arrow)
    }

    fn irq_begin(&mut self, cpu: Cpu, ts: Timestamp, name: &str) -> io::Result<()> {
        self.first.irq_begin(cpu, ts, name)?;
        self.second.irq_begin(cpu, ts, name)
    }

    fn irq(&mut self, cpu: Cpu, name: &str, span: Span) -> io::Result<()> {
        self.first.irq(cpu, name, span)?;
        self.second.irq(cpu, name, span)
    }

    fn method_begin(&mut self, at: &MethodThread, method: &MethodLabel, open: &OpenMethod) -> io::Result<()> {
        self.first.method_begin(at, method, open)?;
        self.second.method_begin(at, method, open)
    }

    fn method(&mut self, names: &Tasks, call: &MethodCall<'_>) -> io::Result<()> {
        self.first.method(names, call)?;
        self.second.method(names, call)
    }

    fn stack(
        &mut self,
        at: &MethodThread,
        stack: &[OpenMethod],
        methods: &[MethodLabel],
        until: Timestamp,
    ) -> io::Result<()> {
        self.first.stack(at, stack, methods, until)?;
        self.second.stack(at, stack, methods, until)
    }

    fn sample_set(&mut self, set: u32, tables: &Arc<SampleTables>) {
        self.first.sample_set(set, tables);
        self.second.sample_set(set, tables);
    }

    fn sample(&mut self, names: &Tasks, taken: &TakenSample<'_>) -> io::Result<()> {
        self.first.sample(names, taken)?;
        self.second.sample(names, taken)
    }

    fn track_begin(&mut self, track: &OwnTrack, ts: Timestamp, name: &[u8]) -> io::Result<()> {
        self.first.track_begin(track, ts, name)?;
        self.second.track_begin(track, ts, name)
    }

    fn track_slice(&mut self, track: &OwnTrack, span: Span, name: &[u8], depth: usize) -> io::Result<()> {
        self.first.track_slice(track, span, name, depth)?;
        self.second.track_slice(track, span, name, depth)
    }

    fn track_instant(&mut self, track: &OwnTrack, ts: Timestamp, name: &[u8]) -> io::Result<()> {
        self.first.track_instant(track, ts, name)?;
        self.second.track_instant(track, ts, name)
    }

    fn track_counter(&mut self, track: &OwnTrack, ts: Timestamp, value: CounterValue) -> io::Result<()> {
        self.first.track_counter(track, ts, value)?;
        self.second.track_counter(track, ts, value)
    }

    fn frame(
        &mut self,
        names: &Tasks,
        track: &OwnTrack,
        span: Span,
        frame: &TimelineFrame<'_>,
    ) -> io::Result<()> {
        self.first.frame(names, track, span, frame)?;
        self.second.frame(names, track, span, frame)
    }

    fn track_flow(&mut self, track: &OwnTrack, ts: Timestamp, flow: Flow) -> io::Result<()> {
        self.first.track_flow(track, ts, flow)?;
        self.second.track_flow(track, ts, flow)
    }

    fn other(&mut self, names: &Tasks, at: Task, event: &Event<'_>, kind: &EventType) -> io::Result<()> {
        self.first.other(names, at, event, kind)?;
        self.second.other(names, at, event, kind)
    }

    fn lost(&mut self, cpu: Cpu, ts: Timestamp, count: Option<u64>) -> io::Result<()> {
        self.first.lost(cpu, ts, count)?;
        self.second.lost(cpu, ts, count)
    }

    fn lost_between(&mut self, cpu: Cpu, span: Span, count: Option<u64>) -> io::Result<()> {
        self.first.lost_between(cpu, span, count)?;
        self.second.lost_between(cpu, span, count)
    }

    fn finish(&mut self, tasks: &Tasks, summary: &MergeSummary) -> io::Result<()> {
        self.first.finish(tasks, summary)?;
        self.second.finish(tasks, summary)
    }
}
