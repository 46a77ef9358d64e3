//! The call stacks of all threads: turns records into calls with their times, and shows each call to a
//! visitor. One visitor collects the begins and ends of calls, thread by thread, for viewers that show calls
//! in time order.
//!
//! Two rules make the profile. [`exit_effect`] decides which calls a record ends. And the time between two
//! records of a thread counts for the call that is innermost between them, whatever the second record is.

use super::selection::{ProfileSelection, stream};
use super::{add, since};
use crate::formats::art_method::call_stack::{ExitEffect, exit_effect};
use crate::formats::art_method::records::{ExitBit, RecordSink};
use crate::formats::art_method::{CallAnomalies, MethodTrace, NONE, Ticks};
use crate::progress::Pass;

/// One open call.
#[derive(Debug, Clone, Copy)]
pub(in crate::profile) struct OpenCall {
    /// Dense method index.
    pub method: u32,
    /// The value that the visitor returned when the call began.
    pub tag: u32,
    /// The time at which the call began.
    pub entry: Ticks,
    /// The time spent so far in the call and not in calls inside of it.
    pub own: Ticks,
}

/// Receives the calls. `thread` is a dense index throughout.
pub(in crate::profile) trait CallVisitor {
    /// A call begins at `at`. The returned value comes back as [`OpenCall::tag`].
    fn enter(&mut self, thread: u32, method: u32, caller: Option<&OpenCall>, at: Ticks) -> u32;
    /// A call ends at `at`; `total` is its time with all calls inside of it.
    fn leave(&mut self, thread: u32, call: &OpenCall, total: Ticks, at: Ticks);
    /// A call ends at `at` that had begun before the trace did.
    fn leave_unentered(&mut self, thread: u32, method: u32, own: Ticks, total: Ticks, at: Ticks);
    /// The thread spends time outside of all traced calls.
    fn idle(&mut self, thread: u32, spent: Ticks);
}

/// The call stack of one thread.
#[derive(Debug, Clone, Default)]
pub(in crate::profile) struct ThreadCalls {
    /// Open calls, outermost first.
    open: Vec<OpenCall>,
    /// Time of the thread's first record.
    pub first: Ticks,
    /// Time of the thread's latest record.
    pub last: Ticks,
    seen: bool,
}

impl ThreadCalls {
    /// The time from the thread's first record to its latest one.
    pub(in crate::profile) fn total(&self) -> Ticks {
        since(self.last, self.first)
    }
}

/// The call stacks of all threads of a trace.
#[derive(Debug, Clone)]
pub(in crate::profile) struct CallStacks<V> {
    pub visitor: V,
    /// By dense thread index.
    pub threads: Vec<ThreadCalls>,
    pub anomalies: CallAnomalies,
    /// Calls that had begun before the trace did count from time 0, not from the thread's first record.
    pub unentered_from_zero: bool,
}

impl<V: CallVisitor> CallStacks<V> {
    /// Empty stacks for this many threads.
    pub(in crate::profile) fn new(threads: usize, visitor: V) -> CallStacks<V> {
        CallStacks {
            visitor,
            threads: vec![ThreadCalls::default(); threads],
            anomalies: CallAnomalies::default(),
            unentered_from_zero: false,
        }
    }

    /// Handles an exit from a method that is not the innermost call's.
    #[cold]
    #[inline(never)]
    fn irregular_exit(&mut self, thread: u32, method: u32, spent: Ticks, at: Ticks) {
        let state = &mut self.threads[thread as usize];
        match exit_effect(&state.open, method, |call| call.method, &mut self.anomalies) {
            ExitEffect::EndsCalls { depth } => {
                for call in state.open.drain(depth..).rev() {
                    self.visitor.leave(thread, &call, since(at, call.entry), at);
                }
            }
            ExitEffect::BeganBeforeTrace => {
                let from = if self.unentered_from_zero { [0; 2] } else { state.first };
                self.visitor.leave_unentered(thread, method, spent, since(at, from), at);
            }
            ExitEffect::Unmatched => {}
        }
    }

    /// Ends the calls that are open at each thread's last record. With `may_wrap`, the trace's 32-bit
    /// times may have wrapped, and the wraps are counted.
    pub(in crate::profile) fn finish(&mut self, may_wrap: bool) {
        for (thread, state) in self.threads.iter_mut().enumerate() {
            if may_wrap {
                self.anomalies.reached(state.last);
            }
            self.anomalies.open_at_end += state.open.len() as u64;
            while let Some(call) = state.open.pop() {
                self.visitor.leave(thread as u32, &call, since(state.last, call.entry), state.last);
            }
        }
    }
}

impl<V: CallVisitor> RecordSink for CallStacks<V> {
    #[inline(always)]
    fn record(&mut self, thread: u32, method: u32, exit: ExitBit, mut at: Ticks) {
        // Threads and methods were numbered when the file was opened. Where another program has overwritten
        // it since, it has others now.
        let Some(state) = self.threads.get_mut(thread as usize).filter(|_| method != NONE) else { return };
        if !state.seen {
            state.seen = true;
            state.first = at;
            state.last = at;
        }
        if at[0] < state.last[0] || at[1] < state.last[1] {
            self.anomalies.time_steps_back += 1;
            at = [at[0].max(state.last[0]), at[1].max(state.last[1])];
        }
        let spent = since(at, state.last);
        state.last = at;
        if !exit.leaves() {
            match state.open.last_mut() {
                Some(innermost) => add(&mut innermost.own, spent),
                None => self.visitor.idle(thread, spent),
            }
            let tag = self.visitor.enter(thread, method, state.open.last(), at);
            state.open.push(OpenCall { method, tag, entry: at, own: [0; 2] });
            return;
        }
        if let Some(innermost) = state.open.last_mut() {
            add(&mut innermost.own, spent);
            if innermost.method == method {
                let call = *innermost;
                state.open.pop();
                return self.visitor.leave(thread, &call, since(at, call.entry), at);
            }
        }
        self.irregular_exit(thread, method, spent, at);
    }

    fn advance(&mut self, thread: u32, at: Ticks) {
        let Some(state) = self.threads.get_mut(thread as usize).filter(|state| state.seen) else { return };
        let spent = since(at, state.last);
        add(&mut state.last, spent);
        match state.open.last_mut() {
            Some(innermost) => add(&mut innermost.own, spent),
            None => self.visitor.idle(thread, spent),
        }
    }
}

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
    /// By thread: the methods of calls that began before the trace, innermost first.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Entered(Vec<u32>);

    impl CallVisitor for Entered {
        fn enter(&mut self, _: u32, method: u32, _: Option<&OpenCall>, _: Ticks) -> u32 {
            self.0.push(method);
            0
        }

        fn leave(&mut self, _: u32, _: &OpenCall, _: Ticks, _: Ticks) {}

        fn leave_unentered(&mut self, _: u32, method: u32, _: Ticks, _: Ticks, _: Ticks) {
            self.0.push(method);
        }

        fn idle(&mut self, _: u32, _: Ticks) {}
    }

    #[test]
    fn a_record_of_a_file_that_was_overwritten_since_it_was_opened_is_left_out() {
        let mut stacks = CallStacks::new(1, Entered::default());
        let enter = ExitBit::ENTER;
        let exit = ExitBit::EXIT;
        for (thread, method, exit) in [(0, NONE, enter), (0, 5, enter), (0, NONE, exit), (7, 5, enter)] {
            stacks.record(thread, method, exit, [1; 2]);
        }
        assert_eq!(stacks.visitor.0, [5]);
        assert_eq!(stacks.threads[0].open.len(), 1);
    }
}
