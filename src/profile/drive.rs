//! Feeds a trace's records to what counts them: which records, with which times.

use std::ops::Range;

use super::machine::Ticks;
use crate::art::{ClockMode, Fixed, RecordLayout};
use crate::formats::art_method::body::{BlockCursor, FixedBody};
use crate::formats::art_method::ids::NONE;
use crate::formats::art_method::{Body, MethodTrace, Unwrap};

/// Where thread-CPU time is in [`Ticks`].
pub const CPU: usize = 0;
/// Where wall time is in [`Ticks`].
pub const WALL: usize = 1;

/// Which records count.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selection {
    /// Dense indexes of the threads that count; all where `None`.
    pub threads: Option<Vec<bool>>,
    /// From and to, ns since the trace's start, in wall time where the trace has it. What calls spend outside is cut
    /// off, and calls that lie outside as a whole do not count.
    pub window: Option<Range<u64>>,
}

impl Selection {
    /// Whether nothing is left out.
    pub fn is_all(&self) -> bool {
        self.threads.is_none() && self.window.is_none()
    }

    /// Whether a thread counts.
    pub fn has_thread(&self, thread: u32) -> bool {
        self.threads.as_ref().is_none_or(|t| t.get(thread as usize).copied().unwrap_or(false))
    }

    /// The same selection with its threads dealt out to at most `shares` shares of about as many records.
    pub fn deal(&self, trace: &MethodTrace<'_>, shares: usize) -> Vec<Selection> {
        let mut threads: Vec<_> = trace.threads().iter().map(|t| t.records).enumerate().collect();
        threads.retain(|(n, records)| *records > 0 && self.has_thread(*n as u32));
        // Where times may have wrapped, a thread's first event needs to know what came before it in other threads.
        if shares < 2 || threads.len() < 2 || trace.may_wrap() {
            return vec![self.clone()];
        }
        threads.sort_by_key(|(_, records)| std::cmp::Reverse(*records));
        let none =
            Selection { threads: Some(vec![false; trace.threads().len()]), window: self.window.clone() };
        let mut dealt = vec![(0, none); shares.min(threads.len())];
        for (thread, records) in threads {
            let Some((sum, share)) = dealt.iter_mut().min_by_key(|(sum, _)| *sum) else { break };
            *sum += records;
            if let Some(place) = share.threads.as_mut().and_then(|t| t.get_mut(thread)) {
                *place = true;
            }
        }
        dealt.into_iter().map(|(_, share)| share).collect()
    }
}

/// What undoing the wraps of 32-bit times needs to know, by thread.
#[derive(Debug)]
struct Clocks {
    threads: Vec<ThreadClock>,
    near: u64,
}

#[derive(Debug, Clone, Copy, Default)]
struct ThreadClock {
    seen: bool,
    last: [u32; 2],
    unwrap: [Unwrap; 2],
    wraps: Ticks,
}

impl Clocks {
    fn new(trace: &MethodTrace<'_>) -> Clocks {
        Clocks { threads: vec![ThreadClock::default(); trace.threads().len()], near: 0 }
    }

    fn take(&mut self, thread: u32, times: [u32; 2]) -> Ticks {
        let Some(clock) = self.threads.get_mut(thread as usize) else { return times.map(u64::from) };
        if !clock.seen || times[0] < clock.last[0] || times[1] < clock.last[1] {
            clock.turn(times, self.near);
        }
        clock.last = times;
        let at = [clock.wraps[0] + u64::from(times[0]), clock.wraps[1] + u64::from(times[1])];
        self.near = at[WALL];
        at
    }
}

impl ThreadClock {
    /// The thread's first event, or a clock that stepped back: maybe by a wrap.
    #[cold]
    fn turn(&mut self, times: [u32; 2], near: u64) {
        if !std::mem::replace(&mut self.seen, true) {
            self.unwrap[WALL] = Unwrap::nearest(times[WALL], near);
        }
        for clock in [CPU, WALL] {
            let full = self.unwrap[clock].step(self.last[clock], times[clock]);
            self.wraps[clock] = full - u64::from(times[clock]);
        }
    }
}

/// The longest time that a version 4 or 5 record is believed, ticks: 52 days in ns. Sums over many calls still fit.
const LONGEST: u64 = 1 << 52;

/// What takes records.
pub trait Feed {
    /// One record: the method is entered or, with `exit`, left. Indexes are dense.
    fn feed(&mut self, thread: u32, method: u32, exit: bool, at: Ticks);
    /// Time passes in a thread without a record.
    fn pass(&mut self, thread: u32, at: Ticks);
}

/// Feeds the selected records.
pub fn drive(trace: &MethodTrace<'_>, selection: &Selection, to: &mut impl Feed) {
    match selection.window.clone() {
        Some(window) => drive_threads(trace, selection, &mut Window::new(trace, window, to)),
        None => drive_threads(trace, selection, to),
    }
}

fn drive_threads(trace: &MethodTrace<'_>, selection: &Selection, to: &mut impl Feed) {
    match trace.body() {
        // One copy of the loop per layout, so that it is free of questions about it.
        Body::Fixed(body) => match (body.layout, trace.header().clock) {
            (RecordLayout::Dual, _) => {
                fixed::<14>(trace, body, selection, to, Fixed::dual, |r| [r.first, r.second])
            }
            (RecordLayout::Single, ClockMode::Wall) => {
                fixed::<10>(trace, body, selection, to, Fixed::single, |r| [0, r.first]);
            }
            (RecordLayout::Single, _) => {
                fixed::<10>(trace, body, selection, to, Fixed::single, |r| [r.first, 0])
            }
            (RecordLayout::Narrow, ClockMode::Wall) => {
                fixed::<9>(trace, body, selection, to, Fixed::narrow, |r| [0, r.first]);
            }
            (RecordLayout::Narrow, _) => {
                fixed::<9>(trace, body, selection, to, Fixed::narrow, |r| [r.first, 0])
            }
        },
        Body::Blocks(body) => {
            for (thread, record) in BlockCursor::new(trace.bytes(), body, trace.threads().len()) {
                if record.word & 3 != 3 && selection.has_thread(thread) {
                    let method = trace.ids().get(record.word);
                    to.feed(
                        thread,
                        method,
                        record.word & 3 != 0,
                        [record.cpu.min(LONGEST), record.wall.min(LONGEST)],
                    );
                }
            }
        }
    }
}

#[inline(always)]
fn fixed<const SIZE: usize>(
    trace: &MethodTrace<'_>,
    body: &FixedBody,
    selection: &Selection,
    to: &mut impl Feed,
    decode: impl Fn(&[u8; SIZE]) -> Fixed,
    times: impl Fn(&Fixed) -> [u32; 2],
) {
    let mut clocks = Clocks::new(trace);
    let mut table = trace.thread_table().clone();
    let (ids, may_wrap) = (trace.ids(), trace.may_wrap());
    // A thread that does not count has no clock, unless other threads need to know its times.
    if !may_wrap {
        table.retain(|index| selection.has_thread(index));
    }
    let all = selection.threads.is_none() || !may_wrap;
    for segment in &body.segments {
        for (id, index) in segment.binds.iter().filter(|(_, index)| may_wrap || selection.has_thread(*index))
        {
            table.bind(*id, *index);
        }
        for bytes in trace.bytes().get(segment.range.clone()).unwrap_or_default().as_chunks::<SIZE>().0 {
            let record = decode(bytes);
            let thread = table.get(record.thread);
            if thread == NONE {
                continue;
            }
            let times = times(&record);
            let at = match may_wrap {
                true => clocks.take(thread, times),
                false => times.map(u64::from),
            };
            // No match on the action: it would cost a jump that the processor guesses wrong every other time.
            if record.word & 3 != 3 && (all || selection.has_thread(thread)) {
                to.feed(thread, ids.get(u64::from(record.word)), record.word & 3 != 0, at);
            }
        }
    }
}

/// Cuts times to a window: time outside of it does not pass, and calls outside of it are not made.
struct Window<'a, F> {
    to_feed: &'a mut F,
    from: u64,
    to: u64,
    clock: usize,
    threads: Vec<WindowThread>,
}

#[derive(Clone, Default)]
struct WindowThread {
    last: Option<Ticks>,
    /// Time passed inside the window.
    spent: Ticks,
    /// Calls open before the window; handed over with the first event that time inside passes before.
    before: Vec<u32>,
    inside: bool,
}

impl<'a, F: Feed> Window<'a, F> {
    fn new(trace: &MethodTrace<'_>, window: Range<u64>, to_feed: &'a mut F) -> Self {
        let tick = trace.header().tick_ns.max(1);
        let clock = if trace.header().clock.has_wall() { WALL } else { CPU };
        let threads = vec![WindowThread::default(); trace.threads().len()];
        Window { to_feed, from: window.start / tick, to: window.end / tick, clock, threads }
    }
}

impl<F: Feed> Feed for Window<'_, F> {
    fn feed(&mut self, thread: u32, method: u32, exit: bool, at: Ticks) {
        let Some(state) = self.threads.get_mut(thread as usize) else { return };
        let now = at[self.clock];
        if now >= self.from && !state.inside {
            state.inside = true;
            for method in &state.before {
                self.to_feed.feed(thread, *method, false, [0; 2]);
            }
        }
        let last = state.last.replace(at).unwrap_or(at);
        let passed = now.saturating_sub(last[self.clock]);
        let inside = now.min(self.to).saturating_sub(last[self.clock].max(self.from)).min(passed);
        for clock in [CPU, WALL] {
            // The other clock's share of a step across the window's edge is taken in proportion.
            let step = u128::from(at[clock].saturating_sub(last[clock])) * u128::from(inside);
            state.spent[clock] += step.checked_div(u128::from(passed)).unwrap_or(0) as u64;
        }
        if !state.inside {
            if exit {
                let depth = state.before.iter().rposition(|m| *m == method);
                state.before.truncate(depth.unwrap_or(state.before.len()));
            } else {
                state.before.push(method);
            }
        } else if now < self.to {
            self.to_feed.feed(thread, method, exit, state.spent);
        } else {
            self.to_feed.pass(thread, state.spent);
        }
    }
    fn pass(&mut self, thread: u32, at: Ticks) {
        self.to_feed.pass(thread, at);
    }
}
