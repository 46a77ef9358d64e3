//! The flat profile: calls and times of each method, in both clocks, on several processors.
//!
//! This file follows call stacks by the same rules as `call_stacks`, in the one form that has no branch on
//! whether a record enters or leaves a method: the processor predicts such a branch wrongly half of the
//! time, and with it a profile takes three times as long. Only the regular path is written again here;
//! exits from a method that is not the innermost call's go through `exit_effect` like everywhere else. A
//! test below compares the two forms on generated traces, and the corpus tests and the fuzzer compare them
//! on real and damaged ones.

use std::hint::select_unpredictable;

use rustc_hash::FxHashMap;

use super::selection::{ProfileSelection, stream};
use super::{add, since};
use crate::formats::art_method::call_stack::{ExitEffect, exit_effect};
use crate::formats::art_method::records::{ExitBit, RecordSink};
use crate::formats::art_method::{CallAnomalies, MAX_WORKERS, MethodTrace, Ticks};
use crate::progress::Pass;
use crate::workers::{run_parts, worker_count};

/// The figures of one method; times in ticks of the trace.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MethodStat {
    /// Calls while no other call of the same method was open in the thread.
    pub calls: u64,
    /// Calls from within the method itself, directly or not.
    pub recursive: u64,
    /// Time in the method and not in the methods it called.
    pub exclusive: Ticks,
    /// Time in the method and in all methods it called. Of a recursion only the outermost call counts.
    pub inclusive: Ticks,
}

impl MethodStat {
    pub(in crate::profile) fn add(&mut self, other: &MethodStat) {
        self.calls += other.calls;
        self.recursive += other.recursive;
        add(&mut self.exclusive, other.exclusive);
        add(&mut self.inclusive, other.inclusive);
    }

    pub(in crate::profile) fn is_empty(&self) -> bool {
        self.calls + self.recursive == 0
    }
}

/// The figures of one thread; times in ticks of the trace.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ThreadStat {
    /// Calls, recursive ones included.
    pub calls: u64,
    /// Time from the thread's first record to its last.
    pub total: Ticks,
    /// The part of `total` outside of all traced calls.
    pub idle: Ticks,
    /// Time of the first record.
    pub first: Ticks,
}

/// The flat profile of a trace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FlatProfile {
    /// By dense method index.
    pub methods: Vec<MethodStat>,
    /// By dense thread index.
    pub threads: Vec<ThreadStat>,
    /// Irregularities of the records.
    pub anomalies: CallAnomalies,
}

/// With fewer records than this a second thread gains nothing.
const PARALLEL_FROM_RECORDS: u64 = 100_000;

impl FlatProfile {
    /// Profiles the selected records. The threads of the trace are distributed over the processors.
    pub fn from_trace(trace: &MethodTrace<'_>, selection: &ProfileSelection) -> FlatProfile {
        FlatProfile::run(trace, selection, trace.methods().len(), None)
    }

    /// Profiles groups of methods as if each group were one method. `groups` gives each method's group, of
    /// which there are `count`. A call from one method of a group to another then counts as a recursive call.
    pub(in crate::profile) fn from_groups(
        trace: &MethodTrace<'_>,
        selection: &ProfileSelection,
        groups: &[u32],
        count: usize,
    ) -> FlatProfile {
        FlatProfile::run(trace, selection, count, Some(groups))
    }

    fn run(
        trace: &MethodTrace<'_>,
        selection: &ProfileSelection,
        methods: usize,
        groups: Option<&[u32]>,
    ) -> FlatProfile {
        let workers =
            if trace.counts().records < PARALLEL_FROM_RECORDS { 1 } else { worker_count(MAX_WORKERS) };
        let parts = selection.partition(trace, workers);
        // Each part passes over all records.
        let _pass = Pass::begin("profiling", trace.record_bytes() * parts.len() as u64);
        if PackedTicks::hold(trace, selection) {
            collect(run_parts(&parts, |part| count_part::<PackedTicks>(trace, part, methods, groups)))
        } else {
            collect(run_parts(&parts, |part| count_part::<Ticks>(trace, part, methods, groups)))
        }
    }
}

fn count_part<T: TimePair>(
    trace: &MethodTrace<'_>,
    part: &ProfileSelection,
    methods: usize,
    groups: Option<&[u32]>,
) -> FlatCounter<T> {
    let mut counter = FlatCounter::new(trace.threads().len(), methods);
    match groups {
        Some(groups) => stream(trace, part, &mut GroupedCounter { groups, counter: &mut counter }),
        None => stream(trace, part, &mut counter),
    }
    counter.finish(trace.may_wrap());
    counter
}

fn collect<T: TimePair>(counters: Vec<FlatCounter<T>>) -> FlatProfile {
    let mut flat = FlatProfile::default();
    for mut counter in counters {
        counter.stats.truncate(counter.methods);
        if flat.methods.is_empty() {
            flat.methods = counter.stats;
        } else {
            flat.methods.iter_mut().zip(&counter.stats).for_each(|(sum, stat)| sum.add(stat));
        }
        flat.threads.resize(counter.threads.len(), ThreadStat::default());
        for (figures, thread) in flat.threads.iter_mut().zip(&counter.threads).filter(|(_, t)| t.is_seen()) {
            *figures = thread.figures();
        }
        flat.anomalies.add(counter.anomalies);
    }
    flat
}

/// Both times of a record, or both of a sum or a difference of times, in the form that the flat profile
/// calculates with: as two numbers of 64 bits, or as the two halves of one. Records of versions 1 to 3 have
/// 32 bits for each time, so that one addition or subtraction serves both clocks.
trait TimePair: Copy + Default {
    /// Takes over times in ticks.
    fn from_ticks(at: Ticks) -> Self;
    /// The times in ticks.
    fn ticks(self) -> Ticks;
    /// Whether this time is earlier than `other` in either clock.
    fn is_before(self, other: Self) -> bool;
    /// The sum in both clocks.
    fn plus(self, more: Self) -> Self;
    /// The difference in both clocks. It has no meaning where this time is earlier.
    fn minus(self, earlier: Self) -> Self;
    /// The bits that `mask` has.
    fn masked(self, mask: u64) -> Self;
}

impl TimePair for Ticks {
    #[inline(always)]
    fn from_ticks(at: Ticks) -> Ticks {
        at
    }

    #[inline(always)]
    fn ticks(self) -> Ticks {
        self
    }

    #[inline(always)]
    fn is_before(self, other: Ticks) -> bool {
        self[0] < other[0] || self[1] < other[1]
    }

    #[inline(always)]
    fn plus(self, more: Ticks) -> Ticks {
        [self[0].wrapping_add(more[0]), self[1].wrapping_add(more[1])]
    }

    #[inline(always)]
    fn minus(self, earlier: Ticks) -> Ticks {
        [self[0].wrapping_sub(earlier[0]), self[1].wrapping_sub(earlier[1])]
    }

    #[inline(always)]
    fn masked(self, mask: u64) -> Ticks {
        [self[0] & mask, self[1] & mask]
    }
}

/// Two times below 2^32 ticks in one number: the first in the low half, the second in the high half.
///
/// No half overflows into the other: a time is only subtracted from a later one, and only the times of calls
/// that follow each other within one call are added.
#[derive(Debug, Clone, Copy, Default)]
struct PackedTicks(u64);

impl PackedTicks {
    /// Whether all times of the selected records are below 2^32 ticks.
    fn hold(trace: &MethodTrace<'_>, selection: &ProfileSelection) -> bool {
        // The time inside of a window is a sum of steps, which may be longer where the clock was set back.
        trace.has_fixed_records() && !trace.may_wrap() && selection.window.is_none()
    }
}

impl TimePair for PackedTicks {
    #[inline(always)]
    fn from_ticks(at: Ticks) -> PackedTicks {
        PackedTicks(at[0] | at[1] << 32)
    }

    #[inline(always)]
    fn ticks(self) -> Ticks {
        [self.0 & u64::from(u32::MAX), self.0 >> 32]
    }

    #[inline(always)]
    fn is_before(self, other: PackedTicks) -> bool {
        // Where the high halves are equal, the second comparison is that of the low halves again.
        (self.0 as u32) < other.0 as u32 || self.0 < other.0
    }

    #[inline(always)]
    fn plus(self, more: PackedTicks) -> PackedTicks {
        PackedTicks(self.0.wrapping_add(more.0))
    }

    #[inline(always)]
    fn minus(self, earlier: PackedTicks) -> PackedTicks {
        PackedTicks(self.0.wrapping_sub(earlier.0))
    }

    #[inline(always)]
    fn masked(self, mask: u64) -> PackedTicks {
        PackedTicks(self.0 & mask)
    }
}

/// One open call.
#[derive(Debug, Clone, Copy, Default)]
struct FlatFrame<T> {
    /// Time of the record that entered the method.
    entry: T,
    /// Time of the calls inside that have ended.
    inner: T,
    /// Dense method index, with the bit [`RECURSIVE`].
    method: u32,
}

/// The method of the frame at the bottom of each thread's stack, below all calls: no method has this index.
const OUTSIDE: u32 = u32::MAX >> 1;

/// The bit of a frame whose method has another open call further out.
const RECURSIVE: u32 = 1 << 31;

/// The frames below a thread's first call: the caller of [`OUTSIDE`], of which nothing is known, and
/// [`OUTSIDE`] itself.
const FRAMES_BELOW: usize = 2;

#[derive(Debug, Clone, Default)]
struct ThreadStack<T> {
    /// The frames below the first call, those of the open calls, and room for one more at least. Empty until
    /// the thread's first record.
    frames: Vec<FlatFrame<T>>,
    /// The number of open calls.
    depth: usize,
    first: T,
    last: T,
    /// Calls that have ended.
    calls: u64,
}

/// One bit for each thread and method: whether the method is on the thread's stack. The bits of the usual
/// trace fit into the nearest cache.
#[derive(Debug, Clone)]
struct OnStack {
    /// Words for each thread.
    stride: usize,
    /// Empty where the table would be larger than [`MAX_TABLE_WORDS`]; `sparse` takes its place.
    table: Vec<u64>,
    sparse: SparseWords,
}

type SparseWords = FxHashMap<u64, u64>;

/// Keeps the code of the hash map out of the loop over the records.
#[inline(never)]
fn sparse_word(words: &mut SparseWords, place: u64) -> &mut u64 {
    words.entry(place).or_default()
}

/// The largest table of [`OnStack`], in words: 32 MiB.
const MAX_TABLE_WORDS: usize = 4 << 20;

impl OnStack {
    fn new(threads: usize, methods: usize) -> OnStack {
        let stride = methods.div_ceil(64);
        let size = threads.checked_mul(stride).filter(|n| *n <= MAX_TABLE_WORDS).unwrap_or(0);
        OnStack { stride, table: vec![0; size], sparse: FxHashMap::default() }
    }

    #[inline(always)]
    fn word(&mut self, thread: u32, method: u32) -> &mut u64 {
        let place = thread as usize * self.stride + (method >> 6) as usize;
        match self.table.get_mut(place) {
            Some(word) => word,
            None => sparse_word(&mut self.sparse, place as u64),
        }
    }
}

#[derive(Debug, Clone)]
struct FlatCounter<T> {
    /// By dense method index. One more entry, behind the last method, receives the times that a record which
    /// enters a method would add if it left the method.
    stats: Vec<MethodStat>,
    /// The number of methods.
    methods: usize,
    threads: Vec<ThreadStack<T>>,
    on_stack: OnStack,
    anomalies: CallAnomalies,
}

impl<T: TimePair> FlatCounter<T> {
    fn new(threads: usize, methods: usize) -> FlatCounter<T> {
        FlatCounter {
            stats: vec![MethodStat::default(); methods + 1],
            methods,
            threads: vec![ThreadStack::default(); threads],
            on_stack: OnStack::new(threads, methods),
            anomalies: CallAnomalies::default(),
        }
    }

    #[inline(always)]
    fn count(&mut self, thread: u32, method: u32, exit: ExitBit, at: T) {
        let Some(stack) = self.threads.get_mut(thread as usize) else { return };
        if at.is_before(stack.last) {
            return self.count_step_back(thread, method, exit, at);
        }
        let Some([caller, top, next]) = stack.frames.get_mut(stack.depth..).and_then(|f| f.first_chunk_mut())
        else {
            return self.count_with_more_room(thread, method, exit, at);
        };
        let ExitBit(leave) = exit;
        let enter = leave ^ 1;
        // The shift drops the bit RECURSIVE.
        let is_other = ((top.method ^ method) << 1) & (leave as u32).wrapping_neg();
        if is_other != 0 || method as usize >= self.methods {
            return self.irregular_record(thread, method, exit, at);
        }
        stack.last = at;
        let word = self.on_stack.word(thread, method);
        let recursive = (*word >> (method & 63)) & enter | u64::from(top.method >> 31) & leave;
        // The outermost call of a method sets its bit, and its exit clears it.
        *word ^= (recursive ^ 1) << (method & 63);
        // What a call adds to the sums is known when it ends. A record that enters a method adds the same to
        // figures that nobody reads.
        let counted = select_unpredictable(leave != 0, method as usize, self.methods);
        let Some(stat) = self.stats.get_mut(counted) else { return };
        let total = at.minus(top.entry);
        add(&mut stat.exclusive, total.minus(top.inner).ticks());
        add(&mut stat.inclusive, total.masked(recursive.wrapping_sub(1)).ticks());
        stat.calls += recursive ^ 1;
        stat.recursive += recursive;
        caller.inner = caller.inner.plus(total.masked(leave.wrapping_neg()));
        *next = FlatFrame { entry: at, inner: T::default(), method: method | (recursive as u32) << 31 };
        stack.calls += leave;
        stack.depth = (stack.depth + 1).wrapping_sub((leave as usize) << 1);
    }

    /// Handles a record whose time steps back. The record counts as if it had the time of the thread's last
    /// record.
    #[cold]
    #[inline(never)]
    fn count_step_back(&mut self, thread: u32, method: u32, exit: ExitBit, at: T) {
        let now = at.ticks();
        let last = self.threads[thread as usize].last.ticks();
        self.anomalies.time_steps_back += 1;
        self.count(thread, method, exit, T::from_ticks([now[0].max(last[0]), now[1].max(last[1])]));
    }

    /// Handles a record that is the thread's first, or needs more room on the stack.
    #[cold]
    #[inline(never)]
    fn count_with_more_room(&mut self, thread: u32, method: u32, exit: ExitBit, at: T) {
        let stack = &mut self.threads[thread as usize];
        if stack.is_seen() {
            stack.frames.resize(2 * stack.frames.len(), FlatFrame::default());
        } else {
            stack.first = at;
            stack.last = at;
            stack.frames = vec![FlatFrame { method: OUTSIDE, ..FlatFrame::default() }; FRAMES_BELOW + 1];
        }
        self.count(thread, method, exit, at);
    }

    /// Handles an exit from a method that is not the innermost call's, and a record of no method.
    #[cold]
    #[inline(never)]
    fn irregular_record(&mut self, thread: u32, method: u32, exit: ExitBit, at: T) {
        let stack = &mut self.threads[thread as usize];
        let before = std::mem::replace(&mut stack.last, at);
        if !exit.leaves() {
            return;
        }
        let open = &stack.frames[FRAMES_BELOW..][..stack.depth];
        match exit_effect(open, method, |open| open.method & !RECURSIVE, &mut self.anomalies) {
            ExitEffect::EndsCalls { depth } => self.close(thread, depth, at),
            ExitEffect::BeganBeforeTrace => {
                let Some(stat) = self.stats[..self.methods].get_mut(method as usize) else { return };
                let spent = at.minus(before);
                let outside = &mut stack.frames[FRAMES_BELOW - 1];
                outside.inner = outside.inner.plus(spent);
                stack.calls += 1;
                stat.calls += 1;
                add(&mut stat.exclusive, spent.ticks());
                add(&mut stat.inclusive, at.minus(stack.first).ticks());
            }
            ExitEffect::Unmatched => {}
        }
    }

    /// Ends a thread's innermost calls until `depth` calls are open.
    fn close(&mut self, thread: u32, depth: usize, at: T) {
        while self.threads[thread as usize].depth > depth {
            let stack = &self.threads[thread as usize];
            let innermost = stack.frames[FRAMES_BELOW - 1 + stack.depth].method & !RECURSIVE;
            self.count(thread, innermost, ExitBit::EXIT, at);
        }
    }

    /// Ends the calls that are open at each thread's last record.
    fn finish(&mut self, may_wrap: bool) {
        for thread in 0..self.threads.len() {
            let stack = &self.threads[thread];
            let last = stack.last;
            self.anomalies.open_at_end += stack.depth as u64;
            if may_wrap && stack.is_seen() {
                self.anomalies.reached(last.ticks());
            }
            self.close(thread as u32, 0, last);
        }
    }
}

impl<T: TimePair> ThreadStack<T> {
    /// Whether the thread has a record.
    fn is_seen(&self) -> bool {
        !self.frames.is_empty()
    }

    /// The figures of the thread, which has a record.
    fn figures(&self) -> ThreadStat {
        let total = self.last.minus(self.first).ticks();
        // The time inside of all calls that have ended.
        let in_calls = self.frames[FRAMES_BELOW - 1].inner.ticks();
        ThreadStat { calls: self.calls, total, idle: since(total, in_calls), first: self.first.ticks() }
    }
}

impl<T: TimePair> RecordSink for FlatCounter<T> {
    #[inline(always)]
    fn record(&mut self, thread: u32, method: u32, exit: ExitBit, at: Ticks) {
        self.count(thread, method, exit, T::from_ticks(at));
    }

    fn advance(&mut self, thread: u32, at: Ticks) {
        let Some(stack) = self.threads.get_mut(thread as usize).filter(|stack| stack.is_seen()) else {
            return;
        };
        let last = stack.last.ticks();
        stack.last = T::from_ticks([at[0].max(last[0]), at[1].max(last[1])]);
    }
}

/// Replaces each method by its group.
struct GroupedCounter<'a, T> {
    groups: &'a [u32],
    counter: &'a mut FlatCounter<T>,
}

impl<T: TimePair> RecordSink for GroupedCounter<'_, T> {
    #[inline(always)]
    fn record(&mut self, thread: u32, method: u32, exit: ExitBit, at: Ticks) {
        let group = self.groups.get(method as usize).copied().unwrap_or(u32::MAX);
        self.counter.record(thread, group, exit, at);
    }

    fn advance(&mut self, thread: u32, at: Ticks) {
        self.counter.advance(thread, at);
    }
}

#[cfg(test)]
pub(in crate::profile) mod tests {
    use super::*;
    use crate::profile::count::tree::{CallGraph, CallTree, TreeOptions};

    /// A dual-clock trace of `records` records that a generator of random numbers chose: most exits match the
    /// innermost call; the others match an outer call, no call, or come while no call is open. Some times
    /// step back.
    pub(in crate::profile) fn random_trace(seed: u64, records: usize) -> Vec<u8> {
        let mut state = seed;
        let mut random = |below: u64| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state % below
        };
        let text = "*version\n3\nclock=dual\nelapsed-time-usec=1000000\n*threads\n1\tmain\n2\tworker\n*methods\n\
                    0x4\ta.B\tc\t()V\tB.java\n0x8\ta.B\td\t()V\tB.java\n0xc\ta.C\te\t()V\tC.java\n*end\n";
        let mut bytes = text.as_bytes().to_vec();
        bytes.extend_from_slice(b"SLOW\x03\0\x20\0");
        bytes.extend_from_slice(&[0; 8]);
        bytes.extend_from_slice(&14u16.to_le_bytes());
        bytes.extend_from_slice(&[0; 14]);
        let mut open: [Vec<u32>; 2] = Default::default();
        let mut time_us = 1_000u32;
        for _ in 0..records {
            let thread = random(2) as usize;
            let method = 4 * (1 + random(3) as u32);
            let word = match random(20) {
                0 => method | 1,
                1..=9 => open[thread].pop().map_or(method, |open| open) | (1 + random(2) as u32),
                _ => {
                    open[thread].push(method);
                    method
                }
            };
            time_us = time_us + random(50) as u32 - if random(30) == 0 { 40 } else { 0 };
            bytes.extend_from_slice(&(thread as u16 + 1).to_le_bytes());
            bytes.extend_from_slice(&word.to_le_bytes());
            bytes.extend_from_slice(&(time_us / 2).to_le_bytes());
            bytes.extend_from_slice(&time_us.to_le_bytes());
        }
        bytes
    }

    #[test]
    fn the_branch_free_form_and_the_call_stacks_agree_on_generated_traces() {
        let all = ProfileSelection::default();
        let window = ProfileSelection { threads: None, window: Some(5_000_000..12_000_000) };
        let mut anomalies = CallAnomalies::default();
        for seed in 1..=200 {
            let bytes = random_trace(seed, 1_000);
            let trace = MethodTrace::parse(&bytes).unwrap();
            for selection in [&all, &window] {
                let flat = FlatProfile::from_trace(&trace, selection);
                let tree = CallTree::from_trace(&trace, selection, TreeOptions::default());
                let graph = CallGraph::from_tree(&tree, trace.methods().len());
                assert_eq!(flat.anomalies, tree.anomalies, "seed {seed}");
                for (flat, graph) in flat.methods.iter().zip(&graph.methods) {
                    assert_eq!([flat.calls, flat.recursive], graph.calls, "seed {seed}");
                    assert_eq!(
                        (flat.exclusive, flat.inclusive),
                        (graph.exclusive, graph.inclusive),
                        "seed {seed}"
                    );
                }
                anomalies.add(flat.anomalies);
            }
        }
        let CallAnomalies { exits_without_enter, unmatched_exits, missing_exits, .. } = anomalies;
        assert!(exits_without_enter > 0 && unmatched_exits > 0 && missing_exits > 0, "{anomalies:?}");
        assert!(anomalies.open_at_end > 0 && anomalies.time_steps_back > 0, "{anomalies:?}");
    }

    #[test]
    fn packed_times_compare_and_add_like_two_numbers() {
        let times = [0, 1, 5, u64::from(u32::MAX) - 1, u64::from(u32::MAX)];
        let pairs = || times.into_iter().flat_map(|a| times.map(|b| [a, b]));
        for (earlier, later) in pairs().flat_map(|a| pairs().map(move |b| (a, b))) {
            let packed = [earlier, later].map(PackedTicks::from_ticks);
            assert_eq!(packed.map(PackedTicks::ticks), [earlier, later]);
            assert_eq!(packed[1].is_before(packed[0]), later.is_before(earlier), "{earlier:?} {later:?}");
            if !later.is_before(earlier) {
                let spent = packed[1].minus(packed[0]);
                assert_eq!(spent.ticks(), later.minus(earlier));
                assert_eq!(packed[0].plus(spent).ticks(), later);
            }
        }
    }
}
