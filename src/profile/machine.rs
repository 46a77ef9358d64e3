//! The stack machine: turns enter, exit and unroll records into calls with their times, whatever is counted from them.

use super::drive::Feed;
use crate::formats::art_method::CallAnomalies;

/// Times in the trace's two possible clocks, in ticks (µs for versions 1 to 3): first and second time of a record.
/// A file with one clock leaves the second at 0.
pub type Ticks = [u64; 2];

/// `a - b`, each clock for itself; 0 where a clock stepped back.
#[inline(always)]
pub fn since(a: Ticks, b: Ticks) -> Ticks {
    [a[0].saturating_sub(b[0]), a[1].saturating_sub(b[1])]
}

/// Adds `b` to `a`. Sums of a hostile file's times may wrap; they must not end the program.
#[inline(always)]
pub fn add(a: &mut Ticks, b: Ticks) {
    a[0] = a[0].wrapping_add(b[0]);
    a[1] = a[1].wrapping_add(b[1]);
}

/// One open call.
#[derive(Debug, Clone, Copy)]
pub struct Frame {
    /// Dense method index.
    pub method: u32,
    /// What the visitor gave it.
    pub tag: u32,
    /// When it was entered.
    pub entry: Ticks,
    /// Time spent in it and not in what it called, so far.
    pub own: Ticks,
}

/// What is made of the calls. `thread` is a dense index throughout.
pub trait Visitor {
    /// A method is entered; what is returned comes back as [`Frame::tag`].
    fn enter(&mut self, thread: u32, method: u32, caller: Option<&Frame>, at: Ticks) -> u32;
    /// A call ended at `at`; `total` is its time with all it called.
    fn leave(&mut self, thread: u32, frame: &Frame, total: Ticks, at: Ticks);
    /// An exit of a method whose entry is not in the trace: it had been running since the thread's first event.
    fn orphan(&mut self, thread: u32, method: u32, own: Ticks, total: Ticks, at: Ticks);
    /// Time of a thread outside of any traced call.
    fn idle(&mut self, thread: u32, spent: Ticks);
}

/// One thread's state.
#[derive(Debug, Clone, Default)]
pub struct ThreadState {
    /// Open calls, outermost first.
    pub stack: Vec<Frame>,
    /// Time of the thread's first event.
    pub first: Ticks,
    /// Time of its last event so far.
    pub last: Ticks,
    /// Whether it had an event.
    pub seen: bool,
}

impl ThreadState {
    /// From the thread's first event to its last.
    pub fn total(&self) -> Ticks {
        since(self.last, self.first)
    }
}

/// The machine over all threads.
#[derive(Debug, Clone)]
pub struct Machine<V> {
    /// What is made of the calls.
    pub visitor: V,
    /// By dense thread index.
    pub threads: Vec<ThreadState>,
    /// What did not fit together.
    pub problems: CallAnomalies,
    /// When calls whose entry is not in the trace are taken to have begun: at the thread's first event, or at time 0.
    pub orphans_from_zero: bool,
}

impl<V: Visitor> Machine<V> {
    /// A machine for this many threads.
    pub fn new(threads: usize, visitor: V) -> Machine<V> {
        Machine {
            visitor,
            threads: vec![ThreadState::default(); threads],
            problems: CallAnomalies::default(),
            orphans_from_zero: false,
        }
    }

    /// An exit of another method than the innermost open one: either exits are missing, or this one is too much.
    #[cold]
    #[inline(never)]
    fn mismatch(&mut self, thread: u32, method: u32, at: Ticks) {
        let stack = &mut self.threads[thread as usize].stack;
        let Some(depth) = stack.iter().rposition(|frame| frame.method == method) else {
            self.problems.unmatched_exits += 1;
            return;
        };
        self.problems.missing_exits += (stack.len() - depth - 1) as u64;
        for frame in stack.drain(depth..).rev() {
            self.visitor.leave(thread, &frame, since(at, frame.entry), at);
        }
    }

    /// Closes what is open at each thread's last event: the end of the trace, whose 32-bit times may have wrapped.
    pub fn finish(&mut self, may_wrap: bool) {
        for (thread, state) in self.threads.iter_mut().enumerate() {
            if may_wrap {
                self.problems.reached(state.last);
            }
            self.problems.open_at_end += state.stack.len() as u64;
            while let Some(frame) = state.stack.pop() {
                self.visitor.leave(thread as u32, &frame, since(state.last, frame.entry), state.last);
            }
        }
    }
}

impl<V: Visitor> Feed for Machine<V> {
    #[inline(always)]
    fn feed(&mut self, thread: u32, method: u32, exit: bool, mut at: Ticks) {
        let Some(state) = self.threads.get_mut(thread as usize) else { return };
        if !state.seen {
            state.seen = true;
            state.first = at;
            state.last = at;
        }
        if at[0] < state.last[0] || at[1] < state.last[1] {
            self.problems.time_steps_back += 1;
            at = [at[0].max(state.last[0]), at[1].max(state.last[1])];
        }
        let spent = since(at, state.last);
        state.last = at;
        if !exit {
            match state.stack.last_mut() {
                Some(top) => add(&mut top.own, spent),
                None => self.visitor.idle(thread, spent),
            }
            let tag = self.visitor.enter(thread, method, state.stack.last(), at);
            state.stack.push(Frame { method, tag, entry: at, own: [0; 2] });
        } else if let Some(top) = state.stack.last_mut() {
            add(&mut top.own, spent);
            if top.method == method {
                let frame = *top;
                state.stack.pop();
                self.visitor.leave(thread, &frame, since(at, frame.entry), at);
            } else {
                self.mismatch(thread, method, at);
            }
        } else {
            self.problems.exits_without_enter += 1;
            let from = if self.orphans_from_zero { [0; 2] } else { state.first };
            self.visitor.orphan(thread, method, spent, since(at, from), at);
        }
    }

    fn pass(&mut self, thread: u32, at: Ticks) {
        let Some(state) = self.threads.get_mut(thread as usize).filter(|state| state.seen) else { return };
        let spent = since(at, state.last);
        add(&mut state.last, spent);
        match state.stack.last_mut() {
            Some(top) => add(&mut top.own, spent),
            None => self.visitor.idle(thread, spent),
        }
    }
}
