//! The branches of a printed call tree: from the threads down to the calls, or from the methods with the most
//! exclusive time up to their callers. Branches below a threshold are left out, and counted.

use std::collections::BTreeMap;

use super::time_pair::add;
use super::tree::{CallTree, ROOT};
use crate::formats::art_method::Ticks;

/// Levels below this depth are left out.
pub(in crate::profile) const MAX_DEPTH: usize = 500;
/// The most branches of a tree from the methods up to their callers. In a tree without a threshold every path
/// of calls has one branch for each of its callers.
pub(in crate::profile) const MAX_BRANCHES: usize = 1_000_000;

/// A node of a printed tree; times in ticks.
#[derive(Debug, Clone)]
pub(in crate::profile) struct TreeBranch {
    pub node: BranchNode,
    pub calls: u64,
    /// Top-down: time in the node and all nodes below it. Bottom-up: time in the method at the outermost
    /// level, in calls that were made through this path of callers.
    pub total: Ticks,
    /// Time in the node without the nodes below it; bottom-up the same as `total`.
    pub own: Ticks,
    /// Callees (top-down) or callers (bottom-up), those with the longest time first.
    pub children: Vec<TreeBranch>,
}

/// What a branch stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(in crate::profile) enum BranchNode {
    /// Dense thread index.
    Thread(u32),
    /// Dense method index.
    Method(u32),
}

/// Branches below this share of the whole are not printed.
#[derive(Debug, Clone, Copy)]
pub(in crate::profile) struct TreeThreshold {
    /// Percent of the thread's time from the threads down, and of the time of all threads from the methods
    /// up. With 0 even branches without time are printed.
    pub percent: f64,
    /// The clock of that time.
    pub clock: usize,
}

impl TreeThreshold {
    /// The least time of a printed branch.
    fn least(self, whole: u64) -> u64 {
        let least = (whole as f64 * self.percent / 100.0).ceil() as u64;
        if self.percent == 0.0 { 0 } else { least.max(1) }
    }
}

/// The branches that a tree lacks. Each stands for all that it would have below it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::profile) struct LeftOut {
    /// Branches below the threshold.
    pub small: u64,
    /// Branches deeper than [`MAX_DEPTH`].
    pub deep: u64,
    /// Whether the tree would have more than [`MAX_BRANCHES`] branches.
    pub is_cut: bool,
}

impl LeftOut {
    /// Whether a branch with `time` is printed; counts it where it is not.
    fn keeps(&mut self, time: u64, least: u64, depth: usize) -> bool {
        let (is_small, is_deep) = (time < least, depth >= MAX_DEPTH);
        self.small += u64::from(is_small);
        self.deep += u64::from(is_deep && !is_small);
        !is_small && !is_deep
    }
}

/// The tree from the threads down to the calls. A thread has a branch if it has any time.
pub(in crate::profile) fn top_down(tree: &CallTree, threshold: TreeThreshold) -> (Vec<TreeBranch>, LeftOut) {
    let (totals, children) = (tree.totals(), tree.children());
    let roots: Vec<u32> =
        (0..tree.nodes.len() as u32).take_while(|n| tree.nodes[*n as usize].method == ROOT).collect();
    let is_used = |root: &u32| !children[*root as usize].is_empty();
    let roots: Vec<u32> = roots.into_iter().filter(is_used).collect();
    let mut down = TopDown {
        tree,
        totals: &totals,
        children: &children,
        clock: threshold.clock,
        left_out: LeftOut::default(),
    };
    let mut branches = Vec::new();
    for root in roots {
        let least = threshold.least(totals[root as usize][threshold.clock]);
        branches.extend(down.branches(&[root], least, 0));
    }
    branches.sort_by_key(|branch| std::cmp::Reverse(branch.total[threshold.clock]));
    (branches, down.left_out)
}

struct TopDown<'a> {
    tree: &'a CallTree,
    totals: &'a [Ticks],
    children: &'a [Vec<u32>],
    clock: usize,
    left_out: LeftOut,
}

impl TopDown<'_> {
    fn branches(&mut self, of: &[u32], least: u64, depth: usize) -> Vec<TreeBranch> {
        let mut branches = Vec::new();
        for n in of.iter().map(|n| *n as usize) {
            if self.left_out.keeps(self.totals[n][self.clock], least, depth) {
                let node = self.tree.nodes[n];
                let children = self.children;
                branches.push(TreeBranch {
                    node: if node.method == ROOT {
                        BranchNode::Thread(node.thread)
                    } else {
                        BranchNode::Method(node.method)
                    },
                    calls: node.calls,
                    total: self.totals[n],
                    own: node.own,
                    children: self.branches(&children[n], least, depth + 1),
                });
            }
        }
        branches.sort_by_key(|branch| std::cmp::Reverse(branch.total[self.clock]));
        branches
    }
}

/// The time of all threads in one clock, ticks. Times of a hostile file may be too many for their sum.
pub(in crate::profile) fn whole_time(tree: &CallTree, clock: usize) -> u64 {
    tree.nodes.iter().fold(0, |sum, node| sum.saturating_add(node.own[clock]))
}

/// The methods by exclusive time, each with the paths of its callers.
pub(in crate::profile) fn bottom_up(tree: &CallTree, threshold: TreeThreshold) -> (Vec<TreeBranch>, LeftOut) {
    let least = threshold.least(whole_time(tree, threshold.clock));
    let all = (0..tree.nodes.len() as u32).filter(|n| tree.nodes[*n as usize].method != ROOT);
    let path = |n| {
        let node = &tree.nodes[n as usize];
        CallerPath { calls: node.calls, own: node.own, reached: n }
    };
    let start: Vec<CallerPath> = all.map(path).collect();
    let steps = tree.nodes.iter().map(|n| (n.method, n.parent)).collect();
    let clock = threshold.clock;
    let mut up = BottomUp { steps, least, clock, left: MAX_BRANCHES, left_out: LeftOut::default() };
    let branches = up.branches(start, 0);
    (branches, up.left_out)
}

/// The way from a node up to one of its ancestors, with the node's calls and time. The level above reads
/// these one behind the other, where reading the nodes themselves would be a cache miss each.
struct CallerPath {
    calls: u64,
    own: Ticks,
    /// The ancestor.
    reached: u32,
}

/// The calls and the time of the method at the outermost level that were made through one caller, and the
/// paths for the next level.
#[derive(Default)]
struct Callers {
    calls: u64,
    own: Ticks,
    next: Vec<CallerPath>,
}

struct BottomUp {
    /// The method and the parent of each node: what each level reads at random, in as few cache lines as
    /// possible.
    steps: Vec<(u32, u32)>,
    least: u64,
    clock: usize,
    /// How many more branches the tree may have.
    left: usize,
    left_out: LeftOut,
}

impl BottomUp {
    /// The callers on one level. Those with less time than `least` ticks are left out. The paths of this
    /// level are freed before those of the next are looked at, so that each node is in one path at a time.
    fn branches(&mut self, at: Vec<CallerPath>, depth: usize) -> Vec<TreeBranch> {
        let mut by_method: BTreeMap<u32, Callers> = BTreeMap::new();
        for path in &at {
            let (method, parent) = self.steps[path.reached as usize];
            if method == ROOT {
                continue;
            }
            let here = by_method.entry(method).or_default();
            here.calls += path.calls;
            add(&mut here.own, path.own);
            here.next.push(CallerPath { reached: parent, ..*path });
        }
        drop(at);
        let (left_out, clock, least) = (&mut self.left_out, self.clock, self.least);
        by_method.retain(|_, callers| left_out.keeps(callers.own[clock], least, depth));
        let mut branches = Vec::new();
        for (method, Callers { calls, own, next }) in by_method {
            let Some(left) = self.left.checked_sub(1) else {
                self.left_out.is_cut = true;
                break;
            };
            self.left = left;
            let children = self.branches(next, depth + 1);
            let node = BranchNode::Method(method);
            branches.push(TreeBranch { node, calls, total: own, own, children });
        }
        branches.sort_by_key(|branch| std::cmp::Reverse(branch.total[self.clock]));
        branches
    }
}
