//! Streams the selected records of a trace, with their times, into a counter.

use std::ops::Range;

use crate::art::{ClockMode, FixedRecord, RecordLayout};
use crate::formats::art_method::body::{BlockBody, BlockCursor, FixedBody, parts};
use crate::formats::art_method::call_stack::{ExitEffect, exit_effect};
use crate::formats::art_method::ids::NONE;
use crate::formats::art_method::record_times::WrapCorrection;
use crate::formats::art_method::{Body, CPU, CallAnomalies, MethodTrace, Ticks, WALL};

/// The records of a trace that a profile counts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProfileSelection {
    /// For each dense thread index, whether the thread counts. `None` selects all threads.
    pub threads: Option<Vec<bool>>,
    /// Start and end, ns since the trace's start, in wall time where the trace has it. Time that calls spend
    /// outside of the window is cut off, and calls that lie wholly outside do not count.
    pub window: Option<Range<u64>>,
}

impl ProfileSelection {
    /// Whether the thread with this dense index counts.
    pub(super) fn has_thread(&self, thread: u32) -> bool {
        self.threads.as_ref().is_none_or(|t| t.get(thread as usize).copied().unwrap_or(false))
    }

    /// Splits the selected threads into at most `shares` selections with about the same number of records
    /// each.
    pub(super) fn partition(&self, trace: &MethodTrace<'_>, shares: usize) -> Vec<ProfileSelection> {
        let mut threads: Vec<_> = trace.threads().iter().map(|t| t.records).enumerate().collect();
        threads.retain(|(n, records)| *records > 0 && self.has_thread(*n as u32));
        // Where times may have wrapped, a thread's first record is placed by the records of other threads
        // before it.
        if shares < 2 || threads.len() < 2 || trace.may_wrap() {
            return vec![self.clone()];
        }
        threads.sort_by_key(|(_, records)| std::cmp::Reverse(*records));
        let empty = ProfileSelection {
            threads: Some(vec![false; trace.threads().len()]),
            window: self.window.clone(),
        };
        let mut parts = vec![(0, empty); shares.min(threads.len())];
        for (thread, records) in threads {
            let Some((sum, part)) = parts.iter_mut().min_by_key(|(sum, _)| *sum) else { break };
            *sum += records;
            if let Some(selected) = part.threads.as_mut().and_then(|t| t.get_mut(thread)) {
                *selected = true;
            }
        }
        parts.into_iter().map(|(_, part)| part).collect()
    }
}

/// Times of version 4 and 5 records are limited to this, ticks (52 days in ns), so that sums over many calls
/// fit.
const MAX_TICKS: u64 = 1 << 52;

/// 1 in a record that leaves its method, 0 in one that enters it.
///
/// It is a number that is calculated from the record's action, and not a `bool`: of a condition the compiler
/// makes jumps, which the processor predicts wrongly every other time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ExitBit(pub u64);

impl ExitBit {
    /// Enters the method.
    pub(super) const ENTER: ExitBit = ExitBit(0);
    /// Leaves the method.
    pub(super) const EXIT: ExitBit = ExitBit(1);

    /// The bit for the action in the low two bits of a method word: 0 enters; 1 and 2 leave.
    #[inline(always)]
    fn of_word(word: u64) -> ExitBit {
        ExitBit(((word & 3) + 3) >> 2)
    }

    /// Whether the record leaves its method.
    #[inline(always)]
    pub(super) fn leaves(self) -> bool {
        self != ExitBit::ENTER
    }
}

/// Receives the records of a trace. Thread and method indexes are dense.
pub(super) trait RecordSink {
    /// Receives one record: the thread enters the method or leaves it.
    fn record(&mut self, thread: u32, method: u32, exit: ExitBit, at: Ticks);
    /// Receives the time of a record that is itself left out: the thread's open calls go on until then.
    fn advance(&mut self, thread: u32, at: Ticks);
}

/// Streams the selected records into `sink`, in file order.
pub(super) fn stream(trace: &MethodTrace<'_>, selection: &ProfileSelection, sink: &mut impl RecordSink) {
    match selection.window.clone() {
        Some(window) => stream_body(trace, selection, &mut WindowFilter::new(trace, window, sink)),
        None => stream_body(trace, selection, sink),
    }
}

fn stream_body(trace: &MethodTrace<'_>, selection: &ProfileSelection, sink: &mut impl RecordSink) {
    let body = match trace.body() {
        Body::Fixed(body) => body,
        Body::Blocks(body) => return stream_blocks(trace, body, selection, sink),
    };
    // The compiler makes one copy of the loop for each layout and clock, so that the loop itself never asks
    // for them.
    let clock = trace.header().clock;
    match (body.layout, clock) {
        (RecordLayout::Dual, _) => {
            stream_fixed::<14>(trace, body, selection, sink, FixedRecord::dual, ClockMode::Dual);
        }
        (RecordLayout::Single, ClockMode::Wall) => {
            stream_fixed::<10>(trace, body, selection, sink, FixedRecord::single, ClockMode::Wall);
        }
        (RecordLayout::Single, _) => {
            stream_fixed::<10>(trace, body, selection, sink, FixedRecord::single, ClockMode::ThreadCpu);
        }
        (RecordLayout::Narrow, ClockMode::Wall) => {
            stream_fixed::<9>(trace, body, selection, sink, FixedRecord::narrow, ClockMode::Wall);
        }
        (RecordLayout::Narrow, _) => {
            stream_fixed::<9>(trace, body, selection, sink, FixedRecord::narrow, ClockMode::ThreadCpu);
        }
    }
}

fn stream_blocks(
    trace: &MethodTrace<'_>,
    body: &BlockBody,
    selection: &ProfileSelection,
    sink: &mut impl RecordSink,
) {
    let mut last = vec![None; trace.threads().len()];
    for (thread, record) in BlockCursor::new(trace.bytes(), body, trace.threads().len(), trace.may_wrap()) {
        if record.word & 3 != 3 && selection.has_thread(thread) {
            let at = [record.cpu.min(MAX_TICKS), record.wall.min(MAX_TICKS)];
            let exit = ExitBit::of_word(record.word);
            sink.record(thread, trace.ids().get(record.word), exit, at);
            last[thread as usize] = Some((exit, at));
        }
    }
    if trace.header().has_times() {
        return;
    }
    // Without times the wall time of a record counts the calls before it. A call that is the last record
    // counts too.
    for (thread, last) in last.into_iter().enumerate() {
        if let Some((ExitBit::ENTER, at)) = last {
            sink.advance(thread as u32, [at[CPU], at[WALL] + 1]);
        }
    }
}

#[inline(always)]
fn stream_fixed<const SIZE: usize>(
    trace: &MethodTrace<'_>,
    body: &FixedBody,
    selection: &ProfileSelection,
    sink: &mut impl RecordSink,
    decode: impl Fn(&[u8; SIZE]) -> FixedRecord,
    clock: ClockMode,
) {
    let mut wraps = WrapCorrection::new(trace.threads().len());
    let mut table = trace.thread_table().clone();
    let (ids, may_wrap) = (trace.ids(), trace.may_wrap());
    // Where times may have wrapped, the records of all threads are needed to follow the clocks.
    if !may_wrap {
        table.retain(|index| selection.has_thread(index));
    }
    let all = selection.threads.is_none() || !may_wrap;
    for segment in &body.segments {
        for (id, index) in segment.binds.iter().filter(|(_, index)| may_wrap || selection.has_thread(*index))
        {
            table.bind(*id, *index);
        }
        for part in parts(segment.range.clone(), SIZE) {
            for bytes in trace.bytes().get(part).unwrap_or_default().as_chunks::<SIZE>().0 {
                let record = decode(bytes);
                let thread = table.get(record.thread);
                // Records with the fourth action, which no runtime writes, are left out with their times.
                if thread == NONE || record.word & 3 == 3 {
                    continue;
                }
                let times = record.times(clock);
                let at = match may_wrap {
                    true => wraps.full_times(thread, times),
                    false => times.map(u64::from),
                };
                // A match on the action would cost a jump that the processor predicts wrongly every other
                // time.
                if all || selection.has_thread(thread) {
                    let word = u64::from(record.word);
                    sink.record(thread, ids.get(word), ExitBit::of_word(word), at);
                }
            }
        }
    }
}

/// Cuts records to a window of time. Time outside of the window does not count, and the sink receives no
/// calls that lie outside of it.
struct WindowFilter<'a, S> {
    sink: &'a mut S,
    from: u64,
    to: u64,
    clock: usize,
    threads: Vec<WindowThread>,
}

#[derive(Clone, Default)]
struct WindowThread {
    last: Option<Ticks>,
    /// Time that has passed inside of the window.
    spent: Ticks,
    /// Methods of the calls that are open before the window; the sink receives them when the window begins.
    open_before: Vec<u32>,
    inside: bool,
}

impl<'a, S: RecordSink> WindowFilter<'a, S> {
    fn new(trace: &MethodTrace<'_>, window_ns: Range<u64>, sink: &'a mut S) -> Self {
        let tick_ns = trace.header().tick_ns.max(1);
        let clock = if trace.header().clock.has_wall() { WALL } else { CPU };
        let threads = vec![WindowThread::default(); trace.threads().len()];
        WindowFilter { sink, from: window_ns.start / tick_ns, to: window_ns.end / tick_ns, clock, threads }
    }
}

impl WindowThread {
    /// Follows the calls before the window. Anomalies before the window are not counted.
    fn follow_before(&mut self, method: u32, exit: ExitBit) {
        if !exit.leaves() {
            return self.open_before.push(method);
        }
        match exit_effect(&self.open_before, method, |open| *open, &mut CallAnomalies::default()) {
            ExitEffect::EndsCalls { depth } => self.open_before.truncate(depth),
            ExitEffect::BeganBeforeTrace | ExitEffect::Unmatched => {}
        }
    }
}

impl<S: RecordSink> RecordSink for WindowFilter<'_, S> {
    fn record(&mut self, thread: u32, method: u32, exit: ExitBit, at: Ticks) {
        let Some(state) = self.threads.get_mut(thread as usize) else { return };
        let now = at[self.clock];
        if now >= self.from && !state.inside {
            state.inside = true;
            for method in &state.open_before {
                self.sink.record(thread, *method, ExitBit::ENTER, [0; 2]);
            }
        }
        let last = state.last.replace(at).unwrap_or(at);
        let passed = now.saturating_sub(last[self.clock]);
        let inside = now.min(self.to).saturating_sub(last[self.clock].max(self.from)).min(passed);
        for clock in [CPU, WALL] {
            // Where a step crosses the window's edge, the same share of it counts in both clocks.
            let step = u128::from(at[clock].saturating_sub(last[clock])) * u128::from(inside);
            state.spent[clock] += step.checked_div(u128::from(passed)).unwrap_or(0) as u64;
        }
        if !state.inside {
            state.follow_before(method, exit);
        } else if now < self.to {
            self.sink.record(thread, method, exit, state.spent);
        } else {
            self.sink.advance(thread, state.spent);
        }
    }

    fn advance(&mut self, thread: u32, at: Ticks) {
        self.sink.advance(thread, at);
    }
}
