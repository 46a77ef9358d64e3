//! The time that a span would take without one of its causes.
//!
//! A cause that a span waits for is not always time that can be won: of two jobs that run at once, and for
//! both of which the thread waits, the shorter one costs nothing. So each wait is asked when its end would
//! have come without the cause. A wait ends earlier by as much as the span's own thread set off the other
//! thread's work earlier, and by the cause's own time in the wait. Work that the span's own thread did not
//! set off ends when it ended.

use super::model::Model;
use super::split::OwnWait;
use crate::clock::Timestamp;
use crate::ids::Tid;

/// Changes of threads that are looked at for the wake-up that set off a thread's work. What began earlier
/// counts as work that the span's own thread did not set off.
const MAX_CHANGES: usize = 256;
/// A cause saves less than its time where at least one part in this many of it is lost.
const NOTED_LOSS: u64 = 20;

/// A wait of the span's own thread, and when it set off the work that it waited for.
#[derive(Debug, Clone, Copy)]
pub(super) struct JoinedWait {
    pub wait: OwnWait,
    /// `None`: the span's own thread did not set it off.
    pub set_off: Option<Timestamp>,
}

/// The time that one cause takes.
pub(super) struct CauseTime {
    pub ns: u64,
    /// By the number of a segment of the span, in order: ns.
    pub by_segment: Vec<(u32, u64)>,
    /// In order; the first ones where they are many.
    pub intervals: Vec<(Timestamp, Timestamp)>,
}

/// The time that a span would be shorter by, without a cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Saved {
    pub ns: u64,
    /// The thread whose work ran beside the cause and ended later, and by how much, ns; `None` where the
    /// whole time of the cause is saved.
    pub beside: Option<(Tid, u64)>,
}

impl CauseTime {
    /// The time of the cause before `until` in a segment that begins at `from` and ends at `to`.
    fn before(&self, until: Timestamp, from: Timestamp, to: Timestamp, segment_ns: u64) -> u64 {
        let listed: u64 = self.intervals.iter().map(|(begin, end)| *end - *begin).sum();
        if listed == self.ns {
            let within = |(begin, end): &(Timestamp, Timestamp)| (*end).min(until).since((*begin).max(from));
            return self.intervals.iter().map(within).sum();
        }
        let whole = u128::from(to.since(from)).max(1);
        (u128::from(segment_ns) * u128::from(until.since(from)) / whole) as u64
    }

    fn in_segment(&self, segment: usize) -> u64 {
        let at = self.by_segment.binary_search_by_key(&segment, |(segment, _)| *segment as usize);
        at.map_or(0, |at| self.by_segment[at].1)
    }
}

/// The time that a span from `begin` to `end` would be shorter by, without a cause.
pub(super) fn saved(waits: &[JoinedWait], cause: &CauseTime, begin: Timestamp, end: Timestamp) -> Saved {
    // How much earlier the span's own thread is: at the begin of each part between two waits.
    let mut earlier: Vec<(Timestamp, u64)> = Vec::with_capacity(waits.len() + 1);
    let mut shift = 0;
    let mut gap_begin = begin;
    let mut largest_loss = (0, None);
    for (at, JoinedWait { wait, set_off }) in waits.iter().enumerate() {
        earlier.push((gap_begin, shift));
        shift += cause.in_segment(2 * at);
        let base = set_off.map_or(0, |set_off| {
            let gap = earlier.partition_point(|(begin, _)| *begin <= set_off).saturating_sub(1);
            let (gap_from, before) = earlier[gap];
            let gap_to = waits[gap].wait.from;
            before + cause.before(set_off.min(gap_to), gap_from, gap_to, cause.in_segment(2 * gap))
        });
        let removed = cause.in_segment(2 * at + 1);
        let next = (shift + wait.to.since(wait.from)).min(base + removed);
        let loss = (shift + removed).saturating_sub(next);
        if loss > largest_loss.0 {
            let before = cause.intervals.iter().map(|(_, end)| *end).filter(|end| *end <= wait.from);
            let ended = before.max().unwrap_or(gap_begin);
            largest_loss = (loss, Some((wait.waker, wait.to.since(ended))));
        }
        shift = next;
        gap_begin = wait.to;
    }
    shift += cause.in_segment(2 * waits.len());
    let ns = shift.min(cause.ns).min(end.since(begin));
    let beside = largest_loss.1.filter(|_| cause.ns - ns > cause.ns / NOTED_LOSS);
    Saved { ns, beside }
}

impl Model {
    /// The waits of a span's own threads, and when these set off the work.
    pub(super) fn joined_waits(&self, waits: &[OwnWait], begin: Timestamp) -> Vec<JoinedWait> {
        let mut own: Vec<Tid> = waits.iter().map(|wait| wait.tid).collect();
        own.sort_unstable();
        own.dedup();
        let set_off = |wait: &OwnWait| self.set_off(wait.waker, wait.to, &own, begin);
        waits.iter().map(|wait| JoinedWait { wait: *wait, set_off: set_off(wait) }).collect()
    }

    /// When one of the threads `by` set off what `tid` did up to `until`: the last wake-up of it, or the last
    /// one of the thread that woke it, and so on. `None` where that was before `begin`, or somebody else did.
    fn set_off(&self, mut tid: Tid, mut until: Timestamp, by: &[Tid], begin: Timestamp) -> Option<Timestamp> {
        let mut left = MAX_CHANGES;
        loop {
            let thread = self.threads.get(&tid)?;
            let last = thread.change_at(until)?;
            let mut wakes = thread.changes[..=last].iter().rev().map(|change| {
                left = left.checked_sub(1)?;
                (change.since >= begin).then(|| thread.wake(change).filter(|wake| !self.is_device(wake)))
            });
            let wake = wakes.find_map(|wake| match wake {
                Some(None) => None,
                found => Some(found.flatten()),
            })??;
            if by.contains(&wake.waker) {
                return Some(wake.ts);
            }
            // A thread that wakes itself, or two that wake each other at one moment, lead nowhere.
            tid = wake.waker;
            until = Timestamp(wake.ts.0.checked_sub(1)?);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait(from: u64, to: u64, set_off: Option<u64>) -> JoinedWait {
        let from = Timestamp(from);
        let to = Timestamp(to);
        let wait = OwnWait { tid: Tid(1), from, to, waker: Tid(to.0 as i32) };
        JoinedWait { wait, set_off: set_off.map(Timestamp) }
    }

    fn saves(
        waits: &[JoinedWait],
        intervals: &[(u64, u64)],
        segments: &[(u32, u64)],
    ) -> (u64, Option<(i32, u64)>) {
        let ns = intervals.iter().map(|(begin, end)| end - begin).sum();
        let intervals = intervals.iter().map(|(begin, end)| (Timestamp(*begin), Timestamp(*end))).collect();
        let cause = CauseTime { ns, by_segment: segments.to_vec(), intervals };
        let Saved { ns, beside } = saved(waits, &cause, Timestamp(0), Timestamp(100));
        (ns, beside.map(|(tid, later)| (tid.0, later)))
    }

    /// The thread starts both jobs at 2 and 3, and waits for the short one up to 50, and then for the long
    /// one.
    #[test]
    fn of_two_jobs_that_run_at_once_the_shorter_one_saves_nothing() {
        let waits = [wait(5, 50, Some(2)), wait(50, 90, Some(3))];
        assert_eq!(saves(&waits, &[(5, 50)], &[(1, 45)]), (0, Some((90, 40))));
        assert_eq!(saves(&waits, &[(50, 90)], &[(3, 40)]), (40, None));
        // Without 2 of its own time both jobs begin earlier.
        assert_eq!(saves(&waits, &[(0, 2)], &[(0, 2)]), (2, None));
    }

    #[test]
    fn of_work_before_a_wait_that_others_set_off_nothing_is_saved() {
        assert_eq!(saves(&[wait(40, 60, None)], &[(0, 40)], &[(0, 40)]), (0, Some((60, 20))));
        assert_eq!(saves(&[wait(40, 60, Some(40))], &[(0, 40)], &[(0, 40)]), (40, None));
        // The half of it that comes before the other thread is woken.
        assert_eq!(saves(&[wait(40, 60, Some(20))], &[(0, 40)], &[(0, 40)]), (20, Some((60, 20))));
        assert_eq!(saves(&[wait(40, 60, None)], &[(70, 90)], &[(2, 20)]), (20, None));
    }
}
