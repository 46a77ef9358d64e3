//! The call tree of samples: each path of functions is one node with the samples that lie in it.

use std::io;
use std::ops::Range;

use rustc_hash::FxHashMap;

use super::add;
use super::flat::{FlatProfile, MethodStat, ThreadStat};
use super::tree::{CallNode, CallTree, ROOT};
use crate::clock::Timestamp;
use crate::formats::art_method::{CPU, Ticks, WALL};
use crate::formats::samples::{NO_STACK, Sample, SampleSink, SampleTables, StackTable};

/// The samples of one thread, stack and event type.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::profile) struct SampleSum {
    /// Number of samples.
    pub count: u64,
    /// The sum of their periods.
    pub period: u64,
}

/// A thread, a stack and an event type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(in crate::profile) struct SampleKey {
    /// Index of the thread.
    pub thread: u32,
    /// The stack, or [`NO_STACK`].
    pub stack: u32,
    /// Index of the event type.
    pub event: u32,
}

/// Adds up samples by thread, stack and event type.
#[derive(Debug, Default)]
pub(in crate::profile) struct SampleSums {
    /// Start and end of the time that counts, ns since the first sample.
    pub window: Option<Range<u64>>,
    /// The time of the first sample.
    pub first: Option<Timestamp>,
    /// From the first sample to the last one, ns.
    pub end_ns: u64,
    pub sums: FxHashMap<SampleKey, SampleSum>,
    /// The samples in order, where they are requested.
    pub in_order: Option<Vec<(SampleKey, u64)>>,
    /// Number of samples, also of those outside of the window.
    pub samples: u64,
    /// Samples that are added up together.
    pub waiting: Vec<(SampleKey, u64)>,
}

/// So many samples are added up together. Most sums lie far away in memory: in a short loop the processor
/// fetches several at a time.
const SAMPLES_TOGETHER: usize = 1 << 10;

impl SampleSums {
    /// Adds up the samples that wait. Must be called behind the last sample.
    pub(in crate::profile) fn add_waiting(&mut self) {
        for (key, period) in self.waiting.drain(..) {
            let sum = self.sums.entry(key).or_default();
            sum.count += 1;
            sum.period = sum.period.saturating_add(period);
        }
    }
}

impl SampleSink for SampleSums {
    #[inline]
    fn sample(&mut self, _: &SampleTables, sample: &Sample) -> io::Result<()> {
        self.samples += 1;
        let first = *self.first.get_or_insert(sample.time);
        let at = sample.time.since(first);
        self.end_ns = self.end_ns.max(at);
        if self.window.as_ref().is_some_and(|window| !window.contains(&at)) {
            return Ok(());
        }
        let key = SampleKey { thread: sample.thread, stack: sample.stack, event: sample.event };
        self.waiting.push((key, sample.period));
        if self.waiting.len() == SAMPLES_TOGETHER {
            self.add_waiting();
        }
        if let Some(in_order) = &mut self.in_order {
            in_order.push((key, sample.period));
        }
        Ok(())
    }
}

/// Builds the tree of samples. `figures` gives the weight of each sum in both columns, and the number of its
/// samples that count; `counts` says which threads count.
pub(in crate::profile) fn tree_of(
    sums: &[(SampleKey, SampleSum)],
    stacks: &StackTable,
    threads: usize,
    counts: impl Fn(u32) -> bool,
    figures: impl Fn(&SampleKey, &SampleSum) -> (Ticks, u64),
) -> CallTree {
    let mut tree = CallTree::default();
    let node =
        |parent, method, thread| CallNode { parent, method, thread, calls: 0, own: [0; 2], recorded: [0; 2] };
    for thread in 0..threads as u32 {
        tree.nodes.push(node(thread, ROOT, thread));
    }
    let mut nodes: FxHashMap<(u32, u32), u32> = FxHashMap::default();
    let mut path = Vec::new();
    for (key, sum) in sums.iter().filter(|(key, _)| counts(key.thread)) {
        let (own, count) = figures(key, sum);
        if count == 0 {
            continue;
        }
        let mut at = key.stack;
        let mut reached = key.thread;
        path.clear();
        while at != NO_STACK {
            if let Some(found) = nodes.get(&(key.thread, at)) {
                reached = *found;
                break;
            }
            path.push(at);
            at = stacks.nodes().get(at as usize).map_or(NO_STACK, |stack| stack.parent);
        }
        for stack in path.iter().rev() {
            let Some(frame) = stacks.nodes().get(*stack as usize).map(|stack| stack.frame) else { continue };
            tree.nodes.push(node(reached, frame, key.thread));
            reached = tree.nodes.len() as u32 - 1;
            nodes.insert((key.thread, *stack), reached);
        }
        let reached = &mut tree.nodes[reached as usize];
        reached.calls += count;
        add(&mut reached.own, own);
    }
    for (node, total) in tree.totals().into_iter().enumerate() {
        tree.nodes[node].recorded = total;
    }
    // A node's samples are also those of its callers. A thread's root is nobody's call.
    for node in (threads..tree.nodes.len()).rev() {
        let CallNode { parent, calls, .. } = tree.nodes[node];
        tree.nodes[parent as usize].calls += calls;
    }
    tree
}

/// The flat profile of samples. `figures` and `counts` are those of [`tree_of`]; `group` gives the row of a
/// function. Of a row that is on a stack several times the outermost one counts.
pub(in crate::profile) fn flat_of(
    sums: &[(SampleKey, SampleSum)],
    stacks: &StackTable,
    shape: FlatShape,
    counts: impl Fn(u32) -> bool,
    figures: impl Fn(&SampleKey, &SampleSum) -> (Ticks, u64),
    group: impl Fn(u32) -> u32,
) -> FlatProfile {
    let nodes = stacks.nodes();
    let methods = vec![MethodStat::default(); shape.rows];
    let mut flat = FlatProfile { methods, ..FlatProfile::default() };
    flat.threads = vec![ThreadStat { calls: 0, total: [0; 2], idle: [0; 2], first: [0; 2] }; shape.threads];
    // All threads together: by stack, what was counted in it, and in it and all that it called.
    let mut own = vec![[0; 2]; nodes.len()];
    let mut calls = vec![0u64; nodes.len()];
    for (key, sum) in sums.iter().filter(|(key, _)| counts(key.thread)) {
        let (weight, count) = figures(key, sum);
        let Some(thread) = flat.threads.get_mut(key.thread as usize).filter(|_| count > 0) else { continue };
        thread.calls += count;
        add(&mut thread.total, weight);
        match own.get_mut(key.stack as usize) {
            Some(own) => {
                add(own, weight);
                calls[key.stack as usize] += count;
            }
            None => add(&mut thread.idle, weight),
        }
    }
    let mut total = own.clone();
    for (index, node) in nodes.iter().enumerate().rev().filter(|(_, node)| node.parent != NO_STACK) {
        let of_callee = total[index];
        add(&mut total[node.parent as usize], of_callee);
        calls[node.parent as usize] += calls[index];
    }
    let children = StackChildren::new(stacks);
    let mut open = vec![0u32; shape.rows];
    let mut to_visit: Vec<(u32, bool)> = children.of(NO_STACK).iter().map(|n| (*n, false)).collect();
    while let Some((index, done)) = to_visit.pop() {
        let at = index as usize;
        let row = group(nodes[at].frame) as usize;
        let Some(stat) = flat.methods.get_mut(row).filter(|_| calls[at] > 0) else { continue };
        if done {
            open[row] -= 1;
            continue;
        }
        add(&mut stat.exclusive, own[at]);
        if open[row] == 0 {
            add(&mut stat.inclusive, total[at]);
            stat.calls += calls[at];
        }
        open[row] += 1;
        to_visit.push((index, true));
        to_visit.extend(children.of(index).iter().map(|n| (*n, false)));
    }
    flat
}

/// The numbers of a flat profile's threads and rows.
#[derive(Debug, Clone, Copy)]
pub(in crate::profile) struct FlatShape {
    pub threads: usize,
    pub rows: usize,
}

/// The stacks that are one frame deeper than each stack.
struct StackChildren {
    /// Where those of a stack begin in `list`; those of the empty stack come last.
    starts: Vec<u32>,
    list: Vec<u32>,
}

impl StackChildren {
    fn new(stacks: &StackTable) -> StackChildren {
        let nodes = stacks.nodes();
        let place = |parent: u32| (parent as usize).min(nodes.len());
        let mut starts = vec![0u32; nodes.len() + 2];
        for node in nodes {
            starts[place(node.parent) + 1] += 1;
        }
        for at in 1..starts.len() {
            starts[at] += starts[at - 1];
        }
        let mut next = starts.clone();
        let mut list = vec![0; nodes.len()];
        for (index, node) in nodes.iter().enumerate() {
            let at = &mut next[place(node.parent)];
            list[*at as usize] = index as u32;
            *at += 1;
        }
        StackChildren { starts, list }
    }

    /// The stacks below this one, or below [`NO_STACK`].
    fn of(&self, stack: u32) -> &[u32] {
        let at = (stack as usize).min(self.starts.len() - 2);
        &self.list[self.starts[at] as usize..self.starts[at + 1] as usize]
    }
}

/// The columns of a tree of samples: the weight of the chosen event type, and the time that threads did not
/// run, ns.
pub(in crate::profile) const WEIGHT: usize = WALL;
/// See [`WEIGHT`].
pub(in crate::profile) const OFF_CPU: usize = CPU;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recursion_counts_once_and_every_sample_is_in_its_callers() {
        let mut stacks = StackTable::default();
        let deep = stacks.of_frames([0, 1, 0]);
        let shallow = stacks.of_frames([0]);
        let key = |stack| SampleKey { thread: 0, stack, event: 0 };
        let sums = [
            (key(deep), SampleSum { count: 2, period: 20 }),
            (key(shallow), SampleSum { count: 1, period: 5 }),
            (key(NO_STACK), SampleSum { count: 1, period: 3 }),
        ];
        let figures = |_: &SampleKey, sum: &SampleSum| ([0, sum.period], sum.count);
        let flat = |rows, group: fn(u32) -> u32| {
            flat_of(&sums, &stacks, FlatShape { threads: 1, rows }, |_| true, figures, group)
        };
        let tree = tree_of(&sums, &stacks, 1, |_| true, figures);
        let root = &tree.nodes[0];
        assert_eq!((root.calls, root.recorded[WEIGHT], root.own[WEIGHT]), (4, 28, 3));
        let grouped = flat(1, |_| 0);
        let flat = flat(2, |frame| frame);
        let figures = |row: usize| {
            let stat = &flat.methods[row];
            (stat.calls, stat.exclusive[WEIGHT], stat.inclusive[WEIGHT])
        };
        assert_eq!([figures(0), figures(1)], [(3, 25, 25), (2, 0, 20)]);
        let thread = &flat.threads[0];
        assert_eq!((thread.calls, thread.total[WEIGHT], thread.idle[WEIGHT]), (4, 28, 3));
        assert_eq!((grouped.methods[0].calls, grouped.methods[0].inclusive[WEIGHT]), (3, 25));
    }
}
