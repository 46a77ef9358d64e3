//! When a control group had used up its quota of CPU time, by its own running time.
//!
//! The kernel gives a group its quota anew each period, at times that are a whole number of periods apart
//! (kernel/sched/fair.c, `sched_cfs_period_timer`). No event tells when: of many possible begins of the
//! periods the one counts that fits best to how often and for how long the group was throttled (`cpu.stat`).

use std::collections::BTreeMap;

use crate::clock::Timestamp;
use crate::trace_dat::CpuQuota;

/// From when to when.
pub(super) type TimeSpan = (Timestamp, Timestamp);

/// The kernel takes no shorter period, ns.
const SHORTEST_PERIOD: u64 = 1_000_000;
/// So many begins of the periods are tried at even distances.
const TRIED: u64 = 64;
/// So many begins of the periods are tried at which the group came to run again.
const TRIED_AT_BEGINS: usize = 256;
/// So many running times tell when periods begin.
const RUNS_TRIED: usize = 20_000;
/// More periods than this are not told apart.
const MAX_PERIODS: u64 = 4_000_000;
/// A group that has used all but a 20th of its quota, or all but this, ns, has used it up: what a CPU keeps
/// for itself is not given to another one.
const REST_NS: u64 = 500_000;

/// The quota of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Budget {
    quota_ns: u64,
    period_ns: u64,
    /// How often the group was throttled.
    throttled: u64,
    /// How long, on all CPUs together, ns.
    throttled_ns: u64,
}

impl Budget {
    /// `None` for a group that was never throttled.
    pub fn new(quota: &CpuQuota) -> Option<Budget> {
        let period_ns = quota.period_us.checked_mul(1000)?;
        let quota_ns = quota.quota_us.checked_mul(1000)?;
        let is_used = quota.throttled > 0 && quota_ns > 0 && period_ns >= SHORTEST_PERIOD;
        is_used.then_some(Budget {
            quota_ns,
            period_ns,
            throttled: quota.throttled,
            throttled_ns: quota.throttled_ns,
        })
    }

    /// When the group had used up its quota, in order, by the times in which its threads ran and in which
    /// they were ready.
    pub fn used_up(&self, mut runs: Vec<TimeSpan>, mut ready: Vec<TimeSpan>) -> Vec<TimeSpan> {
        runs.sort_unstable();
        ready.sort_unstable();
        let Some((first, last)) = runs.first().zip(runs.iter().map(|(_, end)| *end).max()) else {
            return Vec::new();
        };
        if last.since(first.0) / self.period_ns > MAX_PERIODS {
            return Vec::new();
        }
        let some = &runs[..runs.len().min(RUNS_TRIED)];
        let even = (0..TRIED).map(|at| self.period_ns / TRIED * at);
        let waits = some.windows(2).filter(|pair| pair[1].0 > pair[0].1 + self.period_ns / TRIED);
        let begins = waits.map(|pair| pair[1].0.0 % self.period_ns).take(TRIED_AT_BEGINS);
        let best = even.chain(begins).min_by_key(|phase| self.misfit(&self.barred(some, *phase), &ready));
        best.map_or(Vec::new(), |phase| self.barred(&runs, phase))
    }

    /// How far the times are from what the kernel has counted, ns.
    fn misfit(&self, barred: &[TimeSpan], ready: &[TimeSpan]) -> u64 {
        let mut count = 0_u64;
        let mut ns = 0_u64;
        let mut next = 0;
        for (start, end) in barred {
            while ready.get(next).is_some_and(|(_, until)| until <= start) {
                next += 1;
            }
            let within = ready[next..].iter().take_while(|(since, _)| since < end);
            let longest = within.map(|(since, until)| (*until).min(*end).since((*since).max(*start))).max();
            count += u64::from(longest.is_some());
            ns += longest.unwrap_or(0);
        }
        // The first and the last period may not be counted: the length of each one compares, not the sum.
        let each = (self.throttled_ns / self.throttled).min(self.period_ns);
        let lengths = ns.abs_diff(each.saturating_mul(count));
        count.abs_diff(self.throttled).saturating_mul(self.period_ns).saturating_add(lengths)
    }

    /// From when on, in each period, the group did not run any more because it had used up its quota, where a
    /// period begins `phase` after a whole number of periods. What the group has used too much, it has less
    /// in the periods that follow.
    fn barred(&self, runs: &[TimeSpan], phase: u64) -> Vec<TimeSpan> {
        // By the number of the period: what was used, and the last end of a running time.
        let mut periods: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
        for (start, end) in runs {
            let mut at = start.0;
            while at < end.0 {
                let number = (at + self.period_ns - phase) / self.period_ns;
                let until = (number * self.period_ns + phase).min(end.0);
                let (used, last_end) = periods.entry(number).or_default();
                *used += until - at;
                *last_end = until.max(*last_end);
                at = until;
            }
        }
        let rest = (self.quota_ns / 20).max(REST_NS.min(self.quota_ns / 5));
        let mut barred = Vec::new();
        let mut owed = 0_u64;
        let mut before = None;
        for (number, (used, last_end)) in periods {
            let unused = before.map_or(0, |before: u64| number - before - 1);
            owed = owed.saturating_sub(self.quota_ns.saturating_mul(unused)) + used;
            let end = number * self.period_ns + phase;
            if owed >= self.quota_ns - rest && last_end < end {
                barred.push((Timestamp(last_end), Timestamp(end)));
            }
            owed = owed.saturating_sub(self.quota_ns);
            before = Some(number);
        }
        barred
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn span(from: u64, to: u64) -> TimeSpan {
        (Timestamp(from * MS / 10), Timestamp(to * MS / 10))
    }

    /// Times in tenths of ms. A group may use 20 ms in 100 ms. It competes with others: in a period it runs
    /// four times for 5 ms, and waits for 5 ms in between; then it is throttled, and when the next period
    /// begins it waits for 3 ms.
    #[test]
    fn turns_of_others_are_no_throttling() {
        let budget =
            Budget { quota_ns: 20 * MS, period_ns: 100 * MS, throttled: 5, throttled_ns: 5 * 62 * MS };
        let mut runs = Vec::new();
        let mut ready = Vec::new();
        for period in 0..6 {
            let begin = 12_340 + period * 1000;
            ready.push(span(begin, begin + 30));
            for turn in 0..4 {
                let at = begin + 30 + turn * 100;
                runs.push(span(at, at + 50));
                ready.push(span(at + 50, if turn < 3 { at + 100 } else { begin + 1000 }));
            }
        }
        let barred = budget.used_up(runs, ready);
        let ms: u64 = barred.iter().map(|(start, end)| (*end - *start) / MS).sum();
        let planted = 6 * 62;
        assert!(ms.abs_diff(planted) <= 12, "{ms} ms: {barred:?}");
    }

    #[test]
    fn a_group_that_uses_less_is_not_throttled() {
        let budget = Budget { quota_ns: 20 * MS, period_ns: 100 * MS, throttled: 1, throttled_ns: MS };
        let runs = (0..10).map(|period| span(period * 1000, period * 1000 + 150)).collect();
        let ready = (0..10).map(|period| span(period * 1000 + 150, period * 1000 + 1000)).collect();
        assert_eq!(budget.used_up(runs, ready), []);
        assert_eq!(budget.used_up(Vec::new(), Vec::new()), []);
    }
}
