//! Collects the tracks of a page from the slices, states, counters and events of a timeline.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};
use serde::ser::{Serialize, SerializeSeq, Serializer};

use super::columns::PageArrow;
use super::tracks::{Name, Owner, PageThreadId, PageTracks, TrackRole};
use crate::clock::Timestamp;
use crate::export::systrace::EventPrinter;
use crate::formats::{CounterValue, Event, EventType, Flow, TimelineFrame, TrackOwner};
use crate::ftrace::print_fmt::Symbolizer;
use crate::ids::{Cpu, Pid, Tid};
use crate::markers::{ClockSync, Marker};
use crate::measure::{Finder, Frame, Launch, Measured};
use crate::timeline::{MergeSummary, MethodId, MethodName, MethodThread};
use crate::tracks::{
    Arrow, ArrowKind, AsyncEdge, AsyncSlice, CounterSample, CounterScope, MethodCall, MethodLabel,
    OpenMethod, OwnTrack, Span, Task, Tasks, ThreadState, TrackObserver, TrackSink, counter_number,
};

/// The contents of a page, as they are collected.
#[derive(Default)]
pub(crate) struct PageCollector {
    pub(super) strings: StringTable,
    pub(super) methods: MethodTable,
    pub(super) tracks: PageTracks,
    /// By [`MethodThread::index`]: the thread, and the number of its track of calls.
    pub method_threads: Vec<Option<(MethodThread, usize)>>,
    /// Threads whose ids later threads have: process, name, and the time that each had a CPU, ns.
    pub(super) ended_threads: Vec<(PageThreadId, Option<Pid>, String, u64)>,
    /// The threads with an event.
    pub tids: FxHashSet<Tid>,
    /// The kernel's names of main threads, which method traces call `main`: the names of their processes.
    main_comms: HashMap<Pid, String>,
    pub arrows: Vec<Arrow>,
    /// The arrows of flows.
    pub(super) flows: Vec<PageArrow>,
    /// The last event of each flow: its time, and its track.
    open_flows: HashMap<u64, (Timestamp, usize)>,
    /// The time that each thread had a CPU, ns.
    pub on_cpu_ns: FxHashMap<Tid, u64>,
    finder: Finder,
    /// Launches and frames, when the timeline has ended.
    pub measured: Measured,
    /// The wall clock at a time of the timeline, as a marker says.
    pub(super) wall: Option<WallMark>,
    /// Names of threads and processes, which are complete at the end.
    pub tasks: Tasks,
    printers: EventTextPrinters,
}

/// A reading of the wall clock.
#[derive(Debug, Clone, Copy)]
pub(super) struct WallMark {
    /// The time of the timeline.
    pub ts: Timestamp,
    /// The time in CLOCK_REALTIME then.
    pub realtime: Timestamp,
}

/// Prints the fields of the events that the page shows as texts.
#[derive(Default)]
struct EventTextPrinters {
    kernel: Arc<Symbolizer>,
    /// By event type: the kernel that recorded it, and the printer, once there is an event of this type.
    kinds: Vec<(Arc<Symbolizer>, Option<EventPrinter>)>,
    line: Vec<u8>,
}

/// The methods of all method traces, by method id: string ids, and their inclusive times.
#[derive(Default, serde::Serialize)]
pub(super) struct MethodTable {
    class: Vec<u32>,
    name: Vec<u32>,
    signature: Vec<u32>,
    file: Vec<u32>,
    /// ns, over all threads. Filled when all calls are known.
    pub inclusive: Vec<u64>,
}

impl MethodTable {
    pub fn is_empty(&self) -> bool {
        self.class.is_empty()
    }

    pub fn len(&self) -> usize {
        self.class.len()
    }
}

impl PageCollector {
    pub fn method_name(&mut self, id: MethodId, name: &MethodName<'_>) {
        let texts = [name.class, name.name, name.signature, name.file];
        let ids = texts.map(|text| self.strings.id(text.as_bytes()));
        let nothing = self.strings.id(b"");
        let table = &mut self.methods;
        let columns = [&mut table.class, &mut table.name, &mut table.signature, &mut table.file];
        for (column, text) in columns.into_iter().zip(ids) {
            if column.len() <= id.0 as usize {
                column.resize(id.0 as usize + 1, nothing);
            }
            column[id.0 as usize] = text;
        }
    }

    /// Adds a thread of a method trace; `comm` is the name that the kernel gives it, as far as that is known.
    pub fn method_thread(&mut self, thread: &MethodThread, comm: String) {
        let index = thread.index as usize;
        if self.method_threads.len() <= index {
            self.method_threads.resize(index + 1, None);
        }
        if let Some(pid) = thread.tgid.filter(|pid| thread.tid == Some(pid.main_thread())) {
            self.main_comms.insert(pid, comm);
        }
        let owner = Owner::Thread(PageThreadId::of_methods(thread));
        self.method_threads[index] = Some((thread.clone(), self.tracks.add_calls(owner)));
    }

    /// The frames that are complete at the time `now`: see [`Finder::take_frames`].
    pub fn take_frames(&mut self, tasks: &Tasks, now: Timestamp, is_last: bool) -> Vec<Frame> {
        self.finder.take_frames(tasks, now, is_last)
    }

    /// See [`Finder::launch_marks`].
    pub fn launch_marks(&self) -> usize {
        self.finder.launch_marks()
    }

    /// See [`Finder::latest_launches`].
    pub fn latest_launches(&mut self, tasks: &Tasks, now: Timestamp) -> Vec<Launch> {
        self.finder.latest_launches(tasks, now)
    }

    /// The name of a process's app, as launches and frames have it; empty where nothing names it.
    pub fn process_name(&self, pid: Pid) -> String {
        let name = self.measured.names.name(&self.tasks, pid);
        match self.main_comms.get(&pid) {
            Some(comm) if name == "main" => comm.clone(),
            _ => name.into_owned(),
        }
    }

    /// The arguments of the slice or the instant of a program's own track that is passed on.
    fn args_of(&mut self, track: &OwnTrack) -> Option<u32> {
        (!track.args().is_empty()).then(|| self.strings.id(&track.details()))
    }

    /// The number of the track that holds the calls of a thread.
    #[inline]
    fn calls_of(&self, thread: u32) -> Option<usize> {
        self.method_threads.get(thread as usize)?.as_ref().map(|(_, track)| *track)
    }
}

/// The thread, process or machine that a program's own track belongs to.
fn owner_of(track: &OwnTrack) -> Owner {
    match track.owner {
        TrackOwner::Thread { tid, .. } => Owner::thread(tid),
        TrackOwner::Process(pid) => Owner::Process(pid),
        TrackOwner::Machine => Owner::Machine,
    }
}

impl TrackSink for PageCollector {
    fn observer(&mut self) -> Option<&mut dyn TrackObserver> {
        Some(&mut self.finder)
    }

    fn kernel(&mut self, symbolizer: &Arc<Symbolizer>) {
        self.printers.kernel = symbolizer.clone();
    }

    fn event_type(&mut self) {
        self.printers.kinds.push((self.printers.kernel.clone(), None));
    }

    fn begin(&mut self, at: Task, ts: Timestamp, name: &[u8]) -> io::Result<()> {
        // Chromium's markers go on: `name|arguments|category`. Catapult's viewer shows the first part as
        // the name.
        let mut parts = name.splitn(2, |byte| *byte == b'|');
        let label = self.strings.id(parts.next().unwrap_or_default());
        let args = parts.next().filter(|args| !args.is_empty()).map(|args| self.strings.id(args));
        let slices = self.tracks.slices(TrackRole::Atrace, Owner::thread(at.tid), Name::Main);
        slices.begin(ts, label);
        if let Some(args) = args {
            slices.set_args(args);
        }
        Ok(())
    }

    fn end(&mut self, _: &Tasks, at: Task, span: Span, _: &[u8]) -> io::Result<()> {
        let slices = self.tracks.slices(TrackRole::Atrace, Owner::thread(at.tid), Name::Main);
        slices.end(span.end, span.open);
        Ok(())
    }

    fn async_edge(&mut self, _: &Tasks, pid: Pid, slice: &AsyncSlice<'_>) -> io::Result<()> {
        let label = self.strings.id(slice.name);
        let track = slice.track.unwrap_or(slice.name);
        if slice.edge == AsyncEdge::Instant {
            self.tracks
                .instants(TrackRole::Markers, Owner::Process(pid), Name::Named(track))
                .push(slice.ts, label, None);
            return Ok(());
        }
        let lanes = self.tracks.lanes(TrackRole::Async, Owner::Process(pid), Name::Named(track));
        match slice.edge {
            AsyncEdge::Begin => lanes.begin(slice.ts, label, slice.id),
            AsyncEdge::End { open: false, .. } => lanes.end(slice.ts, slice.id),
            // The lanes end what is open with the timeline.
            _ => {}
        }
        Ok(())
    }

    fn thread_ended(&mut self, names: &Tasks, at: Task) -> io::Result<()> {
        let id = PageThreadId::Ended(at.tid, self.ended_threads.len() as u32);
        self.tracks.end_thread(at.tid, id);
        let busy_ns = self.on_cpu_ns.remove(&at.tid).unwrap_or(0);
        self.ended_threads.push((id, at.tgid, names.thread_name(at.tid).into_owned(), busy_ns));
        Ok(())
    }

    fn instant(&mut self, _: &Tasks, at: Task, ts: Timestamp, name: &[u8]) -> io::Result<()> {
        if let Some(Marker::ClockSync(ClockSync::Realtime { ms })) = Marker::parse(name) {
            self.wall = Some(WallMark { ts, realtime: Timestamp(ms.saturating_mul(1_000_000)) });
        }
        let label = self.strings.id(name);
        self.tracks.instants(TrackRole::Markers, Owner::thread(at.tid), Name::Main).push(ts, label, None);
        Ok(())
    }

    fn counter(&mut self, _: &Tasks, scope: CounterScope, at: CounterSample<'_>) -> io::Result<()> {
        let named = Name::Named(at.name.as_bytes());
        let (role, owner, name) = match scope {
            CounterScope::Cpu(cpu) if at.name.starts_with("frequency") => {
                (TrackRole::Frequency, Owner::Cpu(cpu), Name::Main)
            }
            CounterScope::Cpu(cpu) => (TrackRole::Idle, Owner::Cpu(cpu), Name::Main),
            CounterScope::Process(pid) if at.name.starts_with("VSYNC") => {
                (TrackRole::Vsync, Owner::Process(pid), named)
            }
            CounterScope::Process(pid) => (TrackRole::Counter, Owner::Process(pid), named),
            CounterScope::System => (TrackRole::Counter, Owner::Machine, named),
        };
        self.tracks.counter(role, owner, name).push(at.ts, Ok(at.value));
        Ok(())
    }

    fn on_cpu(&mut self, names: &Tasks, cpu: Cpu, at: Task, span: Span, _: i64) -> io::Result<()> {
        let name = names.thread_name(at.tid);
        let label = if name.is_empty() {
            self.strings.id(format!("thread {}", at.tid).as_bytes())
        } else {
            self.strings.id(name.as_bytes())
        };
        *self.on_cpu_ns.entry(at.tid).or_default() += span.end.since(span.start);
        self.tracks.running(cpu).add_running(span.start, span.end, label, at.tid, span.open);
        Ok(())
    }

    fn state(&mut self, _: &Tasks, at: Task, state: &ThreadState) -> io::Result<()> {
        let name = self.strings.id(state.state.name().as_bytes());
        let states = self.tracks.states(TrackRole::States, Owner::thread(at.tid), Name::Main);
        states.push(state.span, name, state.cpu, state.waker);
        Ok(())
    }

    fn arrow(&mut self, arrow: &Arrow) -> io::Result<()> {
        // Interrupts wake threads in the idle task, which has no track.
        if arrow.kind == ArrowKind::Binder || arrow.from.1.is_thread() {
            self.arrows.push(*arrow);
        }
        Ok(())
    }

    fn irq_begin(&mut self, cpu: Cpu, ts: Timestamp, name: &str) -> io::Result<()> {
        let label = self.strings.id(name.as_bytes());
        self.tracks.slices(TrackRole::Irq, Owner::Cpu(cpu), Name::Main).begin(ts, label);
        Ok(())
    }

    fn irq(&mut self, cpu: Cpu, _: &str, span: Span) -> io::Result<()> {
        self.tracks.slices(TrackRole::Irq, Owner::Cpu(cpu), Name::Main).end(span.end, span.open);
        Ok(())
    }

    #[inline]
    fn method_begin(&mut self, at: &MethodThread, _: &MethodLabel, open: &OpenMethod) -> io::Result<()> {
        let track = self.calls_of(at.index);
        if let Some(calls) = track.and_then(|track| self.tracks.calls(track)) {
            calls.begin_call(open.begun, open.method.0, open.cpu);
        }
        Ok(())
    }

    #[inline]
    fn method(&mut self, _: &Tasks, call: &MethodCall<'_>) -> io::Result<()> {
        let track = self.calls_of(call.at.index);
        if let Some(calls) = track.and_then(|track| self.tracks.calls(track)) {
            calls.end_call(call.span.end, call.cpu.map(|(_, end)| end));
        }
        Ok(())
    }

    fn track_begin(&mut self, track: &OwnTrack, ts: Timestamp, name: &[u8]) -> io::Result<()> {
        let label = self.strings.id(name);
        self.tracks
            .slices(TrackRole::Own, owner_of(track), Name::Own(track.id, &track.name))
            .begin(ts, label);
        Ok(())
    }

    fn track_slice(&mut self, track: &OwnTrack, span: Span, _: &[u8], _: usize) -> io::Result<()> {
        let args = self.args_of(track);
        let slices = self.tracks.slices(TrackRole::Own, owner_of(track), Name::Own(track.id, &track.name));
        if let Some(args) = args {
            slices.set_args(args);
        }
        slices.end(span.end, span.open);
        Ok(())
    }

    fn track_instant(&mut self, track: &OwnTrack, ts: Timestamp, name: &[u8]) -> io::Result<()> {
        let label = self.strings.id(name);
        let args = self.args_of(track);
        self.tracks
            .instants(TrackRole::Own, owner_of(track), Name::Own(track.id, &track.name))
            .push(ts, label, args);
        Ok(())
    }

    fn track_counter(&mut self, track: &OwnTrack, ts: Timestamp, value: CounterValue) -> io::Result<()> {
        let counter = self.tracks.counter(TrackRole::Own, owner_of(track), Name::Own(track.id, &track.name));
        counter.push(ts, counter_number(value));
        Ok(())
    }

    fn frame(
        &mut self,
        _: &Tasks,
        track: &OwnTrack,
        span: Span,
        frame: &TimelineFrame<'_>,
    ) -> io::Result<()> {
        let role = if frame.actual.is_some() { TrackRole::ActualFrames } else { TrackRole::ExpectedFrames };
        let jank = frame.actual.map(|actual| actual.jank).filter(|jank| jank.is_jank());
        let name = jank
            .map_or_else(|| frame.token().to_string(), |jank| format!("{} {}", frame.token(), jank.text()));
        let label = self.strings.id(name.as_bytes());
        let args = self.strings.id(frame.details().as_bytes());
        let named = Name::Named(track.name.as_bytes());
        self.tracks.frames(role, Owner::Process(frame.pid), named).push(span, label, args, frame.is_late());
        Ok(())
    }

    fn track_flow(&mut self, track: &OwnTrack, ts: Timestamp, flow: Flow) -> io::Result<()> {
        let Some(at) = self.tracks.of_own_track(track.id) else { return Ok(()) };
        let before = if flow.ends {
            self.open_flows.remove(&flow.id)
        } else {
            self.open_flows.insert(flow.id, (ts, at))
        };
        let arrow = |(from_ts, from_track)| PageArrow { from_ts, to_ts: ts, from_track, to_track: at };
        self.flows.extend(before.map(arrow));
        Ok(())
    }

    fn other(&mut self, _: &Tasks, at: Task, event: &Event<'_>, kind: &EventType) -> io::Result<()> {
        let name = self.strings.id(kind.name.as_bytes());
        let args = self.printers.print(event, kind).map(|text| self.strings.id(text));
        self.tracks.instants(TrackRole::Events, Owner::thread(at.tid), Name::Main).push(event.ts, name, args);
        Ok(())
    }

    fn lost_between(&mut self, cpu: Cpu, span: Span, count: Option<u64>) -> io::Result<()> {
        self.tracks.losses(TrackRole::Losses, Owner::Cpu(cpu), Name::Main).push(span.start, span.end, count);
        Ok(())
    }

    fn finish(&mut self, tasks: &Tasks, summary: &MergeSummary) -> io::Result<()> {
        self.tasks = tasks.clone();
        self.measured = std::mem::take(&mut self.finder).finish(tasks, summary);
        Ok(())
    }
}

impl EventTextPrinters {
    /// The fields of an event as text, as the kernel prints them; `None` where there is no text.
    fn print(&mut self, event: &Event<'_>, kind: &EventType) -> Option<&[u8]> {
        let (kernel, printer) = self.kinds.get_mut(event.kind.0 as usize)?;
        self.line.clear();
        printer.get_or_insert_with(|| EventPrinter::new(kind, kernel)).push(event, kind, &mut self.line);
        // Most lines begin with the event's name.
        let name = kind.name.len();
        let fields = match self.line.strip_prefix(kind.name.as_bytes()).and_then(|l| l.strip_prefix(b":")) {
            Some(_) => &self.line[name + 1..],
            None => &self.line,
        };
        Some(fields.trim_ascii()).filter(|fields| !fields.is_empty())
    }
}

/// Texts, each of which is kept once.
#[derive(Default)]
pub(super) struct StringTable {
    ids: HashMap<Box<[u8]>, u32>,
}

impl StringTable {
    /// The number of a text.
    pub fn id(&mut self, text: &[u8]) -> u32 {
        if let Some(id) = self.ids.get(text) {
            return *id;
        }
        let id = self.ids.len() as u32;
        self.ids.insert(text.into(), id);
        id
    }
}

impl StringTable {
    /// The texts by their numbers.
    pub fn texts(&self) -> Vec<&[u8]> {
        let mut texts: Vec<&[u8]> = vec![&[]; self.ids.len()];
        for (text, id) in &self.ids {
            texts[*id as usize] = text;
        }
        texts
    }
}

/// As a JSON array of strings, in the order of their numbers. Bytes that are no UTF-8 are replaced.
impl Serialize for StringTable {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let texts = self.texts();
        let mut all = serializer.serialize_seq(Some(texts.len()))?;
        for text in texts {
            all.serialize_element(&String::from_utf8_lossy(text))?;
        }
        all.end()
    }
}
