//! The history of one CPU: its threads, the interrupts that it served, and its frequencies.

use super::names::NameId;
use crate::clock::Timestamp;
use crate::ids::Tid;

/// So many changes are forgotten together.
const MANY: usize = 64;

/// Which thread a CPU has from a moment on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CpuChange {
    pub since: Timestamp,
    pub tid: Tid,
    /// The kernel's priority of the thread, where it is known: below 100 is real-time, 120 is nice 0.
    pub prio: Option<i16>,
}

/// An interrupt that a CPU served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Interrupt {
    pub start: Timestamp,
    pub end: Timestamp,
    pub name: NameId,
}

/// The threads, interrupts and frequencies of one CPU.
#[derive(Debug, Default)]
pub(super) struct CpuHistory {
    pub changes: Vec<CpuChange>,
    /// In the order of their ends; one within another one comes before it.
    pub interrupts: Vec<Interrupt>,
    /// The frequency from each moment on, kHz.
    pub frequencies: Vec<(Timestamp, u32)>,
    /// The changes that stay, from the begin on.
    kept: usize,
}

impl CpuHistory {
    /// All that is there now stays.
    pub fn keep(&mut self) {
        self.kept = self.changes.len();
    }

    /// Forgets the changes between those that stay and the last one, where they are many.
    pub fn forget_old(&mut self) {
        let old = self.kept..self.changes.len().saturating_sub(1);
        if old.len() >= MANY {
            self.changes.drain(old);
        }
    }

    /// Calls `with` for each part of `from..to` in which the CPU has one thread; 0 is the idle task. `None`
    /// where it is not known.
    pub fn parts(
        &self,
        from: Timestamp,
        to: Timestamp,
        mut with: impl FnMut(Timestamp, Timestamp, Option<&CpuChange>),
    ) {
        let mut at = from;
        let mut next = self.changes.partition_point(|change| change.since <= from);
        while at < to {
            let until = self.changes.get(next).map_or(to, |change| change.since.min(to));
            if until > at {
                with(at, until, next.checked_sub(1).map(|before| &self.changes[before]));
            }
            at = until;
            next += 1;
        }
    }

    /// How long the CPU was idle from `from` to `to`, ns.
    pub fn idle_ns(&self, from: Timestamp, to: Timestamp) -> u64 {
        let mut ns = 0;
        self.parts(from, to, |begin, end, change| {
            if change.is_some_and(|change| change.tid == Tid::IDLE) {
                ns += end - begin;
            }
        });
        ns
    }

    /// The outermost interrupts that overlap `from..to`.
    pub fn interrupts_within(&self, from: Timestamp, to: Timestamp) -> impl Iterator<Item = &Interrupt> {
        let begin = self.interrupts.partition_point(|interrupt| interrupt.end <= from);
        self.interrupts[begin..].iter().take_while(move |interrupt| interrupt.start < to)
    }
}
