//! Splits the time of a span over its causes: follows each wait to the thread that ended it.
//!
//! The thread's own time is a cause by itself. A wait that another thread ended is split in turn over what
//! that thread did meanwhile, clipped to the wait, through any number of threads. So each nanosecond of a
//! span belongs to exactly one cause.

use super::cause::{Cause, Hop, PathId, Paths, SubjectId};
use super::code_tree::{CodeNode, CodeTree, NodeId};
use super::cpu_history::CpuChange;
use super::grade::Grade;
use super::model::{Model, SchedState, StateChange, ThreadHistory};
use super::own_frame::own_frames;
use super::slices::Slice;
use super::split::{OwnWait, ShareKey, Split};
use super::waits::{Subject, WaitAt, is_kernel_worker, running_marker, waiting_marker};

use crate::clock::Timestamp;
use crate::ids::{Cpu, Tid};

/// How many threads a path may lead over. What lies further is unexplained.
const MAX_HOPS: usize = 32;
/// A CPU that idles for longer than this, ns, while a thread is ready for it does not just leave its idle
/// state.
const LONG_IDLE_NS: u64 = 2_000_000;
/// Subjects of what recording takes.
const SWITCHES: &str = "recorded context switches";
const MARKERS: &str = "markers";
/// A shorter time, ns, in which another CPU idles says nothing: the scheduler looks less often for one.
const PLACEMENT_NS: u64 = 500_000;
/// A stretch in which a thread was ready and did not run.
#[derive(Debug, Clone, Copy)]
struct Ready {
    since: Timestamp,
    until: Timestamp,
    /// The CPU that it gets.
    next_cpu: Cpu,
}

/// A part of a thread's time that is to be split.
#[derive(Debug, Clone, Copy)]
struct ThreadStretch {
    tid: Tid,
    from: Timestamp,
    to: Timestamp,
    path: PathId,
    hops: usize,
    /// The number of the wait of the span's own thread in which the part lies.
    wait: Option<u32>,
    /// How the way to here is known.
    grade: Grade,
}

impl ThreadStretch {
    /// The same, where what comes next is known no better than this.
    fn graded(self, grade: Grade) -> ThreadStretch {
        ThreadStretch { grade: self.grade.max(grade), ..self }
    }
}

/// The use of a stretch of a thread's time.
#[derive(Debug, Clone, Copy)]
enum Leaf {
    Cause(Cause, SubjectId),
    /// The thread ran its own code, in this node of the tree of code.
    Code(NodeId),
}

/// A thread that ran on a CPU, and the part of its time that is being split.
#[derive(Debug, Clone, Copy)]
struct RunAt<'m> {
    part: ThreadStretch,
    thread: &'m ThreadHistory,
    cpu: Cpu,
}

/// A stretch of a thread's time that has one cause, or in which another thread's time is the cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stretch {
    pub start: Timestamp,
    pub end: Timestamp,
    pub cause: Cause,
    pub subject: SubjectId,
    /// The thread whose time is the cause.
    pub follow: Option<Tid>,
}

/// Splits spans of a model.
pub(super) struct CauseWalk<'m> {
    model: &'m Model,
    /// A thread that came to be in the span.
    new_thread: Option<Tid>,
    split: Split,
    /// The code that ran: its own frames are known only when all of it is there.
    code: CodeTree<'m>,
    /// The stretches of one thread, where nothing is followed to other threads.
    stretches: Option<Vec<Stretch>>,
    /// The parts that are still to be split. This is a list and no recursion, because a hostile trace could
    /// exhaust the machine's stack.
    todo: Vec<ThreadStretch>,
}

impl<'m> CauseWalk<'m> {
    pub fn new(model: &'m Model, new_thread: Option<Tid>) -> CauseWalk<'m> {
        let split = Split::default();
        let code = CodeTree::default();
        CauseWalk { model, new_thread, split, code, stretches: None, todo: Vec::new() }
    }

    /// The stretches of a thread from `from` to `to`, in the order of time. Threads for which it waited are
    /// not followed. Running time has no subject: its methods and slices are not looked up.
    pub fn stretches(
        model: &'m Model,
        tid: Tid,
        is_new: bool,
        from: Timestamp,
        to: Timestamp,
    ) -> Vec<Stretch> {
        let mut walk = CauseWalk::new(model, is_new.then_some(tid));
        walk.stretches = Some(Vec::new());
        walk.explain(tid, from, to);
        let mut found = walk.stretches.unwrap_or_default();
        found.sort_unstable_by_key(|stretch| stretch.start);
        found
    }

    /// The causes of a span of this length, ns, when all of it is split.
    pub fn finish(mut self, span_ns: u64) -> Split {
        self.add_code(span_ns);
        self.split
    }

    /// Adds the code that ran, with its own frames.
    fn add_code(&mut self, span_ns: u64) {
        let Self { model, code, split, .. } = self;
        let packages = model.packages_by_path(code, &split.paths);
        let own = own_frames(code, &model.names, &packages, span_ns);
        let key = |node: NodeId| {
            let CodeNode { path, frame, .. } = code.nodes[node.index()];
            let subject = frame.map_or(SubjectId::None, |frame| SubjectId::Name(frame.name));
            ShareKey { path, own: own[node.index()], subject }
        };
        for stretch in &code.stretches {
            split.add(key(stretch.node), stretch.segment, stretch.start, stretch.end);
        }
        for (at, node) in code.nodes.iter().enumerate().filter(|(_, node)| node.samples > 0) {
            split.shares.entry(key(NodeId::new(at))).or_default().samples += node.samples;
        }
    }

    /// Splits the time of a thread from `from` to `to`.
    pub fn explain(&mut self, tid: Tid, from: Timestamp, to: Timestamp) {
        let path = Paths::EMPTY;
        let grade = Grade::Event;
        self.todo.push(ThreadStretch { tid, from, to, path, hops: 0, wait: None, grade });
        while let Some(part) = self.todo.pop() {
            self.explain_part(part);
        }
    }

    fn explain_part(&mut self, part: ThreadStretch) {
        let ThreadStretch { tid, mut from, to, .. } = part;
        if from >= to {
            return;
        }
        let (first, last) = self.model.extent;
        if from < first {
            let end = first.min(to);
            self.leaf(part, Cause::NotRecorded, SubjectId::Text("before the recording"), from, end);
            from = end;
        }
        if to > last.max(from) {
            let begin = last.max(from);
            self.leaf(part, Cause::NotRecorded, SubjectId::Text("after the recording"), begin, to);
        }
        let to = to.min(last.max(from));
        let part = ThreadStretch { from, to, ..part };
        let Some(thread) = self.model.threads.get(&tid).filter(|thread| !thread.changes.is_empty()) else {
            self.leaf(part, Cause::NotRecorded, SubjectId::Text("scheduling of the thread"), from, to);
            return;
        };
        self.before_first_change(part, thread);
        let mut at = thread.change_at(from).unwrap_or(0);
        while let Some(change) = thread.changes.get(at).filter(|change| change.since < to) {
            at = self.explain_change(part, thread, at, *change) + 1;
        }
    }

    /// Splits the part of a thread's time that begins with a change of its state. Returns the number of the
    /// last change that the part holds.
    fn explain_change(
        &mut self,
        part: ThreadStretch,
        thread: &'m ThreadHistory,
        at: usize,
        change: StateChange,
    ) -> usize {
        let (_, last_ts) = self.model.extent;
        let begin = change.since.max(part.from);
        let mut last = at;
        let ends = |last: usize| {
            let next = thread.changes.get(last + 1);
            (next, next.map_or(part.to, |next| next.since.min(part.to)))
        };
        let (next, end) = ends(at);
        match change.state {
            _ if begin >= end => {}
            SchedState::Running => {
                // The switch away from the thread is recorded at the end of its time.
                let is_recorded = next.is_some_and(|next| next.since == end);
                let cost = if is_recorded { self.model.costs().switch_ns } else { 0 };
                let recording = end - cost.min(end - begin);
                self.running(RunAt { part, thread, cpu: change.cpu() }, begin, recording);
                let part = part.graded(Grade::Inferred);
                self.leaf(part, Cause::Tracing, SubjectId::Text(SWITCHES), recording, end);
            }
            SchedState::Runnable | SchedState::Preempted => {
                let running = next.filter(|next| next.state == SchedState::Running);
                let ready = Ready {
                    since: change.since,
                    until: next.map_or(last_ts, |next| next.since),
                    next_cpu: running.map_or(change.cpu(), |next| next.cpu()),
                };
                self.runnable(part, ready, begin, end);
            }
            state => {
                let mut grade = Grade::Event;
                if state == SchedState::Interruptible {
                    (last, grade) = self.model.end_of_wait(thread, at, part.to).into();
                }
                let (next, end) = ends(last);
                let wake = next.and_then(|next| thread.wake(next));
                let is_own = part.hops == 0;
                let change = &thread.changes[last];
                let at =
                    WaitAt { tid: part.tid, thread, start: thread.changes[at].since, change, wake, is_own };
                self.waiting(part.graded(grade), &at, begin, end);
            }
        }
        last
    }

    /// The time of a thread before its first event: it did not exist yet, or waited.
    fn before_first_change(&mut self, part: ThreadStretch, thread: &'m ThreadHistory) {
        let Some(first) = thread.changes.first().filter(|first| first.since > part.from) else { return };
        let end = first.since.min(part.to);
        match thread.wake(first) {
            Some(wake) if !self.model.is_device(&wake) => {
                let cause =
                    if wake.is_new { Cause::Start } else { self.model.woken_by(wake.waker, part.tid) };
                let grade = if wake.is_new { Grade::Event } else { Grade::WakeUp };
                let hop = Hop { cause, tid: part.tid, about: SubjectId::None };
                self.follow(part.graded(grade), hop, wake.waker, part.from, end);
            }
            Some(_) => {
                let part = part.graded(Grade::Inferred);
                let cause = if part.hops == 0 { Cause::Idle } else { Cause::Sleep };
                self.leaf(part, cause, SubjectId::None, part.from, end);
            }
            None if self.new_thread == Some(part.tid) => {
                let why = SubjectId::Text("whoever started it was not recorded");
                self.leaf(part, Cause::Start, why, part.from, end);
            }
            None => {
                let why = SubjectId::Text("the thread's state before its first event");
                self.leaf(part, Cause::NotRecorded, why, part.from, end);
            }
        }
    }

    /// Goes on with what `waker` did from `from` to `to`, for which the part's thread waited.
    fn follow(&mut self, part: ThreadStretch, hop: Hop, waker: Tid, from: Timestamp, to: Timestamp) {
        if part.hops >= MAX_HOPS {
            return self.leaf(
                part,
                Cause::Unexplained,
                SubjectId::Text("a longer chain of threads"),
                from,
                to,
            );
        }
        if from < to
            && let Some(stretches) = &mut self.stretches
        {
            let Hop { cause, about: subject, .. } = hop;
            return push_stretch(
                stretches,
                Stretch { start: from, end: to, cause, subject, follow: Some(waker) },
            );
        }
        let path = self.split.paths.longer(part.path, hop);
        let next = self.split.waits.len() as u32;
        if part.wait.is_none() && from < to {
            self.split.waits.push(OwnWait { tid: part.tid, from, to, waker });
        }
        let wait = part.wait.or(Some(next));
        self.todo.push(ThreadStretch { tid: waker, from, to, path, hops: part.hops + 1, wait, ..part });
    }

    fn waiting(&mut self, part: ThreadStretch, at: &WaitAt<'m>, from: Timestamp, to: Timestamp) {
        let wait = self.model.wait(at);
        let part = part.graded(wait.grade);
        match wait.follow {
            Some(waker) => {
                let about = self.subject(wait.subject);
                self.follow(part, Hop { cause: wait.cause, tid: part.tid, about }, waker, from, to);
            }
            None => {
                // Where nothing names the subject itself, the code that began to wait does.
                let is_open = matches!(wait.subject, Subject::None | Subject::Fixed(_));
                let sampled =
                    at.thread.stopped_in(at.start).filter(|_| is_open && wait.cause != Cause::NotRecorded);
                let subject = sampled.map_or_else(|| self.subject(wait.subject), SubjectId::Name);
                self.leaf(part, wait.cause, subject, from, to);
            }
        }
    }

    fn subject(&self, subject: Subject<'m>) -> SubjectId {
        match subject {
            Subject::None => SubjectId::None,
            Subject::Text(text) => self.model.names.find(text).map_or(SubjectId::None, SubjectId::Name),
            Subject::Fixed(text) => SubjectId::Text(text),
            Subject::Thread(tid) => SubjectId::Thread(tid),
        }
    }

    /// The thread was ready from `from` to `to`, which lies within `ready`, and did not run.
    fn runnable(&mut self, part: ThreadStretch, ready: Ready, from: Timestamp, to: Timestamp) {
        let model = self.model;
        let mut at = from;
        let barred = model.quotas.barred(part.tid, ready.since, ready.until, |tid| model.process(tid));
        for (begin, end) in barred {
            let begin = begin.clamp(at, to);
            let end = end.clamp(at, to);
            self.queued(part, ready, at, begin);
            self.leaf(part.graded(Grade::Inferred), Cause::Throttled, SubjectId::None, begin, end);
            at = end;
        }
        self.queued(part, ready, at, to);
    }

    /// The thread was ready from `from` to `to`, might run, and did not.
    fn queued(&mut self, part: ThreadStretch, ready: Ready, from: Timestamp, to: Timestamp) {
        let model = self.model;
        let Some(cpu) = model.cpus.get(&ready.next_cpu) else {
            return self.leaf(part, Cause::Runnable, SubjectId::None, from, to);
        };
        cpu.parts(from, to, |begin, end, change| match change {
            Some(change) if change.tid == Tid::IDLE => {
                let is_long = end - begin >= LONG_IDLE_NS;
                let subject =
                    if is_long { SubjectId::LongIdleCpu(ready.next_cpu) } else { SubjectId::IdleCpu };
                self.leaf(part, Cause::Runnable, subject, begin, end);
            }
            Some(change) if change.tid == Tid::UNKNOWN => {
                self.leaf(part, Cause::NotRecorded, SubjectId::Text("switches are missing"), begin, end);
            }
            Some(CpuChange { tid, prio, .. }) => {
                let cause = if model.is_recorder(*tid) { Cause::Tracing } else { Cause::Runnable };
                let idle_cpu = self.idle_cpu_for(part.tid, ready.next_cpu, begin, end);
                self.leaf(part, cause, SubjectId::Ran { tid: *tid, prio: *prio, idle_cpu }, begin, end);
            }
            None => self.leaf(part, Cause::Runnable, SubjectId::None, begin, end),
        });
    }

    /// A CPU other than `cpu` that was idle from `from` to `to` though the thread was ready and may use it.
    /// `None` also where it is not known which CPUs that are.
    fn idle_cpu_for(&self, tid: Tid, cpu: Cpu, from: Timestamp, to: Timestamp) -> Option<Cpu> {
        let model = self.model;
        model.facts.as_ref()?;
        if to - from < PLACEMENT_NS {
            return None;
        }
        let may_use = model.affinities.get(&tid);
        let others = model.cpus.iter().filter(|(other, _)| **other != cpu);
        let mut allowed = others.filter(|(other, _)| may_use.is_none_or(|cpus| cpus.contains(other)));
        let idle = allowed.find(|(_, other)| other.idle_ns(from, to) >= (to - from) / 10 * 9);
        idle.map(|(number, _)| *number)
    }

    /// The thread ran: interrupts, and what its markers and methods say.
    fn running(&mut self, run: RunAt<'m>, from: Timestamp, to: Timestamp) {
        let RunAt { part, cpu, .. } = run;
        let model = self.model;
        let mut at = from;
        let interrupts = model.cpus.get(&cpu).into_iter().flat_map(|cpu| cpu.interrupts_within(from, to));
        for interrupt in interrupts {
            let begin = interrupt.start.clamp(at, to);
            let end = interrupt.end.clamp(at, to);
            self.own_code(run, at, begin);
            self.leaf(part, Cause::Interrupt, SubjectId::Name(interrupt.name), begin, end);
            at = end;
        }
        self.own_code(run, at, to);
    }

    fn own_code(&mut self, run: RunAt<'m>, from: Timestamp, to: Timestamp) {
        let RunAt { part, thread, .. } = run;
        let model = self.model;
        if from >= to {
            return;
        }
        if is_kernel_worker(&model.tasks.thread_name(part.tid)) {
            return self.leaf(part, Cause::Kernel, SubjectId::Thread(part.tid), from, to);
        }
        if model.is_recorder(part.tid) {
            return self.leaf(part, Cause::Tracing, SubjectId::Thread(part.tid), from, to);
        }
        thread.reclaims.parts(from, to, |begin, end, reclaim| match reclaim {
            Some(_) => self.on_cpu(run, Leaf::Cause(Cause::Reclaim, SubjectId::None), begin, end),
            None => self.in_slices(run, begin, end),
        });
    }

    fn in_slices(&mut self, run: RunAt<'m>, from: Timestamp, to: Timestamp) {
        let RunAt { part, thread, .. } = run;
        let model = self.model;
        let marker_ns = model.costs().marker_ns;
        thread.slices.stacks(from, to, |begin, end, open| {
            // A slice begins or ends with a marker, which the thread wrote just before.
            let cost = if end < to { marker_ns.min(end - begin) } else { 0 };
            let inferred = part.graded(Grade::Inferred);
            self.leaf(inferred, Cause::Tracing, SubjectId::Text(MARKERS), end - cost, end);
            let end = end - cost;
            let found =
                open.iter().rev().map(|slice| (slice.name, running_marker(model.names.text(slice.name))));
            let marked = found.into_iter().find_map(|(name, cause)| cause.map(|cause| (cause, name)));
            if let Some((cause, name)) = marked {
                return self.on_cpu(run, Leaf::Cause(cause, SubjectId::Name(name)), begin, end);
            }
            if self.stretches.is_some() {
                return self.on_cpu(run, Leaf::Cause(Cause::Running, SubjectId::None), begin, end);
            }
            self.in_code(run, open, begin, end);
        });
    }

    /// The thread ran its own code while these slices were open: methods, else samples, else the slices name
    /// it.
    fn in_code(&mut self, run: RunAt<'m>, open: &[&'m Slice], from: Timestamp, to: Timestamp) {
        let RunAt { part, thread, .. } = run;
        let model = self.model;
        let hop = Hop { cause: Cause::Running, tid: part.tid, about: SubjectId::None };
        let path = self.split.paths.longer(part.path, hop);
        let root = self.code.root(path);
        // The marker of a wait is no code: the thread is about to wait, or goes on.
        let is_code = |slice: &&Slice| waiting_marker(model.names.text(slice.name)).is_none();
        let open = &open[..open.iter().rposition(is_code).map_or(0, |last| last + 1)];
        if thread.calls.list.is_empty() {
            return thread.sampled_parts(from, to, |begin, end, stack| {
                let node = match stack {
                    Some(stack) => self.code.of_stack(root, &model.stacks, stack),
                    None => self.code.of_slices(root, open),
                };
                self.on_cpu(run, Leaf::Code(node), begin, end);
                if stack.is_some() && begin < end {
                    self.code.count_sample(node);
                }
            });
        }
        thread.calls.stacks(from, to, |begin, end, calls| {
            let node = match calls {
                [] => self.code.of_slices(root, open),
                calls => self.code.of_calls(root, calls),
            };
            self.on_cpu(run, Leaf::Code(node), begin, end);
        });
    }

    /// The thread ran. What it would not have taken on the fastest CPU at its highest frequency is a cause of
    /// its own: the end of each stretch of one frequency.
    fn on_cpu(&mut self, run: RunAt<'_>, what: Leaf, from: Timestamp, to: Timestamp) {
        let RunAt { part, cpu, .. } = run;
        let speeds = &self.model.speeds;
        let rates = self.model.cpus.get(&cpu).map(|cpu| &cpu.frequencies);
        let Some((rates, highest)) = rates.zip(speeds.highest()) else {
            return self.recorded(part, what, from, to);
        };
        let slow = if speeds.is_small(cpu) { SubjectId::Text("a small core") } else { SubjectId::None };
        let mut at = from;
        let mut next = rates.partition_point(|(since, _)| *since <= from);
        while at < to {
            let until = rates.get(next).map_or(to, |(since, _)| (*since).min(to));
            let khz = next.checked_sub(1).map(|before| rates[before].1);
            let speed = speeds.at(cpu, khz).unwrap_or(highest).min(highest);
            let needed = u128::from(until - at) * u128::from(speed) / u128::from(highest);
            let fast = at + needed as u64;
            self.recorded(part, what, at, fast);
            self.leaf(part, Cause::SlowCpu, slow, fast, until);
            at = until;
            next += 1;
        }
    }

    fn leaf(
        &mut self,
        part: ThreadStretch,
        cause: Cause,
        subject: SubjectId,
        from: Timestamp,
        to: Timestamp,
    ) {
        self.recorded(part, Leaf::Cause(cause, subject), from, to);
    }

    /// Adds a stretch to a cause. Where events are missing, nothing is explained.
    fn recorded(&mut self, part: ThreadStretch, what: Leaf, from: Timestamp, to: Timestamp) {
        let model = self.model;
        let mut at = from;
        let losses = &model.losses;
        let first = losses.partition_point(|(_, end)| *end <= from);
        for (begin, end) in losses[first..].iter().take_while(|(begin, _)| *begin < to) {
            let begin = (*begin).clamp(at, to);
            let end = (*end).clamp(at, to);
            let lost = Leaf::Cause(Cause::NotRecorded, SubjectId::Text("events were lost"));
            self.add(part, what, at, begin);
            self.add(part, lost, begin, end);
            at = end;
        }
        self.add(part, what, at, to);
    }

    fn add(&mut self, part: ThreadStretch, what: Leaf, from: Timestamp, to: Timestamp) {
        if from >= to {
            return;
        }
        let segment = part.wait.map_or(2 * self.split.waits.len() as u32, |wait| 2 * wait + 1);
        let path = match what {
            Leaf::Code(node) => {
                self.code.add(node, from, to, segment);
                self.code.nodes[node.index()].path
            }
            Leaf::Cause(cause, subject) => {
                if let Some(stretches) = &mut self.stretches {
                    let stretch = Stretch { start: from, end: to, cause, subject, follow: None };
                    return push_stretch(stretches, stretch);
                }
                let hop = Hop { cause, tid: part.tid, about: SubjectId::None };
                let path = self.split.paths.longer(part.path, hop);
                self.split.add(ShareKey { path, own: None, subject }, segment, from, to);
                path
            }
        };
        self.split.grades.entry(path).or_default().add(part.grade, to - from);
    }
}

/// Appends a stretch, or makes the last one longer where it is the same.
fn push_stretch(stretches: &mut Vec<Stretch>, next: Stretch) {
    match stretches.last_mut() {
        Some(last)
            if last.end == next.start
                && (last.cause, last.subject, last.follow) == (next.cause, next.subject, next.follow) =>
        {
            last.end = next.end;
        }
        _ => stretches.push(next),
    }
}
