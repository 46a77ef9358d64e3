//! Follows the kernel's events, the markers and the methods of a timeline, and calls a [`TrackSink`] for each
//! slice, state and counter value. Here are also the tracks of CPUs and of the machine that kernel events
//! describe (CPU frequency, CPU idle state, clock rates, the interrupts that each CPU served, the periods in
//! which events of a CPU are missing), and the events of the tracks that programs write themselves.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::open_async::OpenAsyncSlices;
use super::sink::{
    Arrow, ArrowKind, CounterSample, CounterScope, MethodLabel, ObservedSink, OpenMethod, OpenOwnSlice,
    OwnTrack, Span, TakenSample, ThreadState, TrackArgs, TrackSink,
};
use super::thread_names::{AppPackage, Tasks};
use crate::clock::Timestamp;
use crate::formats::samples::{Sample, SampleTables};
use crate::formats::{
    Event, EventType, EventTypeId, Head, Order, OwnedTrackEvent, ProcessInfo, Sink, ThreadInfo, Track,
    TrackArg, TrackEvent, TrackEventKind, TrackOwner,
};
use crate::ftrace::print_fmt::Symbolizer;
use crate::ftrace::softirq_name;
use crate::ftrace::task_state::TaskState;
use crate::ids::{Cpu, Tid};
use crate::timeline::{
    DataCounts, DataKind, Edge, EventRole, MergeSummary, MethodId, MethodName, MethodThread, TimelineSink,
};

/// The thread that has a CPU.
pub(super) struct RunningTask {
    pub tid: Tid,
    /// The time since which the thread has had the CPU.
    pub since: Timestamp,
    pub prio: i64,
}

/// The state of a thread since the time `since`.
pub(super) struct OpenState {
    pub state: TaskState,
    pub since: Timestamp,
    /// The CPU on which the thread runs.
    pub cpu: Option<Cpu>,
    /// The uninterruptible sleep before this state: `sched_blocked_reason` comes after its end.
    pub sleep_before: Option<ThreadState>,
}

impl OpenState {
    /// The states that have not been passed on, as if the last one ended at `end`.
    pub fn until(&self, end: Timestamp) -> Vec<ThreadState> {
        let mut states: Vec<ThreadState> = self.sleep_before.into_iter().collect();
        if end > self.since && self.state != TaskState::Dead {
            let span = Span { start: self.since, end, open: true };
            states.push(ThreadState { state: self.state, span, cpu: self.cpu, waker: None });
        }
        states
    }
}

/// The times on CPUs and the states of threads that nothing has ended yet.
#[derive(Clone, Copy)]
pub(crate) struct OpenTimes<'a> {
    /// The names of threads and processes as far as they are known.
    pub tasks: &'a Tasks,
    cpus: &'a BTreeMap<Cpu, RunningTask>,
    states: &'a FxHashMap<Tid, OpenState>,
}

impl OpenTimes<'_> {
    /// The thread that has each CPU, and since when.
    pub fn running(&self) -> impl Iterator<Item = (Cpu, Tid, Timestamp)> {
        let threads = self.cpus.iter().filter(|(_, task)| task.tid.is_thread());
        threads.map(|(cpu, task)| (*cpu, task.tid, task.since))
    }

    /// The states of a thread that have not been passed on, as if the last one ended at `end`. One before it
    /// may wait for the reason of its sleep.
    pub fn states(&self, tid: Tid, end: Timestamp) -> Vec<ThreadState> {
        self.states.get(&tid).map_or_else(Vec::new, |open| open.until(end))
    }
}

/// The last recorded step of a thread's life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Life {
    Begun,
    /// The thread has exited. It runs until it leaves its CPU.
    Exited,
    Freed,
}

/// A method thread with its open methods.
pub(super) type MethodStack = (MethodThread, Vec<OpenMethod>);

/// The slices that are open on a thread.
#[derive(Debug, Default)]
pub(super) struct OpenSlices {
    /// The time of the begin, and where the name begins in `names`.
    pub slices: Vec<(Timestamp, usize)>,
    /// The names, one behind the other.
    pub names: Vec<u8>,
}

impl OpenSlices {
    pub fn begin(&mut self, ts: Timestamp, name: &[u8]) {
        self.slices.push((ts, self.names.len()));
        self.names.extend_from_slice(name);
    }

    /// Keeps at most `most` slices. Returns how many are gone.
    fn keep_innermost(&mut self, most: usize) -> u64 {
        let surplus = self.slices.len().saturating_sub(most);
        if surplus > 0 {
            let names_at = self.slices.get(surplus).map_or(self.names.len(), |(_, at)| *at);
            self.names.drain(..names_at);
            self.slices.drain(..surplus);
            self.slices.iter_mut().for_each(|(_, at)| *at -= names_at);
        }
        surplus as u64
    }
}

pub(crate) struct TrackBuilder<S> {
    pub(super) sink: ObservedSink<S>,
    /// Whether kernel events other than markers are left out.
    is_of_markers: bool,
    /// Indexed by event type.
    roles: Vec<EventRole>,
    pub(super) tasks: Tasks,
    /// Open slices by thread.
    pub(super) slices: FxHashMap<Tid, OpenSlices>,
    pub(super) asyncs: OpenAsyncSlices,
    /// Threads whose begin or end was recorded.
    pub(super) lives: FxHashMap<Tid, Life>,
    pub(super) cpus: BTreeMap<Cpu, RunningTask>,
    /// The state of each thread.
    pub(super) states: FxHashMap<Tid, OpenState>,
    /// The time and the sender of each binder transaction that nobody has received yet, by its number.
    pub(super) binder_sent: HashMap<i64, (Timestamp, Tid)>,
    /// By CPU: the time of the last event, and the counts of the losses behind it.
    pub(super) cpu_losses: BTreeMap<Cpu, (Timestamp, Vec<Option<u64>>)>,
    /// Open interrupts by CPU: the time of the begin, and the name.
    pub(super) irqs: FxHashMap<Cpu, Vec<(Timestamp, String)>>,
    /// Indexed by method id.
    pub(super) methods: Vec<MethodLabel>,
    /// By [`MethodThread::index`].
    pub(super) method_threads: FxHashMap<u32, MethodStack>,
    /// By the number of the set.
    sample_sets: Vec<Arc<SampleTables>>,
    /// Indexed by track.
    pub(super) own_tracks: Vec<OwnTrack>,
    /// Frames whose end is not known.
    pub(super) open_frames: Vec<OwnedTrackEvent>,
    pub(super) last_ts: Timestamp,
    /// Ends of slices and interrupts whose begin was not recorded.
    pub(super) unmatched_ends: u64,
}

impl<S: TrackSink> TrackBuilder<S> {
    pub fn new(sink: S) -> Self {
        TrackBuilder {
            sink: ObservedSink(sink),
            is_of_markers: false,
            roles: Vec::new(),
            tasks: Tasks::default(),
            slices: FxHashMap::default(),
            asyncs: OpenAsyncSlices::default(),
            lives: FxHashMap::default(),
            cpus: BTreeMap::new(),
            states: FxHashMap::default(),
            binder_sent: HashMap::new(),
            cpu_losses: BTreeMap::new(),
            irqs: FxHashMap::default(),
            methods: Vec::new(),
            method_threads: FxHashMap::default(),
            sample_sets: Vec::new(),
            own_tracks: Vec::new(),
            open_frames: Vec::new(),
            last_ts: Timestamp::MIN,
            unmatched_ends: 0,
        }
    }

    /// Builds only what markers describe: no states of threads, and nothing of the kernel's own events.
    pub fn of_markers(sink: S) -> Self {
        TrackBuilder { is_of_markers: true, ..TrackBuilder::new(sink) }
    }
}

/// The most threads, asynchronous slices and messages that are followed while a timeline goes on.
const MAX_FOLLOWED: usize = 1 << 16;
/// The most slices that are open on a thread, and interrupts on a CPU, while a timeline goes on.
const MAX_OPEN_FOLLOWED: usize = 500;

/// A timeline that goes on.
impl<S: TrackSink> TrackBuilder<S> {
    /// Ends at `end` everything that is open.
    pub fn close(&mut self, end: Timestamp) -> io::Result<()> {
        self.close_losses(end)?;
        self.close_slices(end)?;
        self.close_async_slices(end)?;
        self.close_track_slices(end)?;
        self.close_frames(end)?;
        self.close_thread_states(end)?;
        self.close_interrupts(end)
    }

    /// The time of the last event.
    pub fn last_ts(&self) -> Timestamp {
        self.last_ts
    }

    /// Forgets the oldest of what is open where it is too much. Returns how much that is.
    pub fn forget(&mut self) -> u64 {
        let mut forgotten = 0;
        for open in self.slices.values_mut() {
            forgotten += open.keep_innermost(MAX_OPEN_FOLLOWED);
        }
        self.slices.retain(|_, open| !open.slices.is_empty());
        for open in self.irqs.values_mut() {
            let surplus = open.len().saturating_sub(MAX_OPEN_FOLLOWED);
            open.drain(..surplus);
            forgotten += surplus as u64;
        }
        forgotten += keep_latest(&mut self.slices, |open| {
            open.slices.last().map_or(Timestamp::MIN, |(begin, _)| *begin)
        });
        forgotten += self.asyncs.keep_innermost(MAX_OPEN_FOLLOWED);
        forgotten +=
            keep_latest(&mut self.asyncs.open, |open| open.last().map_or(Timestamp::MIN, |last| last.begin));
        forgotten += keep_latest(&mut self.states, |open| open.since);
        forgotten += keep_latest(&mut self.binder_sent, |(sent, _)| *sent);
        let running: Vec<Tid> = self.cpus.values().map(|task| task.tid).collect();
        let states = &self.states;
        let slices = &self.slices;
        self.tasks.threads.keep(2 * MAX_FOLLOWED, |tid| {
            states.contains_key(&tid) || slices.contains_key(&tid) || running.contains(&tid)
        });
        if self.lives.len() > 2 * MAX_FOLLOWED {
            self.lives = FxHashMap::default();
        }
        forgotten
    }
}

/// Keeps the latest half of a map that has more than [`MAX_FOLLOWED`] entries. Returns how many are gone.
fn keep_latest<K: Eq + std::hash::Hash, V, H: std::hash::BuildHasher>(
    map: &mut HashMap<K, V, H>,
    ts: impl Fn(&V) -> Timestamp,
) -> u64 {
    let before = map.len();
    if before <= MAX_FOLLOWED {
        return 0;
    }
    let mut times: Vec<Timestamp> = map.values().map(&ts).collect();
    let (_, median, _) = times.select_nth_unstable(before / 2);
    let since = *median;
    let mut left = MAX_FOLLOWED;
    map.retain(|_, value| {
        let is_kept = ts(value) >= since && left > 0;
        left -= usize::from(is_kept);
        is_kept
    });
    map.shrink_to_fit();
    (before - map.len()) as u64
}

impl<S: TrackSink> TrackBuilder<S> {
    pub fn sink(&mut self) -> &mut S {
        &mut self.sink.0
    }

    /// The sink, and what is open meanwhile.
    pub fn split(&mut self) -> (&mut S, OpenTimes<'_>) {
        let open = OpenTimes { tasks: &self.tasks, cpus: &self.cpus, states: &self.states };
        (&mut self.sink.0, open)
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
        self.roles.push(EventRole::new(kind));
        self.sink.event_type();
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
        if let Some(package) = process.package {
            let name = String::from_utf8_lossy(package.name).into_owned();
            let is_debuggable = package.is_debuggable;
            self.tasks.packages.insert(process.pid, AppPackage { name, is_debuggable });
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
        if self.sink.wants_markers_alone() && !matches!(role, EventRole::Print { .. }) {
            return Ok(());
        }
        self.sink.seen(event);
        self.begin_life_if_dead(event.tid, event.ts)?;
        if event.tid.is_thread() && (event.comm.is_some() || event.tgid.is_some()) {
            self.tasks.threads.learn(event.tid, event.tgid, event.comm);
        }
        match role {
            EventRole::Switch { prev, next } => self.switch(event, kind, prev, next),
            EventRole::Waking { pid, comm } => self.wake(event, kind, pid, comm),
            EventRole::TaskBegin { pid, comm, clone_flags } => {
                self.task_begin(event, kind, pid, comm, clone_flags)?;
                self.other(event, kind)
            }
            EventRole::TaskEnd { pid, is_freed } => {
                self.task_end(event, kind, pid, is_freed)?;
                self.other(event, kind)
            }
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

    fn lost(&mut self, cpu: Cpu, count: Option<u64>) -> io::Result<()> {
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
        let signature = name.signature.to_owned();
        let file = name.file.to_owned();
        self.methods[at] = MethodLabel { full, signature, file, line: name.line };
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

    fn sample_set(&mut self, set: u32, tables: &Arc<SampleTables>) -> io::Result<()> {
        self.sample_sets.push(Arc::clone(tables));
        self.sink.sample_set(set, tables);
        Ok(())
    }

    fn sample(&mut self, set: u32, sample: &Sample) -> io::Result<()> {
        self.last_ts = self.last_ts.max(sample.time);
        let Some(tables) = self.sample_sets.get(set as usize) else { return Ok(()) };
        let at = self.tasks.task(tables.threads[sample.thread as usize].tid);
        self.sink.sample(&self.tasks, &TakenSample { set, tables, at, sample: *sample })
    }

    fn finish(&mut self, summary: &MergeSummary) -> io::Result<()> {
        // What is open at the end of a part goes on behind it.
        let end = summary.window.map_or(self.last_ts, |window| self.last_ts.max(window.to));
        self.close(end)?;
        self.sink.finish(&self.tasks, summary)
    }

    fn not_written(&mut self) -> DataCounts {
        let mut counts = DataCounts::default();
        counts.add(DataKind::UnmatchedEnds, self.unmatched_ends);
        counts
    }
}

/// `cpu_idle` has this state when the CPU leaves idle: (u32)-1.
const NOT_IDLE: i64 = 0xffff_ffff;

impl<S: TrackSink> TrackBuilder<S> {
    pub(super) fn cpu_counter(
        &mut self,
        event: &Event<'_>,
        kind: &EventType,
        name: &'static str,
        value: usize,
        cpu: usize,
    ) -> io::Result<()> {
        let cpu = event.cpu_at(kind, cpu).unwrap_or(event.cpu);
        let value = match event.int(kind, value).unwrap_or(0) {
            NOT_IDLE => -1,
            other => other,
        };
        let counter = CounterSample { name, ts: event.ts, value };
        self.sink.counter(&self.tasks, CounterScope::Cpu(cpu), counter)
    }

    pub(super) fn clock_rate(
        &mut self,
        event: &Event<'_>,
        kind: &EventType,
        name: usize,
        value: usize,
    ) -> io::Result<()> {
        let name = String::from_utf8_lossy(event.text(kind, name).unwrap_or(b""));
        let value = event.int(kind, value).unwrap_or(0);
        let counter = CounterSample { name: &name, ts: event.ts, value };
        self.sink.counter(&self.tasks, CounterScope::System, counter)
    }
}

impl<S: TrackSink> TrackBuilder<S> {
    pub(super) fn irq_entry(&mut self, event: &Event<'_>, kind: &EventType, name: usize) -> io::Result<()> {
        let name = String::from_utf8_lossy(event.text(kind, name).unwrap_or(b"irq")).into_owned();
        self.begin_irq(event, name)
    }

    pub(super) fn softirq_entry(
        &mut self,
        event: &Event<'_>,
        kind: &EventType,
        vec: usize,
    ) -> io::Result<()> {
        let vec = event.int(kind, vec).unwrap_or(-1);
        let name = softirq_name(vec).unwrap_or("softirq");
        self.begin_irq(event, format!("softirq {name}"))
    }

    fn begin_irq(&mut self, event: &Event<'_>, name: String) -> io::Result<()> {
        self.sink.irq_begin(event.cpu, event.ts, &name)?;
        self.irqs.entry(event.cpu).or_default().push((event.ts, name));
        Ok(())
    }

    /// Ends the innermost interrupt of the event's CPU.
    pub(super) fn irq_exit(&mut self, event: &Event<'_>) -> io::Result<()> {
        match self.irqs.get_mut(&event.cpu).and_then(Vec::pop) {
            Some((start, name)) => {
                self.sink.irq(event.cpu, &name, Span { start, end: event.ts, open: false })
            }
            // The interrupt began before the recording.
            None => {
                self.unmatched_ends += 1;
                Ok(())
            }
        }
    }

    /// Ends at `end` the interrupts that no event ended.
    pub(super) fn close_interrupts(&mut self, end: Timestamp) -> io::Result<()> {
        for (cpu, open) in std::mem::take(&mut self.irqs) {
            for (start, name) in open.into_iter().rev() {
                self.sink.irq(cpu, &name, Span { start, end, open: true })?;
            }
        }
        Ok(())
    }
}

/// A loss lasts from the last event of its CPU before it to the next one.
impl<S: TrackSink> TrackBuilder<S> {
    /// Ends the losses that came before `event` on its CPU.
    pub(super) fn end_losses(&mut self, event: &Event<'_>) -> io::Result<()> {
        let (last, counts) = self.cpu_losses.entry(event.cpu).or_default();
        for count in counts.drain(..) {
            let span = Span { start: *last, end: event.ts, open: false };
            self.sink.lost_between(event.cpu, span, count)?;
        }
        *last = event.ts;
        Ok(())
    }

    /// Ends at `end` the losses behind which a CPU has no event.
    pub(super) fn close_losses(&mut self, end: Timestamp) -> io::Result<()> {
        for (cpu, (last, counts)) in std::mem::take(&mut self.cpu_losses) {
            for count in counts {
                self.sink.lost_between(cpu, Span { start: last, end, open: true }, count)?;
            }
        }
        Ok(())
    }
}

impl<S: TrackSink> TrackBuilder<S> {
    pub(super) fn add_track(&mut self, track: &Track<'_>) {
        let (tid, tgid) = match track.owner {
            TrackOwner::Thread { tid, tgid } => (Some(tid), tgid),
            _ => (None, None),
        };
        if let Some(tid) = tid {
            let name = (!track.owner_name.is_empty()).then_some(track.owner_name);
            self.tasks.threads.learn(tid, tgid, name);
        }
        self.own_tracks.push(OwnTrack {
            id: track.id,
            name: String::from_utf8_lossy(track.name).into_owned(),
            owner: track.owner,
            open: Vec::new(),
            args: TrackArgs::new(),
        });
    }

    pub(super) fn own_track_event(&mut self, event: &TrackEvent<'_>) -> io::Result<()> {
        self.last_ts = self.last_ts.max(event.ts);
        let Some(track) = self.own_tracks.get_mut(event.track.0 as usize) else { return Ok(()) };
        track.args = event.args.iter().map(|arg| (arg.name, arg.value.to_vec())).collect();
        match event.kind {
            TrackEventKind::Begin { name } => {
                self.sink.track_begin(track, event.ts, name)?;
                let args = std::mem::take(&mut track.args);
                track.open.push(OpenOwnSlice { start: event.ts, name: name.to_vec(), args });
            }
            TrackEventKind::End => {
                if let Some(OpenOwnSlice { start, name, args }) = track.open.pop() {
                    track.args = continued(args, event.args);
                    let span = Span { start, end: event.ts, open: false };
                    let depth = track.open.len();
                    self.sink.track_slice(track, span, &name, depth)?;
                } else {
                    // The slice began before the recording.
                    self.unmatched_ends += 1;
                }
            }
            TrackEventKind::Instant { name } => self.sink.track_instant(track, event.ts, name)?,
            TrackEventKind::Counter(value) => self.sink.track_counter(track, event.ts, value)?,
            TrackEventKind::Frame(frame) => match frame.end {
                Some(end) => {
                    self.last_ts = self.last_ts.max(end);
                    let span = Span { start: event.ts, end, open: false };
                    self.sink.frame(&self.tasks, track, span, frame)?;
                }
                None => self.open_frames.push(OwnedTrackEvent::new(event)),
            },
        }
        for flow in event.flows {
            self.sink.track_flow(track, event.ts, *flow)?;
        }
        Ok(())
    }

    /// Ends at `end` the slices that no event ended.
    pub(super) fn close_track_slices(&mut self, end: Timestamp) -> io::Result<()> {
        for track in &mut self.own_tracks {
            while let Some(OpenOwnSlice { start, name, args }) = track.open.pop() {
                track.args = args;
                let depth = track.open.len();
                self.sink.track_slice(track, Span { start, end, open: true }, &name, depth)?;
            }
        }
        Ok(())
    }

    /// Passes on the frames whose end is not known. They end at `end`.
    pub(super) fn close_frames(&mut self, end: Timestamp) -> io::Result<()> {
        for open in std::mem::take(&mut self.open_frames) {
            open.with_event(|event| {
                let TrackEventKind::Frame(frame) = event.kind else { return Ok(()) };
                let Some(track) = self.own_tracks.get(event.track.0 as usize) else { return Ok(()) };
                let span = Span { start: event.ts, end: end.max(event.ts), open: true };
                self.sink.frame(&self.tasks, track, span, frame)
            })?;
        }
        Ok(())
    }
}

/// The arguments of a slice that had `args` at its begin, and has `more` at its end.
fn continued(mut args: TrackArgs, more: &[TrackArg<'_>]) -> TrackArgs {
    for TrackArg { name, value } in more {
        match args.iter_mut().find(|(known, _)| known == name) {
            Some((_, text)) => {
                text.extend_from_slice(if text.is_empty() { b"" } else { b", " });
                text.extend_from_slice(value);
            }
            None => args.push((name, value.to_vec())),
        }
    }
    args
}
