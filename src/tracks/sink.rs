//! The tracks as their sinks receive them: slices, states, interrupts and counters on threads and CPUs.

use std::io;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use super::thread_names::{Task, Tasks};
use crate::clock::Timestamp;
use crate::formats::samples::{Sample, SampleTables};
use crate::formats::{CounterValue, Event, EventType, Flow, Head, TimelineFrame, TrackId, TrackOwner};
use crate::ftrace::print_fmt::Symbolizer;
use crate::ftrace::task_state::TaskState;
use crate::ids::{Cpu, Pid, Tid};
use crate::timeline::{MergeSummary, MethodId, MethodThread};

/// A period of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    pub start: Timestamp,
    pub end: Timestamp,
    /// Whether no end was recorded; `end` is then the end of the timeline.
    pub open: bool,
}

/// The owner of a counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum CounterScope {
    Process(Pid),
    Cpu(Cpu),
    System,
}

/// Receives the slices, states and counters of the tracks. Times are in the timeline's clock. `names` has
/// the names of threads and processes as far as they are known at that time.
///
/// A call that only some sinks have a use for is ignored by default.
///
/// A slice or state is passed on when it ends, so that calls are ordered by the end times. Slices of
/// threads are also passed on when they begin.
pub(crate) trait TrackSink {
    /// The sink's observer, which receives some of the calls first.
    fn observer(&mut self) -> Option<&mut dyn TrackObserver> {
        None
    }
    /// The timeline's head: the first call.
    fn head(&mut self, head: &Head) {
        let _ = head;
    }
    /// A slice begins on a thread.
    fn begin(&mut self, at: Task, ts: Timestamp, name: &[u8]) -> io::Result<()> {
        let _ = (at, ts, name);
        Ok(())
    }
    /// A slice of a thread ended.
    fn end(&mut self, names: &Tasks, at: Task, span: Span, name: &[u8]) -> io::Result<()> {
        let _ = (names, at, span, name);
        Ok(())
    }
    /// A slice that belongs to a process, not to a thread, begins or ends. The ends are paired with their
    /// begins already.
    fn async_edge(&mut self, names: &Tasks, pid: Pid, slice: &AsyncSlice<'_>) -> io::Result<()> {
        let _ = (names, pid, slice);
        Ok(())
    }
    /// An instant of a thread.
    fn instant(&mut self, names: &Tasks, at: Task, ts: Timestamp, name: &[u8]) -> io::Result<()> {
        let _ = (names, at, ts, name);
        Ok(())
    }
    /// A value of a counter.
    fn counter(&mut self, names: &Tasks, scope: CounterScope, at: CounterSample<'_>) -> io::Result<()> {
        let _ = (names, scope, at);
        Ok(())
    }
    /// A type of events that begin to come, with the symbols that came last.
    fn event_type(&mut self) {}
    /// The kernel's symbols.
    fn kernel(&mut self, symbolizer: &Arc<Symbolizer>) {
        let _ = symbolizer;
    }
    /// Each event of the kernel's, before the calls for what it means.
    fn seen(&mut self, event: &Event<'_>) {
        let _ = event;
    }
    /// A CPU goes from one thread to another, before the calls for what that ends and begins.
    fn switch(&mut self, at: &CpuSwitch) {
        let _ = at;
    }
    /// The thread `woken` is woken, whatever its state: `event` is the wake-up.
    fn wake(&mut self, event: &Event<'_>, kind: &EventType, woken: Tid) {
        let _ = (event, kind, woken);
    }
    /// Whether the states of threads, the times on CPUs and the arrows are wanted. A sink that follows
    /// [`TrackSink::switch`] and [`TrackSink::wake`] itself has no use for them.
    fn wants_states(&self) -> bool {
        true
    }
    /// Whether nothing but markers is wanted from here on.
    fn wants_markers_alone(&self) -> bool {
        false
    }
    /// A thread gets a CPU.
    fn run_begin(&mut self, tid: Tid, ts: Timestamp) {
        let _ = (tid, ts);
    }
    /// A thread had a CPU.
    fn on_cpu(&mut self, names: &Tasks, cpu: Cpu, at: Task, span: Span, prio: i64) -> io::Result<()> {
        let _ = (names, cpu, at, span, prio);
        Ok(())
    }
    /// A thread was in a state.
    fn state(&mut self, names: &Tasks, at: Task, state: &ThreadState) -> io::Result<()> {
        let _ = (names, at, state);
        Ok(())
    }
    /// A thread has ended, and its id belongs to another one from here on. `names` still has its names.
    fn thread_ended(&mut self, names: &Tasks, at: Task) -> io::Result<()> {
        let _ = (names, at);
        Ok(())
    }
    /// A thread woke another one, or sent a message to it.
    fn arrow(&mut self, arrow: &Arrow) -> io::Result<()> {
        let _ = arrow;
        Ok(())
    }
    /// A CPU begins to serve an interrupt.
    fn irq_begin(&mut self, cpu: Cpu, ts: Timestamp, name: &str) -> io::Result<()> {
        let _ = (cpu, ts, name);
        Ok(())
    }
    /// A CPU served an interrupt.
    fn irq(&mut self, cpu: Cpu, name: &str, span: Span) -> io::Result<()> {
        let _ = (cpu, name, span);
        Ok(())
    }
    /// A method begins on a thread.
    fn method_begin(&mut self, at: &MethodThread, method: &MethodLabel, open: &OpenMethod) -> io::Result<()> {
        let _ = (at, method, open);
        Ok(())
    }
    /// A method ended.
    fn method(&mut self, names: &Tasks, call: &MethodCall<'_>) -> io::Result<()> {
        let _ = (names, call);
        Ok(())
    }
    /// The methods that were open on a thread up to the time `until`. This call comes before each change of
    /// the stack.
    fn stack(
        &mut self,
        at: &MethodThread,
        stack: &[OpenMethod],
        methods: &[MethodLabel],
        until: Timestamp,
    ) -> io::Result<()> {
        let _ = (at, stack, methods, until);
        Ok(())
    }
    /// A set of samples, whose numbers [`TakenSample::set`] and [`TakenSample::sample`] have. It comes before
    /// its samples.
    fn sample_set(&mut self, set: u32, tables: &Arc<SampleTables>) {
        let _ = (set, tables);
    }
    /// A sample was taken of a thread.
    fn sample(&mut self, names: &Tasks, taken: &TakenSample<'_>) -> io::Result<()> {
        let _ = (names, taken);
        Ok(())
    }
    /// A slice begins on a program's own track.
    fn track_begin(&mut self, track: &OwnTrack, ts: Timestamp, name: &[u8]) -> io::Result<()> {
        let _ = (track, ts, name);
        Ok(())
    }
    /// A slice of a program's own track ended. `depth` is the number of slices that stay open on the track.
    fn track_slice(&mut self, track: &OwnTrack, span: Span, name: &[u8], depth: usize) -> io::Result<()> {
        let _ = (track, span, name, depth);
        Ok(())
    }
    /// An instant of a program's own track.
    fn track_instant(&mut self, track: &OwnTrack, ts: Timestamp, name: &[u8]) -> io::Result<()> {
        let _ = (track, ts, name);
        Ok(())
    }
    /// A value of a program's own counter.
    fn track_counter(&mut self, track: &OwnTrack, ts: Timestamp, value: CounterValue) -> io::Result<()> {
        let _ = (track, ts, value);
        Ok(())
    }
    /// A frame of SurfaceFlinger's FrameTimeline. The calls come in the order of the frames' begins, but
    /// those whose end is not known come last: their span ends with the timeline.
    fn frame(
        &mut self,
        names: &Tasks,
        track: &OwnTrack,
        span: Span,
        frame: &TimelineFrame<'_>,
    ) -> io::Result<()> {
        let _ = (names, track, span, frame);
        Ok(())
    }
    /// A flow goes through the event of a track at `ts`. For a slice that has ended the call comes behind
    /// [`TrackSink::track_slice`].
    fn track_flow(&mut self, track: &OwnTrack, ts: Timestamp, flow: Flow) -> io::Result<()> {
        let _ = (track, ts, flow);
        Ok(())
    }
    /// A kernel event that is passed on by no other call.
    fn other(&mut self, names: &Tasks, at: Task, event: &Event<'_>, kind: &EventType) -> io::Result<()> {
        let _ = (names, at, event, kind);
        Ok(())
    }
    /// Events of a CPU are missing after the time `ts`, the latest time so far; `count` is how many, where
    /// the kernel counted them.
    fn lost(&mut self, cpu: Cpu, ts: Timestamp, count: Option<u64>) -> io::Result<()> {
        let _ = (cpu, ts, count);
        Ok(())
    }
    /// Events of a CPU are missing between its events at the begin and at the end of `span`; `count` is how
    /// many, where the kernel counted them. A loss before the CPU's first event begins at 0.
    fn lost_between(&mut self, cpu: Cpu, span: Span, count: Option<u64>) -> io::Result<()> {
        let _ = (cpu, span, count);
        Ok(())
    }
    fn finish(&mut self, tasks: &Tasks, summary: &MergeSummary) -> io::Result<()>;
}

/// Watches the calls of a [`TrackSink`] that markers and programs' own tracks make, and receives each before
/// the sink does. A sink whose output needs to know the launches and frames of a timeline has one that finds
/// them.
pub(crate) trait TrackObserver {
    /// See [`TrackSink::head`].
    fn head(&mut self, head: &Head);
    /// See [`TrackSink::begin`].
    fn begin(&mut self, at: Task, ts: Timestamp, name: &[u8]);
    /// See [`TrackSink::end`].
    fn end(&mut self, at: Task, span: Span, name: &[u8]);
    /// See [`TrackSink::async_edge`].
    fn async_edge(&mut self, pid: Pid, slice: &AsyncSlice<'_>);
    /// See [`TrackSink::instant`].
    fn instant(&mut self, ts: Timestamp, name: &[u8]);
    /// See [`TrackSink::counter`].
    fn counter(&mut self, at: &CounterSample<'_>);
    /// See [`TrackSink::frame`].
    fn frame(&mut self, span: Span, frame: &TimelineFrame<'_>);
    /// See [`TrackSink::track_begin`].
    fn track_begin(&mut self, track: &OwnTrack, ts: Timestamp, name: &[u8]);
    /// See [`TrackSink::track_slice`].
    fn track_slice(&mut self, track: &OwnTrack, span: Span, name: &[u8]);
    /// See [`TrackSink::track_instant`].
    fn track_instant(&mut self, ts: Timestamp, name: &[u8]);
}

/// A sink whose observer receives its calls first. Calls that no observer wants go to the sink directly.
pub(crate) struct ObservedSink<S>(pub(super) S);

impl<S> Deref for ObservedSink<S> {
    type Target = S;

    fn deref(&self) -> &S {
        &self.0
    }
}

impl<S> DerefMut for ObservedSink<S> {
    fn deref_mut(&mut self) -> &mut S {
        &mut self.0
    }
}

impl<S: TrackSink> ObservedSink<S> {
    pub fn head(&mut self, head: &Head) {
        if let Some(observer) = self.0.observer() {
            observer.head(head);
        }
        self.0.head(head);
    }

    pub fn begin(&mut self, at: Task, ts: Timestamp, name: &[u8]) -> io::Result<()> {
        if let Some(observer) = self.0.observer() {
            observer.begin(at, ts, name);
        }
        self.0.begin(at, ts, name)
    }

    pub fn end(&mut self, names: &Tasks, at: Task, span: Span, name: &[u8]) -> io::Result<()> {
        if let Some(observer) = self.0.observer() {
            observer.end(at, span, name);
        }
        self.0.end(names, at, span, name)
    }

    pub fn async_edge(&mut self, names: &Tasks, pid: Pid, slice: &AsyncSlice<'_>) -> io::Result<()> {
        if let Some(observer) = self.0.observer() {
            observer.async_edge(pid, slice);
        }
        self.0.async_edge(names, pid, slice)
    }

    pub fn instant(&mut self, names: &Tasks, at: Task, ts: Timestamp, name: &[u8]) -> io::Result<()> {
        if let Some(observer) = self.0.observer() {
            observer.instant(ts, name);
        }
        self.0.instant(names, at, ts, name)
    }

    pub fn counter(&mut self, names: &Tasks, scope: CounterScope, at: CounterSample<'_>) -> io::Result<()> {
        if let Some(observer) = self.0.observer() {
            observer.counter(&at);
        }
        self.0.counter(names, scope, at)
    }

    pub fn frame(
        &mut self,
        names: &Tasks,
        track: &OwnTrack,
        span: Span,
        frame: &TimelineFrame<'_>,
    ) -> io::Result<()> {
        if let Some(observer) = self.0.observer() {
            observer.frame(span, frame);
        }
        self.0.frame(names, track, span, frame)
    }

    pub fn track_begin(&mut self, track: &OwnTrack, ts: Timestamp, name: &[u8]) -> io::Result<()> {
        if let Some(observer) = self.0.observer() {
            observer.track_begin(track, ts, name);
        }
        self.0.track_begin(track, ts, name)
    }

    pub fn track_slice(&mut self, track: &OwnTrack, span: Span, name: &[u8], depth: usize) -> io::Result<()> {
        if let Some(observer) = self.0.observer() {
            observer.track_slice(track, span, name);
        }
        self.0.track_slice(track, span, name, depth)
    }

    pub fn track_instant(&mut self, track: &OwnTrack, ts: Timestamp, name: &[u8]) -> io::Result<()> {
        if let Some(observer) = self.0.observer() {
            observer.track_instant(ts, name);
        }
        self.0.track_instant(track, ts, name)
    }
}

/// A sample, with the tables of its set.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TakenSample<'a> {
    /// The number of the set.
    pub set: u32,
    pub tables: &'a SampleTables,
    /// The thread of which the sample was taken.
    pub at: Task,
    /// The sample; its time is that of the timeline.
    pub sample: Sample,
}

/// A CPU goes from one thread to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CpuSwitch {
    pub ts: Timestamp,
    pub cpu: Cpu,
    pub left: Tid,
    /// The state in which the thread left the CPU: the bits of `prev_state`.
    pub left_state: u64,
    pub entered: Tid,
    /// The kernel's priority of the thread that gets the CPU: below 100 is real-time, 120 is nice 0.
    pub entered_prio: i64,
}

/// A period in which a thread was in one state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ThreadState {
    pub state: TaskState,
    pub span: Span,
    /// The CPU on which the thread ran.
    pub cpu: Option<Cpu>,
    /// The thread that ended this state by a wake-up; 0 is the idle task, where an interrupt woke the thread.
    pub waker: Option<Tid>,
}

/// The kind of an [`Arrow`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum ArrowKind {
    /// A thread woke another one.
    Wakeup,
    /// A thread sent a binder transaction, and another one received it.
    Binder,
}

/// Something that leads from one thread to another: each end has its time and its thread id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Arrow {
    pub kind: ArrowKind,
    pub from: (Timestamp, Tid),
    pub to: (Timestamp, Tid),
}

/// The begin or the end of an asynchronous slice.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AsyncSlice<'a> {
    /// Number of the slice, the same at its begin and its end. Slices are numbered by their begins.
    pub id: u64,
    /// The track's name, where the marker names one.
    pub track: Option<&'a [u8]>,
    /// The name that the begin has. Only an end without a begin has its own.
    pub name: &'a [u8],
    pub cookie: i64,
    pub ts: Timestamp,
    pub edge: AsyncEdge,
}

impl AsyncSlice<'_> {
    /// The whole slice, if this is its end and its begin was recorded.
    pub fn ended(&self) -> Option<Span> {
        match self.edge {
            AsyncEdge::End { begin, open } => Some(Span { start: begin, end: self.ts, open }),
            AsyncEdge::Begin | AsyncEdge::EndWithoutBegin | AsyncEdge::Instant => None,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AsyncEdge {
    Begin,
    /// The slice ends. `open` is true if no end was recorded: the slice then ends with the timeline.
    End {
        begin: Timestamp,
        open: bool,
    },
    /// The slice ends, and its begin was not recorded. Outputs leave it out; [`TrackSink::async_edge`] passes
    /// it on for launches that began before the recording.
    EndWithoutBegin,
    Instant,
}

/// A value of a counter, and the time from which the counter has this value.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CounterSample<'a> {
    pub name: &'a str,
    pub ts: Timestamp,
    pub value: i64,
}

/// How a method is labelled.
#[derive(Debug, Clone, Default)]
pub(crate) struct MethodLabel {
    /// Class and method: `java.lang.String.valueOf`.
    pub full: String,
    /// `(I)Ljava/lang/String;`, or empty.
    pub signature: String,
    /// The source file, or empty.
    pub file: String,
    /// The line in the source file, where it is known.
    pub line: Option<u32>,
}

/// One call of a method.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MethodCall<'a> {
    pub at: &'a MethodThread,
    pub method: &'a MethodLabel,
    pub span: Span,
    /// The thread's CPU time at the begin and at the end, ns, where the trace has it beside wall time.
    pub cpu: Option<(u64, u64)>,
    /// The number of methods that stay open on the thread.
    pub depth: usize,
}

/// A method that is open on a thread.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OpenMethod {
    /// The time of the begin.
    pub begun: Timestamp,
    /// The thread's CPU time at the begin, ns, where the trace has it.
    pub cpu: Option<u64>,
    pub method: MethodId,
}

/// A track, and the slices that are open on it.
pub(crate) struct OwnTrack {
    pub id: TrackId,
    /// The track's own name; empty for the track that stands for its owner.
    pub name: String,
    pub owner: TrackOwner,
    /// The slices that are open.
    pub(super) open: Vec<OpenOwnSlice>,
    /// The arguments of the slice or the instant that is passed on.
    pub(super) args: TrackArgs,
}

/// The arguments of a slice or an instant: the name and the text of each.
pub(crate) type TrackArgs = Vec<(&'static str, Vec<u8>)>;

/// A slice that is open on a program's own track.
pub(crate) struct OpenOwnSlice {
    /// The time of the begin.
    pub start: Timestamp,
    pub name: Vec<u8>,
    pub args: TrackArgs,
}

impl OwnTrack {
    /// The track's process and thread, as far as it belongs to one.
    pub fn place(&self) -> (Option<Pid>, Option<Tid>) {
        match self.owner {
            TrackOwner::Thread { tid, tgid } => (tgid, Some(tid)),
            TrackOwner::Process(pid) => (Some(pid), None),
            TrackOwner::Machine => (None, None),
        }
    }

    /// The arguments of the slice or the instant that is passed on. Those of a slice are whole at its end.
    pub fn args(&self) -> &[(&'static str, Vec<u8>)] {
        &self.args
    }

    /// The same for people: `args: 3, "x", 1; ret: 1`.
    pub fn details(&self) -> Vec<u8> {
        let args = self.args.iter().map(|(name, value)| [name.as_bytes(), b": ", value].concat());
        args.collect::<Vec<_>>().join(&b"; "[..])
    }

    /// The track's name; where it has none, what it belongs to.
    pub fn label(&self) -> String {
        match (self.name.as_str(), self.owner) {
            ("", TrackOwner::Thread { tid, .. }) => format!("thread {tid}"),
            ("", TrackOwner::Process(pid)) => format!("process {pid}"),
            ("", TrackOwner::Machine) => "track events".to_owned(),
            (name, _) => name.to_owned(),
        }
    }
}

/// The value of a counter, as a whole number where it is one.
pub(crate) fn counter_number(value: CounterValue) -> Result<i64, f64> {
    match value {
        CounterValue::Int(value) => Ok(value),
        CounterValue::Double(value) if value.fract() == 0.0 && value.abs() < 9.0e15 => Ok(value as i64),
        CounterValue::Double(value) => Err(value),
    }
}
