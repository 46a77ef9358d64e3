//! The records of a trace that a profile counts: those of some threads, cut to a window of time.

use std::ops::Range;

use crate::formats::art_method::call_stack::{ExitEffect, exit_effect};
use crate::formats::art_method::records::{ExitBit, RecordSink, SelectedThreads, stream as stream_records};
use crate::formats::art_method::{CPU, CallAnomalies, MethodTrace, Ticks, WALL};

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
    fn selected_threads(&self) -> SelectedThreads<'_> {
        SelectedThreads(self.threads.as_deref())
    }

    /// Whether the thread with this dense index counts.
    pub(in crate::profile) fn has_thread(&self, thread: u32) -> bool {
        self.selected_threads().has(thread)
    }

    /// Splits the selected threads into at most `shares` selections with about the same number of records
    /// each.
    pub(in crate::profile) fn partition(
        &self,
        trace: &MethodTrace<'_>,
        shares: usize,
    ) -> Vec<ProfileSelection> {
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

/// Streams the selected records into `sink`, in file order.
pub(in crate::profile) fn stream(
    trace: &MethodTrace<'_>,
    selection: &ProfileSelection,
    sink: &mut impl RecordSink,
) {
    let threads = selection.selected_threads();
    match selection.window.clone() {
        Some(window) => stream_records(trace, threads, &mut RecordWindow::new(trace, window, sink)),
        None => stream_records(trace, threads, sink),
    }
}

/// Cuts records to a window of time. Time outside of the window does not count, and the sink receives no
/// calls that lie outside of it.
struct RecordWindow<'a, S> {
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

impl<'a, S: RecordSink> RecordWindow<'a, S> {
    fn new(trace: &MethodTrace<'_>, window_ns: Range<u64>, sink: &'a mut S) -> Self {
        let tick_ns = trace.header().tick_ns.max(1);
        let clock = if trace.header().clock.has_wall() { WALL } else { CPU };
        let threads = vec![WindowThread::default(); trace.threads().len()];
        RecordWindow { sink, from: window_ns.start / tick_ns, to: window_ns.end / tick_ns, clock, threads }
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

impl<S: RecordSink> RecordSink for RecordWindow<'_, S> {
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
