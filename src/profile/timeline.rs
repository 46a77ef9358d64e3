//! Calls in time order, for the viewers that keep it: each thread's openings and closings.

use super::drive::{Selection, drive};
use super::machine::{Frame, Machine, Ticks, Visitor};
use crate::formats::art_method::{CallAnomalies, MethodTrace};

/// A call begins or ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Change {
    /// When, in ticks of the chosen clock.
    pub at: u64,
    /// Dense method index.
    pub method: u32,
    /// Whether it begins.
    pub open: bool,
}

/// One thread's calls.
#[derive(Debug, Clone, Default)]
pub struct Lane {
    /// Dense thread index.
    pub thread: u32,
    /// Time of its first event.
    pub first: u64,
    /// Time of its last event.
    pub last: u64,
    /// In time order; every call that is opened is closed, innermost first.
    pub changes: Vec<Change>,
}

struct Collect {
    clock: usize,
    lanes: Vec<Lane>,
    /// By thread: methods whose entry is not in the trace, innermost first.
    orphans: Vec<Vec<u32>>,
}

impl Visitor for Collect {
    fn enter(&mut self, thread: u32, method: u32, _: Option<&Frame>, at: Ticks) -> u32 {
        self.lanes[thread as usize].changes.push(Change { at: at[self.clock], method, open: true });
        0
    }

    fn leave(&mut self, thread: u32, frame: &Frame, _: Ticks, at: Ticks) {
        let change = Change { at: at[self.clock], method: frame.method, open: false };
        self.lanes[thread as usize].changes.push(change);
    }

    fn orphan(&mut self, thread: u32, method: u32, _: Ticks, _: Ticks, at: Ticks) {
        self.orphans[thread as usize].push(method);
        self.lanes[thread as usize].changes.push(Change { at: at[self.clock], method, open: false });
    }

    fn idle(&mut self, _: u32, _: Ticks) {}
}

/// The calls of every thread that has any, and what did not fit together. A call whose entry is not in the trace is opened at the thread's first event.
pub fn lanes(trace: &MethodTrace<'_>, selection: &Selection, clock: usize) -> (Vec<Lane>, CallAnomalies) {
    let threads = trace.threads().len();
    let lanes = (0..threads as u32).map(|thread| Lane { thread, ..Lane::default() }).collect();
    let mut machine = Machine::new(threads, Collect { clock, lanes, orphans: vec![Vec::new(); threads] });
    drive(trace, selection, &mut machine);
    machine.finish(trace.may_wrap());
    let Collect { mut lanes, orphans, .. } = machine.visitor;
    for ((lane, orphans), state) in lanes.iter_mut().zip(orphans).zip(&machine.threads) {
        (lane.first, lane.last) = (state.first[clock], state.last[clock]);
        let at = lane.first;
        let opened = orphans.into_iter().rev().map(|method| Change { at, method, open: true });
        lane.changes.splice(0..0, opened);
    }
    lanes.retain(|lane| !lane.changes.is_empty());
    (lanes, machine.problems)
}
