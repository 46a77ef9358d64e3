//! The call tree of samples: each path of functions is one node with the samples that lie in it.

use std::io;
use std::ops::Range;

use rustc_hash::FxHashMap;

use super::add;
use super::flat::{FlatProfile, MethodStat, ThreadStat};
use super::tree::{CallNode, CallTree, ROOT};
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
    /// The time of the first sample, ns.
    pub first: Option<u64>,
    /// The time of the last sample, ns since the first.
    pub end: u64,
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
        let at = sample.time.saturating_sub(first);
        self.end = self.end.max(at);
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

/// The flat profile of a tree of samples. `group` gives the row of a function; of a row that is on a stack
/// several times the outermost one counts.
pub(in crate::profile) fn flat_of(
    tree: &CallTree,
    threads: usize,
    rows: usize,
    group: impl Fn(u32) -> u32,
) -> FlatProfile {
    let mut flat = FlatProfile { methods: vec![MethodStat::default(); rows], ..FlatProfile::default() };
    let children = tree.children();
    let mut open = vec![0u32; rows];
    for root in 0..threads {
        let node = &tree.nodes[root];
        flat.threads.push(ThreadStat {
            calls: node.calls,
            total: node.recorded,
            idle: node.own,
            first: [0; 2],
        });
        let mut to_visit: Vec<(u32, bool)> = children[root].iter().map(|n| (*n, false)).collect();
        while let Some((index, done)) = to_visit.pop() {
            let node = &tree.nodes[index as usize];
            let row = group(node.method) as usize;
            let Some(stat) = flat.methods.get_mut(row) else { continue };
            if done {
                open[row] -= 1;
                continue;
            }
            add(&mut stat.exclusive, node.own);
            if open[row] == 0 {
                add(&mut stat.inclusive, node.recorded);
                stat.calls += node.calls;
            }
            open[row] += 1;
            to_visit.push((index, true));
            to_visit.extend(children[index as usize].iter().map(|n| (*n, false)));
        }
    }
    flat
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
        let tree = tree_of(&sums, &stacks, 1, |_| true, |_, sum| ([0, sum.period], sum.count));
        let flat = flat_of(&tree, 1, 2, |frame| frame);
        let figures = |row: usize| {
            let stat = &flat.methods[row];
            (stat.calls, stat.exclusive[WEIGHT], stat.inclusive[WEIGHT])
        };
        assert_eq!([figures(0), figures(1)], [(3, 25, 25), (2, 0, 20)]);
        let thread = &flat.threads[0];
        assert_eq!((thread.calls, thread.total[WEIGHT], thread.idle[WEIGHT]), (4, 28, 3));
        let grouped = flat_of(&tree, 1, 1, |_| 0);
        assert_eq!((grouped.methods[0].calls, grouped.methods[0].inclusive[WEIGHT]), (3, 25));
    }
}
