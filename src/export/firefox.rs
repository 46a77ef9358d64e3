//! The Firefox profiler's processed profile format: what profiler.firefox.com opens (it stays in the browser).
//!
//! Slices, states and moments are markers, methods are samples: the format knows call trees by samples only, so each
//! thread's stack is looked at every [`INTERVAL_NS`], and a stack that stays counts as often. Counters are counters.
//! The whole profile is kept until the end: the format has tables before what refers to them.

use std::collections::HashMap;
use std::io::{self, BufWriter, Write};
use std::time::Duration;

use fxprof_processed_profile::{
    CategoryColor, CategoryHandle, CounterHandle, CpuDelta, Frame, FrameFlags, FrameInfo, MarkerFieldFlags,
    MarkerFieldFormat, MarkerTiming, ProcessHandle, Profile, ReferenceTimestamp, SamplingInterval,
    StackHandle, StaticSchemaMarker, StaticSchemaMarkerField, StringHandle, ThreadHandle, Timestamp,
};

use super::Out;
use super::story::{AsyncEdge, AsyncSlice, Method, Owner, Span, Story, Task, Tasks, Teller};
use crate::formats::{Event, EventType};
use crate::timeline::{MergeSummary, MethodId, MethodThread, TimelineSink};

/// How often a method stack is looked at, ns.
const INTERVAL_NS: u64 = 100_000;
/// The process that stands for the CPUs.
const CPUS: i32 = 0;

/// The writer onto `out`.
pub(super) fn create(out: Out) -> Box<dyn TimelineSink> {
    let epoch = ReferenceTimestamp::from_duration_since_unix_epoch(Duration::ZERO);
    let mut profile = Profile::new("tracebridge", epoch, SamplingInterval::from_nanos(INTERVAL_NS));
    profile.set_os_name("Android");
    let mut category = |name, color| profile.add_category(name, color);
    let categories = Categories {
        atrace: category("atrace", CategoryColor::Blue),
        sched: category("Scheduler", CategoryColor::Green),
        kernel: category("Kernel", CategoryColor::Orange),
        method: category("Method", CategoryColor::Yellow),
    };
    Box::new(Teller::new(Firefox {
        out,
        profile,
        categories,
        start: None,
        processes: HashMap::new(),
        threads: HashMap::new(),
        method_threads: HashMap::new(),
        counters: HashMap::new(),
    }))
}

struct Categories {
    atrace: CategoryHandle,
    sched: CategoryHandle,
    kernel: CategoryHandle,
    method: CategoryHandle,
}

struct Firefox {
    out: Out,
    profile: Profile,
    categories: Categories,
    /// The profile's zero, ns.
    start: Option<u64>,
    processes: HashMap<i32, ProcessHandle>,
    /// By id; a CPU is the thread -1 - its number. A thread stays in the process it was first seen in.
    threads: HashMap<i32, ThreadHandle>,
    method_threads: HashMap<u32, Sampled>,
    counters: HashMap<(Owner, String), (CounterHandle, i64)>,
}

/// A method thread's stack as the profile has it.
struct Sampled {
    thread: ThreadHandle,
    /// Begin of each open method, and the stack up to it.
    stack: Vec<(u64, StackHandle)>,
    /// Up to where samples are taken.
    until: u64,
}

/// A named interval or moment, with what there is to say about it.
struct Named {
    name: StringHandle,
    detail: StringHandle,
    category: CategoryHandle,
}

impl StaticSchemaMarker for Named {
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

impl Firefox {
    fn at(&mut self, ts: u64) -> Timestamp {
        let start = *self.start.get_or_insert(ts);
        Timestamp::from_nanos_since_reference(ts.saturating_sub(start))
    }

    fn process(&mut self, pid: i32) -> ProcessHandle {
        let (profile, zero) = (&mut self.profile, Timestamp::from_nanos_since_reference(0));
        *self.processes.entry(pid).or_insert_with(|| {
            let name = if pid == CPUS { "CPUs".to_owned() } else { format!("process {pid}") };
            profile.add_process(&name, pid as u32, zero)
        })
    }

    fn thread(&mut self, pid: i32, tid: i32) -> ThreadHandle {
        if let Some(thread) = self.threads.get(&tid) {
            return *thread;
        }
        let process = self.process(pid);
        let zero = Timestamp::from_nanos_since_reference(0);
        let thread = self.profile.add_thread(process, tid as u32, zero, pid == tid);
        self.threads.insert(tid, thread);
        thread
    }

    fn of(&mut self, at: Task) -> ThreadHandle {
        self.thread(at.tgid.unwrap_or(at.tid), at.tid)
    }

    fn cpu(&mut self, cpu: u32) -> ThreadHandle {
        let thread = self.thread(CPUS, -1 - cpu as i32);
        self.profile.set_thread_name(thread, &format!("CPU {cpu}"));
        thread
    }

    fn mark(
        &mut self,
        thread: ThreadHandle,
        span: (u64, Option<u64>),
        name: &str,
        detail: &str,
        category: CategoryHandle,
    ) {
        let start = self.at(span.0);
        let timing = match span.1 {
            Some(end) => MarkerTiming::Interval(start, self.at(end)),
            None => MarkerTiming::Instant(start),
        };
        let marker = Named {
            name: self.profile.intern_string(name),
            detail: self.profile.intern_string(detail),
            category,
        };
        self.profile.add_marker(thread, timing, marker);
    }
}

fn text(bytes: &[u8]) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

fn both(span: Span) -> (u64, Option<u64>) {
    (span.start, Some(span.end))
}

impl Story for Firefox {
    fn begin(&mut self, _: Task, _: u64, _: &[u8]) -> io::Result<()> {
        Ok(())
    }

    fn end(&mut self, at: Task, span: Span, name: &[u8]) -> io::Result<()> {
        let thread = self.of(at);
        let detail = if span.open { "not ended" } else { "" };
        self.mark(thread, both(span), &text(name), detail, self.categories.atrace);
        Ok(())
    }

    fn async_edge(&mut self, pid: i32, slice: &AsyncSlice<'_>) -> io::Result<()> {
        let span = match slice.edge {
            AsyncEdge::End(Some(start)) => (start, Some(slice.ts)),
            AsyncEdge::Instant => (slice.ts, None),
            AsyncEdge::Begin | AsyncEdge::End(None) => return Ok(()),
        };
        let thread = self.thread(pid, pid);
        let detail = format!("{} {}", text(slice.track.unwrap_or(b"async")), slice.cookie);
        self.mark(thread, span, &text(slice.name), &detail, self.categories.atrace);
        Ok(())
    }

    fn instant(&mut self, at: Task, ts: u64, name: &[u8]) -> io::Result<()> {
        let thread = self.of(at);
        self.mark(thread, (ts, None), &text(name), "", self.categories.atrace);
        Ok(())
    }

    fn counter(&mut self, owner: Owner, ts: u64, name: &str, value: i64) -> io::Result<()> {
        let (pid, shown) = match owner {
            Owner::Process(pid) => (pid, name.to_owned()),
            Owner::Cpu(cpu) => (CPUS, format!("cpu{cpu} {name}")),
            Owner::System => (CPUS, name.to_owned()),
        };
        let process = self.process(pid);
        let ts = self.at(ts);
        let profile = &mut self.profile;
        let (counter, last) = self
            .counters
            .entry((owner, name.to_owned()))
            .or_insert_with(|| (profile.add_counter(process, &shown, "tracebridge", &shown), 0));
        let delta = value as f64 - *last as f64;
        *last = value;
        profile.add_counter_sample(*counter, ts, delta, 1);
        Ok(())
    }

    fn on_cpu(&mut self, cpu: u32, at: Task, name: &str, span: Span, prio: i64) -> io::Result<()> {
        let thread = self.cpu(cpu);
        let detail = format!("tid {} prio {prio}", at.tid);
        self.mark(thread, both(span), name, &detail, self.categories.sched);
        Ok(())
    }

    fn state(&mut self, at: Task, state: &'static str, span: Span) -> io::Result<()> {
        let thread = self.of(at);
        self.mark(thread, both(span), state, "", self.categories.sched);
        Ok(())
    }

    fn irq(&mut self, cpu: u32, name: &str, span: Span) -> io::Result<()> {
        let thread = self.cpu(cpu);
        self.mark(thread, both(span), name, "interrupt", self.categories.kernel);
        Ok(())
    }

    fn method(&mut self, _: &MethodThread, _: &Method, _: Span, _: usize) -> io::Result<()> {
        Ok(())
    }

    fn stack(
        &mut self,
        at: &MethodThread,
        stack: &[(u64, MethodId)],
        methods: &[Method],
        until: u64,
    ) -> io::Result<()> {
        if !self.method_threads.contains_key(&at.index) {
            // A thread that the kernel's recording does not know stands under its number in the method trace.
            let tid = at.tid.unwrap_or(1 << 23 | at.trace_id as i32);
            let thread = self.thread(at.tgid.unwrap_or(tid), tid);
            self.profile.set_thread_name(thread, &at.name);
            self.method_threads.insert(at.index, Sampled { thread, stack: Vec::new(), until });
        }
        self.at(until);
        let start = self.start.unwrap_or(until);
        let Some(sampled) = self.method_threads.get_mut(&at.index) else { return Ok(()) };
        // How often the interval's ticks fall between the last edge and this one.
        let tick = |ts: u64| ts.saturating_sub(start) / INTERVAL_NS;
        let count = tick(until).saturating_sub(tick(sampled.until));
        let since = std::mem::replace(&mut sampled.until, until);
        if count == 0 {
            return Ok(());
        }
        let same = sampled.stack.iter().zip(stack).take_while(|(a, b)| a.0 == b.0).count();
        sampled.stack.truncate(same);
        for (begun, method) in &stack[same..] {
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
        let ts = Timestamp::from_nanos_since_reference(since.saturating_sub(start));
        let leaf = sampled.stack.last().map(|(_, handle)| *handle);
        let weight = i32::try_from(count).unwrap_or(i32::MAX);
        self.profile.add_sample(sampled.thread, ts, leaf, CpuDelta::ZERO, weight);
        Ok(())
    }

    fn other(&mut self, at: Task, event: &Event<'_>, kind: &EventType) -> io::Result<()> {
        let thread = if at.tid > 0 { self.of(at) } else { self.cpu(event.cpu) };
        let mut detail = Vec::new();
        crate::formats::event_catalog::render(event, kind, &mut detail);
        self.mark(thread, (event.ts, None), &kind.name, &text(&detail), self.categories.kernel);
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
            if !name.is_empty() && *pid != CPUS {
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

    use super::super::story::tests::{TEXT, export};

    #[test]
    fn slices_are_markers_and_methods_are_samples() {
        let profile: Json = serde_json::from_str(&export(super::create, TEXT)).unwrap();
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
