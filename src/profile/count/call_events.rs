//! The begins and ends of calls in time order, thread by thread, for viewers that show calls in time order.

use super::call_stacks::{CallStacks, CallVisitor, OpenCall};
use super::selection::{ProfileSelection, stream};
use crate::formats::art_method::{CallAnomalies, MethodTrace, Ticks};
use crate::progress::Pass;

/// A call begins or ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallEvent {
    /// Time of the begin or end, in ticks of the chosen clock.
    pub at: u64,
    /// Dense method index.
    pub method: u32,
    /// Whether the call begins; otherwise it ends.
    pub begins: bool,
}

/// The calls of one thread.
#[derive(Debug, Clone, Default)]
pub struct ThreadCallEvents {
    /// Dense thread index.
    pub thread: u32,
    /// Time of the thread's first record, ticks.
    pub first: u64,
    /// Time of the thread's last record, ticks.
    pub last: u64,
    /// In time order; every call that begins also ends, innermost first.
    pub events: Vec<CallEvent>,
}

struct EventCollector {
    clock: usize,
    threads: Vec<ThreadCallEvents>,
    /// By thread: the methods whose calls had begun before the trace did, innermost first.
    unentered: Vec<Vec<u32>>,
}

impl EventCollector {
    fn push(&mut self, thread: u32, method: u32, begins: bool, at: Ticks) {
        self.threads[thread as usize].events.push(CallEvent { at: at[self.clock], method, begins });
    }
}

impl CallVisitor for EventCollector {
    fn enter(&mut self, thread: u32, method: u32, _: Option<&OpenCall>, at: Ticks) -> u32 {
        self.push(thread, method, true, at);
        0
    }

    fn leave(&mut self, thread: u32, call: &OpenCall, _: Ticks, at: Ticks) {
        self.push(thread, call.method, false, at);
    }

    fn leave_unentered(&mut self, thread: u32, method: u32, _: Ticks, _: Ticks, at: Ticks) {
        self.unentered[thread as usize].push(method);
        self.push(thread, method, false, at);
    }

    fn idle(&mut self, _: u32, _: Ticks) {}
}

/// Collects the calls of every thread that has any, in `clock` ([`CPU`](crate::formats::art_method::CPU) or
/// [`WALL`](crate::formats::art_method::WALL)). Calls that had begun before the trace did begin at their
/// thread's first record.
pub fn call_events(
    trace: &MethodTrace<'_>,
    selection: &ProfileSelection,
    clock: usize,
) -> (Vec<ThreadCallEvents>, CallAnomalies) {
    let count = trace.threads().len();
    let threads =
        (0..count as u32).map(|thread| ThreadCallEvents { thread, ..ThreadCallEvents::default() }).collect();
    let collector = EventCollector { clock, threads, unentered: vec![Vec::new(); count] };
    let mut stacks = CallStacks::new(count, collector);
    let _pass = Pass::begin("collecting calls", trace.record_bytes());
    stream(trace, selection, &mut stacks);
    stacks.finish(trace.may_wrap());
    let EventCollector { mut threads, unentered, .. } = stacks.visitor;
    for ((thread, unentered), state) in threads.iter_mut().zip(unentered).zip(&stacks.threads) {
        thread.first = state.first[clock];
        thread.last = state.last[clock];
        let at = thread.first;
        let begins = unentered.into_iter().rev().map(|method| CallEvent { at, method, begins: true });
        thread.events.splice(0..0, begins);
    }
    threads.retain(|thread| !thread.events.is_empty());
    (threads, stacks.anomalies)
}
