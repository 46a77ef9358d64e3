//! Watches a timeline pass, in the order of time, and makes its [`Model`].

use std::io;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::code_tree::SampledStackId;
use super::collected_event::{CollectedEvent, first_argument};
use super::cpu_history::{CpuChange, CpuHistory, Interrupt};
use super::cpu_speed::CpuSpeeds;
use super::kept_time::{KeptTime, Moment, Position, joined};
use super::missing_switches::LastOnCpu;
use super::model::{BlockedReason, Mark, MarkKind, Model, SchedState, ThreadHistory, Wake, WakeContext};
use super::names::NameId;
use super::quotas::Quotas;
use super::slice_sources::{SliceSource, SliceSources, thread_of};
use super::syscalls::SyscallTable;
use crate::clock::Timestamp;
use crate::formats::{CLONE_THREAD, Event, EventType, EventTypeId, Head, Value};
use crate::ftrace::print_fmt::Symbolizer;
use crate::ids::{Cpu, Pid, Tid};
use crate::measure::Finder;
use crate::timeline::{MergeSummary, MethodThread};
use crate::tracks::{
    AsyncEdge, AsyncSlice, CounterSample, CounterScope, CpuSwitch, MethodCall, MethodLabel, OpenMethod,
    OwnTrack, Span, TakenSample, Task, Tasks, TrackObserver, TrackSink,
};

/// `common_flags` of an event that was written while a hard interrupt was served, or a non-maskable one
/// (`TRACE_FLAG_HARDIRQ`, `TRACE_FLAG_NMI`).
const IN_HARD_INTERRUPT: u16 = 0x08 | 0x40;
/// The same of a soft interrupt (`TRACE_FLAG_SOFTIRQ`).
const IN_SOFT_INTERRUPT: u16 = 0x10;
/// The bit of a binder transaction for which nobody waits: `TF_ONE_WAY`.
const ONE_WAY: i64 = 1;

/// Makes the [`Model`] of a timeline, and finds its launches and frames.
#[derive(Default)]
pub(crate) struct ModelCollector {
    model: Model,
    finder: Finder,
    sources: SliceSources,
    symbolizer: Option<Arc<Symbolizer>>,
    syscalls: SyscallTable,
    /// The kind of the events of each type.
    event_kinds: FxHashMap<EventTypeId, CollectedEvent>,
    /// The names of methods, by their numbers.
    methods: FxHashMap<u32, NameId>,
    /// The stacks of samples, by the set and the stack.
    sampled: FxHashMap<(u32, u32), Option<SampledStackId>>,
    /// The last event of each CPU.
    last_on_cpu: FxHashMap<Cpu, LastOnCpu>,
    losses: Vec<Span>,
    births: Vec<Birth>,
    /// The paths of files, by their devices and inodes.
    files: FxHashMap<((u32, u32), u64), NameId>,
    first_ts: Option<Timestamp>,
    last_ts: Timestamp,
    /// How many states of threads may be kept; `None` is any number.
    max_states: Option<usize>,
    /// The states of threads that are kept.
    states: usize,
    /// The time of which all is kept.
    kept: KeptTime,
    position: Position,
    /// The threads whose last wait may still go on, behind the kept time.
    waiting: Vec<Tid>,
}

/// A new thread.
#[derive(Debug, Clone, Copy)]
struct Birth {
    child: Tid,
    parent: Tid,
    /// Whether the child is a thread of its maker's process.
    is_thread: bool,
}

impl ModelCollector {
    /// A collector that gives up where a timeline has more than `max_states` states of threads.
    pub fn up_to(max_states: usize) -> ModelCollector {
        ModelCollector { max_states: Some(max_states), ..ModelCollector::default() }
    }

    /// All of this time is kept, and of the rest what concerns it. Called before the first event.
    pub fn keep_only(&mut self, kept: KeptTime) {
        self.position = Position::new(&kept);
        self.kept = kept;
    }

    /// The time of which all is kept.
    pub fn kept(&self) -> &KeptTime {
        &self.kept
    }

    /// Goes to the moment of an event.
    fn advance(&mut self, ts: Timestamp) {
        if !self.position.advance(ts, &self.kept) {
            return;
        }
        self.model.threads.values_mut().for_each(ThreadHistory::keep);
        self.model.cpus.values_mut().for_each(CpuHistory::keep);
        if self.position.moment == Moment::After {
            let asked = self.kept.threads().iter().copied();
            let goes_on = |tid: &Tid| {
                let last = self.model.threads.get(tid).and_then(|thread| thread.changes.last());
                last.is_some_and(|change| !matches!(change.state, SchedState::Running | SchedState::Gone))
            };
            self.waiting = asked.filter(goes_on).collect();
        }
    }

    /// Whether all that comes is kept.
    fn keeps_all(&self) -> bool {
        self.position.moment == Moment::Kept
    }

    /// The model, when the timeline has ended.
    pub fn into_model(self) -> Model {
        self.model
    }

    /// The model, when the timeline has ended; `None` where the collector has given up.
    pub fn into_whole_model(self) -> Option<Model> {
        (!self.has_given_up()).then_some(self.model)
    }

    fn has_given_up(&self) -> bool {
        self.max_states.is_some_and(|max| self.states > max)
    }

    /// Counts the states that an event makes. Returns whether they are kept.
    fn keeps_states(&mut self, states: usize) -> bool {
        if self.has_given_up() {
            return false;
        }
        self.states += states;
        if self.has_given_up() {
            self.model = Model::default();
        }
        !self.has_given_up()
    }

    fn thread(&mut self, tid: Tid) -> &mut ThreadHistory {
        self.model.threads.entry(tid).or_default()
    }

    /// Takes the end of a slice of a thread; `is_main` is one of the thread's own source.
    fn slice_ended(&mut self, tid: Tid, span: Span, name: &[u8], is_main: bool) -> io::Result<()> {
        self.saw(span.end);
        if self.has_given_up() || !is_main && !self.keeps_states(1) {
            return Ok(());
        }
        let thread = self.model.threads.entry(tid).or_default();
        if is_main {
            thread.acts(span.end);
            thread.slices.end(span.end, &self.kept);
        } else {
            let name = self.model.names.number_of_bytes(name);
            thread.add_other(span.start, span.end, name, &self.kept);
        }
        Ok(())
    }

    fn saw(&mut self, ts: Timestamp) -> Timestamp {
        self.last_ts = self.last_ts.max(ts);
        *self.first_ts.get_or_insert(ts)
    }

    fn mark(&mut self, event: &Event<'_>, kind: MarkKind) {
        if event.tid.is_thread() && self.keeps_states(1) {
            let keeps_all = self.keeps_all();
            let is_call = matches!(kind, MarkKind::SyscallEnter(..) | MarkKind::SyscallExit);
            let thread = self.thread(event.tid);
            thread.marks.push(Mark { ts: event.ts, kind });
            if !is_call && kind != MarkKind::PageFault {
                thread.acts(event.ts);
            }
            if !keeps_all {
                thread.forget_old();
            }
        }
    }

    /// Notes the processes of new threads, which the kernel's list may lack.
    fn learn_processes(&mut self) {
        let threads = &mut self.model.tasks.threads;
        for Birth { child, parent, is_thread } in std::mem::take(&mut self.births) {
            let process = if is_thread { threads.tgid(parent) } else { Some(Pid::of_main_thread(child)) };
            if let Some(process) = process.filter(|_| child.is_thread()) {
                threads.learn_tgid_if_unknown(child, process);
            }
        }
    }

    /// The name of the kernel's function in a field: a text, or an address that the recording's symbols name.
    fn function(&mut self, event: &Event<'_>, kind: &EventType, field: usize) -> NameId {
        let text = match event.value(kind, field) {
            Some(Value::Str(text)) => String::from_utf8_lossy(text).into_owned(),
            Some(Value::Uint(address)) => self.symbol(address),
            Some(Value::Int(address)) => self.symbol(address.cast_unsigned()),
            _ => String::new(),
        };
        // `folio_wait_bit_common+0x128/0x2a0`
        let name = text.split(['+', ' ']).next().unwrap_or_default();
        self.model.names.number(name)
    }

    fn symbol(&self, address: u64) -> String {
        let mut text = Vec::new();
        if let Some(symbolizer) = &self.symbolizer {
            symbolizer.symbol(address, false, &mut text);
        }
        String::from_utf8_lossy(&text).into_owned()
    }
}

impl TrackSink for ModelCollector {
    fn observer(&mut self) -> Option<&mut dyn TrackObserver> {
        Some(&mut self.finder)
    }

    fn head(&mut self, head: &Head) {
        self.syscalls = SyscallTable::of_machine(head.machine.as_deref());
        self.model.quotas = Quotas::new(head.facts.as_deref());
        if !self.model.quotas.is_empty() {
            // What a group has used in a period, threads tell that nobody asks about.
            self.keep_only(KeptTime::default());
        }
        self.model.speeds = CpuSpeeds::new(head.facts.as_deref());
        for affinity in head.facts.iter().flat_map(|facts| &facts.affinities) {
            let threads = affinity.threads.iter();
            self.model.affinities.extend(threads.map(|tid| (*tid, affinity.cpus.clone())));
        }
        for file in head.facts.iter().flat_map(|facts| &facts.files) {
            let name = self.model.names.number(&file.path);
            self.files.insert((file.device, file.inode), name);
        }
        self.model.facts.clone_from(&head.facts);
    }

    fn kernel(&mut self, symbolizer: &Arc<Symbolizer>) {
        self.symbolizer = Some(Arc::clone(symbolizer));
    }

    fn begin(&mut self, at: Task, ts: Timestamp, name: &[u8]) -> io::Result<()> {
        self.saw(ts);
        if !self.keeps_states(1) {
            return Ok(());
        }
        if self.sources.is_main_source(at.tid, SliceSource::Markers) {
            let name = self.model.names.number_of_bytes(name);
            let thread = self.thread(at.tid);
            thread.acts(ts);
            thread.slices.begin(ts, name);
        }
        Ok(())
    }

    fn end(&mut self, _: &Tasks, at: Task, span: Span, name: &[u8]) -> io::Result<()> {
        let is_main = self.sources.is_main_source(at.tid, SliceSource::Markers);
        self.slice_ended(at.tid, span, name, is_main)
    }

    fn track_begin(&mut self, track: &OwnTrack, ts: Timestamp, name: &[u8]) -> io::Result<()> {
        self.saw(ts);
        let tid = thread_of(track);
        if self.sources.is_main_track(tid, track) && self.keeps_states(1) {
            let name = self.model.names.number_of_bytes(name);
            self.thread(tid).slices.begin(ts, name);
        }
        Ok(())
    }

    fn track_slice(&mut self, track: &OwnTrack, span: Span, name: &[u8], _: usize) -> io::Result<()> {
        let tid = thread_of(track);
        let is_main = self.sources.is_main_track(tid, track);
        self.slice_ended(tid, span, name, is_main)
    }

    fn async_edge(&mut self, _: &Tasks, pid: Pid, slice: &AsyncSlice<'_>) -> io::Result<()> {
        self.saw(slice.ts);
        let AsyncEdge::End { begin, open } = slice.edge else { return Ok(()) };
        let span = Span { start: begin, end: slice.ts, open };
        self.slice_ended(pid.main_thread(), span, slice.name, false)
    }

    fn instant(&mut self, _: &Tasks, at: Task, ts: Timestamp, _: &[u8]) -> io::Result<()> {
        self.saw(ts);
        if at.tid.is_thread() && !self.has_given_up() {
            self.thread(at.tid).acts(ts);
        }
        Ok(())
    }

    fn counter(&mut self, _: &Tasks, scope: CounterScope, at: CounterSample<'_>) -> io::Result<()> {
        self.saw(at.ts);
        if let (CounterScope::Cpu(cpu), crate::tracks::CPU_FREQUENCY, Ok(khz)) =
            (scope, at.name, u32::try_from(at.value))
        {
            self.model.cpus.entry(cpu).or_default().frequencies.push((at.ts, khz));
            self.model.speeds.saw(khz);
        }
        Ok(())
    }

    /// An event of a thread is a sign that it runs, also where the switch to it was not recorded. The next
    /// switch on the CPU confirms it or not.
    fn seen(&mut self, event: &Event<'_>) {
        if !self.has_given_up() {
            self.advance(event.ts);
            self.last_on_cpu.entry(event.cpu).or_default().saw(event.ts, event.tid);
        }
    }

    fn switch(&mut self, at: &CpuSwitch) {
        let first = self.saw(at.ts);
        if !self.keeps_states(2) {
            return;
        }
        let last =
            self.last_on_cpu.insert(at.cpu, LastOnCpu::switched(at.ts, at.entered)).unwrap_or_default();
        if !last.agrees_with(at.left) {
            self.model.add_missing_switch(at.cpu, &last, at.left);
        }
        let keeps_all = self.keeps_all();
        if at.left.is_thread() {
            let state = SchedState::of_leaving(at.left_state);
            let thread = self.thread(at.left);
            thread.leaves(at.ts, at.cpu, state, first);
            if !keeps_all {
                thread.forget_old();
            }
        }
        if at.entered.is_thread() {
            self.thread(at.entered).runs(at.ts, at.cpu);
            self.waiting.retain(|tid| *tid != at.entered);
        }
        let prio = i16::try_from(at.entered_prio).ok();
        let change = CpuChange { since: at.ts, tid: at.entered, prio };
        let cpu = self.model.cpus.entry(at.cpu).or_default();
        cpu.changes.push(change);
        if !keeps_all {
            cpu.forget_old();
        }
    }

    fn wake(&mut self, event: &Event<'_>, kind: &EventType, woken: Tid) {
        self.saw(event.ts);
        if !self.keeps_states(1) {
            return;
        }
        let context = match event.flags {
            flags if flags & IN_HARD_INTERRUPT != 0 => WakeContext::HardInterrupt,
            flags if flags & IN_SOFT_INTERRUPT != 0 => WakeContext::SoftInterrupt,
            _ => WakeContext::Thread,
        };
        let is_new = kind.name == "sched_wakeup_new";
        let wake = Wake { ts: event.ts, waker: event.tid, cpu: event.cpu, context, is_new };
        if context == WakeContext::Thread && event.tid.is_thread() {
            self.thread(event.tid).acts(event.ts);
        }
        if woken.is_thread() {
            self.thread(woken).wakes(wake, kind.name == "sched_wakeup");
        }
    }

    fn wants_states(&self) -> bool {
        false
    }

    /// Behind the kept time launches and frames are looked for, and nothing else.
    fn wants_markers_alone(&self) -> bool {
        self.position.moment == Moment::After && self.waiting.is_empty()
    }

    fn irq(&mut self, cpu: Cpu, name: &str, span: Span) -> io::Result<()> {
        self.saw(span.end);
        self.model.has_interrupts = true;
        if !self.kept.overlaps(span.start, span.end) || !self.keeps_states(1) {
            return Ok(());
        }
        let name = self.model.names.number(name);
        let interrupt = Interrupt { start: span.start, end: span.end, name };
        self.model.cpus.entry(cpu).or_default().interrupts.push(interrupt);
        Ok(())
    }

    fn method_begin(&mut self, at: &MethodThread, method: &MethodLabel, open: &OpenMethod) -> io::Result<()> {
        self.saw(open.begun);
        let Some(tid) = at.tid.filter(|_| self.keeps_states(1)) else { return Ok(()) };
        let Model { names, method_files, .. } = &mut self.model;
        let name = *self.methods.entry(open.method.0).or_insert_with(|| {
            let name = names.number(&method.full);
            if !method.file.is_empty() {
                method_files.insert(name, (names.number(&method.file), method.line));
            }
            name
        });
        let thread = self.thread(tid);
        thread.call_edge_ns = at.edge_cost_ns;
        thread.calls.begin(open.begun, name);
        Ok(())
    }

    fn method(&mut self, _: &Tasks, call: &MethodCall<'_>) -> io::Result<()> {
        self.saw(call.span.end);
        if let Some(tid) = call.at.tid.filter(|_| !self.has_given_up()) {
            let thread = self.model.threads.entry(tid).or_default();
            thread.calls.end(call.span.end, &self.kept);
        }
        Ok(())
    }

    /// Of several event types that sample running threads the first counts: each of them samples the same
    /// time.
    fn sample(&mut self, _: &Tasks, taken: &TakenSample<'_>) -> io::Result<()> {
        let TakenSample { set, tables, at, sample } = *taken;
        self.saw(sample.time);
        let event = &tables.events[sample.event as usize];
        let counts = event.is_off_cpu
            || tables.events.iter().position(|event| !event.is_off_cpu) == Some(sample.event as usize);
        let is_kept = counts && at.tid.is_thread() && self.kept.overlaps(sample.time, sample.time);
        if !is_kept || !self.keeps_states(1) {
            return Ok(());
        }
        let Model { names, stacks, .. } = &mut self.model;
        let known = self.sampled.entry((set, sample.stack));
        let stack = *known.or_insert_with(|| stacks.add(tables, sample.stack, |name| names.number(name)));
        let Some((stack, leaf)) = stack.and_then(|stack| Some((stack, stacks.leaf(stack)?))) else {
            return Ok(());
        };
        let thread = self.thread(at.tid);
        if event.is_off_cpu {
            thread.off_cpu_samples.push((sample.time, leaf));
        } else {
            thread.samples.push((sample.time, stack));
        }
        Ok(())
    }

    fn other(&mut self, _: &Tasks, _: Task, event: &Event<'_>, kind: &EventType) -> io::Result<()> {
        self.saw(event.ts);
        if self.has_given_up() {
            return Ok(());
        }
        let collected = *self.event_kinds.entry(event.kind).or_insert_with(|| CollectedEvent::new(kind));
        match collected {
            CollectedEvent::Other => {}
            CollectedEvent::BlockedReason { pid, is_io, caller } => {
                let tid = event.tid_at(kind, pid).unwrap_or_default();
                let reason = BlockedReason {
                    function: self.function(event, kind, caller),
                    is_io: event.int(kind, is_io) == Some(1),
                };
                let number = self.model.reasons.len() as u32;
                self.model.reasons.push(reason);
                self.thread(tid).was_blocked(number);
            }
            CollectedEvent::BinderSend { reply, flags } => {
                let is_reply = event.int(kind, reply).unwrap_or(0) != 0;
                let flags = event.int(kind, flags).unwrap_or(0);
                if !is_reply && flags & ONE_WAY == 0 {
                    self.mark(event, MarkKind::BinderCall);
                }
            }
            CollectedEvent::SyscallEnter { number, arguments } => {
                let call = self.syscalls.get(event.int(kind, number).unwrap_or(-1));
                let on = first_argument(event, kind, arguments);
                self.mark(event, MarkKind::SyscallEnter(call, on));
            }
            CollectedEvent::NamedSyscall { call, argument } => {
                let on = first_argument(event, kind, argument);
                self.mark(event, MarkKind::SyscallEnter(call, on));
            }
            CollectedEvent::SyscallExit => {
                self.model.has_call_ends = true;
                self.mark(event, MarkKind::SyscallExit);
            }
            CollectedEvent::BlockIssue(request) => {
                self.model.block_requests.issued(event.ts, request.of_event(event, kind));
            }
            CollectedEvent::BlockComplete(request) => {
                self.model.block_requests.completed(event.ts, request.of_event(event, kind));
            }
            CollectedEvent::Fork { child, flags } => {
                let child = event.tid_at(kind, child).unwrap_or_default();
                if let Some(flags) = flags.and_then(|flags| event.int(kind, flags)) {
                    let is_thread = flags & CLONE_THREAD != 0;
                    self.births.push(Birth { child, parent: event.tid, is_thread });
                }
                self.model.quotas.born(event.ts, child, event.tid);
                let wake = Wake {
                    ts: event.ts,
                    waker: event.tid,
                    cpu: event.cpu,
                    context: WakeContext::Thread,
                    is_new: true,
                };
                if child.is_thread() && self.thread(child).changes.is_empty() {
                    self.thread(child).wakes(wake, false);
                }
            }
            CollectedEvent::GroupMove { pid, hierarchy, path } => {
                let tid = event.tid_at(kind, pid).unwrap_or_default();
                let path = event.text(kind, path).unwrap_or(b"");
                let hierarchy = event.int(kind, hierarchy).unwrap_or(-1);
                self.model.quotas.moved(event.ts, tid, hierarchy, path);
            }
            CollectedEvent::FilePage { inode, device } => {
                let inode = event.int(kind, inode).unwrap_or(0);
                let device = device.and_then(|device| event.int(kind, device)).unwrap_or(0).cast_unsigned();
                // The kernel's number of a device has 20 bits for the minor number.
                let device = ((device >> 20) as u32, (device & 0xf_ffff) as u32);
                let known = self.files.get(&(device, inode.cast_unsigned())).copied();
                let file = known.unwrap_or_else(|| self.model.names.number(&format!("inode {inode}")));
                self.mark(event, MarkKind::FilePage(file));
            }
            CollectedEvent::FileRead { path } => {
                let text = String::from_utf8_lossy(event.text(kind, path).unwrap_or(b"")).into_owned();
                let file = self.model.names.number(&text);
                self.mark(event, MarkKind::FilePage(file));
            }
            CollectedEvent::ReclaimBegin => {
                let name = self.model.names.number(&kind.name);
                self.thread(event.tid).reclaims.begin(event.ts, name);
            }
            CollectedEvent::ReclaimEnd => {
                let thread = self.model.threads.entry(event.tid).or_default();
                thread.reclaims.end(event.ts, &self.kept);
            }
            CollectedEvent::Mark(mark) => self.mark(event, mark),
        }
        Ok(())
    }

    fn lost_between(&mut self, cpu: Cpu, span: Span, _: Option<u64>) -> io::Result<()> {
        self.last_on_cpu.entry(cpu).or_default().has_lost = true;
        self.losses.push(span);
        Ok(())
    }

    fn finish(&mut self, tasks: &Tasks, summary: &MergeSummary) -> io::Result<()> {
        let first = summary.report.first_ts.or(self.first_ts).unwrap_or_default();
        let last = summary.report.last_ts.unwrap_or_default().max(self.last_ts).max(first);
        self.model.extent = (first, last);
        self.model.tasks = tasks.clone();
        self.learn_processes();
        for (cpu, on_cpu) in std::mem::take(&mut self.last_on_cpu) {
            self.model.close_cpu(cpu, &on_cpu, first);
        }
        self.model.find_throttled();
        // Some sinks get samples behind the rest.
        for thread in self.model.threads.values_mut() {
            thread.samples.sort_unstable_by_key(|(ts, _)| *ts);
            thread.off_cpu_samples.sort_unstable_by_key(|(ts, _)| *ts);
        }
        let losses = std::mem::take(&mut self.losses).into_iter();
        self.model.losses = joined(losses.map(|span| (span.start, span.end)).collect());
        let finder = std::mem::take(&mut self.finder);
        self.model.measured = finder.finish(tasks, summary);
        Ok(())
    }
}
