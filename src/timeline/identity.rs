//! Decides which of the kernel's threads each thread of a method trace is.
//!
//! Ids help only in part: since May 2023 ART numbers threads 1, 2, 3…; before, it cut the kernel's id to
//! 16 bits; in versions 4 and 5 of the format it writes the whole id. The kernel keeps 15 characters of a
//! name: Android sets the last 15 of a name with a dot, else the first 15. Where ids and names leave
//! several threads, a thread's markers and its times on a CPU decide.

use super::clock_map::ClockMap;
use super::evidence::Evidence;
use super::kernel_evidence::{KernelEvidence, ThreadActivity};
use super::placement::ThreadIdentity;
use super::residuals::{Residuals, geometric_mean};
use crate::formats::art_method::{MethodTrace, TracedThread};

/// Characters of a thread's name that the kernel keeps: `TASK_COMM_LEN` less the NUL.
const COMM_LEN: usize = 15;
/// The least ratio of the second-best kernel thread's residual to the best one's, for the best one to be
/// chosen.
const MIN_RATIO_TO_RUNNER_UP: f64 = 2.0;
/// A kernel thread with a larger residual, ns, is not chosen by its markers and CPU times alone.
const MAX_RESIDUAL_NS: f64 = 200_000.0;

/// Whether `comm` may be the kernel's name of a thread whose full name is `full`.
fn is_comm_of(comm: &[u8], full: &str) -> bool {
    let full = full.as_bytes();
    let cut = full.len().saturating_sub(COMM_LEN);
    !comm.is_empty() && (comm == full || comm == &full[..full.len().min(COMM_LEN)] || comm == &full[cut..])
}

/// For each thread of the trace, the ids of the kernel threads that its process, name and id allow.
pub fn candidates(trace: &MethodTrace<'_>, observed: &KernelEvidence) -> Vec<Vec<i32>> {
    let pid = trace.header().pid;
    let in_process = |seen: &ThreadActivity| match (pid, seen.tgid) {
        (Some(pid), Some(tgid)) => pid == tgid,
        _ => true,
    };
    let of = |thread: &TracedThread<'_>| {
        let has_name = |seen: &ThreadActivity| seen.comms.iter().any(|comm| is_comm_of(comm, &thread.name));
        let mut found: Vec<i32> = Vec::new();
        for (tid, seen) in observed.threads.iter().filter(|(_, seen)| in_process(seen)) {
            // The main thread has the process's name in the kernel.
            let is_main =
                thread.name == "main" && (Some(*tid) == pid || (pid.is_none() && seen.tgid == Some(*tid)));
            let is_id = *tid as u32 == thread.id || (*tid as u32 & 0xffff) == thread.id;
            let nameless = thread.name.is_empty() && is_id && thread.id > 256;
            if is_main || nameless || (has_name(seen) && !(thread.name == "main" && pid.is_some())) {
                found.push(*tid);
            }
        }
        if found.is_empty() && pid.is_some() {
            // No kernel thread has this name: the thread was renamed, or was named before the recording
            // began. It may be any thread of the process that has markers.
            found.extend(
                observed
                    .threads
                    .iter()
                    .filter(|(_, s)| s.tgid == pid && !s.marks.is_empty())
                    .map(|(t, _)| *t),
            );
        }
        found.sort_unstable();
        found
    };
    let mut all: Vec<Vec<i32>> = trace.threads().iter().map(of).collect();
    by_id(trace, &mut all);
    all
}

/// Narrows the candidates by id. Ids are used only where at least 90 % of the threads with candidates have
/// the id of a candidate, whole or cut to 16 bits: then the ids are the kernel's, and distinguish threads
/// of one name.
fn by_id(trace: &MethodTrace<'_>, all: &mut [Vec<i32>]) {
    let is_own =
        |thread: &TracedThread<'_>, tid: i32| tid as u32 == thread.id || (tid as u32 & 0xffff) == thread.id;
    let checked = || trace.threads().iter().zip(&*all).filter(|(_, may)| !may.is_empty());
    let own = checked().filter(|(t, may)| may.iter().any(|tid| is_own(t, *tid))).count();
    if own == 0 || own * 10 < checked().count() * 9 {
        return;
    }
    for (thread, may) in trace.threads().iter().zip(all) {
        if may.iter().any(|tid| is_own(thread, *tid)) {
            may.retain(|tid| is_own(thread, *tid));
        }
    }
}

/// The identities where there is no recording to compare with: the process, if the trace names it, and ids
/// that are the kernel's own.
pub fn without_recording(trace: &MethodTrace<'_>) -> Vec<ThreadIdentity> {
    let pid = trace.header().pid;
    let own_id = |t: &TracedThread<'_>| {
        trace.header().version >= 4 || (pid == i32::try_from(t.id).ok() && t.name == "main")
    };
    let of = |thread: &TracedThread<'_>| ThreadIdentity {
        tid: own_id(thread).then(|| i32::try_from(thread.id).ok()).flatten(),
        tgid: pid,
        doubt: None,
    };
    trace.threads().iter().map(of).collect()
}

/// Decides which kernel thread each thread is; `segments` turn the trace's clock into the timeline's.
pub fn decide(evidence: &Evidence<'_, '_>, segments: &[ClockMap]) -> Vec<ThreadIdentity> {
    let count = evidence.threads.len();
    let mut fits: Vec<Vec<(i32, Residuals)>> =
        (0..count).map(|thread| evidence.fits(thread, segments)).collect();
    let mut decided: Vec<Option<ThreadIdentity>> = vec![None; count];
    // The clearest decision comes first: a kernel thread that is assigned is no longer a candidate for traced
    // threads that ran at the same time.
    loop {
        let clearest = (0..count)
            .filter(|thread| decided[*thread].is_none())
            .filter_map(|thread| Some((thread, clearest(&fits[thread], evidence, thread)?)))
            .max_by(|(_, (_, a)), (_, (_, b))| a.total_cmp(b));
        let Some((thread, (tid, _))) = clearest else { break };
        let tgid = evidence.kernel.threads.get(&tid).and_then(|s| s.tgid).or(evidence.trace.header().pid);
        decided[thread] = Some(ThreadIdentity { tid: Some(tid), tgid, doubt: None });
        for other in (0..count).filter(|other| *other != thread) {
            if overlap(evidence, thread, other) {
                fits[other].retain(|(t, _)| *t != tid);
            }
        }
    }
    let undecided = |thread: usize| {
        let tids: Vec<String> = fits[thread].iter().map(|(tid, _)| tid.to_string()).collect();
        let doubt = match tids.as_slice() {
            [] => "no thread of the recording has its name and process".to_owned(),
            [one] => format!("thread {one} has its name, but did something else"),
            _ => format!("threads {} have its name, and nothing tells them apart", tids.join(", ")),
        };
        ThreadIdentity { tid: None, tgid: evidence.trace.header().pid, doubt: Some(doubt) }
    };
    decided.into_iter().enumerate().map(|(thread, id)| id.unwrap_or_else(|| undecided(thread))).collect()
}

/// The kernel thread that a thread of the trace is, and how many times better it fits than the next one;
/// `None` while several kernel threads fit about as well, or none fits.
fn clearest(fits: &[(i32, Residuals)], evidence: &Evidence<'_, '_>, thread: usize) -> Option<(i32, f64)> {
    let apart = |fit: &Residuals| geometric_mean(&fit.medians);
    let named = |tid: i32| {
        let full = &evidence.trace.threads()[thread].name;
        let seen = evidence.kernel.threads.get(&tid);
        full == "main" || full.is_empty() || seen.is_some_and(|s| s.comms.iter().any(|c| is_comm_of(c, full)))
    };
    let mut order: Vec<(i32, Option<f64>)> = fits.iter().map(|(tid, fit)| (*tid, apart(fit))).collect();
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
    let (a, b) = (&evidence.threads[a], &evidence.threads[b]);
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
