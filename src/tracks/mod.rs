//! Builds tracks from a timeline: slices, thread states, interrupts and counters on threads and CPUs.
//!
//! The exporters of formats that know nothing of ftrace implement [`TrackSink`]. A [`TrackBuilder`]
//! follows the kernel's events, the markers and the methods, and calls the sink for each slice, state and
//! counter value.

mod both;
mod counters;
mod interrupts;
mod losses;
mod own_track;
mod own_track_events;
mod slices;
pub(crate) mod thread_names;
pub(crate) mod thread_states;

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::sync::Arc;

use rustc_hash::FxHashMap;

pub(crate) use self::both::Both;
pub(crate) use self::own_track::{OwnTrack, counter_number};
use self::thread_names::{NamedThread, ThreadNames};
use crate::formats::{
    CounterValue, Event, EventType, EventTypeId, Flow, Head, Order, OwnedTrackEvent, ProcessInfo, Sink,
    ThreadInfo, TimelineFrame, Track, TrackEvent,
};
use crate::ftrace::print_fmt::Symbolizer;
pub(crate) use crate::timeline::CPU_FREQUENCY;
use crate::timeline::{
    DataCounts, DataKind, Edge, EventRole, MergeSummary, MethodId, MethodName, MethodThread, TimelineSink,
};

/// A thread of the kernel, and its process where the timeline names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Task {
    pub tid: i32,
    pub tgid: Option<i32>,
}

/// A period of time, ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    pub start: u64,
    pub end: u64,
    /// Whether no end was recorded; `end` is then the end of the timeline.
    pub open: bool,
}

/// The thread that has a CPU.
struct RunningTask {
    tid: i32,
    /// The time since which the thread has had the CPU, ns.
    since: u64,
    prio: i64,
}

/// The state of a thread since the time `since`, ns.
struct OpenState {
    state: &'static str,
    since: u64,
    /// The CPU on which the thread runs.
    cpu: Option<u32>,
    /// The uninterruptible sleep before this state: `sched_blocked_reason` comes after its end.
    sleep_before: Option<ThreadState>,
}

/// What a counter belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum CounterScope {
    Process(i32),
    Cpu(u32),
    System,
}

/// The names of threads and processes. The names are complete only at the end of the timeline.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tasks {
    pub threads: ThreadNames,
    pub processes: BTreeMap<i32, String>,
}

impl Tasks {
    pub fn task(&self, tid: i32) -> Task {
        Task { tid, tgid: self.threads.tgid(tid) }
    }

    pub fn thread_name(&self, tid: i32) -> Cow<'_, str> {
        self.threads.get(tid).and_then(NamedThread::name_text).unwrap_or_default()
    }

    /// The process's own name, or the name of its main thread.
    pub fn process_name(&self, pid: i32) -> Cow<'_, str> {
        self.processes.get(&pid).map_or_else(|| self.thread_name(pid), |name| name.as_str().into())
    }
}

/// Receives the slices, states and counters of the tracks. Times are ns in the timeline's clock. `names` has
/// the names of threads and processes as far as they are known at that time.
///
/// What only some sinks have a use for is ignored by default.
///
/// A slice or state is passed on when it ends, so that calls are ordered by the end times. Slices of
/// threads are also passed on when they begin.
pub(crate) trait TrackSink {
    /// The timeline's head: the first call.
    fn head(&mut self, head: &Head) {
        let _ = head;
    }
    /// A slice begins on a thread.
    fn begin(&mut self, at: Task, ts: u64, name: &[u8]) -> io::Result<()> {
        let _ = (at, ts, name);
        Ok(())
    }
    /// A slice of a thread ended.
    fn end(&mut self, names: &Tasks, at: Task, span: Span, name: &[u8]) -> io::Result<()>;
    /// A slice that belongs to a process, not to a thread, begins or ends.
    fn async_edge(&mut self, names: &Tasks, pid: i32, slice: &AsyncSlice<'_>) -> io::Result<()>;
    fn instant(&mut self, names: &Tasks, at: Task, ts: u64, name: &[u8]) -> io::Result<()>;
    fn counter(&mut self, names: &Tasks, scope: CounterScope, at: CounterSample<'_>) -> io::Result<()>;
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
    fn wake(&mut self, event: &Event<'_>, kind: &EventType, woken: i32) {
        let _ = (event, kind, woken);
    }
    /// Whether the states of threads, the times on CPUs and the arrows are wanted. A sink that follows
    /// [`TrackSink::switch`] and [`TrackSink::wake`] itself has no use for them.
    fn wants_states(&self) -> bool {
        true
    }
    /// A thread gets a CPU.
    fn run_begin(&mut self, tid: i32, ts: u64) {
        let _ = (tid, ts);
    }
    /// A thread had a CPU.
    fn on_cpu(&mut self, names: &Tasks, cpu: u32, at: Task, span: Span, prio: i64) -> io::Result<()> {
        let _ = (names, cpu, at, span, prio);
        Ok(())
    }
    /// A thread was in a state.
    fn state(&mut self, names: &Tasks, at: Task, state: &ThreadState) -> io::Result<()> {
        let _ = (names, at, state);
        Ok(())
    }
    /// A thread woke another one, or sent a message to it.
    fn arrow(&mut self, arrow: &Arrow) -> io::Result<()> {
        let _ = arrow;
        Ok(())
    }
    /// A CPU begins to serve an interrupt.
    fn irq_begin(&mut self, cpu: u32, ts: u64, name: &str) -> io::Result<()> {
        let _ = (cpu, ts, name);
        Ok(())
    }
    /// A CPU served an interrupt.
    fn irq(&mut self, cpu: u32, name: &str, span: Span) -> io::Result<()> {
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
        until: u64,
    ) -> io::Result<()> {
        let _ = (at, stack, methods, until);
        Ok(())
    }
    /// A slice begins on a program's own track.
    fn track_begin(&mut self, track: &OwnTrack, ts: u64, name: &[u8]) -> io::Result<()> {
        let _ = (track, ts, name);
        Ok(())
    }
    /// A slice of a program's own track ended. `depth` is the number of slices that stay open on the track.
    fn track_slice(&mut self, track: &OwnTrack, span: Span, name: &[u8], depth: usize) -> io::Result<()> {
        let _ = (track, span, name, depth);
        Ok(())
    }
    /// An instant of a program's own track.
    fn track_instant(&mut self, track: &OwnTrack, ts: u64, name: &[u8]) -> io::Result<()> {
        let _ = (track, ts, name);
        Ok(())
    }
    /// A value of a program's own counter.
    fn track_counter(&mut self, track: &OwnTrack, ts: u64, value: CounterValue) -> io::Result<()> {
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
    ) -> io::Result<()>;
    /// A flow goes through the event of a track at `ts`. For a slice that has ended the call comes behind
    /// [`TrackSink::track_slice`].
    fn track_flow(&mut self, track: &OwnTrack, ts: u64, flow: Flow) -> io::Result<()> {
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
    fn lost(&mut self, cpu: u32, ts: u64, count: Option<u64>) -> io::Result<()> {
        let _ = (cpu, ts, count);
        Ok(())
    }
    /// Events of a CPU are missing between its events at the begin and at the end of `span`; `count` is how
    /// many, where the kernel counted them. A loss before the CPU's first event begins at 0.
    fn lost_between(&mut self, cpu: u32, span: Span, count: Option<u64>) -> io::Result<()> {
        let _ = (cpu, span, count);
        Ok(())
    }
    fn finish(&mut self, tasks: &Tasks, summary: &MergeSummary) -> io::Result<()>;
}

/// A CPU goes from one thread to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CpuSwitch {
    /// ns.
    pub ts: u64,
    pub cpu: u32,
    pub left: i32,
    /// The state in which the thread left the CPU: the bits of `prev_state`.
    pub left_state: u64,
    pub entered: i32,
    /// The kernel's priority of the thread that gets the CPU: below 100 is real-time, 120 is nice 0.
    pub entered_prio: i64,
}

/// A period in which a thread was in one state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ThreadState {
    /// `Running`, `Runnable`, `Sleeping` …
    pub state: &'static str,
    pub span: Span,
    /// The CPU on which the thread ran.
    pub cpu: Option<u32>,
    /// The thread that ended this state by a wake-up; 0 is the idle task, where an interrupt woke the thread.
    pub waker: Option<i32>,
}

/// What an [`Arrow`] stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum ArrowKind {
    /// A thread woke another one.
    Wakeup,
    /// A thread sent a binder transaction, and another one received it.
    Binder,
}

/// Something that leads from one thread to another: each end has its time, ns, and its thread id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Arrow {
    pub kind: ArrowKind,
    pub from: (u64, i32),
    pub to: (u64, i32),
}

/// The begin or the end of an asynchronous slice.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AsyncSlice<'a> {
    /// The track's name, where the marker names one.
    pub track: Option<&'a [u8]>,
    pub name: &'a [u8],
    pub cookie: i64,
    pub ts: u64,
    pub edge: AsyncEdge,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AsyncEdge {
    Begin,
    /// The slice ends. Holds the time of the begin, ns, if the begin was recorded.
    End(Option<u64>),
    Instant,
}

/// A value of a counter, and the time from which the counter has this value, ns.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CounterSample<'a> {
    pub name: &'a str,
    pub ts: u64,
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
    /// The time of the begin, ns.
    pub begun: u64,
    /// The thread's CPU time at the begin, ns, where the trace has it.
    pub cpu: Option<u64>,
    pub method: MethodId,
}

/// A method thread with its open methods.
type MethodStack = (MethodThread, Vec<OpenMethod>);

/// The slices that are open on a thread.
#[derive(Debug, Default)]
struct OpenSlices {
    /// The time of the begin, and where the name begins in `names`.
    slices: Vec<(u64, usize)>,
    /// The names, one behind the other.
    names: Vec<u8>,
}

impl OpenSlices {
    fn begin(&mut self, ts: u64, name: &[u8]) {
        self.slices.push((ts, self.names.len()));
        self.names.extend_from_slice(name);
    }
}

pub(crate) struct TrackBuilder<S> {
    sink: S,
    /// Whether kernel events other than markers are left out.
    is_of_markers: bool,
    /// Indexed by event type.
    roles: Vec<EventRole>,
    tasks: Tasks,
    /// Open slices by thread.
    slices: FxHashMap<i32, OpenSlices>,
    /// The begin of each open asynchronous slice, by process, track (or name) and cookie.
    asyncs: HashMap<(i32, Vec<u8>, i64), u64>,
    cpus: BTreeMap<u32, RunningTask>,
    /// The state of each thread.
    states: HashMap<i32, OpenState>,
    /// The time and the sender of each binder transaction that nobody has received yet, by its number.
    binder_sent: HashMap<i64, (u64, i32)>,
    /// By CPU: the time of the last event, and the counts of the losses behind it.
    cpu_losses: BTreeMap<u32, (u64, Vec<Option<u64>>)>,
    /// Open interrupts by CPU: the time of the begin, and the name.
    irqs: HashMap<u32, Vec<(u64, String)>>,
    /// Indexed by method id.
    methods: Vec<MethodLabel>,
    /// By [`MethodThread::index`].
    method_threads: HashMap<u32, MethodStack>,
    /// Indexed by track.
    own_tracks: Vec<OwnTrack>,
    /// Frames whose end is not known.
    open_frames: Vec<OwnedTrackEvent>,
    last_ts: u64,
    /// Ends of slices and interrupts whose begin was not recorded.
    unmatched_ends: u64,
}

impl<S: TrackSink> TrackBuilder<S> {
    pub fn new(sink: S) -> Self {
        TrackBuilder {
            sink,
            is_of_markers: false,
            roles: Vec::new(),
            tasks: Tasks::default(),
            slices: FxHashMap::default(),
            asyncs: HashMap::new(),
            cpus: BTreeMap::new(),
            states: HashMap::new(),
            binder_sent: HashMap::new(),
            cpu_losses: BTreeMap::new(),
            irqs: HashMap::new(),
            methods: Vec::new(),
            method_threads: HashMap::new(),
            own_tracks: Vec::new(),
            open_frames: Vec::new(),
            last_ts: 0,
            unmatched_ends: 0,
        }
    }

    /// Builds only what markers describe: no states of threads, and nothing of the kernel's own events.
    pub fn of_markers(sink: S) -> Self {
        TrackBuilder { is_of_markers: true, ..TrackBuilder::new(sink) }
    }
}

impl<S: TrackSink> TrackBuilder<S> {
    pub fn sink(&mut self) -> &mut S {
        &mut self.sink
    }

    /// The names of threads and processes as far as they are known.
    pub fn tasks(&self) -> &Tasks {
        &self.tasks
    }

    /// Passes on an event that has no other role.
    fn other(&mut self, event: &Event<'_>, kind: &EventType) -> io::Result<()> {
        let at = self.tasks.task(event.tid);
        self.sink.other(&self.tasks, at, event, kind)
    }
}

impl<S: TrackSink> Sink for TrackBuilder<S> {
    fn head(&mut self, head: &Head) -> io::Result<()> {
        self.sink.head(head);
        Ok(())
    }

    fn event_type(&mut self, _: EventTypeId, kind: &EventType) -> io::Result<()> {
        self.roles.push(EventRole::of(kind));
        Ok(())
    }

    fn kernel(&mut self, symbolizer: &Arc<Symbolizer>) -> io::Result<()> {
        self.sink.kernel(symbolizer);
        Ok(())
    }

    fn thread(&mut self, thread: &ThreadInfo<'_>) -> io::Result<()> {
        self.tasks.threads.learn(thread.tid, thread.tgid, thread.name);
        Ok(())
    }

    fn process(&mut self, process: &ProcessInfo<'_>) -> io::Result<()> {
        if let Some(name) = process.name {
            self.tasks.processes.insert(process.pid, String::from_utf8_lossy(name).into_owned());
        }
        Ok(())
    }

    fn track(&mut self, track: &Track<'_>) -> io::Result<()> {
        self.add_track(track);
        Ok(())
    }

    fn track_event(&mut self, event: &TrackEvent<'_>) -> io::Result<()> {
        self.own_track_event(event)
    }

    fn event(&mut self, event: &Event<'_>, kind: &EventType) -> io::Result<()> {
        self.last_ts = self.last_ts.max(event.ts);
        let role = *self.roles.get(event.kind.0 as usize).unwrap_or(&EventRole::Other);
        if self.is_of_markers && !matches!(role, EventRole::Print { .. }) {
            return Ok(());
        }
        self.end_losses(event)?;
        self.sink.seen(event);
        if event.tid > 0 && (event.comm.is_some() || event.tgid.is_some()) {
            self.tasks.threads.learn(event.tid, event.tgid, event.comm);
        }
        match role {
            EventRole::Switch { prev, next } => self.switch(event, kind, prev, next),
            EventRole::Waking { pid, comm } => self.wake(event, kind, pid, comm),
            EventRole::Print { buf } => self.marker(event, event.text(kind, buf).unwrap_or(b"")),
            EventRole::CpuCounter { name, value, cpu } => self.cpu_counter(event, kind, name, value, cpu),
            EventRole::Clock { name, value } => self.clock_rate(event, kind, name, value),
            EventRole::IrqEntry { name } => self.irq_entry(event, kind, name),
            EventRole::SoftirqEntry { vec } => self.softirq_entry(event, kind, vec),
            EventRole::IrqExit => self.irq_exit(event),
            EventRole::BlockedReason { pid, io_wait } => {
                self.blocked_reason(event, kind, pid, io_wait);
                self.other(event, kind)
            }
            EventRole::BinderSend { id } => {
                if let Some(id) = event.int(kind, id) {
                    self.binder_sent.insert(id, (event.ts, event.tid));
                }
                self.other(event, kind)
            }
            EventRole::BinderReceive { id } => {
                let sent = event.int(kind, id).and_then(|id| self.binder_sent.remove(&id));
                if let Some(from) = sent {
                    self.sink.arrow(&Arrow { kind: ArrowKind::Binder, from, to: (event.ts, event.tid) })?;
                }
                self.other(event, kind)
            }
            EventRole::Other => self.other(event, kind),
        }
    }

    fn lost(&mut self, cpu: u32, count: Option<u64>) -> io::Result<()> {
        self.cpu_losses.entry(cpu).or_default().1.push(count);
        self.sink.lost(cpu, self.last_ts, count)
    }
}

impl<S: TrackSink> TimelineSink for TrackBuilder<S> {
    fn order(&mut self) -> Order {
        Order::Time
    }

    fn method(&mut self, id: MethodId, name: &MethodName<'_>) -> io::Result<()> {
        let full = match name.class {
            "" => name.name.to_owned(),
            class => format!("{class}.{}", name.name),
        };
        let at = id.0 as usize;
        if self.methods.len() <= at {
            self.methods.resize(at + 1, MethodLabel::default());
        }
        self.methods[at] =
            MethodLabel { full, signature: name.signature.to_owned(), file: name.file.to_owned() };
        Ok(())
    }

    fn method_thread(&mut self, thread: &MethodThread) -> io::Result<()> {
        if let Some(tid) = thread.tid {
            self.tasks.threads.learn(tid, thread.tgid, Some(thread.name.as_bytes()));
        }
        self.method_threads.insert(thread.index, (thread.clone(), Vec::new()));
        Ok(())
    }

    fn edges(&mut self, thread: u32, edges: &[Edge]) -> io::Result<()> {
        self.method_edges(thread, edges)
    }

    fn finish(&mut self, summary: &MergeSummary) -> io::Result<()> {
        // What is open at the end of a part goes on behind it.
        let end = summary.window.map_or(self.last_ts, |window| self.last_ts.max(window.to));
        self.close_losses(end)?;
        self.close_slices(end)?;
        self.close_track_slices(end)?;
        self.close_frames(end)?;
        self.close_thread_states(end)?;
        self.close_interrupts(end)?;
        self.sink.finish(&self.tasks, summary)
    }

    fn not_written(&mut self) -> DataCounts {
        let mut counts = DataCounts::default();
        counts.add(DataKind::UnmatchedEnds, self.unmatched_ends);
        counts
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::clock::Clock;
    use crate::formats::{ReadReport, ftrace_text};
    use crate::timeline::EdgeKind;

    /// Two threads of process 7, a wakeup, an interrupt, every kind of marker.
    pub(crate) const TEXT: &str = "\
 a-7 (7) [000] d..2 1.000000: sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=main,app next_pid=7 next_prio=110
 a-7 (7) [000] ...1 1.000010: tracing_mark_write: B|7|draw \"x\"
 a-7 (7) [000] ...1 1.000020: tracing_mark_write: C|7|bytes|9007199254740993
 a-7 (7) [000] ...1 1.000021: tracing_mark_write: S|7|load|4
 a-7 (7) [000] ...1 1.000022: tracing_mark_write: I|7|moment
 a-7 (7) [000] d.h1 1.000030: irq_handler_entry: irq=3 name=touch
 a-7 (7) [000] d.h1 1.000035: irq_handler_exit: irq=3 ret=handled
 a-7 (7) [000] d..2 1.000040: sched_waking: comm=worker pid=8 prio=120 target_cpu=001
 b-8 (7) [001] d..2 1.000050: sched_switch: prev_comm=swapper/1 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=worker next_pid=8 next_prio=120
 b-8 (7) [001] ...1 1.000055: tracing_mark_write: F|7|load|4
 b-8 (7) [001] ...1 1.000056: cpu_frequency: state=600000 cpu_id=1
 b-8 (7) [001] ...1 1.000057: foo: a=1 b=two
 a-7 (7) [000] ...1 1.000060: tracing_mark_write: E|7
 b-8 (7) [001] d..2 1.000070: sched_switch: prev_comm=worker prev_pid=8 prev_prio=120 prev_state=S ==> next_comm=swapper/1 next_pid=0 next_prio=120
 a-7 (7) [000] ...1 1.000080: tracing_mark_write: B|7|open
";

    /// Where the exporters under test write to.
    type Out = Box<dyn io::Write + Send>;

    #[derive(Clone, Default)]
    struct SharedBytes(Arc<Mutex<Vec<u8>>>);

    impl io::Write for SharedBytes {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Returns the output of the exporter for `text` and one method on thread 7.
    pub(crate) fn export(create: impl Fn(Out) -> Box<dyn TimelineSink>, text: &str) -> String {
        export_methods(create, text, &example_thread())
    }

    /// Returns the output of the exporter for `text` and one method on `thread`.
    pub(crate) fn export_methods(
        create: impl Fn(Out) -> Box<dyn TimelineSink>,
        text: &str,
        thread: &MethodThread,
    ) -> String {
        let out = SharedBytes::default();
        let mut sink = create(Box::new(out.clone()));
        let report = push_methods(&mut *sink, text, thread);
        sink.finish(&summary(report)).unwrap();
        drop(sink);
        let bytes = out.0.lock().unwrap().clone();
        String::from_utf8(bytes).unwrap()
    }

    /// Pushes `text` and one method call on thread 7.
    pub(crate) fn push_example(sink: &mut dyn TimelineSink, text: &str) -> ReadReport {
        push_methods(sink, text, &example_thread())
    }

    fn push_methods(sink: &mut dyn TimelineSink, text: &str, thread: &MethodThread) -> ReadReport {
        let order = sink.order();
        let report = ftrace_text::read(text.as_bytes(), order, &mut *sink).unwrap();
        let name = MethodName { class: "a.B", name: "run", signature: "()V", file: "B.java" };
        sink.method(MethodId(0), &name).unwrap();
        sink.method_thread(thread).unwrap();
        let edge = |ts, kind| Edge { ts, cpu: None, method: MethodId(0), kind };
        let edges = [edge(1_000_012_345, EdgeKind::Enter), edge(1_000_055_000, EdgeKind::Exit)];
        sink.edges(thread.index, &edges).unwrap();
        report
    }

    fn example_thread() -> MethodThread {
        let name = "main".into();
        MethodThread { index: 0, tid: Some(7), tgid: Some(7), name, trace_id: 1, doubt: None }
    }

    fn summary(report: ReadReport) -> MergeSummary {
        let summary = MergeSummary::new(Clock::Boottime, Vec::new(), report);
        MergeSummary { markers: 7, methods: 1, threads: 2, ..summary }
    }
}
