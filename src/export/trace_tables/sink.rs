//! Makes rows of slices, states, counters and calls as they end, and keeps the slices that have begun and not
//! ended, with the CPU time of threads.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::Hash;
use std::io;

use crate::clock::Timestamp;
use crate::formats::samples::{FrameKind, SampleTables};
use crate::formats::{CounterValue, Event, EventType, event_catalog};
use crate::ids::{Cpu, Pid, Tid};
use crate::measure::Finder;
use crate::tables::{Cell, TableId, TraceRows};
use crate::timeline::{MergeSummary, MethodThread};
use crate::tracks::{
    AsyncEdge, AsyncSlice, CounterSample, CounterScope, MethodCall, MethodLabel, OpenMethod, OwnTrack, Span,
    TakenSample, Task, Tasks, ThreadState, TrackObserver, TrackSink, counter_number,
};

/// A slice that has begun.
#[derive(Debug, Clone, Copy)]
pub(super) struct StackedSlice {
    /// The slice's number in its trace.
    pub id: u64,
    /// The time of the slices in it that have ended, ns.
    inside_ns: u64,
    /// The CPU time of its thread at its begin, ns, where it is known.
    pub cpu_ns: Option<u64>,
}

/// A slice that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct EndedSlice {
    pub id: u64,
    /// The slice around it.
    pub parent: Option<u64>,
    /// The number of slices around it.
    pub depth: usize,
    /// Its time without the slices in it, ns.
    pub exclusive_ns: u64,
    /// The CPU time of its thread at its begin, ns, where it is known.
    pub cpu_ns: Option<u64>,
}

/// The open slices of each thread or track, outermost first.
#[derive(Debug)]
pub(super) struct SliceStacks<K> {
    open: HashMap<K, Vec<StackedSlice>>,
}

impl<K> Default for SliceStacks<K> {
    fn default() -> Self {
        SliceStacks { open: HashMap::new() }
    }
}

impl<K: Eq + Hash> SliceStacks<K> {
    pub fn begin(&mut self, place: K, id: u64, cpu_ns: Option<u64>) {
        self.open.entry(place).or_default().push(StackedSlice { id, inside_ns: 0, cpu_ns });
    }

    /// The innermost open slice.
    pub fn innermost(&self, place: &K) -> Option<u64> {
        self.open.get(place)?.last().map(|slice| slice.id)
    }

    /// Ends the innermost slice, which took `ns`. `None` where none is open.
    pub fn end(&mut self, place: &K, ns: u64) -> Option<EndedSlice> {
        let open = self.open.get_mut(place)?;
        let slice = open.pop()?;
        let outer = open.last_mut();
        let parent = outer.as_ref().map(|outer| outer.id);
        if let Some(outer) = outer {
            outer.inside_ns = outer.inside_ns.saturating_add(ns);
        }
        Some(EndedSlice {
            id: slice.id,
            parent,
            depth: open.len(),
            exclusive_ns: ns.saturating_sub(slice.inside_ns),
            cpu_ns: slice.cpu_ns,
        })
    }
}

/// The time that each thread has had a CPU.
#[derive(Debug, Default)]
pub(super) struct CpuTimes {
    /// By thread: the time of the periods that have ended, ns, and the begin of one that has not.
    threads: HashMap<Tid, (u64, Option<Timestamp>)>,
}

impl CpuTimes {
    /// The thread gets a CPU.
    pub fn begin(&mut self, tid: Tid, ts: Timestamp) {
        self.threads.entry(tid).or_default().1 = Some(ts);
    }

    /// The thread has had a CPU for `ns`.
    pub fn end(&mut self, tid: Tid, ns: u64) {
        let thread = self.threads.entry(tid).or_default();
        *thread = (thread.0.saturating_add(ns), None);
    }

    /// How long the thread that runs at `ts` has had a CPU, ns; `None` where it is not known to run, because
    /// its switch was not recorded.
    pub fn at(&self, tid: Tid, ts: Timestamp) -> Option<u64> {
        let (before, since) = self.threads.get(&tid)?;
        Some(before.saturating_add(ts.since((*since)?)))
    }
}

/// The tables that are large, and are empty unless they are wanted.
#[derive(Debug, Clone, Copy, Default)]
pub struct LargeTables {
    /// `method_call`: a row for each call of a method.
    pub method_calls: bool,
    /// `event`: a row for each kernel event as it was recorded.
    pub events: bool,
}

/// The thread's number in all tables: the kernel's id, or a negative number that stands for a thread of a
/// method trace which no kernel thread is known to be.
pub fn utid(thread: &MethodThread) -> i64 {
    thread.tid.map_or(-1 - i64::from(thread.index), i64::from)
}

/// The same of a thread that the kernel names. One whose id is not known gets a number below those of the
/// threads of method traces.
pub(super) fn kernel_utid(tid: Tid) -> i64 {
    let number = i64::from(tid);
    if tid >= Tid::IDLE { number } else { number - (1 << 32) }
}

/// Receives tracks, and makes rows.
pub(super) struct TableSink<'r> {
    pub(super) rows: &'r mut TraceRows,
    large: LargeTables,
    /// The fields of the last event as text.
    args: Vec<u8>,
    /// The stack of the last sample as text.
    stack: String,
    next_id: u64,
    slices: SliceStacks<Tid>,
    track_slices: SliceStacks<u32>,
    /// By [`MethodThread::index`].
    calls: SliceStacks<u32>,
    cpu_times: CpuTimes,
    /// By [`MethodThread::index`].
    pub(super) method_threads: BTreeMap<u32, MethodThread>,
    /// The threads that rows name.
    pub(super) tids: BTreeSet<Tid>,
    /// How many threads have had an id before the one that has it now.
    pub(super) earlier: HashMap<Tid, i64>,
    pub(super) finder: Finder,
}

/// A row of the table `slice` without its times.
#[derive(Default)]
struct SliceRow<'a> {
    id: u64,
    parent: Option<u64>,
    kind: &'static str,
    utid: Option<i64>,
    pid: Option<Pid>,
    cpu: Option<Cpu>,
    track: Option<&'a str>,
    name: &'a str,
    cookie: Option<i64>,
    depth: Option<usize>,
    exclusive_ns: Option<u64>,
    cpu_dur: Option<u64>,
}

impl<'r> TableSink<'r> {
    pub fn new(rows: &'r mut TraceRows, large: LargeTables) -> TableSink<'r> {
        TableSink {
            rows,
            large,
            args: Vec::new(),
            stack: String::new(),
            next_id: 0,
            slices: SliceStacks::default(),
            track_slices: SliceStacks::default(),
            calls: SliceStacks::default(),
            cpu_times: CpuTimes::default(),
            method_threads: BTreeMap::new(),
            tids: BTreeSet::new(),
            earlier: HashMap::new(),
            finder: Finder::default(),
        }
    }

    fn new_id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id
    }

    /// The thread's number in the tables.
    fn utid(&mut self, tid: Tid) -> i64 {
        self.tids.insert(tid);
        self.current_utid(tid)
    }

    /// The number of the thread that has the id now.
    pub(super) fn current_utid(&self, tid: Tid) -> i64 {
        let earlier = if self.earlier.is_empty() { 0 } else { self.earlier.get(&tid).copied().unwrap_or(0) };
        kernel_utid(tid) + (earlier << 32)
    }

    /// Makes a row of a kernel event as it was recorded, where these rows are wanted.
    pub(super) fn raw_event(&mut self, event: &Event<'_>, kind: &EventType) -> io::Result<()> {
        if !self.large.events {
            return Ok(());
        }
        let utid = self.utid(event.tid);
        self.args.clear();
        event_catalog::render(event, kind, &mut self.args);
        let args = text(&self.args);
        self.rows.push(
            TableId::Event,
            [
                utid.into(),
                event.cpu.into(),
                Cell::Int(0),
                event.ts.into(),
                (&kind.name).into(),
                args.trim_end().into(),
            ],
        )
    }

    fn slice(&mut self, row: &SliceRow<'_>, span: Span) -> io::Result<()> {
        self.rows.push(
            TableId::Slice,
            [
                row.id.into(),
                row.parent.into(),
                row.kind.into(),
                row.utid.into(),
                row.pid.into(),
                row.cpu.into(),
                row.track.into(),
                row.name.into(),
                row.cookie.into(),
                row.depth.into(),
                Cell::Int(0),
                span.start.into(),
                ns(span).into(),
                row.exclusive_ns.into(),
                row.cpu_dur.into(),
                span.open.into(),
            ],
        )
    }
}

/// Length of a span, ns.
fn ns(span: Span) -> u64 {
    span.end.since(span.start)
}

/// The functions of a stack, the outermost first, with semicolons between them, as folded stacks have them.
/// Of a deeper stack the innermost [`MAX_DEPTH`] are there.
fn folded(tables: &SampleTables, stack: u32, out: &mut String) {
    out.clear();
    let frames: Vec<u32> = tables.stacks.frames(stack).take(MAX_DEPTH).collect();
    for frame in frames.into_iter().rev() {
        if !out.is_empty() {
            out.push(';');
        }
        // A semicolon in a name would divide it.
        out.extend(tables.frames[frame as usize].name.chars().map(|c| if c == ';' { ':' } else { c }));
    }
}

/// The most functions of a stack in the table `sample`.
const MAX_DEPTH: usize = 256;

fn text(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

fn at(ts: Timestamp) -> Span {
    Span { start: ts, end: ts, open: false }
}

/// Frames get no row of the table `slice`, which is of slices that nest: they have a table of their own.
impl TrackSink for TableSink<'_> {
    fn observer(&mut self) -> Option<&mut dyn TrackObserver> {
        Some(&mut self.finder)
    }

    fn begin(&mut self, at: Task, ts: Timestamp, _: &[u8]) -> io::Result<()> {
        let id = self.new_id();
        self.slices.begin(at.tid, id, self.cpu_times.at(at.tid, ts));
        Ok(())
    }

    fn end(&mut self, _: &Tasks, at: Task, span: Span, name: &[u8]) -> io::Result<()> {
        let Some(slice) = self.slices.end(&at.tid, ns(span)) else { return Ok(()) };
        let cpu_now = self.cpu_times.at(at.tid, span.end);
        let row = SliceRow {
            id: slice.id,
            parent: slice.parent,
            kind: "thread",
            utid: Some(self.utid(at.tid)),
            pid: at.tgid,
            name: &text(name),
            depth: Some(slice.depth),
            exclusive_ns: Some(slice.exclusive_ns),
            cpu_dur: slice.cpu_ns.zip(cpu_now).map(|(begin, end)| end.saturating_sub(begin)),
            ..SliceRow::default()
        };
        self.slice(&row, span)
    }

    fn async_edge(&mut self, _: &Tasks, pid: Pid, slice: &AsyncSlice<'_>) -> io::Result<()> {
        let (kind, cookie, span) = match (slice.ended(), slice.edge) {
            (Some(span), _) => ("async", Some(slice.cookie), span),
            (None, AsyncEdge::Instant) => ("instant", None, at(slice.ts)),
            _ => return Ok(()),
        };
        let track = slice.track.map(text);
        let row = SliceRow { id: self.new_id(), kind, pid: Some(pid), cookie, ..SliceRow::default() };
        self.slice(&SliceRow { track: track.as_deref(), name: &text(slice.name), ..row }, span)
    }

    fn thread_ended(&mut self, names: &Tasks, at: Task) -> io::Result<()> {
        let name = names.threads.get(at.tid).and_then(|thread| thread.name_text());
        let utid = self.current_utid(at.tid);
        self.thread_row(utid, at, name.as_deref(), None)?;
        *self.earlier.entry(at.tid).or_default() += 1;
        self.tids.remove(&at.tid);
        Ok(())
    }

    fn instant(&mut self, _: &Tasks, thread: Task, ts: Timestamp, name: &[u8]) -> io::Result<()> {
        let row = SliceRow {
            id: self.new_id(),
            parent: self.slices.innermost(&thread.tid),
            kind: "instant",
            utid: Some(self.utid(thread.tid)),
            pid: thread.tgid,
            name: &text(name),
            ..SliceRow::default()
        };
        self.slice(&row, at(ts))
    }

    fn counter(&mut self, _: &Tasks, scope: CounterScope, counter: CounterSample<'_>) -> io::Result<()> {
        let (scope, pid, cpu) = match scope {
            CounterScope::Process(pid) => ("process", Some(pid), None),
            CounterScope::Cpu(cpu) => ("cpu", None, Some(cpu)),
            CounterScope::System => ("system", None, None),
        };
        let CounterSample { name, ts, value } = counter;
        self.rows.push(
            TableId::Counter,
            [
                name.into(),
                scope.into(),
                pid.into(),
                Cell::Null,
                cpu.into(),
                Cell::Int(0),
                ts.into(),
                Cell::Double(value as f64),
                value.into(),
            ],
        )
    }

    fn run_begin(&mut self, tid: Tid, ts: Timestamp) {
        if tid.is_thread() {
            self.cpu_times.begin(tid, ts);
        }
    }

    fn sample(&mut self, _: &Tasks, taken: &TakenSample<'_>) -> io::Result<()> {
        let TakenSample { tables, at, sample, .. } = *taken;
        let utid = self.utid(at.tid);
        let mut stack = std::mem::take(&mut self.stack);
        folded(tables, sample.stack, &mut stack);
        let event = &tables.events[sample.event as usize];
        let frame = tables.stacks.frames(sample.stack).next().map(|frame| &tables.frames[frame as usize]);
        let module = frame.and_then(|frame| tables.modules.get(frame.module as usize));
        let kind = frame.map(|frame| match frame.kind {
            FrameKind::Native => "native",
            FrameKind::Kernel => "kernel",
            FrameKind::Java => "java",
        });
        let pushed = self.rows.push(
            TableId::Sample,
            [
                utid.into(),
                sample.cpu.into(),
                Cell::Int(0),
                sample.time.into(),
                (&event.name).into(),
                sample.period.into(),
                event.is_off_cpu.into(),
                frame.map(|frame| &frame.name).into(),
                kind.into(),
                module.map(|module| module.file_name()).into(),
                tables.own_frame(sample.stack).map(|frame| &frame.name).into(),
                Some(&stack).filter(|stack| !stack.is_empty()).into(),
            ],
        );
        self.stack = stack;
        pushed
    }

    fn on_cpu(&mut self, _: &Tasks, cpu: Cpu, thread: Task, span: Span, prio: i64) -> io::Result<()> {
        self.cpu_times.end(thread.tid, ns(span));
        let utid = self.utid(thread.tid);
        self.rows.push(
            TableId::Sched,
            [
                utid.into(),
                cpu.into(),
                Cell::Int(0),
                span.start.into(),
                ns(span).into(),
                prio.into(),
                span.open.into(),
            ],
        )
    }

    fn state(&mut self, _: &Tasks, thread: Task, state: &ThreadState) -> io::Result<()> {
        let utid = self.utid(thread.tid);
        let waker = state.waker.filter(|tid| *tid >= Tid::IDLE).map(|tid| self.utid(tid));
        self.rows.push(
            TableId::ThreadState,
            [
                utid.into(),
                state.state.name().into(),
                state.cpu.into(),
                waker.into(),
                Cell::Int(0),
                state.span.start.into(),
                ns(state.span).into(),
                state.span.open.into(),
            ],
        )
    }

    fn irq(&mut self, cpu: Cpu, name: &str, span: Span) -> io::Result<()> {
        let row = SliceRow { id: self.new_id(), kind: "irq", cpu: Some(cpu), name, ..SliceRow::default() };
        self.slice(&row, span)
    }

    fn method_begin(&mut self, thread: &MethodThread, _: &MethodLabel, open: &OpenMethod) -> io::Result<()> {
        if self.large.method_calls {
            let id = self.new_id();
            self.calls.begin(thread.index, id, open.cpu);
        }
        Ok(())
    }

    fn method(&mut self, _: &Tasks, call: &MethodCall<'_>) -> io::Result<()> {
        if !self.large.method_calls {
            return Ok(());
        }
        let Some(ended) = self.calls.end(&call.at.index, ns(call.span)) else { return Ok(()) };
        let MethodLabel { full, signature, .. } = call.method;
        self.rows.push(
            TableId::MethodCall,
            [
                ended.id.into(),
                ended.parent.into(),
                utid(call.at).into(),
                full.into(),
                Some(signature).filter(|signature| !signature.is_empty()).into(),
                ended.depth.into(),
                Cell::Int(0),
                call.span.start.into(),
                ns(call.span).into(),
                ended.exclusive_ns.into(),
                call.cpu.map(|(begin, end)| end.saturating_sub(begin)).into(),
            ],
        )
    }

    fn track_begin(&mut self, track: &OwnTrack, _: Timestamp, _: &[u8]) -> io::Result<()> {
        let id = self.new_id();
        self.track_slices.begin(track.id.0, id, None);
        Ok(())
    }

    fn track_slice(&mut self, track: &OwnTrack, span: Span, name: &[u8], _: usize) -> io::Result<()> {
        let Some(slice) = self.track_slices.end(&track.id.0, ns(span)) else { return Ok(()) };
        let (pid, tid) = track.place();
        let name = text(name);
        let label = track.label();
        let row = SliceRow {
            id: slice.id,
            parent: slice.parent,
            kind: "track",
            utid: tid.map(|tid| self.utid(tid)),
            pid,
            track: Some(&label),
            name: &name,
            depth: Some(slice.depth),
            exclusive_ns: Some(slice.exclusive_ns),
            ..SliceRow::default()
        };
        self.slice(&row, span)
    }

    fn track_instant(&mut self, track: &OwnTrack, ts: Timestamp, name: &[u8]) -> io::Result<()> {
        let (pid, tid) = track.place();
        let name = text(name);
        let label = track.label();
        let row = SliceRow {
            id: self.new_id(),
            parent: self.track_slices.innermost(&track.id.0),
            kind: "instant",
            utid: tid.map(|tid| self.utid(tid)),
            pid,
            track: Some(&label),
            name: &name,
            ..SliceRow::default()
        };
        self.slice(&row, at(ts))
    }

    fn track_counter(&mut self, track: &OwnTrack, ts: Timestamp, value: CounterValue) -> io::Result<()> {
        let (pid, tid) = track.place();
        let utid = tid.map(|tid| self.utid(tid));
        let (number, whole) = match counter_number(value) {
            Ok(whole) => (whole as f64, Some(whole)),
            Err(number) => (number, None),
        };
        let label = track.label();
        self.rows.push(
            TableId::Counter,
            [
                (&label).into(),
                "track".into(),
                pid.into(),
                utid.into(),
                Cell::Null,
                Cell::Int(0),
                ts.into(),
                Cell::Double(number),
                whole.into(),
            ],
        )
    }

    fn finish(&mut self, tasks: &Tasks, summary: &MergeSummary) -> io::Result<()> {
        let measured = std::mem::take(&mut self.finder).finish(tasks, summary);
        // The threads that the rows name get their own rows.
        self.push_launches(&measured.launches)?;
        self.push_frames(&measured.frames)?;
        self.push_threads(tasks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ftrace::task_state::TaskState;

    #[test]
    fn the_exclusive_time_of_a_slice_is_without_the_slices_in_it() {
        let mut slices = SliceStacks::default();
        for id in 0..3 {
            slices.begin(7, id, None);
        }
        assert_eq!(slices.innermost(&7), Some(2));
        let ended =
            |id, parent, depth, exclusive_ns| EndedSlice { id, parent, depth, exclusive_ns, cpu_ns: None };
        assert_eq!(slices.end(&7, 10), Some(ended(2, Some(1), 2, 10)));
        assert_eq!(slices.end(&7, 25), Some(ended(1, Some(0), 1, 15)));
        slices.begin(7, 3, None);
        assert_eq!(slices.end(&7, 5), Some(ended(3, Some(0), 1, 5)));
        assert_eq!(slices.end(&7, 100), Some(ended(0, None, 0, 70)));
        assert_eq!(slices.end(&7, 1), None);
    }

    #[test]
    fn a_thread_that_is_not_known_is_none_of_a_method_trace_and_wakes_nobody() {
        let last = MethodThread {
            index: u32::MAX,
            tid: None,
            tgid: None,
            name: "pool".into(),
            trace_id: 1,
            doubt: None,
            edge_cost_ns: 0,
        };
        assert!(kernel_utid(Tid::UNKNOWN) < utid(&last));
        assert_eq!((kernel_utid(Tid(7)), utid(&MethodThread { tid: Some(Tid(7)), ..last })), (7, 7));
        let mut rows = TraceRows::new("trace", None, ".".as_ref());
        let mut sink = TableSink::new(&mut rows, LargeTables::default());
        let woken = Task { tid: Tid(7), tgid: None };
        let waker = Some(Tid::UNKNOWN);
        let state = ThreadState { state: TaskState::Sleeping, span: at(Timestamp(5)), cpu: None, waker };
        sink.state(&Tasks::default(), woken, &state).unwrap();
        assert_eq!(sink.tids, BTreeSet::from([Tid(7)]));
    }

    #[test]
    fn cpu_time_is_known_only_while_the_thread_is_known_to_run() {
        let mut times = CpuTimes::default();
        assert_eq!(times.at(Tid(7), Timestamp(5)), None);
        times.begin(Tid(7), Timestamp(10));
        assert_eq!(times.at(Tid(7), Timestamp(15)), Some(5));
        times.end(Tid(7), 20);
        assert_eq!(times.at(Tid(7), Timestamp(40)), None);
        times.begin(Tid(7), Timestamp(50));
        assert_eq!(times.at(Tid(7), Timestamp(51)), Some(21));
    }
}
