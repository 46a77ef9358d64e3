//! Which control group with a quota of CPU time a thread belongs to, and how long that keeps it from running.

use rustc_hash::FxHashMap;

use crate::clock::Timestamp;
use crate::ids::{Pid, Tid};
use crate::trace_dat::{CpuQuota, MachineFacts};

/// A control group that had used up its quota during the recording.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ThrottledGroup {
    hierarchy: i64,
    path: String,
    /// A thread that is ready for as long as this, ns, and does not run may not run: half of what the group
    /// waited each time.
    shortest_wait: u64,
}

impl ThrottledGroup {
    fn new(quota: &CpuQuota) -> Option<ThrottledGroup> {
        let each = quota.throttled_ns.checked_div(quota.throttled)?;
        // The kernel adds up what several CPUs waited in one period.
        let each = each.min(quota.period_us.saturating_mul(1000));
        Some(ThrottledGroup {
            hierarchy: quota.hierarchy.into(),
            path: quota.path.clone(),
            shortest_wait: each / 2,
        })
    }
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

    /// Whether a thread that is ready and does not run for `ns` from `ts` on is kept from it by the quota of
    /// its group. `process` gives the process of a thread.
    pub fn bars(&self, tid: Tid, ts: Timestamp, ns: u64, process: impl Fn(Tid) -> Option<Pid>) -> bool {
        let group = self.group(tid, ts, process).and_then(|group| self.groups.get(group));
        group.is_some_and(|group| ns >= group.shortest_wait.max(1))
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

    const NS: u64 = 10_000_000;

    #[test]
    fn a_thread_belongs_to_the_group_that_it_or_its_maker_was_moved_to() {
        let mut quotas = Quotas::new(Some(&facts(Vec::new())));
        quotas.moved(Timestamp(100), Tid(7), 1, b"/slow");
        quotas.moved(Timestamp(100), Tid(9), 2, b"/slow");
        quotas.born(Timestamp(200), Tid(8), Tid(7));
        quotas.moved(Timestamp(300), Tid(7), 1, b"/");
        let process = |tid: Tid| Some(if tid == Tid(70) { Pid(7) } else { Pid::of_main_thread(tid) });
        assert!(quotas.bars(Tid(7), Timestamp(150), NS, process));
        assert!(quotas.bars(Tid(70), Timestamp(150), NS, process), "a thread of the process");
        assert!(!quotas.bars(Tid(7), Timestamp(150), NS / 2, process), "others ran as long");
        assert!(!quotas.bars(Tid(7), Timestamp(50), NS, process), "not in the group yet");
        assert!(!quotas.bars(Tid(7), Timestamp(350), NS, process), "not in the group any more");
        assert!(quotas.bars(Tid(8), Timestamp(350), NS, process), "born in the group");
        assert!(!quotas.bars(Tid(9), Timestamp(150), NS, process), "a group of another hierarchy");
    }

    #[test]
    fn a_process_that_nothing_moved_is_in_the_group_that_it_has_at_the_end() {
        let quotas = Quotas::new(Some(&facts(vec![Pid(7)])));
        assert!(quotas.bars(Tid(70), Timestamp(150), NS, |_| Some(Pid(7))));
        assert!(!quotas.bars(Tid(70), Timestamp(150), NS, |_| None));
        assert!(!Quotas::new(None).bars(Tid(70), Timestamp(150), NS, |_| Some(Pid(7))));
    }
}
