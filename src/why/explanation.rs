//! The causes of a span, with the names of threads, largest first.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde::Serialize;

use super::cause::{Cause, Hop};
use super::circumstances::Circumstance;
use super::model::Model;
use super::spans::SpanAsked;
use super::walk::{Split, Stretch, SubjectId, Walk};
use crate::measure::LaunchType;

/// Causes below this part of all spans, one in 20, are not worth a note.
const NOTED_SHARE: u64 = 20;

/// A thread on the way to a cause, and what it did or waited for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct NamedHop {
    pub cause: Cause,
    pub tid: i32,
    /// The thread's name; empty where it is not known.
    pub thread: String,
    /// The name of its process; empty where it is not known.
    pub process: String,
}

/// A part of a span that has one cause. The parts of a span share no moment, and their times add up to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CausePart {
    /// From the span's own thread outwards; the last is the cause.
    pub path: Vec<NamedHop>,
    /// What the cause is about: a method, a file, the thread that ran instead; empty where that is not known.
    pub subject: String,
    pub ns: u64,
    /// How often.
    pub count: u64,
    /// When: begins and ends, ns of the timeline. The first thousand.
    pub intervals: Vec<(u64, u64)>,
}

impl CausePart {
    /// The path in words: `lock: main, disk: pool-2-thread-1`.
    pub fn path_text(&self) -> String {
        let hops = self.path.iter().map(|hop| match &*hop.thread {
            "" => hop.cause.name().to_owned(),
            thread => format!("{}: {thread}", hop.cause.name()),
        });
        hops.collect::<Vec<_>>().join(", ")
    }

    /// The name of the cause that the path leads to.
    pub fn cause_name(&self) -> &'static str {
        self.path.last().map_or(Cause::Unexplained, |hop| hop.cause).name()
    }
}

/// A span, and why it took as long as it did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Explanation {
    pub what: String,
    pub detail: String,
    /// ns of the timeline.
    pub begin: u64,
    pub duration: u64,
    /// Largest first.
    pub causes: Vec<CausePart>,
    /// What else went on during a launch.
    pub circumstances: Vec<Circumstance>,
}

impl Explanation {
    /// Whether the recording tells anything about the span.
    pub fn is_known(&self) -> bool {
        let is_known = |part: &CausePart| part.path.last().is_some_and(|hop| hop.cause != Cause::NotRecorded);
        self.causes.iter().any(is_known)
    }
}

impl Model {
    /// Why the span took as long as it did.
    pub(crate) fn explain(&self, span: &SpanAsked) -> Explanation {
        let new_thread = span.launched.filter(|(_, is_cold)| *is_cold).map(|(tid, _)| tid);
        let mut walk = Walk::new(self, new_thread);
        let mut from = span.begin;
        for (tid, until) in &span.threads {
            let until = (*until).clamp(from, span.end.max(from));
            walk.explain(*tid, from, until);
            from = until;
        }
        let mut causes = self.parts(walk.take());
        causes
            .sort_by(|a, b| (Reverse(a.ns), &a.path, &a.subject).cmp(&(Reverse(b.ns), &b.path, &b.subject)));
        Explanation {
            what: span.what.clone(),
            detail: span.detail.clone(),
            begin: span.begin,
            duration: span.duration(),
            causes,
            circumstances: span.launched.map_or(Vec::new(), |(tid, _)| self.circumstances(tid, span)),
        }
    }

    /// The threads whose states are known, by their ids.
    pub(crate) fn scheduled_threads(&self) -> Vec<i32> {
        let known = self.threads.iter().filter(|(_, thread)| !thread.changes.is_empty());
        let mut tids: Vec<i32> = known.map(|(tid, _)| *tid).collect();
        tids.sort_unstable();
        tids
    }

    /// Calls `with` for each stretch of a thread's time that has one cause, in the order of time. What is
    /// given is its begin and end, ns, the cause, what it is about, and the thread whose time is the cause.
    pub(crate) fn stretches(&self, tid: i32, mut with: impl FnMut(u64, u64, Cause, &str, Option<i32>)) {
        let launches = &self.measured.launches;
        let is_new = launches
            .iter()
            .any(|launch| launch.main_tid == Some(tid) && launch.launch_type == Some(LaunchType::Cold));
        let (first, last) = self.extent;
        for stretch in Walk::stretches(self, tid, is_new, first, last) {
            let Stretch { start, end, cause, subject, follow } = stretch;
            with(start, end, cause, &self.subject_text(subject), follow);
        }
    }

    fn parts(&self, split: Split) -> Vec<CausePart> {
        let Split { paths, shares } = split;
        let part = |((path, subject), share): (_, super::walk::Share)| {
            let mut intervals = share.intervals;
            intervals.sort_unstable();
            let path = paths.hops(path).into_iter().map(|hop| self.named_hop(hop)).collect();
            CausePart {
                path,
                subject: self.subject_text(subject).into_owned(),
                ns: share.ns,
                count: share.count,
                intervals,
            }
        };
        shares.into_iter().map(part).collect()
    }

    fn named_hop(&self, hop: Hop) -> NamedHop {
        let process = self.process(hop.tid).map(|pid| self.tasks.process_name(pid).into_owned());
        NamedHop {
            cause: hop.cause,
            tid: hop.tid,
            thread: self.tasks.thread_name(hop.tid).into_owned(),
            process: process.unwrap_or_default(),
        }
    }

    fn subject_text(&self, subject: SubjectId) -> Cow<'_, str> {
        match subject {
            SubjectId::None => "".into(),
            SubjectId::Name(name) => self.names.text(name).into(),
            SubjectId::Text(text) => text.into(),
            SubjectId::Ran { tid, prio, idle_cpu } => self.ran_instead(tid, prio, idle_cpu).into(),
            SubjectId::IdleCpu => "the CPU left its idle state".into(),
            SubjectId::Thread(tid) => self.thread_and_process(tid).into(),
        }
    }

    /// `RenderThread of com.example.app (real-time), while CPU 3 was idle`.
    fn ran_instead(&self, tid: i32, prio: Option<i16>, idle_cpu: Option<u32>) -> String {
        let mut text = self.thread_and_process(tid);
        match prio {
            Some(prio) if prio < 100 => text.push_str(" (real-time)"),
            Some(prio) if (100..140).contains(&prio) && prio != 120 => {
                text.push_str(&format!(" (nice {})", prio - 120));
            }
            _ => {}
        }
        if let Some(cpu) = idle_cpu {
            text.push_str(&format!(", while CPU {cpu} was idle"));
        }
        text
    }

    /// `RenderThread of com.example.app`.
    fn thread_and_process(&self, tid: i32) -> String {
        let thread = self.tasks.thread_name(tid);
        let process = self.process(tid).map(|pid| self.tasks.process_name(pid)).unwrap_or_default();
        match (&*thread, &*process) {
            ("", _) => format!("thread {tid}"),
            (thread, process) if process.is_empty() || process.ends_with(thread) => thread.to_owned(),
            (thread, process) => format!("{thread} of {process}"),
        }
    }
}

impl Model {
    /// What explanations could not tell apart, and what would: sentences.
    pub(crate) fn not_told_apart(&self, explanations: &[Explanation]) -> Vec<String> {
        let mut notes = Vec::new();
        let parts = || explanations.iter().flat_map(|one| &one.causes);
        if parts().flat_map(|part| &part.path).any(|hop| hop.cause == Cause::OtherThread) {
            notes.push(
                "the processes of some threads are unknown: a wait for a thread of the same process is not told \
                 from one for another process",
            );
        }
        let is_runnable =
            |part: &&CausePart| part.path.last().is_some_and(|hop| hop.cause == Cause::Runnable);
        let runnable: u64 = parts().filter(is_runnable).map(|part| part.ns).sum();
        let all: u64 = explanations.iter().map(|one| one.duration).sum();
        if self.facts.is_none() && runnable > all / NOTED_SHARE {
            notes.push(
                "the trace does not tell which CPUs a thread may use and which groups had used up their CPU time: \
                 captures of tracebridge do",
            );
        }
        notes.into_iter().map(str::to_owned).collect()
    }
}

/// Several spans together: the times of equal causes are added.
pub(crate) fn sum(explanations: &[Explanation]) -> Vec<CausePart> {
    type Key = (Vec<(Cause, String, String)>, String);
    let mut parts: BTreeMap<Key, CausePart> = BTreeMap::new();
    for part in explanations.iter().flat_map(|explanation| &explanation.causes) {
        let hops = part.path.iter().map(|hop| (hop.cause, hop.thread.clone(), hop.process.clone()));
        let key = (hops.collect(), part.subject.clone());
        match parts.get_mut(&key) {
            Some(sum) => {
                sum.ns += part.ns;
                sum.count += part.count;
            }
            None => {
                parts.insert(key, CausePart { intervals: Vec::new(), ..part.clone() });
            }
        }
    }
    let mut parts: Vec<CausePart> = parts.into_values().collect();
    parts.sort_by_key(|part| Reverse(part.ns));
    parts
}

/// An explanation as `why --json` prints it (docs/schemas/why.json).
#[derive(Debug, Serialize)]
pub(crate) struct ExplanationJson<'a> {
    what: &'a str,
    begin_ns: u64,
    duration_ns: u64,
    causes: Vec<CauseJson<'a>>,
    circumstances: &'a [Circumstance],
}

#[derive(Debug, Serialize)]
struct CauseJson<'a> {
    path: Vec<HopJson<'a>>,
    subject: Option<&'a str>,
    ns: u64,
    share: f64,
    count: u64,
    intervals: &'a [(u64, u64)],
}

#[derive(Debug, Serialize)]
struct HopJson<'a> {
    cause: &'static str,
    thread: &'a str,
    tid: i32,
    process: Option<&'a str>,
}

impl<'a> ExplanationJson<'a> {
    pub fn of(explanation: &'a Explanation) -> ExplanationJson<'a> {
        let named = |text: &'a str| Some(text).filter(|text| !text.is_empty());
        let hop = |hop: &'a NamedHop| HopJson {
            cause: hop.cause.name(),
            thread: &hop.thread,
            tid: hop.tid,
            process: named(&hop.process),
        };
        let share =
            |ns: u64| if explanation.duration == 0 { 0.0 } else { ns as f64 / explanation.duration as f64 };
        let cause = |part: &'a CausePart| CauseJson {
            path: part.path.iter().map(hop).collect(),
            subject: named(&part.subject),
            ns: part.ns,
            share: share(part.ns),
            count: part.count,
            intervals: &part.intervals,
        };
        ExplanationJson {
            what: &explanation.what,
            begin_ns: explanation.begin,
            duration_ns: explanation.duration,
            causes: explanation.causes.iter().map(cause).collect(),
            circumstances: &explanation.circumstances,
        }
    }
}
