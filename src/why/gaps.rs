//! The time behind a missing switch, of the threads and the CPU that it concerns.

use super::cpu_history::CpuChange;
use super::missing_switches::LastOnCpu;
use super::model::{Model, SchedState};
use crate::clock::Timestamp;
use crate::ids::{Cpu, Tid};

impl Model {
    /// Switches are missing on a CPU between the last one and a later moment, at which it has the thread
    /// `left`. From the last event of the thread that was there nothing tells what it does, nor who has the
    /// CPU. A thread that came to an idle CPU has been there since the last event of the idle task.
    pub(super) fn add_missing_switch(&mut self, cpu: Cpu, last: &LastOnCpu, left: Tid) {
        let came = last.supposed.filter(|(tid, _)| *tid == left).map(|(_, since)| since);
        let Some(before) = last.switched_to else { return self.ran_at_first(cpu, left, came) };
        if !last.has_lost && before != Tid::IDLE {
            self.unlike_switches += 1;
        }
        if let Some(thread) = self.threads.get_mut(&before).filter(|_| before.is_thread()) {
            thread.is_unknown_on(cpu, last.ts);
        }
        let history = self.cpus.entry(cpu).or_default();
        history.changes.push(CpuChange { since: last.ts, tid: Tid::UNKNOWN, prio: None });
        if let Some(since) = came {
            history.changes.push(CpuChange { since, tid: left, prio: None });
        }
        if !left.is_thread() {
            return;
        }
        let thread = self.threads.entry(left).or_default();
        let known = thread.changes.last().map(|change| (change.state, change.since));
        let known_since = known.map_or(last.ts, |(_, since)| since.max(last.ts));
        if came.is_none_or(|since| since > known_since) && known.is_some() {
            thread.becomes_unknown(known_since);
        }
        if let Some(since) = came {
            thread.runs(since.max(known_since), cpu);
        }
    }

    /// The timeline, which begins at `first`, has ended: no switch on the CPU follows that would confirm a
    /// thread that had events there. Where switches are recorded and the CPU had none at all, it had one
    /// thread all the time.
    pub(super) fn close_cpu(&mut self, cpu: Cpu, last: &LastOnCpu, first: Timestamp) {
        let Some((tid, _)) = last.supposed.filter(|(tid, _)| tid.is_thread()) else { return };
        let known = self.threads.get(&tid).and_then(|thread| thread.changes.last()).copied();
        if known.is_some_and(|known| known.state == SchedState::Running) {
            return;
        }
        let has_switches = self.cpus.values().any(|cpu| !cpu.changes.is_empty());
        if last.switched_to.is_none() && known.is_none() && has_switches && !last.has_lost {
            self.threads.entry(tid).or_default().runs(first, cpu);
            let history = self.cpus.entry(cpu).or_default();
            history.changes.push(CpuChange { since: first, tid, prio: None });
        } else {
            self.add_missing_switch(cpu, last, tid);
        }
    }

    /// A thread had events on a CPU before the first switch there. Where its state is not known it ran before
    /// the recording began, and its first switch says so.
    fn ran_at_first(&mut self, cpu: Cpu, left: Tid, came: Option<Timestamp>) {
        let (Some(since), Some(thread)) = (came, self.threads.get_mut(&left)) else { return };
        let Some(known) = thread.changes.last().copied() else { return };
        if known.state != SchedState::Running {
            let since = since.max(known.since);
            thread.runs(since, cpu);
            self.cpus.entry(cpu).or_default().changes.push(CpuChange { since, tid: left, prio: None });
        }
    }
}
