//! Which control group with a quota of CPU time a thread belongs to, and how long that keeps it from running.

use rustc_hash::FxHashMap;

use super::cpu_budget::{Budget, TimeSpan};
use crate::clock::Timestamp;
use crate::ids::{Pid, Tid};
use crate::trace_dat::{CpuQuota, MachineFacts};

/// A control group that had used up its quota during the recording.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ThrottledGroup {
    hierarchy: i64,
    path: String,
    budget: Budget,
    /// When the group had used up its quota, in order.
    barred: Vec<TimeSpan>,
}

impl ThrottledGroup {
    fn new(quota: &CpuQuota) -> Option<ThrottledGroup> {
        let budget = Budget::new(quota)?;
        Some(ThrottledGroup {
            hierarchy: quota.hierarchy.into(),
            path: quota.path.clone(),
            budget,
            barred: Vec::new(),
        })
    }
}

/// A time in which a thread ran, or was ready and did not run.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReadyTime {
    pub tid: Tid,
    pub span: TimeSpan,
    pub is_running: bool,
}

/// The groups with a quota that was used up, and who belonged to them when.
#[derive(Debug, Default)]
pub(super) struct Quotas {
    groups: Vec<ThrottledGroup>,
    /// By thread: from each time on the number of its group, where that has a quota.
    moves: FxHashMap<Tid, Vec<(Timestamp, Option<usize>)>>,
    /// The makers of new threads, and when.
    makers: FxHashMap<Tid, (Tid, Timestamp)>,
    /// The groups of processes at the end of the recording.
    last: FxHashMap<Pid, usize>,
}

/// How far the makers of a process are followed.
const MAX_GENERATIONS: usize = 16;

impl Quotas {
    pub fn new(facts: Option<&MachineFacts>) -> Quotas {
        let mut quotas = Quotas::default();
        for quota in facts.iter().flat_map(|facts| &facts.quotas) {
            let Some(group) = ThrottledGroup::new(quota) else { continue };
            quotas.last.extend(quota.processes.iter().map(|pid| (*pid, quotas.groups.len())));
            quotas.groups.push(group);
        }
        quotas
    }

    /// A thread is moved to a group: `cgroup_attach_task`.
    pub fn moved(&mut self, ts: Timestamp, tid: Tid, hierarchy: i64, path: &[u8]) {
        if self.groups.iter().any(|group| group.hierarchy == hierarchy) {
            let fits = |group: &ThrottledGroup| group.hierarchy == hierarchy && group.path.as_bytes() == path;
            self.moves.entry(tid).or_default().push((ts, self.groups.iter().position(fits)));
        }
    }

    /// A thread comes to be in the group of its maker.
    pub fn born(&mut self, ts: Timestamp, child: Tid, maker: Tid) {
        if !self.groups.is_empty() {
            self.makers.insert(child, (maker, ts));
        }
    }

    /// Whether no group had used up its quota.
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// Finds when each group had used up its quota, from all that threads ran and were ready. `process` gives
    /// the process of a thread.
    pub fn find_barred(&mut self, times: &[ReadyTime], process: impl Fn(Tid) -> Option<Pid>) {
        let mut of_groups = vec![(Vec::new(), Vec::new()); self.groups.len()];
        for time in times {
            if let Some(group) = self.group(time.tid, time.span.0, &process) {
                let (runs, ready) = &mut of_groups[group];
                if time.is_running { runs.push(time.span) } else { ready.push(time.span) }
            }
        }
        for (group, (runs, ready)) in self.groups.iter_mut().zip(of_groups) {
            group.barred = group.budget.used_up(runs, ready);
        }
    }

    /// The times from `from` to `to` in which the group of a thread that is ready since `from` had used up
    /// its quota.
    pub fn barred(
        &self,
        tid: Tid,
        from: Timestamp,
        to: Timestamp,
        process: impl Fn(Tid) -> Option<Pid>,
    ) -> impl Iterator<Item = TimeSpan> {
        let group = self.group(tid, from, process).and_then(|group| self.groups.get(group));
        let barred = group.map_or(&[][..], |group| &group.barred[..]);
        let first = barred.partition_point(|(_, end)| *end <= from);
        barred[first..].iter().copied().take_while(move |(start, _)| *start < to)
    }

    fn group(&self, tid: Tid, ts: Timestamp, process: impl Fn(Tid) -> Option<Pid>) -> Option<usize> {
        if self.groups.is_empty() {
            return None;
        }
        let mut tid = tid;
        let mut ts = ts;
        for _ in 0..MAX_GENERATIONS {
            let process = process(tid);
            let main = process.map(Pid::main_thread);
            for member in [Some(tid), main].into_iter().flatten() {
                let before = self
                    .moves
                    .get(&member)
                    .map_or(&[][..], |moves| &moves[..moves.partition_point(|(since, _)| *since <= ts)]);
                if let Some((_, group)) = before.last() {
                    return *group;
                }
            }
            let maker = self.makers.get(&main.unwrap_or(tid)).or_else(|| self.makers.get(&tid));
            let Some((maker, born)) = maker.filter(|(_, born)| *born <= ts) else {
                let is_moved = |tid: Tid| self.moves.contains_key(&tid);
                return match process {
                    Some(process) if !is_moved(process.main_thread()) && !is_moved(tid) => {
                        self.last.get(&process).copied()
                    }
                    _ => None,
                };
            };
            tid = *maker;
            ts = *born;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// A group that may use 5 ms in 20 ms.
    fn facts(processes: Vec<Pid>) -> MachineFacts {
        let quota = CpuQuota {
            hierarchy: 1,
            path: "/slow".into(),
            quota_us: 5000,
            period_us: 20_000,
            throttled: 4,
            throttled_ns: 60_000_000,
            processes,
        };
        MachineFacts { quotas: vec![quota], ..MachineFacts::default() }
    }

    fn span(from_ms: u64, to_ms: u64) -> TimeSpan {
        (Timestamp(from_ms * MS), Timestamp(to_ms * MS))
    }

    /// The thread runs for 5 ms of each period, and is ready for the rest.
    fn throttled(tid: Tid) -> Vec<ReadyTime> {
        let periods = (0..4).flat_map(|period| {
            let begin = 103 + period * 20;
            let time = |span, is_running| ReadyTime { tid, span, is_running };
            [time(span(begin, begin + 5), true), time(span(begin + 5, begin + 20), false)]
        });
        periods.collect()
    }

    fn barred(quotas: &mut Quotas, tid: Tid, process: impl Fn(Tid) -> Option<Pid>) -> u64 {
        quotas.find_barred(&throttled(tid), &process);
        let (from, to) = span(100, 200);
        quotas.barred(tid, from, to, &process).map(|(start, end)| (end - start) / MS).sum()
    }

    #[test]
    fn a_thread_belongs_to_the_group_that_it_or_its_maker_was_moved_to() {
        let mut quotas = Quotas::new(Some(&facts(Vec::new())));
        let at = |ms: u64| Timestamp(ms * MS);
        quotas.moved(at(50), Tid(7), 1, b"/slow");
        quotas.moved(at(50), Tid(9), 2, b"/slow");
        quotas.born(at(60), Tid(8), Tid(7));
        let process = |tid: Tid| Some(if tid == Tid(70) { Pid(7) } else { Pid::of_main_thread(tid) });
        assert_eq!(barred(&mut quotas, Tid(7), process), 60);
        assert_eq!(barred(&mut quotas, Tid(70), process), 60, "a thread of the process");
        assert_eq!(barred(&mut quotas, Tid(9), process), 0, "a group of another hierarchy");
        quotas.moved(at(70), Tid(7), 1, b"/");
        assert_eq!(barred(&mut quotas, Tid(7), process), 0, "not in the group any more");
        assert_eq!(barred(&mut quotas, Tid(8), process), 60, "born in the group");
    }

    #[test]
    fn a_process_that_nothing_moved_is_in_the_group_that_it_has_at_the_end() {
        let mut quotas = Quotas::new(Some(&facts(vec![Pid(7)])));
        assert_eq!(barred(&mut quotas, Tid(70), |_| Some(Pid(7))), 60);
        assert_eq!(barred(&mut quotas, Tid(70), |_| None), 0);
        assert_eq!(barred(&mut Quotas::new(None), Tid(70), |_| Some(Pid(7))), 0);
    }
}
