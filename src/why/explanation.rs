//! The causes of a span, with the names of threads, largest first.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde::Serialize;

use super::cause::{Cause, Hop, SubjectId};
use super::circumstances::Circumstance;
use super::grade::Grade;
use super::lock_marker::{LockMarker, without_waiters};
use super::model::Model;
use super::own_frame::NamedOwnFrame;
use super::party::{self, CauseThreads, Party, PartyShare};
use super::savings::{CauseTime, JoinedWait, Saved, saved};
use super::shown_frames::ShownFrames;
use super::spans::SpanAsked;
use super::split::{Share, ShareKey, Split};
use super::walk::{CauseWalk, Stretch};
use crate::clock::Timestamp;
use crate::ids::{Cpu, Pid, Tid};
use crate::measure::LaunchType;

/// Causes below this part of all spans, one in 20, are not worth a note.
const NOTED_SHARE: u64 = 20;
/// So many of the largest causes have a saving.
const LARGEST: usize = 3;

/// A thread on the way to a cause, and what it did or waited for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct NamedHop {
    pub cause: Cause,
    pub tid: Tid,
    /// The thread's name; empty where it is not known.
    pub thread: String,
    /// The name of its process; empty where it is not known.
    pub process: String,
    /// The marker around a wait that is followed to the next hop, or the function of the kernel that waited.
    /// Empty where no event names one.
    pub about: String,
}

/// A part of a span that has one cause. The parts of a span share no moment, and their times add up to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CausePart {
    /// From the span's own thread outwards; the last is the cause.
    pub path: Vec<NamedHop>,
    /// The subject of the cause: a method, a file, the thread that ran instead; empty where that is not
    /// known.
    pub subject: String,
    pub ns: u64,
    /// How often.
    pub count: u64,
    /// When: begins and ends. The first thousand.
    pub intervals: Vec<(Timestamp, Timestamp)>,
    /// How many samples tell the subject; 0 where samples do not tell it.
    pub samples: u64,
    /// The app's code that ran, where the thread ran its own code.
    pub own: Option<NamedOwnFrame>,
    /// As [`Share::by_segment`].
    pub(super) by_segment: Vec<(u32, u64)>,
    /// How the path is known.
    pub grade: Grade,
    pub party: Party,
    /// The program of the party, where it is another one than the span's own.
    pub program: String,
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

    /// The events say something about the time.
    pub fn is_known(&self) -> bool {
        let cause = self.path.last().map(|hop| hop.cause);
        !matches!(cause, None | Some(Cause::Unexplained | Cause::NotRecorded))
    }

    /// The name of the cause that the path leads to.
    pub fn cause_name(&self) -> &'static str {
        self.path.last().map_or(Cause::Unexplained, |hop| hop.cause).name()
    }
}

/// Parts with equal keys are one line.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct LineKey<'a> {
    /// The cause, the thread, its process, and what the events say about the wait.
    hops: Vec<(Cause, &'a str, &'a str, Cow<'a, str>)>,
    own: Option<&'a str>,
    monitor: Option<Cow<'a, str>>,
}

impl<'a> LineKey<'a> {
    pub fn of(part: &'a CausePart) -> LineKey<'a> {
        let hop = |hop: &'a NamedHop| {
            (hop.cause, hop.thread.as_str(), hop.process.as_str(), without_waiters(&hop.about))
        };
        LineKey {
            hops: part.path.iter().map(hop).collect(),
            own: part.own.as_ref().map(|own| own.frame.name.as_str()),
            monitor: LockMarker::parse(&part.subject).map(|_| without_waiters(&part.subject)),
        }
    }
}

/// The time of a span without one of its largest causes: the parts that have one key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Saving {
    pub path: Vec<NamedHop>,
    /// The app's code that ran.
    pub own: Option<String>,
    pub ns: u64,
    /// The time that the span would be shorter by, ns.
    pub saves_ns: u64,
    /// Why that is less than the cause's time.
    pub beside: Option<Beside>,
}

/// A thread whose work ran beside a cause, and ended later: the span would have waited for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub(crate) struct Beside {
    pub thread: String,
    pub tid: Tid,
    pub ends_later_ns: u64,
}

/// A span, and why it took as long as it did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Explanation {
    pub what: String,
    pub detail: String,
    pub begin: Timestamp,
    /// ns.
    pub duration: u64,
    /// Largest first.
    pub causes: Vec<CausePart>,
    /// The span's time without each of the largest causes, the largest first.
    pub savings: Vec<Saving>,
    /// The circumstances of a launch.
    pub circumstances: Vec<Circumstance>,
    /// The frames of each video of the screen.
    pub video: Vec<ShownFrames>,
}

impl Explanation {
    /// The time of each way to a cause (`lock > disk`), whoever the threads are and whatever it is about: the
    /// largest first.
    pub fn ns_by_way(&self) -> Vec<(String, u64)> {
        let mut sums: BTreeMap<String, u64> = BTreeMap::new();
        for part in &self.causes {
            let names: Vec<&str> = part.path.iter().map(|hop| hop.cause.name()).collect();
            *sums.entry(names.join(" > ")).or_default() += part.ns;
        }
        let mut sums: Vec<(String, u64)> = sums.into_iter().collect();
        sums.sort_by_key(|(_, ns)| Reverse(*ns));
        sums
    }

    /// Whose time the span's is.
    pub fn parties(&self) -> Vec<PartyShare> {
        parties(&self.causes, self.duration)
    }

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
        let mut walk = CauseWalk::new(self, new_thread);
        let mut from = span.begin;
        for (tid, until) in &span.threads {
            let until = (*until).clamp(from, span.end.max(from));
            walk.explain(*tid, from, until);
            from = until;
        }
        let split = walk.finish(span.duration());
        let waits = self.joined_waits(&split.waits, span.begin);
        let mut causes = self.parts(split);
        causes.sort_by(|a, b| {
            (Reverse(a.ns), &a.path, &a.subject, &a.own).cmp(&(Reverse(b.ns), &b.path, &b.subject, &b.own))
        });
        let savings = self.savings(&causes, &waits, span);
        Explanation {
            savings,
            what: span.what.clone(),
            detail: span.detail.clone(),
            begin: span.begin,
            duration: span.duration(),
            causes,
            circumstances: span.launched.map_or(Vec::new(), |(tid, _)| self.circumstances(tid, span)),
            video: Vec::new(),
        }
    }

    /// The span's time without each of its largest causes.
    fn savings(&self, causes: &[CausePart], waits: &[JoinedWait], span: &SpanAsked) -> Vec<Saving> {
        let mut by_key: BTreeMap<LineKey<'_>, (u64, Vec<&CausePart>)> = BTreeMap::new();
        for part in causes.iter().filter(|part| part.is_known()) {
            let (ns, parts) = by_key.entry(LineKey::of(part)).or_default();
            *ns += part.ns;
            parts.push(part);
        }
        let mut largest: Vec<(u64, Vec<&CausePart>)> = by_key.into_values().collect();
        largest.sort_by_key(|(ns, _)| Reverse(*ns));
        let saving = |(ns, parts): (u64, Vec<&CausePart>)| {
            let mut by_segment: BTreeMap<u32, u64> = BTreeMap::new();
            for (segment, ns) in parts.iter().flat_map(|part| &part.by_segment) {
                *by_segment.entry(*segment).or_default() += ns;
            }
            let mut intervals: Vec<_> =
                parts.iter().flat_map(|part| part.intervals.iter().copied()).collect();
            intervals.sort_unstable();
            let cause = CauseTime { ns, by_segment: by_segment.into_iter().collect(), intervals };
            let Saved { ns: saves_ns, beside } = saved(waits, &cause, span.begin, span.end);
            let beside = beside.map(|(tid, ends_later_ns)| {
                let thread = self.tasks.thread_name(tid).into_owned();
                Beside { thread, tid, ends_later_ns }
            });
            let own = parts[0].own.as_ref().map(|own| own.frame.name.clone());
            Saving { path: parts[0].path.clone(), own, ns, saves_ns, beside }
        };
        largest.into_iter().take(LARGEST).map(saving).collect()
    }

    /// The threads whose states are known, by their ids.
    pub(crate) fn scheduled_threads(&self) -> Vec<Tid> {
        let known = self.threads.iter().filter(|(_, thread)| !thread.changes.is_empty());
        let mut tids: Vec<Tid> = known.map(|(tid, _)| *tid).collect();
        tids.sort_unstable();
        tids
    }

    /// Calls `with` for each stretch of a thread's time that has one cause, in the order of time. What is
    /// given is its begin and end, the cause, what it is about, and the thread whose time is the cause.
    pub(crate) fn stretches(
        &self,
        tid: Tid,
        mut with: impl FnMut(Timestamp, Timestamp, Cause, &str, Option<Tid>),
    ) {
        let launches = &self.measured.launches;
        let is_new = launches
            .iter()
            .any(|launch| launch.main_tid == Some(tid) && launch.launch_type == Some(LaunchType::Cold));
        let (first, last) = self.extent;
        for stretch in CauseWalk::stretches(self, tid, is_new, first, last) {
            let Stretch { start, end, cause, subject, follow } = stretch;
            with(start, end, cause, &self.subject_text(subject), follow);
        }
    }

    fn parts(&self, split: Split) -> Vec<CausePart> {
        let Split { paths, shares, grades, .. } = split;
        let part = |(key, share): (ShareKey, Share)| {
            let mut intervals = share.intervals;
            intervals.sort_unstable();
            let grade = grades.get(&key.path).copied().unwrap_or_default().grade();
            let hops = paths.hops(key.path);
            let (party, program) = self.party_and_program(&hops, key.subject);
            let path = hops.into_iter().map(|hop| self.named_hop(hop)).collect();
            CausePart {
                grade,
                party,
                program,
                path,
                subject: self.subject_text(key.subject).into_owned(),
                ns: share.ns,
                count: share.count,
                intervals,
                samples: share.samples,
                own: key.own.map(|own| self.named_own_frame(own)),
                by_segment: share.by_segment,
            }
        };
        shares.into_iter().map(part).collect()
    }

    /// The party of a cause, and its program where that is another one than the span's own.
    fn party_and_program(&self, hops: &[Hop], subject: SubjectId) -> (Party, String) {
        let (Some(first), Some(last)) = (hops.first(), hops.last()) else {
            return (Party::NotRecorded, String::new());
        };
        let ran = match subject {
            SubjectId::Ran { tid, .. } => Some(tid),
            _ => None,
        };
        let found = self.party(last.cause, CauseThreads { own: first.tid, at: last.tid, ran });
        let is_other = matches!(found.party, Party::OtherPrograms | Party::SystemServices);
        let program = found.thread.filter(|_| is_other).map(|tid| match self.process_name(tid) {
            name if name.is_empty() => self.tasks.thread_name(tid).into_owned(),
            name => name,
        });
        (found.party, program.unwrap_or_default())
    }

    fn named_hop(&self, hop: Hop) -> NamedHop {
        NamedHop {
            cause: hop.cause,
            tid: hop.tid,
            thread: self.tasks.thread_name(hop.tid).into_owned(),
            process: self.process_name(hop.tid),
            about: self.subject_text(hop.about).into_owned(),
        }
    }

    /// The name of a thread's process; empty where it is not known.
    pub(super) fn process_name(&self, tid: Tid) -> String {
        self.process(tid).map(|pid| self.app_name(pid).into_owned()).unwrap_or_default()
    }

    /// The name of the app of a process, as launches and frames have it; empty where nothing names it.
    fn app_name(&self, pid: Pid) -> Cow<'_, str> {
        self.measured.names.name(&self.tasks, pid)
    }

    fn subject_text(&self, subject: SubjectId) -> Cow<'_, str> {
        match subject {
            SubjectId::None => "".into(),
            SubjectId::Name(name) => self.names.text(name).into(),
            SubjectId::Text(text) => text.into(),
            SubjectId::Ran { tid, prio, idle_cpu } => self.ran_instead(tid, prio, idle_cpu).into(),
            SubjectId::IdleCpu => "the CPU left its idle state".into(),
            SubjectId::LongIdleCpu(cpu) => format!("CPU {cpu} was idle").into(),
            SubjectId::Thread(tid) => self.thread_and_process(tid).into(),
        }
    }

    /// `RenderThread of com.example.app (real-time), while CPU 3 was idle`.
    fn ran_instead(&self, tid: Tid, prio: Option<i16>, idle_cpu: Option<Cpu>) -> String {
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
    fn thread_and_process(&self, tid: Tid) -> String {
        let thread = self.tasks.thread_name(tid);
        let process = self.process(tid).map(|pid| self.app_name(pid)).unwrap_or_default();
        match (&*thread, &*process) {
            ("", _) => format!("thread {tid}"),
            (thread, process) if process.is_empty() || process.ends_with(thread) => thread.to_owned(),
            (thread, process) => format!("{thread} of {process}"),
        }
    }
}

impl Model {
    /// Sentences about causes that the explanations could not tell apart, and about recordings that could.
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
    type PathAndSubject = (Vec<(Cause, String, String, String)>, String, Option<NamedOwnFrame>);
    let mut parts: BTreeMap<PathAndSubject, CausePart> = BTreeMap::new();
    for part in explanations.iter().flat_map(|explanation| &explanation.causes) {
        let hops = part.path.iter();
        let hops = hops.map(|hop| (hop.cause, hop.thread.clone(), hop.process.clone(), hop.about.clone()));
        let key = (hops.collect(), part.subject.clone(), part.own.clone());
        match parts.get_mut(&key) {
            Some(sum) => {
                sum.ns += part.ns;
                sum.count += part.count;
                sum.samples += part.samples;
                sum.grade = sum.grade.max(part.grade);
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

/// Whose time the parts of a span are, or of several of this length together, ns.
pub(crate) fn parties(causes: &[CausePart], whole: u64) -> Vec<PartyShare> {
    party::shares(causes.iter().map(|part| (part.party, part.program.as_str(), part.ns)), whole)
}

/// An explanation as `why --json` prints it (docs/schemas/why.json).
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct ExplanationJson<'a> {
    what: &'a str,
    /// In the timeline's clock.
    begin_ns: Timestamp,
    duration_ns: u64,
    /// Whose time it was: shares of the span by party, largest first.
    parties: Vec<PartyShare>,
    /// Largest first. Causes share no moment, and their ns add up to `duration_ns`.
    causes: Vec<CauseJson<'a>>,
    /// The span's time without each of its largest causes.
    savings: Vec<SavingJson<'a>>,
    /// Other activities during a launch; they may overlap causes and each other.
    circumstances: &'a [Circumstance],
    /// The frames at the begin and at the end of each video of the screen among the inputs.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    video: &'a [ShownFrames],
}

/// The span's time without a cause.
#[derive(Debug, Serialize, schemars::JsonSchema)]
struct SavingJson<'a> {
    path: Vec<HopJson<'a>>,
    own: Option<&'a str>,
    ns: u64,
    saves_ns: u64,
    without_ns: u64,
    beside: Option<&'a Beside>,
}

#[derive(Debug, Serialize, schemars::JsonSchema)]
struct CauseJson<'a> {
    /// From the span's own thread outwards: for what each thread waited; the last is the cause.
    path: Vec<HopJson<'a>>,
    /// The subject of the cause: a method, a slice, a file, the thread that ran instead.
    subject: Option<&'a str>,
    ns: u64,
    /// Share of the span, 0 to 1.
    share: f64,
    /// How often.
    count: u64,
    /// How the cause is known: told by an event, by the wake-up, or inferred.
    grade: Option<&'static str>,
    /// Whose time it was.
    party: Party,
    /// The app's code that ran; absent where no frame of the app holds enough.
    #[serde(skip_serializing_if = "Option::is_none")]
    own: Option<&'a NamedOwnFrame>,
    /// The monitor of ART that its marker names.
    #[serde(skip_serializing_if = "Option::is_none")]
    lock: Option<LockMarker<'a>>,
    /// Number of samples that name the subject; absent where samples do not name it.
    #[serde(skip_serializing_if = "Option::is_none")]
    samples: Option<u64>,
    /// Begins and ends, ns in the timeline's clock: the first 1000.
    intervals: &'a [(Timestamp, Timestamp)],
}

#[derive(Debug, Serialize, schemars::JsonSchema)]
struct HopJson<'a> {
    #[schemars(extend("enum" = Cause::ALL.map(Cause::name)))]
    cause: &'static str,
    /// The thread's name; empty where it is not known.
    thread: &'a str,
    tid: Tid,
    process: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    about: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lock: Option<LockMarker<'a>>,
}

impl<'a> ExplanationJson<'a> {
    pub fn new(explanation: &'a Explanation) -> ExplanationJson<'a> {
        let named = |text: &'a str| Some(text).filter(|text| !text.is_empty());
        let hop = |hop: &'a NamedHop| HopJson {
            cause: hop.cause.name(),
            thread: &hop.thread,
            tid: hop.tid,
            process: named(&hop.process),
            about: named(&hop.about),
            lock: LockMarker::parse(&hop.about),
        };
        let share =
            |ns: u64| if explanation.duration == 0 { 0.0 } else { ns as f64 / explanation.duration as f64 };
        let cause = |part: &'a CausePart| CauseJson {
            path: part.path.iter().map(hop).collect(),
            subject: named(&part.subject),
            ns: part.ns,
            share: share(part.ns),
            count: part.count,
            grade: (part.party != Party::NotRecorded).then(|| part.grade.name()),
            party: part.party,
            own: part.own.as_ref(),
            lock: LockMarker::parse(&part.subject),
            samples: Some(part.samples).filter(|samples| *samples > 0),
            intervals: &part.intervals,
        };
        let saving = |saving: &'a Saving| SavingJson {
            path: saving.path.iter().map(hop).collect(),
            own: saving.own.as_deref(),
            ns: saving.ns,
            saves_ns: saving.saves_ns,
            without_ns: explanation.duration - saving.saves_ns,
            beside: saving.beside.as_ref(),
        };
        ExplanationJson {
            savings: explanation.savings.iter().map(saving).collect(),
            what: &explanation.what,
            begin_ns: explanation.begin,
            duration_ns: explanation.duration,
            parties: explanation.parties(),
            causes: explanation.causes.iter().map(cause).collect(),
            circumstances: &explanation.circumstances,
            video: &explanation.video,
        }
    }
}
