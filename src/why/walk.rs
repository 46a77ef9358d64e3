//! Splits the time of a span over its causes: follows each wait to the thread that ended it.
//!
//! The thread's own time is a cause by itself. A wait that another thread ended is split in turn over what
//! that thread did meanwhile, clipped to the wait, through any number of threads. So each nanosecond of a
//! span belongs to exactly one cause.

use std::collections::BTreeMap;

use super::cause::{Cause, Hop, PathId, Paths};
use super::model::{Model, NameId, State, Thread};
use super::waits::{Subject, WaitAt, is_kernel_worker, is_tracer, running_marker};

/// How many threads a path may lead over. What lies further is unexplained.
const MAX_HOPS: usize = 32;
/// A thread that is ready while its CPU idles for longer than this, ns, may not run: its group is
/// throttled. A CPU takes much less time to leave its idle state.
const THROTTLED_NS: u64 = 2_000_000;
/// The most intervals that are kept of one cause.
const MAX_INTERVALS: usize = 1000;

/// The number of a subject's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum SubjectId {
    None,
    Name(NameId),
    /// A thread, by its id.
    Thread(i32),
    /// The CPU was idle.
    IdleCpu,
    /// One of the fixed texts.
    Text(&'static str),
}

/// The time that belongs to one cause.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Share {
    pub ns: u64,
    /// How often: parts that follow each other count once.
    pub count: u64,
    /// The first of them, ns of the timeline.
    pub intervals: Vec<(u64, u64)>,
    last_end: u64,
}

/// The causes of one span, or of several.
#[derive(Debug, Default)]
pub(super) struct Split {
    pub paths: Paths,
    pub shares: BTreeMap<(PathId, SubjectId), Share>,
}

impl Split {
    fn add(&mut self, key: (PathId, SubjectId), start: u64, end: u64) {
        let share = self.shares.entry(key).or_default();
        share.ns += end - start;
        if share.count > 0 && share.last_end == start {
            if let Some(last) = share.intervals.last_mut().filter(|last| last.1 == start) {
                last.1 = end;
            }
        } else {
            share.count += 1;
            if share.intervals.len() < MAX_INTERVALS {
                share.intervals.push((start, end));
            }
        }
        share.last_end = end;
    }
}

/// A part of a thread's time that is to be split.
#[derive(Debug, Clone, Copy)]
struct Part {
    tid: i32,
    from: u64,
    to: u64,
    path: PathId,
    hops: usize,
}

/// Splits spans of a model.
pub(super) struct Walk<'m> {
    model: &'m Model,
    /// A thread that came to be in the span.
    new_thread: Option<i32>,
    split: Split,
    /// What is still to be split: not the machine's stack, which a hostile trace could exhaust.
    todo: Vec<Part>,
}

impl<'m> Walk<'m> {
    pub fn new(model: &'m Model, new_thread: Option<i32>) -> Walk<'m> {
        Walk { model, new_thread, split: Split::default(), todo: Vec::new() }
    }

    /// The causes of what was split so far.
    pub fn take(&mut self) -> Split {
        std::mem::take(&mut self.split)
    }

    /// Splits the time of a thread from `from` to `to`, ns.
    pub fn explain(&mut self, tid: i32, from: u64, to: u64) {
        self.todo.push(Part { tid, from, to, path: Paths::EMPTY, hops: 0 });
        while let Some(part) = self.todo.pop() {
            self.explain_part(part);
        }
    }

    fn explain_part(&mut self, part: Part) {
        let Part { tid, mut from, to, .. } = part;
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
        let part = Part { from, to, ..part };
        let Some(thread) = self.model.threads.get(&tid).filter(|thread| !thread.changes.is_empty()) else {
            self.leaf(part, Cause::NotRecorded, SubjectId::Text("scheduling of the thread"), from, to);
            return;
        };
        self.before_first_change(part, thread);
        let start = thread.change_at(from).unwrap_or(0);
        for (at, change) in thread.changes.iter().enumerate().skip(start) {
            if change.since >= to {
                break;
            }
            let begin = change.since.max(from);
            let next = thread.changes.get(at + 1);
            let end = next.map_or(to, |next| next.since.min(to));
            if begin >= end {
                continue;
            }
            match change.state {
                State::Running => self.running(part, thread, change.cpu(), begin, end),
                State::Runnable | State::Preempted => {
                    let cpu = next
                        .filter(|next| next.state == State::Running)
                        .map_or(change.cpu(), |next| next.cpu());
                    self.runnable(part, cpu, begin, end);
                }
                _ => {
                    let wake = next.and_then(|next| thread.wake(next));
                    self.waiting(
                        part,
                        &WaitAt { tid, thread, start: change.since, change, wake },
                        begin,
                        end,
                    );
                }
            }
        }
    }

    /// The time of a thread before its first event: it did not exist yet, or waited.
    fn before_first_change(&mut self, part: Part, thread: &'m Thread) {
        let Some(first) = thread.changes.first().filter(|first| first.since > part.from) else { return };
        let end = first.since.min(part.to);
        match thread.wake(first) {
            Some(wake) if !self.model.is_device(&wake) => {
                let cause = if wake.is_new { Cause::Start } else { Cause::Lock };
                self.follow(part, cause, wake.waker, part.from, end);
            }
            Some(_) => self.leaf(part, Cause::Idle, SubjectId::None, part.from, end),
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
    fn follow(&mut self, part: Part, cause: Cause, waker: i32, from: u64, to: u64) {
        let hop = Hop { cause, tid: part.tid };
        if part.hops >= MAX_HOPS {
            return self.leaf(
                part,
                Cause::Unexplained,
                SubjectId::Text("a longer chain of threads"),
                from,
                to,
            );
        }
        let path = self.split.paths.longer(part.path, hop);
        self.todo.push(Part { tid: waker, from, to, path, hops: part.hops + 1 });
    }

    fn waiting(&mut self, part: Part, at: &WaitAt<'m>, from: u64, to: u64) {
        let wait = self.model.wait(at);
        match wait.follow {
            Some(waker) => self.follow(part, wait.cause, waker, from, to),
            None => self.leaf(part, wait.cause, self.subject(wait.subject), from, to),
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

    /// The thread was ready from `from` to `to`, and `cpu` had another one.
    fn runnable(&mut self, part: Part, cpu: u32, from: u64, to: u64) {
        let model = self.model;
        let Some(cpu) = model.cpus.get(&cpu) else {
            return self.leaf(part, Cause::Runnable, SubjectId::None, from, to);
        };
        cpu.parts(from, to, |begin, end, tid| match tid {
            Some(0) if end - begin >= THROTTLED_NS => {
                self.leaf(part, Cause::Throttled, SubjectId::None, begin, end);
            }
            Some(0) => self.leaf(part, Cause::Runnable, SubjectId::IdleCpu, begin, end),
            Some(tid) => {
                let cause =
                    if is_tracer(&model.tasks.thread_name(tid)) { Cause::Tracing } else { Cause::Runnable };
                self.leaf(part, cause, SubjectId::Thread(tid), begin, end);
            }
            None => self.leaf(part, Cause::Runnable, SubjectId::None, begin, end),
        });
    }

    /// The thread ran on `cpu`: interrupts, and what its markers and methods say.
    fn running(&mut self, part: Part, thread: &'m Thread, cpu: u32, from: u64, to: u64) {
        let model = self.model;
        let mut at = from;
        let interrupts = model.cpus.get(&cpu).into_iter().flat_map(|cpu| cpu.interrupts_within(from, to));
        for interrupt in interrupts {
            let (begin, end) = (interrupt.start.clamp(at, to), interrupt.end.clamp(at, to));
            self.own_code(part, thread, cpu, at, begin);
            self.leaf(part, Cause::Interrupt, SubjectId::Name(interrupt.name), begin, end);
            at = end;
        }
        self.own_code(part, thread, cpu, at, to);
    }

    fn own_code(&mut self, part: Part, thread: &'m Thread, cpu: u32, from: u64, to: u64) {
        let model = self.model;
        if from >= to {
            return;
        }
        if is_kernel_worker(&model.tasks.thread_name(part.tid)) {
            return self.leaf(part, Cause::Kernel, SubjectId::Thread(part.tid), from, to);
        }
        if is_tracer(&model.tasks.thread_name(part.tid)) {
            return self.leaf(part, Cause::Tracing, SubjectId::Thread(part.tid), from, to);
        }
        thread.reclaims.parts(from, to, |begin, end, reclaim| match reclaim {
            Some(_) => self.on_cpu(part, Cause::Reclaim, SubjectId::None, cpu, begin, end),
            None => self.in_slices(part, thread, cpu, begin, end),
        });
    }

    fn in_slices(&mut self, part: Part, thread: &'m Thread, cpu: u32, from: u64, to: u64) {
        let model = self.model;
        thread.slices.parts(from, to, |begin, end, slice| {
            let around = slice.into_iter().flat_map(|slice| thread.slices.outwards(slice));
            let found = around.map(|slice| (slice.name, running_marker(model.names.text(slice.name))));
            let marked = found.into_iter().find_map(|(name, cause)| cause.map(|cause| (cause, name)));
            if let Some((cause, name)) = marked {
                return self.on_cpu(part, cause, SubjectId::Name(name), cpu, begin, end);
            }
            let in_slice = slice.map_or(SubjectId::None, |slice| SubjectId::Name(slice.name));
            thread.calls.parts(begin, end, |begin, end, call| {
                let subject = call.map_or(in_slice, |call| SubjectId::Name(call.name));
                self.on_cpu(part, Cause::Running, subject, cpu, begin, end);
            });
        });
    }

    /// The thread ran. What it would not have taken at the highest frequency is a cause of its own: the end
    /// of each stretch of one frequency.
    fn on_cpu(&mut self, part: Part, cause: Cause, subject: SubjectId, cpu: u32, from: u64, to: u64) {
        let rates = self.model.cpus.get(&cpu).map(|cpu| &cpu.frequencies).filter(|rates| !rates.is_empty());
        let Some((rates, highest)) = rates.zip(self.model.highest_khz.filter(|khz| *khz > 0)) else {
            return self.leaf(part, cause, subject, from, to);
        };
        let mut at = from;
        let mut next = rates.partition_point(|(since, _)| *since <= from);
        while at < to {
            let until = rates.get(next).map_or(to, |(since, _)| (*since).min(to));
            let khz = next.checked_sub(1).map_or(highest, |before| rates[before].1).min(highest);
            let needed = u128::from(until - at) * u128::from(khz) / u128::from(highest);
            let fast = at + needed as u64;
            self.leaf(part, cause, subject, at, fast);
            self.leaf(part, Cause::SlowCpu, SubjectId::None, fast, until);
            at = until;
            next += 1;
        }
    }

    /// Adds a stretch to a cause. Where events are missing, nothing is explained.
    fn leaf(&mut self, part: Part, cause: Cause, subject: SubjectId, from: u64, to: u64) {
        let model = self.model;
        let mut at = from;
        let losses = &model.losses;
        let first = losses.partition_point(|(_, end)| *end <= from);
        for (begin, end) in losses[first..].iter().take_while(|(begin, _)| *begin < to) {
            let (begin, end) = ((*begin).clamp(at, to), (*end).clamp(at, to));
            self.add(part, cause, subject, at, begin);
            self.add(part, Cause::NotRecorded, SubjectId::Text("events were lost"), begin, end);
            at = end;
        }
        self.add(part, cause, subject, at, to);
    }

    fn add(&mut self, part: Part, cause: Cause, subject: SubjectId, from: u64, to: u64) {
        if from < to {
            let path = self.split.paths.longer(part.path, Hop { cause, tid: part.tid });
            self.split.add((path, subject), from, to);
        }
    }
}
