//! Waits that go on though the thread was woken: for a lock with a time-out, for a condition that somebody
//! else's broadcast did not bring, for an answer of which a part came.
//!
//! The thread is woken, runs shortly, does nothing that another one could see, and sleeps again. Its wait
//! ends with the wake-up after which it goes on. Where system calls are recorded, the second call tells
//! whether it waits for the same. Without them this is inferred, and a sleep that a timer ended needs more:
//! see [`are_time_outs`].

use super::grade::Grade;
use super::model::{MarkKind, Model, SchedState, Syscall, ThreadHistory};
use super::waits::pending_call;

use crate::clock::Timestamp;

/// A thread that runs for longer than this between two sleeps, ns, has done something.
const SILENT_RUN_NS: u64 = 200_000;
/// How far behind the time that is explained a wait is followed, ns. All of that is kept.
const LOOK_AHEAD_NS: u64 = 90_000_000;
/// A futex as far from another one as this, bytes, is part of the same condition variable.
const CONDITION_BYTES: u32 = 64;
/// A time-out ends late by a tenth and this, ns.
const LATE_NS: u64 = 300_000;
/// Time-outs of one length differ by up to this factor: a busy machine serves its timers late.
const LATENESS: f64 = 1.5;
/// The least factor between time-outs that grow, by how many of them there are: HotSpot's grow eightfold.
const LEAST_GROWTH: [(usize, f64); 2] = [(2, 4.0), (3, 1.5)];

/// A sleep, by its length, and whether a timer or a device ended it.
#[derive(Debug, Clone, Copy)]
struct Sleep {
    ns: u64,
    by_device: bool,
}

/// Where a wait ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct EndOfWait {
    /// The number of the change with which the last sleep begins.
    pub last: usize,
    pub grade: Grade,
}

impl From<EndOfWait> for (usize, Grade) {
    fn from(EndOfWait { last, grade }: EndOfWait) -> (usize, Grade) {
        (last, grade)
    }
}

impl Model {
    /// The end of the wait that begins with the change `at` of a thread: that of a later sleep where the wait
    /// goes on. Waits are followed a little beyond `until`.
    pub(super) fn end_of_wait(&self, thread: &ThreadHistory, at: usize, until: Timestamp) -> EndOfWait {
        let alone = EndOfWait { last: at, grade: Grade::Event };
        let until = until.saturating_add(LOOK_AHEAD_NS);
        let Some(mut next) = next_sleep(thread, at, until) else { return alone };
        let mut sleeps = vec![self.sleep(thread, at)];
        let mut last = at;
        let mut grade = Grade::Event;
        // The last sleep that a thread ended, and how many sleeps there were up to it.
        let mut end = None;
        loop {
            match same_call(thread, last, next, self.has_call_ends) {
                Some(false) => break,
                Some(true) => {}
                None => grade = Grade::Inferred,
            }
            sleeps.push(self.sleep(thread, next));
            last = next;
            if sleeps.last().is_some_and(|sleep| !sleep.by_device) {
                end = Some((EndOfWait { last, grade }, sleeps.len()));
            }
            match next_sleep(thread, last, until) {
                Some(following) => next = following,
                None => break,
            }
        }
        let Some((end, count)) = end else { return alone };
        if end.grade == Grade::Event || are_time_outs(&sleeps[..count]) { end } else { alone }
    }

    fn sleep(&self, thread: &ThreadHistory, at: usize) -> Sleep {
        let since = thread.changes[at].since;
        let woken = thread.changes.get(at + 1);
        let wake = woken.and_then(|woken| thread.wake(woken));
        Sleep {
            ns: woken.map_or(0, |woken| woken.since - since),
            by_device: wake.is_none_or(|wake| self.is_device(&wake)),
        }
    }
}

/// The change with which the thread sleeps again, where it did nothing since it was woken from the sleep
/// `at`.
fn next_sleep(thread: &ThreadHistory, at: usize, until: Timestamp) -> Option<usize> {
    let mut ran = 0;
    for next in at + 1.. {
        let change = thread.changes.get(next).filter(|change| change.since <= until)?;
        match change.state {
            SchedState::Running => {
                let end = thread.changes.get(next + 1)?;
                ran += end.since - change.since;
                if ran > SILENT_RUN_NS || end.after_action {
                    return None;
                }
            }
            SchedState::Runnable | SchedState::Preempted => {}
            SchedState::Interruptible if next > at + 1 => return Some(next),
            _ => return None,
        }
    }
    None
}

/// Whether the thread waits for the same with two sleeps, by the system calls that it had begun. `None` where
/// these are not recorded.
fn same_call(thread: &ThreadHistory, first: usize, second: usize, has_call_ends: bool) -> Option<bool> {
    let call = |at: usize| pending_call(thread, thread.changes[at].since, has_call_ends);
    match (call(first), call(second)) {
        (None, None) => None,
        (Some(first), Some(second)) => Some(match (first, second) {
            (MarkKind::SyscallEnter(Syscall::Sleep, _), _) => false,
            (MarkKind::SyscallEnter(Syscall::Futex, one), MarkKind::SyscallEnter(Syscall::Futex, other)) => {
                one.abs_diff(other) < CONDITION_BYTES
            }
            (first, second) => first == second,
        }),
        _ => Some(false),
    }
}

/// Whether those of the sleeps that a timer ended can be time-outs of one wait, which a thread ended: then a
/// sleep is not longer than the time-out before it, or the time-outs grow evenly. A short sleep before a long
/// wait is none.
fn are_time_outs(sleeps: &[Sleep]) -> bool {
    let with_slack = |ns: u64| ns + ns / 10 + LATE_NS;
    let mut growths: Vec<f64> = Vec::new();
    let mut time_outs = 0;
    let mut longest = 0;
    for pair in sleeps.windows(2) {
        let [first, second] = pair else { continue };
        if !first.by_device {
            continue;
        }
        time_outs += 1;
        longest = longest.max(first.ns);
        let growth = second.ns as f64 / first.ns.max(1) as f64;
        if second.by_device {
            if growth < LATENESS.recip() {
                return false;
            }
            // One that is about as long as the one before was late, or that one was.
            growths.extend((growth > LATENESS).then_some(growth));
        } else if second.ns > with_slack(longest) {
            // A thread ended the sleep before its time-out, which the growth so far tells.
            let most = growths.iter().copied().fold(1.0, f64::max);
            if growth > most * 1.1 {
                return false;
            }
        }
    }
    let most = growths.iter().copied().fold(0.0, f64::max);
    let least = growths.iter().copied().fold(f64::MAX, f64::min);
    growths.is_empty()
        || (most <= least * 1.5
            && LEAST_GROWTH.iter().any(|(count, factor)| time_outs >= *count && least >= *factor))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sleeps in ms; the last one was ended by a thread, the others by timers.
    fn time_outs(ms: &[f64]) -> bool {
        let sleep = |ms: &f64| Sleep { ns: (*ms * 1e6) as u64, by_device: true };
        let mut sleeps: Vec<Sleep> = ms.iter().map(sleep).collect();
        sleeps.last_mut().unwrap().by_device = false;
        are_time_outs(&sleeps)
    }

    #[test]
    fn time_outs_are_equal_or_grow_evenly() {
        assert!(time_outs(&[50.0, 10.0]));
        assert!(time_outs(&[5.06, 5.06, 5.1, 5.06, 0.3]));
        assert!(time_outs(&[10.1, 12.9, 10.1, 10.1, 10.9]), "one was late");
        assert!(time_outs(&[1.06, 8.07, 64.1, 20.0]), "HotSpot");
        assert!(time_outs(&[1.06, 8.07, 21.0]), "HotSpot, ended early");
        assert!(time_outs(&[1.0, 2.1, 4.1, 8.1, 3.0]), "doubled");
        assert!(!time_outs(&[2.0, 60.0]), "a short sleep before a lock");
        assert!(!time_outs(&[5.0, 10.0, 15.0]), "two sleeps before a lock");
        assert!(!time_outs(&[50.0, 3.0, 40.0]), "sleeps of other lengths");
        assert!(!time_outs(&[20.0, 5.0, 3.0]), "sleeps of other lengths");
    }
}
