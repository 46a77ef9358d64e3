//! Decides which of the kernel's threads each thread of a method trace is.
//!
//! Ids help only in part: since May 2023 ART numbers threads 1, 2, 3…; before, it cut the kernel's id to
//! 16 bits; in versions 4 and 5 of the format it writes the whole id. The kernel keeps 15 characters of a
//! name: Android sets the last 15 of a name with a dot, else the first 15. Where ids and names leave
//! several threads, a thread's markers and its times on a CPU decide.

use std::cmp::Ordering;
use std::collections::{BinaryHeap, HashMap};

use super::clock_map::ClockMap;
use super::kernel_evidence::{KernelEvidence, ThreadActivity};
use super::method_evidence::MethodEvidence;
use super::placement::{IdentityDoubt, ThreadIdentity};
use super::residuals::{self, Residuals, geometric_mean};
use crate::clock::Timestamp;
use crate::formats::art_method::{MethodTrace, TracedThread};
use crate::ids::{Pid, Tid};

/// Characters of a thread's name that the kernel keeps: `TASK_COMM_LEN` less the NUL.
const COMM_LEN: usize = 15;
/// The least ratio of the second-best kernel thread's residual to the best one's, for the best one to be
/// chosen.
const MIN_RATIO_TO_RUNNER_UP: f64 = 2.0;
/// A kernel thread with a larger residual, ns, is not chosen by its markers and CPU times alone.
const MAX_RESIDUAL_NS: f64 = 200_000.0;

/// The most kernel threads with which a traced thread is compared. More threads of one name could not be
/// distinguished.
const MAX_CANDIDATES: usize = 64;

/// The evidence that decides the place of one method trace.
pub struct Evidence<'t, 'a> {
    /// The method trace.
    pub trace: &'t MethodTrace<'a>,
    /// For each thread of the method trace, the calls and stretches that are compared with the recordings.
    pub threads: Vec<MethodEvidence>,
    /// The markers and context switches of all recordings.
    pub kernel: &'t KernelEvidence,
    /// For each thread of the method trace, the kernel threads that it may be by process, name and id.
    pub candidate_tids: Vec<Vec<Tid>>,
}

impl Evidence<'_, '_> {
    /// Whether a trace that begins at `begins` of the timeline overlaps the recordings, give or take
    /// `slack_ns`.
    pub fn is_within(&self, begins: Timestamp, slack_ns: u64) -> bool {
        let start = Timestamp(self.trace.header().start_ns());
        let longest = self.threads.iter().map(|t| t.last.since(start)).max().unwrap_or(0);
        begins <= self.kernel.last.saturating_add(slack_ns)
            && begins.saturating_add(longest).saturating_add(slack_ns) >= self.kernel.first
    }

    /// The residuals of a thread with each kernel thread that it may be; `segments` turn the trace's clock
    /// into the timeline's.
    pub fn fits(&self, thread: usize, segments: &[ClockMap]) -> Vec<(Tid, Residuals)> {
        let window = || self.kernel.first..=self.kernel.last;
        let fit = |tid: &Tid| {
            let seen = self.kernel.threads.get(tid)?;
            Some((*tid, residuals::compare(&self.threads[thread], seen, segments, window())))
        };
        self.candidate_tids[thread].iter().filter_map(fit).collect()
    }
}

/// The names that the kernel may have of a thread whose full name is `full`.
fn comms_of(full: &str) -> [&[u8]; 3] {
    let full = full.as_bytes();
    let cut = full.len().saturating_sub(COMM_LEN);
    [full, &full[..full.len().min(COMM_LEN)], &full[cut..]]
}

/// Whether `comm` may be the kernel's name of a thread whose full name is `full`.
fn is_comm_of(comm: &[u8], full: &str) -> bool {
    !comm.is_empty() && comms_of(full).contains(&comm)
}

/// Finds kernel threads by the facts that a method trace has about a thread: its name and its id.
struct KernelThreads<'k> {
    observed: &'k KernelEvidence,
    pid: Option<Pid>,
    /// The threads that may belong to the traced process, by each of their names.
    by_comm: HashMap<&'k [u8], Vec<Tid>>,
    /// The same threads by the lower 16 bits of their ids.
    by_low_id: HashMap<u32, Vec<Tid>>,
    /// The threads of the process that have markers.
    with_marks: Vec<Tid>,
    /// The threads whose id is their process's id.
    leaders: Vec<Tid>,
}

impl<'k> KernelThreads<'k> {
    fn new(pid: Option<Pid>, observed: &'k KernelEvidence) -> KernelThreads<'k> {
        let mut threads = KernelThreads {
            observed,
            pid,
            by_comm: HashMap::new(),
            by_low_id: HashMap::new(),
            with_marks: Vec::new(),
            leaders: Vec::new(),
        };
        for (tid, seen) in &observed.threads {
            if seen.tgid == pid && !seen.marks.is_empty() {
                threads.with_marks.push(*tid);
            }
            if !threads.is_in_process(seen) {
                continue;
            }
            for comm in &seen.comms {
                threads.by_comm.entry(comm).or_default().push(*tid);
            }
            threads.by_low_id.entry(low_id(*tid)).or_default().push(*tid);
            if seen.tgid.is_some_and(|tgid| tid.is_main_of(tgid)) {
                threads.leaders.push(*tid);
            }
        }
        threads
    }

    fn is_in_process(&self, seen: &ThreadActivity) -> bool {
        match (self.pid, seen.tgid) {
            (Some(pid), Some(tgid)) => pid == tgid,
            _ => true,
        }
    }

    /// The kernel threads whose id is the thread's, whole or cut to 16 bits.
    fn with_id(&self, thread: &TracedThread<'_>) -> impl Iterator<Item = Tid> {
        let same_low_bits = self.by_low_id.get(&(thread.id & 0xffff));
        same_low_bits.into_iter().flatten().copied().filter(|tid| has_id(thread, *tid))
    }

    /// The ids of the kernel threads that the thread's process, name and id allow.
    fn allowed(&self, thread: &TracedThread<'_>) -> Vec<Tid> {
        let mut found: Vec<Tid> = Vec::new();
        // The main thread has the process's name in the kernel.
        if thread.name == "main" {
            match self.pid {
                Some(pid) => {
                    let main = pid.main_thread();
                    let seen = self.observed.threads.get(&main);
                    found.extend(seen.filter(|seen| self.is_in_process(seen)).map(|_| main));
                }
                None => found.extend(&self.leaders),
            }
        }
        if thread.name.is_empty() && thread.id > 256 {
            found.extend(self.with_id(thread));
        }
        if !(thread.name == "main" && self.pid.is_some()) {
            let comms = comms_of(&thread.name);
            let named = comms.iter().filter(|comm| !comm.is_empty());
            found.extend(named.filter_map(|comm| self.by_comm.get(comm)).flatten());
        }
        if found.is_empty() && self.pid.is_some() {
            // No kernel thread has this name: the thread was renamed, or was named before the recording
            // began. It may be any thread of the process that has markers.
            found.clone_from(&self.with_marks);
        }
        found.sort_unstable();
        found.dedup();
        found
    }
}

/// Whether the kernel's thread id is that of the traced thread, whole or cut to 16 bits.
fn has_id(thread: &TracedThread<'_>, tid: Tid) -> bool {
    tid.0 as u32 == thread.id || low_id(tid) == thread.id
}

/// The lower 16 bits of an id, which is all that ART kept of it for long.
fn low_id(tid: Tid) -> u32 {
    tid.0 as u32 & 0xffff
}

/// For each thread of the trace, the ids of the kernel threads that its process, name and id allow. Ids are
/// used only where at least 90 % of the threads with candidates have the id of a candidate, whole or cut to
/// 16 bits: then the ids are the kernel's, and distinguish threads of one name. Empty for a thread with more
/// than [`MAX_CANDIDATES`].
pub fn candidates(trace: &MethodTrace<'_>, observed: &KernelEvidence) -> Vec<Vec<Tid>> {
    let kernel = KernelThreads::new(trace.header().pid, observed);
    // Threads of one name have the same candidates. These are found once.
    let mut by_name: HashMap<&str, Vec<Tid>> = HashMap::new();
    let mut checked = 0;
    let mut own = 0;
    let mut all: Vec<(Vec<Tid>, Vec<Tid>)> = Vec::with_capacity(trace.threads().len());
    for thread in trace.threads() {
        let nameless;
        let allowed = if thread.name.is_empty() {
            nameless = kernel.allowed(thread);
            &nameless
        } else {
            by_name.entry(&thread.name).or_insert_with(|| kernel.allowed(thread))
        };
        let with_id = kernel.with_id(thread).filter(|tid| allowed.binary_search(tid).is_ok());
        let mut with_id: Vec<Tid> = with_id.collect();
        with_id.sort_unstable();
        checked += usize::from(!allowed.is_empty());
        own += usize::from(!with_id.is_empty());
        let few = allowed.len() <= MAX_CANDIDATES;
        all.push((if few { allowed.clone() } else { Vec::new() }, with_id));
    }
    let ids_are_the_kernels = own > 0 && own * 10 >= checked * 9;
    let narrowed = |(allowed, with_id): (Vec<Tid>, Vec<Tid>)| {
        if ids_are_the_kernels && !with_id.is_empty() { with_id } else { allowed }
    };
    all.into_iter().map(narrowed).collect()
}

/// The identities where there is no recording to compare with: the process, if the trace names it, and ids
/// that are the kernel's own.
pub fn without_recording(trace: &MethodTrace<'_>) -> Vec<ThreadIdentity> {
    let pid = trace.header().pid;
    let is_main = |thread: &TracedThread<'_>, tid: Tid| {
        thread.name == "main" && pid.is_some_and(|pid| tid.is_main_of(pid))
    };
    let identity = |thread: &TracedThread<'_>| {
        let id = i32::try_from(thread.id).ok().map(Tid);
        let tid = id.filter(|id| trace.header().version >= 4 || is_main(thread, *id));
        ThreadIdentity { tid, tgid: pid, doubt: None }
    };
    trace.threads().iter().map(identity).collect()
}

/// The kernel thread that fits a traced thread best so far. The clearest choice is the largest.
#[derive(Debug, Clone, Copy)]
struct ThreadMatch {
    /// The ratio of the second-best kernel thread's residual to the best one's.
    ratio: f64,
    /// Index of the traced thread.
    thread: usize,
    tid: Tid,
}

impl Ord for ThreadMatch {
    fn cmp(&self, other: &ThreadMatch) -> Ordering {
        self.ratio.total_cmp(&other.ratio).then(self.thread.cmp(&other.thread)).then(self.tid.cmp(&other.tid))
    }
}

impl PartialOrd for ThreadMatch {
    fn partial_cmp(&self, other: &ThreadMatch) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for ThreadMatch {
    fn eq(&self, other: &ThreadMatch) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for ThreadMatch {}

/// Decides which kernel thread each thread is; `segments` turn the trace's clock into the timeline's.
pub fn decide(evidence: &Evidence<'_, '_>, segments: &[ClockMap]) -> Vec<ThreadIdentity> {
    let count = evidence.threads.len();
    let mut fits: Vec<Vec<(Tid, Residuals)>> =
        (0..count).map(|thread| evidence.fits(thread, segments)).collect();
    let mut decided: Vec<Option<ThreadIdentity>> = vec![None; count];
    let mut may_be: HashMap<Tid, Vec<usize>> = HashMap::new();
    for (thread, fits) in fits.iter().enumerate() {
        fits.iter().for_each(|(tid, _)| may_be.entry(*tid).or_default().push(thread));
    }
    // The clearest decision comes first: a kernel thread that is assigned is no longer a candidate for traced
    // threads that ran at the same time.
    let choose = |fits: &[Vec<(Tid, Residuals)>], thread: usize| {
        clearest(&fits[thread], evidence, thread).map(|(tid, ratio)| ThreadMatch { ratio, thread, tid })
    };
    let mut choices: BinaryHeap<ThreadMatch> =
        (0..count).filter_map(|thread| choose(&fits, thread)).collect();
    while let Some(choice) = choices.pop() {
        let ThreadMatch { thread, tid, .. } = choice;
        // The choice may be an earlier one of a thread that has lost candidates since.
        if decided[thread].is_some() || choose(&fits, thread) != Some(choice) {
            continue;
        }
        let tgid = evidence.kernel.threads.get(&tid).and_then(|s| s.tgid).or(evidence.trace.header().pid);
        decided[thread] = Some(ThreadIdentity { tid: Some(tid), tgid, doubt: None });
        for other in may_be.remove(&tid).unwrap_or_default() {
            if other == thread {
                continue;
            }
            if !overlap(evidence, thread, other) {
                may_be.entry(tid).or_default().push(other);
                continue;
            }
            fits[other].retain(|(t, _)| *t != tid);
            if decided[other].is_none() {
                choices.extend(choose(&fits, other));
            }
        }
    }
    let undecided = |thread: usize| {
        let doubt = match fits[thread].as_slice() {
            [] => IdentityDoubt::NoThread,
            [(tid, _)] => IdentityDoubt::DidSomethingElse(*tid),
            several => IdentityDoubt::Several(several.iter().map(|(tid, _)| *tid).collect()),
        };
        ThreadIdentity { tid: None, tgid: evidence.trace.header().pid, doubt: Some(doubt) }
    };
    decided.into_iter().enumerate().map(|(thread, id)| id.unwrap_or_else(|| undecided(thread))).collect()
}

/// The kernel thread that a thread of the trace is, and how many times better it fits than the next one;
/// `None` while several kernel threads fit about as well, or none fits.
fn clearest(fits: &[(Tid, Residuals)], evidence: &Evidence<'_, '_>, thread: usize) -> Option<(Tid, f64)> {
    let apart = |fit: &Residuals| geometric_mean(&fit.medians);
    let named = |tid: Tid| {
        let full = &evidence.trace.threads()[thread].name;
        let seen = evidence.kernel.threads.get(&tid);
        full == "main" || full.is_empty() || seen.is_some_and(|s| s.comms.iter().any(|c| is_comm_of(c, full)))
    };
    let mut order: Vec<(Tid, Option<f64>)> = fits.iter().map(|(tid, fit)| (*tid, apart(fit))).collect();
    order.sort_by(|a, b| a.1.unwrap_or(f64::MAX).total_cmp(&b.1.unwrap_or(f64::MAX)));
    match order.as_slice() {
        [] => None,
        [(tid, None)] => named(*tid).then_some((*tid, 1.0)),
        // Only one kernel thread is left. If it has the traced thread's name, its residual may be up to four
        // times larger.
        [(tid, Some(ns))] => (*ns <= MAX_RESIDUAL_NS || (named(*tid) && *ns < 4.0 * MAX_RESIDUAL_NS))
            .then_some((*tid, MAX_RESIDUAL_NS / ns)),
        [(tid, Some(ns)), (_, second), ..] => {
            let clearly = second.is_none_or(|second| second >= ns * MIN_RATIO_TO_RUNNER_UP);
            let ratio = second.map_or(MAX_RESIDUAL_NS / ns, |second| second / ns);
            (*ns <= MAX_RESIDUAL_NS && clearly).then_some((*tid, ratio))
        }
        _ => None,
    }
}

/// Whether the records of two threads of the trace overlap in time: such threads cannot be the same kernel
/// thread.
fn overlap(evidence: &Evidence<'_, '_>, a: usize, b: usize) -> bool {
    let a = &evidence.threads[a];
    let b = &evidence.threads[b];
    a.first <= b.last && b.first <= a.last
}

#[cfg(test)]
mod tests {
    use super::is_comm_of;

    #[test]
    fn a_comm_matches_the_first_or_the_last_fifteen_characters_of_a_name() {
        assert!(is_comm_of(b"RenderThread", "RenderThread"));
        assert!(is_comm_of(b"OkHttp Connecti", "OkHttp ConnectionPool dispatcher"));
        assert!(is_comm_of(b"eference.Loader", "com.example.reference.Loader"));
        assert!(!is_comm_of(b"pool-1-thread-1", "pool-1-thread-2"));
        assert!(!is_comm_of(b"", ""));
    }
}
