//! The causes of a span, with the names of threads, largest first; and the difference of two sets of spans.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde::Serialize;

use super::cause::{Cause, Hop};
use super::circumstances::Circumstance;
use super::grade::Grade;
use super::model::Model;
use super::party::{self, CauseThreads, Party, PartyShare};
use super::shown_frames::ShownFrames;
use super::spans::SpanAsked;
use super::walk::{CauseWalk, Share, Split, Stretch, SubjectId};
use crate::clock::Timestamp;
use crate::ids::{Cpu, Pid, Tid};
use crate::measure::LaunchType;
use crate::text::duration;

/// Causes below this part of all spans, one in 20, are not worth a note.
const NOTED_SHARE: u64 = 20;

/// A thread on the way to a cause, and what it did or waited for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct NamedHop {
    pub cause: Cause,
    pub tid: Tid,
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
    pub begin: Timestamp,
    /// ns.
    pub duration: u64,
    /// Largest first.
    pub causes: Vec<CausePart>,
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
            video: Vec::new(),
        }
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
        let Split { paths, shares, grades } = split;
        let part = |((path, subject), share): (_, Share)| {
            let mut intervals = share.intervals;
            intervals.sort_unstable();
            let grade = grades.get(&path).copied().unwrap_or_default().grade();
            let hops = paths.hops(path);
            let (party, program) = self.party_and_program(&hops, subject);
            let path = hops.into_iter().map(|hop| self.named_hop(hop)).collect();
            CausePart {
                grade,
                party,
                program,
                path,
                subject: self.subject_text(subject).into_owned(),
                ns: share.ns,
                count: share.count,
                intervals,
                samples: share.samples,
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
    type PathAndSubject = (Vec<(Cause, String, String)>, String);
    let mut parts: BTreeMap<PathAndSubject, CausePart> = BTreeMap::new();
    for part in explanations.iter().flat_map(|explanation| &explanation.causes) {
        let hops = part.path.iter().map(|hop| (hop.cause, hop.thread.clone(), hop.process.clone()));
        let key = (hops.collect(), part.subject.clone());
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
#[derive(Debug, Serialize)]
pub(crate) struct ExplanationJson<'a> {
    what: &'a str,
    begin_ns: Timestamp,
    duration_ns: u64,
    parties: Vec<PartyShare>,
    causes: Vec<CauseJson<'a>>,
    circumstances: &'a [Circumstance],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    video: &'a [ShownFrames],
}

#[derive(Debug, Serialize)]
struct CauseJson<'a> {
    path: Vec<HopJson<'a>>,
    subject: Option<&'a str>,
    ns: u64,
    share: f64,
    count: u64,
    grade: Option<&'static str>,
    party: Party,
    #[serde(skip_serializing_if = "Option::is_none")]
    samples: Option<u64>,
    intervals: &'a [(Timestamp, Timestamp)],
}

#[derive(Debug, Serialize)]
struct HopJson<'a> {
    cause: &'static str,
    thread: &'a str,
    tid: Tid,
    process: Option<&'a str>,
}

impl<'a> ExplanationJson<'a> {
    pub fn new(explanation: &'a Explanation) -> ExplanationJson<'a> {
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
            grade: (part.party != Party::NotRecorded).then(|| part.grade.name()),
            party: part.party,
            samples: Some(part.samples).filter(|samples| *samples > 0),
            intervals: &part.intervals,
        };
        ExplanationJson {
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

/// A cause that takes longer, or less long, in the one set than in the other. Times are ns a span.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct CauseChange {
    /// `lock: main, disk: pool-2-thread-1`.
    pub path: String,
    pub subject: String,
    pub old_ns: f64,
    pub new_ns: f64,
    pub delta_ns: f64,
}

/// The time of a party in both sets, ns a span.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct PartyChange {
    pub party: Party,
    pub old_ns: f64,
    pub new_ns: f64,
    pub delta_ns: f64,
}

/// The difference of two sets of spans. The differences of all causes add up to that of the spans.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Difference {
    pub old_spans: usize,
    pub new_spans: usize,
    /// The mean length of a span, ns.
    pub old_ns: f64,
    pub new_ns: f64,
    pub delta_ns: f64,
    /// In the order of parties; the differences add up to that of the spans.
    pub parties: Vec<PartyChange>,
    /// The largest changes first.
    pub causes: Vec<CauseChange>,
}

/// The threads and causes of a part by their names: thread ids differ from run to run.
fn key(part: &CausePart) -> (String, String) {
    (part.path_text(), part.subject.clone())
}

/// How `new` differs from `old`.
pub(crate) fn difference(new: &[Explanation], old: &[Explanation]) -> Difference {
    let mean = |total: u64, set: &[Explanation]| total as f64 / set.len().max(1) as f64;
    let length = |set: &[Explanation]| mean(set.iter().map(|one| one.duration).sum(), set);
    let mut totals: BTreeMap<(String, String), [u64; 2]> = BTreeMap::new();
    let mut of_parties: BTreeMap<Party, [u64; 2]> = BTreeMap::new();
    for (at, set) in [old, new].into_iter().enumerate() {
        for part in set.iter().flat_map(|one| &one.causes) {
            totals.entry(key(part)).or_default()[at] += part.ns;
            of_parties.entry(part.party).or_default()[at] += part.ns;
        }
    }
    let change = |((path, subject), [old_ns, new_ns]): ((String, String), [u64; 2])| {
        let old_ns = mean(old_ns, old);
        let new_ns = mean(new_ns, new);
        CauseChange { path, subject, old_ns, new_ns, delta_ns: new_ns - old_ns }
    };
    let of_party = |(party, [old_ns, new_ns]): (Party, [u64; 2])| {
        let old_ns = mean(old_ns, old);
        let new_ns = mean(new_ns, new);
        PartyChange { party, old_ns, new_ns, delta_ns: new_ns - old_ns }
    };
    let mut causes: Vec<CauseChange> = totals.into_iter().map(change).collect();
    causes.sort_by(|a, b| b.delta_ns.abs().total_cmp(&a.delta_ns.abs()).then_with(|| a.path.cmp(&b.path)));
    let old_ns = length(old);
    let new_ns = length(new);
    Difference {
        old_spans: old.len(),
        new_spans: new.len(),
        old_ns,
        new_ns,
        delta_ns: new_ns - old_ns,
        parties: of_parties.into_iter().map(of_party).collect(),
        causes,
    }
}

impl Difference {
    /// The largest changes in lines for people.
    pub fn lines(&self, limit: usize) -> Vec<String> {
        let signed = |ns: f64| {
            let sign = if ns < 0.0 { "-" } else { "+" };
            format!("{sign}{}", duration(ns.abs().round() as u64))
        };
        let ms = |ns: f64| duration(ns.round() as u64);
        let spans =
            |count: usize| if count == 1 { "1 span".to_owned() } else { format!("mean of {count} spans") };
        let mut lines = vec![format!(
            "{} now ({}), {} before ({}): {}",
            ms(self.new_ns),
            spans(self.new_spans),
            ms(self.old_ns),
            spans(self.old_spans),
            signed(self.delta_ns)
        )];
        let changed = self.parties.iter().filter(|change| change.delta_ns.abs() >= 1000.0);
        let parties = changed.map(|change| format!("{} {}", change.party.words(), signed(change.delta_ns)));
        let parties: Vec<String> = parties.collect();
        if !parties.is_empty() {
            lines.push(parties.join(" · "));
        }
        let mut shown = 0.0;
        let changed: Vec<&CauseChange> =
            self.causes.iter().filter(|change| change.delta_ns.abs() >= 1.0).collect();
        for change in changed.iter().take(limit) {
            shown += change.delta_ns;
            let subject =
                if change.subject.is_empty() { String::new() } else { format!(" ({})", change.subject) };
            lines.push(format!(
                "{:>12}  {}{subject}: {} before, {} now",
                signed(change.delta_ns),
                change.path,
                ms(change.old_ns),
                ms(change.new_ns)
            ));
        }
        if changed.len() > limit {
            let rest = changed.len() - limit;
            lines.push(format!("{:>12}  {rest} smaller changes", signed(self.delta_ns - shown)));
        }
        lines
    }
}
