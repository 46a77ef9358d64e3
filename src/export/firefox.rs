//! Writes the Firefox profiler's processed profile format. profiler.firefox.com opens it inside the browser.
//!
//! Slices, thread states and instants become markers, and counters become counters. Methods become samples,
//! because the format builds call trees from samples only: each thread's stack is sampled every
//! [`SAMPLE_INTERVAL_NS`], and a stack that stays the same becomes one sample with a weight. Samples that
//! were recorded are samples of their thread, of weight 1 each; where their file has several event types, the
//! type is the root of the stack. A sample of a thread that stopped running is a marker, as long as the
//! thread waited. The whole profile is kept in memory until the end, because in the file the tables precede
//! the entries that refer to them.

use std::collections::HashMap;
use std::io::{self, BufWriter, Write};
use std::time::Duration;

use fxprof_processed_profile::{
    CategoryColor, CategoryHandle, CounterHandle, CpuDelta, Frame, FrameFlags, FrameHandle, FrameInfo,
    MarkerFieldFlags, MarkerFieldFormat, MarkerHandle, MarkerTiming, ProcessHandle, Profile,
    ReferenceTimestamp, SamplingInterval, StackHandle, StaticSchemaMarker, StaticSchemaMarkerField,
    StringHandle, ThreadHandle, Timestamp as ProfileTime,
};

use super::Out;
use super::held_memory::{HeldBytes, HeldLimit, HeldMemory};
use crate::clock::Timestamp;
use crate::formats::samples::{FrameKind, NO_STACK};
use crate::formats::{CounterValue, Event, EventType, TimelineFrame};
use crate::ids::{Cpu, Pid, Tid};
use crate::timeline::{MergeSummary, MethodThread, TimelineSink};
use crate::tracks::{
    AsyncEdge, AsyncSlice, Both, CounterSample, CounterScope, MethodLabel, OpenMethod, OwnTrack, Span,
    TakenSample, Task, Tasks, ThreadState, TrackBuilder, TrackSink,
};

const SAMPLE_INTERVAL_NS: u64 = 100_000;
/// Added to the thread id of a method trace, this gives an id that no kernel thread has: PID_MAX_LIMIT is
/// 2^22.
const UNIDENTIFIED_THREAD: i32 = 1 << 23;
/// The process that stands for the CPUs.
const CPU_PROCESS: Pid = Pid(0);

/// The thread of tracks that belong to no process. It is below the ids of the CPUs' threads.
const NO_THREAD: Tid = Tid(i32::MIN);

/// The bytes of an item in the tables of the profile, which grow to twice what they hold.
const HELD_BYTES: HeldBytes =
    HeldBytes { named: 48, running: 64, state: 64, arrow: 0, counter: 48, method_edge: 40, sample: 40 };

/// Makes the writer, which writes to `out` and keeps no more than `limit` in memory.
pub(super) fn create(out: Out, limit: HeldLimit) -> Box<dyn TimelineSink> {
    let epoch = ReferenceTimestamp::from_duration_since_unix_epoch(Duration::ZERO);
    let mut profile = Profile::new("tracebridge", epoch, SamplingInterval::from_nanos(SAMPLE_INTERVAL_NS));
    profile.set_os_name("Android");
    let mut category = |name, color| profile.add_category(name, color);
    let categories = ProfileCategories {
        atrace: category("atrace", CategoryColor::Blue),
        sched: category("Scheduler", CategoryColor::Green),
        kernel: category("Kernel", CategoryColor::Orange),
        method: category("Method", CategoryColor::Yellow),
        native: category("Native", CategoryColor::LightBlue),
    };
    let writer = FirefoxWriter {
        out,
        profile,
        categories,
        frame_categories: None,
        start: None,
        processes: HashMap::new(),
        threads: HashMap::new(),
        method_threads: HashMap::new(),
        sampled: HashMap::new(),
        stacks: HashMap::new(),
        counters: HashMap::new(),
    };
    Box::new(TrackBuilder::new(Both::new(writer, HeldMemory::new(HELD_BYTES, limit))))
}

struct ProfileCategories {
    atrace: CategoryHandle,
    sched: CategoryHandle,
    kernel: CategoryHandle,
    method: CategoryHandle,
    native: CategoryHandle,
}

/// The categories of frames, of which most profiles have none.
#[derive(Clone, Copy)]
struct FrameCategories {
    frame: CategoryHandle,
    late: CategoryHandle,
}

struct FirefoxWriter {
    out: Out,
    profile: Profile,
    categories: ProfileCategories,
    frame_categories: Option<FrameCategories>,
    /// The time of the first event. Times in the profile count from here.
    start: Option<Timestamp>,
    processes: HashMap<Pid, ProcessHandle>,
    /// By thread id. The thread of CPU n has the id -1 - n. A thread stays in the process in which it was
    /// first seen.
    threads: HashMap<Tid, ThreadHandle>,
    method_threads: HashMap<u32, SampledThread>,
    /// The threads that hold recorded samples, by thread id.
    sampled: HashMap<Tid, ThreadHandle>,
    /// Stacks of recorded samples, by thread, set, event type and stack.
    stacks: HashMap<(Tid, u32, u32, u32), Option<StackHandle>>,
    counters: HashMap<(CounterScope, String), (CounterHandle, f64)>,
}

/// A method thread, and its stack in the profile's tables.
struct SampledThread {
    thread: ThreadHandle,
    /// For each open method: the time of its begin, and the stack from the root to the method.
    stack: Vec<(Timestamp, StackHandle)>,
    /// The time at which `stack` was brought up to date.
    stack_at: Timestamp,
    /// The time up to which the thread is sampled.
    until: Timestamp,
}

impl SampledThread {
    /// The number of methods, from the root on, that `stack` shares with the stack in the profile. A method
    /// that began before the last change of the profile's stack is in both, at the same depth. Only the other
    /// methods are compared one by one, so that a deep stack costs no more than its changes.
    fn common_depth(&self, stack: &[OpenMethod]) -> usize {
        let is_same = |depth: usize| match (self.stack.get(depth), stack.get(depth)) {
            (Some((begun, _)), Some(method)) => *begun == method.begun,
            _ => false,
        };
        let earlier = stack.partition_point(|method| method.begun < self.stack_at);
        let sure = if earlier > 0 && is_same(earlier - 1) { earlier } else { 0 };
        (sure..).take_while(|depth| is_same(*depth)).count() + sure
    }
}

/// A marker of the profile: an interval or an instant, with a name and one line of details.
struct ProfileMarker {
    name: StringHandle,
    detail: StringHandle,
    category: CategoryHandle,
}

impl StaticSchemaMarker for ProfileMarker {
    const UNIQUE_MARKER_TYPE_NAME: &'static str = "tracebridge";
    const CHART_LABEL: Option<&'static str> = Some("{marker.name}");
    const TABLE_LABEL: Option<&'static str> = Some("{marker.name} {marker.data.detail}");
    const FIELDS: &'static [StaticSchemaMarkerField] = &[StaticSchemaMarkerField {
        key: "detail",
        label: "Details",
        format: MarkerFieldFormat::String,
        flags: MarkerFieldFlags::SEARCHABLE,
    }];

    fn name(&self, _: &mut Profile) -> StringHandle {
        self.name
    }
    fn category(&self, _: &mut Profile) -> CategoryHandle {
        self.category
    }
    fn string_field_value(&self, _: u32) -> StringHandle {
        self.detail
    }
    fn number_field_value(&self, _: u32) -> f64 {
        0.0
    }
}

impl FirefoxWriter {
    fn timestamp(&mut self, ts: Timestamp) -> ProfileTime {
        let start = *self.start.get_or_insert(ts);
        ProfileTime::from_nanos_since_reference(ts.since(start))
    }

    fn process(&mut self, pid: Pid) -> ProcessHandle {
        let profile = &mut self.profile;
        let zero = ProfileTime::from_nanos_since_reference(0);
        *self.processes.entry(pid).or_insert_with(|| {
            let name = if pid == CPU_PROCESS { "CPUs".to_owned() } else { format!("process {pid}") };
            profile.add_process(&name, pid.0 as u32, zero)
        })
    }

    fn thread(&mut self, pid: Pid, tid: Tid) -> ThreadHandle {
        if let Some(thread) = self.threads.get(&tid) {
            return *thread;
        }
        let process = self.process(pid);
        let zero = ProfileTime::from_nanos_since_reference(0);
        let thread = self.profile.add_thread(process, tid.0 as u32, zero, tid.is_main_of(pid));
        self.threads.insert(tid, thread);
        thread
    }

    fn task_thread(&mut self, at: Task) -> ThreadHandle {
        self.thread(at.process(), at.tid)
    }

    fn cpu(&mut self, cpu: Cpu) -> ThreadHandle {
        let thread = self.thread(CPU_PROCESS, Tid(-1 - cpu.0 as i32));
        self.profile.set_thread_name(thread, &format!("CPU {cpu}"));
        thread
    }

    /// The thread of a track that a program writes itself: its own, its process's main thread, or none.
    fn own_thread(&mut self, track: &OwnTrack) -> ThreadHandle {
        match track.place() {
            (tgid, Some(tid)) => self.task_thread(Task { tid, tgid }),
            (Some(pid), None) => self.thread(pid, pid.main_thread()),
            (None, None) => {
                let thread = self.thread(CPU_PROCESS, NO_THREAD);
                self.profile.set_thread_name(thread, "track events");
                thread
            }
        }
    }

    fn counter_value(&mut self, scope: CounterScope, ts: Timestamp, name: &str, value: f64) {
        let (pid, shown) = match scope {
            CounterScope::Process(pid) => (pid, name.to_owned()),
            CounterScope::Cpu(cpu) => (CPU_PROCESS, format!("cpu{cpu} {name}")),
            CounterScope::System => (CPU_PROCESS, name.to_owned()),
        };
        let process = self.process(pid);
        let ts = self.timestamp(ts);
        let profile = &mut self.profile;
        let (counter, last) = self
            .counters
            .entry((scope, name.to_owned()))
            .or_insert_with(|| (profile.add_counter(process, &shown, "tracebridge", &shown), 0.0));
        let delta = value - *last;
        *last = value;
        profile.add_counter_sample(*counter, ts, delta, 1);
    }

    fn add_marker(
        &mut self,
        thread: ThreadHandle,
        start: Timestamp,
        end: Option<Timestamp>,
        name: &str,
        detail: &str,
        category: CategoryHandle,
    ) -> MarkerHandle {
        let start = self.timestamp(start);
        let timing = match end {
            Some(end) => MarkerTiming::Interval(start, self.timestamp(end)),
            None => MarkerTiming::Instant(start),
        };
        let marker = ProfileMarker {
            name: self.profile.intern_string(name),
            detail: self.profile.intern_string(detail),
            category,
        };
        self.profile.add_marker(thread, timing, marker)
    }
}

impl FirefoxWriter {
    /// The thread for the recorded samples of a thread. Where calls are on it, which are samples of another
    /// weight, it is a thread beside it.
    fn sampled_thread(&mut self, names: &Tasks, at: Task) -> ThreadHandle {
        if let Some(thread) = self.sampled.get(&at.tid) {
            return *thread;
        }
        let own = self.task_thread(at);
        let mut thread = own;
        if self.method_threads.values().any(|methods| methods.thread == own) {
            let process = self.process(at.process());
            let zero = ProfileTime::from_nanos_since_reference(0);
            thread = self.profile.add_thread(process, at.tid.0 as u32, zero, false);
            self.profile.set_thread_name(thread, &format!("{} (samples)", names.thread_name(at.tid)));
        }
        self.sampled.insert(at.tid, thread);
        thread
    }

    /// The stack of a sample, with the event type as its root where there are several.
    fn recorded_stack(&mut self, thread: ThreadHandle, taken: &TakenSample<'_>) -> Option<StackHandle> {
        let TakenSample { set, tables, at, sample } = *taken;
        let mut missing = Vec::new();
        let mut below = sample.stack;
        let key = |stack| (at.tid, set, sample.event, stack);
        let mut handle = loop {
            if let Some(handle) = self.stacks.get(&key(below)) {
                break *handle;
            }
            let Some(node) = tables.stacks.nodes().get(below as usize) else {
                let root = (tables.events.len() > 1).then(|| {
                    let name = &tables.events[sample.event as usize].name;
                    let frame = self.label(thread, name, self.categories.kernel);
                    self.profile.intern_stack(thread, None, frame)
                });
                self.stacks.insert(key(NO_STACK), root);
                break root;
            };
            missing.push((below, node.frame));
            below = node.parent;
        };
        for (stack, frame) in missing.into_iter().rev() {
            let frame = &tables.frames[frame as usize];
            let category = match frame.kind {
                FrameKind::Kernel => self.categories.kernel,
                FrameKind::Java => self.categories.method,
                FrameKind::Native => self.categories.native,
            };
            let frame = self.label(thread, &frame.name, category);
            handle = Some(self.profile.intern_stack(thread, handle, frame));
            self.stacks.insert(key(stack), handle);
        }
        handle
    }

    fn label(&mut self, thread: ThreadHandle, name: &str, category: CategoryHandle) -> FrameHandle {
        let frame = Frame::Label(self.profile.intern_string(name));
        let info = FrameInfo { frame, category_pair: category.into(), flags: FrameFlags::empty() };
        self.profile.intern_frame(thread, info)
    }
}

fn text(bytes: &[u8]) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

/// The detail of a marker of a track: the track's name, and the arguments.
fn own_detail(track: &OwnTrack) -> String {
    let details = track.details();
    let parts = [track.name.as_str(), &text(&details)].map(str::to_owned);
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(": ")
}

impl TrackSink for FirefoxWriter {
    fn begin(&mut self, _: Task, _: Timestamp, _: &[u8]) -> io::Result<()> {
        Ok(())
    }

    fn end(&mut self, _: &Tasks, at: Task, span: Span, name: &[u8]) -> io::Result<()> {
        let thread = self.task_thread(at);
        let detail = if span.open { "not ended" } else { "" };
        self.add_marker(thread, span.start, Some(span.end), &text(name), detail, self.categories.atrace);
        Ok(())
    }

    fn async_edge(&mut self, _: &Tasks, pid: Pid, slice: &AsyncSlice<'_>) -> io::Result<()> {
        let ended = slice.ended();
        let (start, end) = match (ended, slice.edge) {
            (Some(span), _) => (span.start, Some(span.end)),
            (None, AsyncEdge::Instant) => (slice.ts, None),
            _ => return Ok(()),
        };
        let thread = self.thread(pid, pid.main_thread());
        let not_ended = if ended.is_some_and(|span| span.open) { "; not ended" } else { "" };
        let detail = format!("{} {}{not_ended}", text(slice.track.unwrap_or(b"async")), slice.cookie);
        self.add_marker(thread, start, end, &text(slice.name), &detail, self.categories.atrace);
        Ok(())
    }

    fn thread_ended(&mut self, names: &Tasks, at: Task) -> io::Result<()> {
        self.sampled.remove(&at.tid);
        if let Some(thread) = self.threads.remove(&at.tid) {
            self.profile.set_thread_name(thread, &names.thread_name(at.tid));
        }
        Ok(())
    }

    // What is written when it ends may have begun before all that is written until then.
    fn seen(&mut self, event: &Event<'_>) {
        self.timestamp(event.ts);
    }

    fn track_begin(&mut self, _: &OwnTrack, ts: Timestamp, _: &[u8]) -> io::Result<()> {
        self.timestamp(ts);
        Ok(())
    }

    fn method_begin(&mut self, _: &MethodThread, _: &MethodLabel, open: &OpenMethod) -> io::Result<()> {
        self.timestamp(open.begun);
        Ok(())
    }

    fn instant(&mut self, _: &Tasks, at: Task, ts: Timestamp, name: &[u8]) -> io::Result<()> {
        let thread = self.task_thread(at);
        self.add_marker(thread, ts, None, &text(name), "", self.categories.atrace);
        Ok(())
    }

    fn counter(&mut self, _: &Tasks, scope: CounterScope, counter: CounterSample<'_>) -> io::Result<()> {
        self.counter_value(scope, counter.ts, counter.name, counter.value as f64);
        Ok(())
    }

    fn on_cpu(&mut self, names: &Tasks, cpu: Cpu, at: Task, span: Span, prio: i64) -> io::Result<()> {
        let name = &names.thread_name(at.tid);
        let thread = self.cpu(cpu);
        let detail = format!("tid {} prio {prio}", at.tid);
        self.add_marker(thread, span.start, Some(span.end), name, &detail, self.categories.sched);
        Ok(())
    }

    fn state(&mut self, _: &Tasks, at: Task, state: &ThreadState) -> io::Result<()> {
        let thread = self.task_thread(at);
        self.add_marker(
            thread,
            state.span.start,
            Some(state.span.end),
            state.state.name(),
            "",
            self.categories.sched,
        );
        Ok(())
    }

    fn irq(&mut self, cpu: Cpu, name: &str, span: Span) -> io::Result<()> {
        let thread = self.cpu(cpu);
        self.add_marker(thread, span.start, Some(span.end), name, "interrupt", self.categories.kernel);
        Ok(())
    }

    fn stack(
        &mut self,
        at: &MethodThread,
        stack: &[OpenMethod],
        methods: &[MethodLabel],
        until: Timestamp,
    ) -> io::Result<()> {
        if !self.method_threads.contains_key(&at.index) {
            // A thread that is not identified with a kernel thread gets an id above those of the kernel.
            let tid = at.tid.unwrap_or(Tid(UNIDENTIFIED_THREAD | at.trace_id as i32));
            let thread = self.task_thread(Task { tid, tgid: at.tgid });
            self.profile.set_thread_name(thread, &at.name);
            self.method_threads.insert(
                at.index,
                SampledThread { thread, stack: Vec::new(), stack_at: Timestamp::MIN, until },
            );
        }
        self.timestamp(until);
        let start = self.start.unwrap_or(until);
        let Some(sampled) = self.method_threads.get_mut(&at.index) else { return Ok(()) };
        // The number of samples between the last change of the stack and this one.
        let tick = |ts: Timestamp| ts.since(start) / SAMPLE_INTERVAL_NS;
        let count = tick(until).saturating_sub(tick(sampled.until));
        let since = std::mem::replace(&mut sampled.until, until);
        if count == 0 {
            return Ok(());
        }
        let same = sampled.common_depth(stack);
        sampled.stack.truncate(same);
        sampled.stack_at = until;
        for OpenMethod { begun, method, .. } in &stack[same..] {
            let name = methods.get(method.0 as usize).map_or("", |m| m.full.as_str());
            let frame = FrameInfo {
                frame: Frame::Label(self.profile.intern_string(name)),
                category_pair: self.categories.method.into(),
                flags: FrameFlags::empty(),
            };
            let frame = self.profile.intern_frame(sampled.thread, frame);
            let parent = sampled.stack.last().map(|(_, handle)| *handle);
            let handle = self.profile.intern_stack(sampled.thread, parent, frame);
            sampled.stack.push((*begun, handle));
        }
        let ts = ProfileTime::from_nanos_since_reference(since.since(start));
        let leaf = sampled.stack.last().map(|(_, handle)| *handle);
        let weight = i32::try_from(count).unwrap_or(i32::MAX);
        self.profile.add_sample(sampled.thread, ts, leaf, CpuDelta::ZERO, weight);
        Ok(())
    }

    fn sample(&mut self, names: &Tasks, taken: &TakenSample<'_>) -> io::Result<()> {
        let TakenSample { tables, at, sample, .. } = *taken;
        let thread = self.sampled_thread(names, at);
        let stack = self.recorded_stack(thread, taken);
        let event = &tables.events[sample.event as usize];
        if event.is_off_cpu {
            let end = sample.time.saturating_add(sample.period);
            let category = self.categories.sched;
            let marker = self.add_marker(thread, sample.time, Some(end), "off CPU", &event.name, category);
            self.profile.set_marker_stack(thread, marker, stack);
            return Ok(());
        }
        let ts = self.timestamp(sample.time);
        self.profile.add_sample(thread, ts, stack, CpuDelta::ZERO, 1);
        Ok(())
    }

    fn track_slice(&mut self, track: &OwnTrack, span: Span, name: &[u8], _: usize) -> io::Result<()> {
        let thread = self.own_thread(track);
        let detail = own_detail(track);
        self.add_marker(thread, span.start, Some(span.end), &text(name), &detail, self.categories.atrace);
        Ok(())
    }

    fn track_instant(&mut self, track: &OwnTrack, ts: Timestamp, name: &[u8]) -> io::Result<()> {
        let thread = self.own_thread(track);
        self.add_marker(thread, ts, None, &text(name), &own_detail(track), self.categories.atrace);
        Ok(())
    }

    fn track_counter(&mut self, track: &OwnTrack, ts: Timestamp, value: CounterValue) -> io::Result<()> {
        let scope = track.place().0.map_or(CounterScope::System, CounterScope::Process);
        let value = match value {
            CounterValue::Int(value) => value as f64,
            CounterValue::Double(value) => value,
        };
        self.counter_value(scope, ts, &track.label(), value);
        Ok(())
    }

    fn frame(
        &mut self,
        _: &Tasks,
        track: &OwnTrack,
        span: Span,
        frame: &TimelineFrame<'_>,
    ) -> io::Result<()> {
        let thread = self.own_thread(track);
        let end = if span.open { "; not ended" } else { "" };
        let detail = format!("{}: {}{end}", frame.token(), frame.details());
        let profile = &mut self.profile;
        let categories = *self.frame_categories.get_or_insert_with(|| FrameCategories {
            frame: profile.add_category("Frame", CategoryColor::LightGreen),
            late: profile.add_category("Late frame", CategoryColor::Red),
        });
        let category = if frame.is_late() { categories.late } else { categories.frame };
        self.add_marker(thread, span.start, Some(span.end), &track.name, &detail, category);
        Ok(())
    }

    fn other(&mut self, _: &Tasks, at: Task, event: &Event<'_>, kind: &EventType) -> io::Result<()> {
        let thread = if at.tid.is_thread() { self.task_thread(at) } else { self.cpu(event.cpu) };
        let mut detail = Vec::new();
        crate::formats::event_catalog::render(event, kind, &mut detail);
        self.add_marker(thread, event.ts, None, &kind.name, &text(&detail), self.categories.kernel);
        Ok(())
    }

    fn lost(&mut self, cpu: Cpu, ts: Timestamp, count: Option<u64>) -> io::Result<()> {
        let thread = self.cpu(cpu);
        let detail = count.map_or_else(|| "not counted".to_owned(), |count| count.to_string());
        self.add_marker(thread, ts, None, "events lost", &detail, self.categories.kernel);
        Ok(())
    }

    fn finish(&mut self, tasks: &Tasks, _: &MergeSummary) -> io::Result<()> {
        for (tid, thread) in &self.threads {
            let name = tasks.thread_name(*tid);
            if !name.is_empty() {
                self.profile.set_thread_name(*thread, &name);
            }
        }
        for (pid, process) in &self.processes {
            let name = tasks.process_name(*pid);
            if !name.is_empty() && *pid != CPU_PROCESS {
                self.profile.set_process_name(*process, &name);
            }
        }
        let mut out = BufWriter::with_capacity(1 << 20, &mut self.out);
        serde_json::to_writer(&mut out, &self.profile)?;
        out.flush()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value as Json;

    use crate::export::HeldLimit;
    use crate::tracks::tests::{TEXT, export};

    #[test]
    fn slices_become_markers_and_methods_become_samples() {
        let profile: Json =
            serde_json::from_str(&export(|out| super::create(out, HeldLimit::default()), TEXT)).unwrap();
        let threads = profile["threads"].as_array().unwrap();
        let main = threads.iter().find(|t| t["tid"] == "7" || t["tid"] == 7).unwrap();
        assert_eq!(main["name"], "main");
        let strings = profile["shared"]["stringArray"].as_array().or(main["stringArray"].as_array()).unwrap();
        let names: Vec<&str> = main["markers"]["name"]
            .as_array()
            .unwrap()
            .iter()
            .map(|i| strings[i.as_u64().unwrap() as usize].as_str().unwrap())
            .collect();
        assert!(names.contains(&"draw \"x\"") && names.contains(&"Running"), "{names:?}");
        assert!(strings.iter().any(|s| s == "CPU 0" || s == "load"));
        assert_eq!(profile["counters"].as_array().unwrap().len(), 2);
    }
}
