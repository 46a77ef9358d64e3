//! What the kernel's events and the markers tell, as slices, states and counters on threads and CPUs: for formats that
//! know nothing of ftrace.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::io;

use super::thread_names::{NamedThread, ThreadNames};
use crate::formats::{Event, EventType, EventTypeId, Head, Order, ProcessInfo, Sink, ThreadInfo};
use crate::ftrace::{softirq, task_state};
use crate::markers::Marker;
use crate::timeline::{Edge, EdgeKind, MergeSummary, MethodId, MethodName, MethodThread, TimelineSink};

/// A thread and its process, as far as known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Task {
    pub tid: i32,
    pub tgid: Option<i32>,
}

/// From `start` to `end`, ns. `open` says that no end was recorded, and `end` is the last moment of the timeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    pub start: u64,
    pub end: u64,
    pub open: bool,
}

/// Whose a counter is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Owner {
    Process(i32),
    Cpu(u32),
    System,
}

/// Threads and processes, complete at the end.
#[derive(Debug, Default)]
pub(super) struct Tasks {
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

    /// The process's own name, else that of its main thread.
    pub fn process_name(&self, pid: i32) -> Cow<'_, str> {
        self.processes.get(&pid).map_or_else(|| self.thread_name(pid), |name| name.as_str().into())
    }
}

/// Takes the story, by time. What spans time is told when it ends; slices of threads when they begin too.
pub(super) trait Story {
    fn begin(&mut self, at: Task, ts: u64, name: &[u8]) -> io::Result<()>;
    fn end(&mut self, at: Task, span: Span, name: &[u8]) -> io::Result<()>;
    /// A slice of a process that no thread owns; `begins` or ends. The track's name, or the slice's own.
    fn async_edge(&mut self, pid: i32, slice: &AsyncSlice<'_>) -> io::Result<()>;
    fn instant(&mut self, at: Task, ts: u64, name: &[u8]) -> io::Result<()>;
    fn counter(&mut self, owner: Owner, ts: u64, name: &str, value: i64) -> io::Result<()>;
    /// A thread, called `name` then, had a CPU.
    fn on_cpu(&mut self, cpu: u32, at: Task, name: &str, span: Span, prio: i64) -> io::Result<()>;
    /// A thread was in a state: `Running`, `Runnable`, `Sleeping` …
    fn state(&mut self, at: Task, state: &'static str, span: Span) -> io::Result<()>;
    /// A CPU served an interrupt.
    fn irq(&mut self, cpu: u32, name: &str, span: Span) -> io::Result<()>;
    fn method(&mut self, at: &MethodThread, name: &Method, span: Span, depth: usize) -> io::Result<()>;
    /// The methods open on a thread up to `until`, with their begins; told before each change.
    fn stack(
        &mut self,
        at: &MethodThread,
        stack: &[(u64, MethodId)],
        methods: &[Method],
        until: u64,
    ) -> io::Result<()> {
        let _ = (at, stack, methods, until);
        Ok(())
    }
    /// A kernel event that has no meaning above.
    fn other(&mut self, at: Task, event: &Event<'_>, kind: &EventType) -> io::Result<()>;
    fn finish(&mut self, tasks: &Tasks, outcome: &MergeSummary) -> io::Result<()>;
}

/// One edge of an asynchronous slice.
#[derive(Debug, Clone, Copy)]
pub(super) struct AsyncSlice<'a> {
    pub track: Option<&'a [u8]>,
    pub name: &'a [u8],
    pub cookie: i64,
    pub ts: u64,
    pub edge: AsyncEdge,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AsyncEdge {
    Begin,
    /// With the time of the begin, where there was one.
    End(Option<u64>),
    Instant,
}

/// A method's names.
#[derive(Debug, Clone, Default)]
pub(super) struct Method {
    /// `java.lang.String.valueOf`
    pub full: String,
}

/// What a kind of event means, with the places of the fields that matter.
enum Role {
    Switch { prev: [usize; 3], next: [usize; 3] },
    Waking { pid: usize, comm: usize },
    Print { buf: usize },
    CpuCounter { name: &'static str, value: usize, cpu: usize },
    Clock { name: usize, value: usize },
    IrqEntry { name: usize },
    SoftirqEntry { vec: usize },
    IrqExit,
    Other,
}

impl Role {
    fn of(kind: &EventType) -> Role {
        let field = |name: &str| kind.field(name);
        let found = match kind.name.as_str() {
            "sched_switch" => (|| {
                let all = |a, b, c| Some([field(a)?, field(b)?, field(c)?]);
                let prev = all("prev_comm", "prev_pid", "prev_state")?;
                Some(Role::Switch { prev, next: all("next_comm", "next_pid", "next_prio")? })
            })(),
            "sched_waking" | "sched_wakeup" | "sched_wakeup_new" => {
                field("pid").zip(field("comm")).map(|(pid, comm)| Role::Waking { pid, comm })
            }
            "print" => field("buf").map(|buf| Role::Print { buf }),
            "cpu_frequency" => Role::cpu(kind, "frequency (kHz)"),
            "cpu_idle" => Role::cpu(kind, "idle state"),
            "clock_set_rate" | "clock_enable" | "clock_disable" => {
                field("name").zip(field("state")).map(|(name, value)| Role::Clock { name, value })
            }
            "clk_set_rate" => {
                field("name").zip(field("rate")).map(|(name, value)| Role::Clock { name, value })
            }
            "irq_handler_entry" => field("name").map(|name| Role::IrqEntry { name }),
            "softirq_entry" => field("vec").map(|vec| Role::SoftirqEntry { vec }),
            "irq_handler_exit" | "softirq_exit" => Some(Role::IrqExit),
            _ => None,
        };
        found.unwrap_or(Role::Other)
    }

    fn cpu(kind: &EventType, name: &'static str) -> Option<Role> {
        let (value, cpu) = kind.field("state").zip(kind.field("cpu_id"))?;
        Some(Role::CpuCounter { name, value, cpu })
    }
}

/// Makes a story of a timeline.
pub(super) struct Teller<S> {
    story: S,
    roles: Vec<Role>,
    tasks: Tasks,
    /// Open slices of each thread: begin and name.
    slices: HashMap<i32, Vec<(u64, Vec<u8>)>>,
    asyncs: HashMap<(i32, Vec<u8>, i64), u64>,
    /// Who has each CPU, since when, with which priority.
    cpus: BTreeMap<u32, (i32, u64, i64)>,
    states: HashMap<i32, (&'static str, u64)>,
    irqs: HashMap<u32, Vec<(u64, String)>>,
    methods: Vec<Method>,
    method_threads: HashMap<u32, (MethodThread, Vec<(u64, MethodId)>)>,
    last_ts: u64,
}

impl<S: Story> Teller<S> {
    pub fn new(story: S) -> Self {
        Teller {
            story,
            roles: Vec::new(),
            tasks: Tasks::default(),
            slices: HashMap::new(),
            asyncs: HashMap::new(),
            cpus: BTreeMap::new(),
            states: HashMap::new(),
            irqs: HashMap::new(),
            methods: Vec::new(),
            method_threads: HashMap::new(),
            last_ts: 0,
        }
    }

    fn marker(&mut self, event: &Event<'_>, text: &[u8]) -> io::Result<()> {
        let ts = event.ts;
        let marker = Marker::parse(text);
        // Who writes a marker says its process.
        if let Some(pid) = marker.as_ref().and_then(Marker::pid).filter(|pid| *pid > 0) {
            self.tasks.threads.learn_tgid_if_unknown(event.tid, pid);
        }
        let at = self.tasks.task(event.tid);
        let edge = |edge, track, name, cookie| AsyncSlice { track, name, cookie, ts, edge };
        match marker {
            Some(Marker::Begin { name, .. }) => {
                self.slices.entry(event.tid).or_default().push((ts, name.to_vec()));
                self.story.begin(at, ts, name)
            }
            Some(Marker::End { .. }) => match self.slices.get_mut(&event.tid).and_then(Vec::pop) {
                Some((start, name)) => self.story.end(at, Span { start, end: ts, open: false }, &name),
                // Begun before the recording.
                None => Ok(()),
            },
            Some(Marker::AsyncBegin { pid, name, cookie }) => {
                self.asyncs.insert((pid, name.to_vec(), cookie), ts);
                self.story.async_edge(pid, &edge(AsyncEdge::Begin, None, name, cookie))
            }
            Some(Marker::AsyncEnd { pid, name, cookie }) => {
                let begun = self.asyncs.remove(&(pid, name.to_vec(), cookie));
                self.story.async_edge(pid, &edge(AsyncEdge::End(begun), None, name, cookie))
            }
            Some(Marker::TrackBegin { pid, track, name, cookie }) => {
                self.asyncs.insert((pid, track.to_vec(), cookie), ts);
                self.story.async_edge(pid, &edge(AsyncEdge::Begin, Some(track), name, cookie))
            }
            Some(Marker::TrackEnd { pid, track, name, cookie }) => {
                let begun = self.asyncs.remove(&(pid, track.to_vec(), cookie));
                let name = name.unwrap_or(track);
                self.story.async_edge(pid, &edge(AsyncEdge::End(begun), Some(track), name, cookie))
            }
            Some(Marker::TrackInstant { pid, track, name }) => {
                self.story.async_edge(pid, &edge(AsyncEdge::Instant, Some(track), name, 0))
            }
            Some(Marker::Instant { name, .. }) => self.story.instant(at, ts, name),
            Some(Marker::Counter { pid, name, value, .. }) => {
                self.story.counter(Owner::Process(pid), ts, &String::from_utf8_lossy(name), value)
            }
            Some(Marker::ClockSync(_)) | None => self.story.instant(at, ts, text.trim_ascii_end()),
        }
    }

    fn switch(
        &mut self,
        event: &Event<'_>,
        kind: &EventType,
        prev: [usize; 3],
        next: [usize; 3],
    ) -> io::Result<()> {
        let (ts, cpu) = (event.ts, event.cpu);
        let tid = |at| event.int(kind, at).unwrap_or(-1) as i32;
        let (left, entered) = (tid(prev[1]), tid(next[1]));
        for (tid, comm) in [(left, prev[0]), (entered, next[0])] {
            if tid > 0 {
                self.tasks.threads.learn(tid, None, event.text(kind, comm));
            }
        }
        let prio = event.int(kind, next[2]).unwrap_or(0);
        if let Some((tid, start, prio)) = self.cpus.insert(cpu, (entered, ts, prio))
            && tid > 0
        {
            let (at, name) = (self.tasks.task(tid), self.tasks.thread_name(tid));
            self.story.on_cpu(cpu, at, &name, Span { start, end: ts, open: false }, prio)?;
        }
        let state = task_state::words(event.int(kind, prev[2]).unwrap_or(0) as u64);
        self.change_state(left, state, ts)?;
        self.change_state(entered, "Running", ts)
    }

    fn change_state(&mut self, tid: i32, state: &'static str, ts: u64) -> io::Result<()> {
        if tid <= 0 {
            return Ok(());
        }
        if let Some((was, start)) = self.states.insert(tid, (state, ts))
            && ts > start
        {
            let at = self.tasks.task(tid);
            self.story.state(at, was, Span { start, end: ts, open: false })?;
        }
        Ok(())
    }

    fn irq_entry(&mut self, event: &Event<'_>, name: String) {
        self.irqs.entry(event.cpu).or_default().push((event.ts, name));
    }

    /// Ends at the last moment what no event ended.
    fn close(&mut self) -> io::Result<()> {
        let end = self.last_ts;
        let span = |start| Span { start, end, open: true };
        for (tid, open) in std::mem::take(&mut self.slices) {
            for (start, name) in open.into_iter().rev() {
                self.story.end(self.tasks.task(tid), span(start), &name)?;
            }
        }
        for (cpu, (tid, start, prio)) in std::mem::take(&mut self.cpus) {
            if tid > 0 {
                let (at, name) = (self.tasks.task(tid), self.tasks.thread_name(tid));
                self.story.on_cpu(cpu, at, &name, span(start), prio)?;
            }
        }
        for (tid, (state, start)) in std::mem::take(&mut self.states) {
            if end > start && state != "Dead" {
                self.story.state(self.tasks.task(tid), state, span(start))?;
            }
        }
        for (cpu, open) in std::mem::take(&mut self.irqs) {
            for (start, name) in open.into_iter().rev() {
                self.story.irq(cpu, &name, span(start))?;
            }
        }
        Ok(())
    }
}

impl<S: Story> Sink for Teller<S> {
    fn head(&mut self, _: &Head) -> io::Result<()> {
        Ok(())
    }

    fn event_type(&mut self, _: EventTypeId, kind: &EventType) -> io::Result<()> {
        self.roles.push(Role::of(kind));
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

    fn event(&mut self, event: &Event<'_>, kind: &EventType) -> io::Result<()> {
        self.last_ts = self.last_ts.max(event.ts);
        if event.tid > 0 && (event.comm.is_some() || event.tgid.is_some()) {
            self.tasks.threads.learn(event.tid, event.tgid, event.comm);
        }
        let at = self.tasks.task(event.tid);
        match self.roles.get(event.kind.0 as usize).unwrap_or(&Role::Other) {
            Role::Switch { prev, next } => {
                let (prev, next) = (*prev, *next);
                self.switch(event, kind, prev, next)
            }
            Role::Waking { pid, comm } => {
                let tid = event.int(kind, *pid).unwrap_or(-1) as i32;
                self.tasks.threads.learn(tid, None, event.text(kind, *comm));
                match self.states.get(&tid) {
                    Some(("Running" | "Runnable" | "Runnable (Preempted)", _)) => Ok(()),
                    _ => self.change_state(tid, "Runnable", event.ts),
                }
            }
            Role::Print { buf } => {
                let text = event.text(kind, *buf).unwrap_or(b"");
                self.marker(event, text)
            }
            Role::CpuCounter { name, value, cpu } => {
                let cpu = event.int(kind, *cpu).unwrap_or(event.cpu.into()) as u32;
                // The kernel's "not idle" is (u32)-1.
                let value = match event.int(kind, *value).unwrap_or(0) {
                    0xffff_ffff => -1,
                    other => other,
                };
                self.story.counter(Owner::Cpu(cpu), event.ts, name, value)
            }
            Role::Clock { name, value } => {
                let name = String::from_utf8_lossy(event.text(kind, *name).unwrap_or(b""));
                self.story.counter(Owner::System, event.ts, &name, event.int(kind, *value).unwrap_or(0))
            }
            Role::IrqEntry { name } => {
                let name = String::from_utf8_lossy(event.text(kind, *name).unwrap_or(b"irq")).into_owned();
                self.irq_entry(event, name);
                Ok(())
            }
            Role::SoftirqEntry { vec } => {
                let vec = event.int(kind, *vec).unwrap_or(-1);
                let name = softirq::name(vec).unwrap_or("softirq");
                self.irq_entry(event, format!("softirq {name}"));
                Ok(())
            }
            Role::IrqExit => match self.irqs.get_mut(&event.cpu).and_then(Vec::pop) {
                Some((start, name)) => {
                    self.story.irq(event.cpu, &name, Span { start, end: event.ts, open: false })
                }
                None => Ok(()),
            },
            Role::Other => self.story.other(at, event, kind),
        }
    }
}

impl<S: Story> TimelineSink for Teller<S> {
    fn order(&self) -> Order {
        Order::Time
    }

    fn method(&mut self, id: MethodId, name: &MethodName<'_>) -> io::Result<()> {
        let full = match name.class {
            "" => name.name.to_owned(),
            class => format!("{class}.{}", name.name),
        };
        let at = id.0 as usize;
        if self.methods.len() <= at {
            self.methods.resize(at + 1, Method::default());
        }
        self.methods[at] = Method { full };
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
        let Some((at, stack)) = self.method_threads.get_mut(&thread) else { return Ok(()) };
        for edge in edges {
            self.last_ts = self.last_ts.max(edge.ts);
            self.story.stack(at, stack, &self.methods, edge.ts)?;
            match edge.kind {
                EdgeKind::Enter => stack.push((edge.ts, edge.method)),
                EdgeKind::Exit => {
                    let Some((start, method)) = stack.pop() else { continue };
                    let Some(method) = self.methods.get(method.0 as usize) else { continue };
                    let span = Span { start, end: edge.ts, open: false };
                    self.story.method(at, method, span, stack.len())?;
                }
            }
        }
        Ok(())
    }

    fn finish(&mut self, outcome: &MergeSummary) -> io::Result<()> {
        self.close()?;
        self.story.finish(&self.tasks, outcome)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::sync::{Arc, Mutex};

    use super::super::Out;
    use super::*;
    use crate::clock::Clock;
    use crate::formats::{ReadReport, ftrace_text};

    /// Two threads of process 7, a wakeup, an interrupt, every kind of marker.
    pub(in crate::export) const TEXT: &str = "\
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

    #[derive(Clone, Default)]
    struct Shared(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Shared {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// What the exporter writes for `text` and one method on thread 7.
    pub(in crate::export) fn export(create: impl Fn(Out) -> Box<dyn TimelineSink>, text: &str) -> String {
        let out = Shared::default();
        let mut sink = create(Box::new(out.clone()));
        let report = push_example(&mut *sink, text);
        sink.finish(&outcome(report)).unwrap();
        drop(sink);
        let bytes = out.0.lock().unwrap().clone();
        String::from_utf8(bytes).unwrap()
    }

    /// Pushes `text` and one method call on thread 7.
    pub(in crate::export) fn push_example(sink: &mut dyn TimelineSink, text: &str) -> ReadReport {
        let order = sink.order();
        let report = ftrace_text::read(text.as_bytes(), order, &mut *sink).unwrap();
        let thread = MethodThread {
            index: 0,
            tid: Some(7),
            tgid: Some(7),
            name: "main".into(),
            trace_id: 1,
            doubt: None,
        };
        let name = MethodName { class: "a.B", name: "run", signature: "()V", file: "B.java" };
        sink.method(MethodId(0), &name).unwrap();
        sink.method_thread(&thread).unwrap();
        let edge = |ts, kind| Edge { ts, cpu: None, method: MethodId(0), kind };
        sink.edges(0, &[edge(1_000_012_345, EdgeKind::Enter), edge(1_000_055_000, EdgeKind::Exit)]).unwrap();
        report
    }

    fn outcome(report: ReadReport) -> MergeSummary {
        MergeSummary {
            clock: Clock::Boottime,
            inputs: Vec::new(),
            report,
            markers: 7,
            methods: 1,
            problems: Default::default(),
            threads: 2,
        }
    }
}
