//! Call trees for people, as indented lines, and as JSON: from the threads down to the calls, or from the
//! methods with the most exclusive time up to their callers. Branches below a threshold are left out, and
//! counted.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};

use schemars::JsonSchema;
use serde::Serialize;

use super::row_data::FigureFields;
use super::row_print::{RowLook, clocks_from, count_width};
use super::table::{Keep, PrintedColumn, TextTable};
use crate::formats::art_method::Ticks;
use crate::profile::count::add;
use crate::profile::count::tree::{CallTree, ROOT};
use crate::profile::figures::{FigureColumns, SHARE_WIDTH, count, percent, share};
use crate::profile::names::{ShownName, TraceNames};
use crate::profile::request::TreeDirection;
use crate::profile::text_style::Heat;

/// Levels below this depth are left out.
pub(super) const MAX_DEPTH: usize = 500;
/// The most branches of a tree from the methods up to their callers. In a tree without a threshold every path
/// of calls has one branch for each of its callers.
pub(super) const MAX_BRANCHES: usize = 1_000_000;

/// A node of a printed tree; times in ticks.
#[derive(Debug, Clone)]
pub(super) struct TreeBranch {
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

/// The thread or method that a branch stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum BranchNode {
    /// Dense thread index.
    Thread(u32),
    /// Dense method index.
    Method(u32),
}

/// Branches below this share of the whole are not printed.
#[derive(Debug, Clone, Copy)]
pub(super) struct TreeThreshold {
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

/// The branches that were left out of a tree. A branch that was left out includes all branches below it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct LeftOut {
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
        let is_small = time < least;
        let is_deep = depth >= MAX_DEPTH;
        self.small += u64::from(is_small);
        self.deep += u64::from(is_deep && !is_small);
        !is_small && !is_deep
    }
}

/// The tree from the threads down to the calls. A thread has a branch if it has any time.
pub(super) fn top_down(tree: &CallTree, threshold: TreeThreshold) -> (Vec<TreeBranch>, LeftOut) {
    let totals = tree.totals();
    let children = tree.children();
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
    branches.sort_by_key(|branch| Reverse(branch.total[threshold.clock]));
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
        branches.sort_by_key(|branch| Reverse(branch.total[self.clock]));
        branches
    }
}

/// The time of all threads in one clock, ticks. Times of a hostile file may be too many for their sum.
pub(super) fn whole_time(tree: &CallTree, clock: usize) -> u64 {
    tree.nodes.iter().fold(0, |sum, node| sum.saturating_add(node.own[clock]))
}

/// The methods by exclusive time, each with the paths of its callers.
pub(super) fn bottom_up(tree: &CallTree, threshold: TreeThreshold) -> (Vec<TreeBranch>, LeftOut) {
    let least = threshold.least(whole_time(tree, threshold.clock));
    let steps: Vec<(u32, u32)> = tree.nodes.iter().map(|n| (n.method, n.parent)).collect();
    let mut start = CallerPaths::default();
    for (number, node) in tree.nodes.iter().enumerate().filter(|(_, node)| node.method != ROOT) {
        start.push(number as u32, PathWeight { calls: node.calls, own: node.own });
    }
    let mut up = BottomUp::new(steps, least, threshold.clock);
    let branches = up.branches(start, 0);
    log::debug!("callers: {} paths dealt out, of {} nodes", up.dealt, tree.nodes.len());
    (branches, up.left_out)
}

/// The calls and the time of a node, or of several.
#[derive(Debug, Clone, Copy, Default)]
struct PathWeight {
    calls: u64,
    own: Ticks,
}

impl PathWeight {
    fn add(&mut self, other: PathWeight) {
        self.calls += other.calls;
        add(&mut self.own, other.own);
    }

    fn subtract(&mut self, other: PathWeight) {
        self.calls -= other.calls;
        // Sums wrap, as `add` says.
        self.own.iter_mut().zip(other.own).for_each(|(sum, part)| *sum = sum.wrapping_sub(part));
    }
}

/// The ways from nodes up to one of the ancestors of each, for those nodes that share all methods on them.
#[derive(Default)]
struct CallerPaths {
    /// The ancestors, or [`ENDED`].
    reached: Vec<u32>,
    /// The nodes' calls and time. They stay where they are while all paths go the same way, since most paths
    /// of a deep recursion do.
    weights: Vec<PathWeight>,
    /// The sum over the paths that have not ended.
    total: PathWeight,
}

/// A path that has come to its root.
const ENDED: u32 = u32::MAX;

impl CallerPaths {
    fn push(&mut self, reached: u32, weight: PathWeight) {
        self.reached.push(reached);
        self.weights.push(weight);
        self.total.add(weight);
    }

    fn iter(&self) -> impl Iterator<Item = (u32, PathWeight)> {
        let all = self.reached.iter().copied().zip(self.weights.iter().copied());
        all.filter(|(reached, _)| *reached != ENDED)
    }
}

struct BottomUp {
    /// The method and the parent of each node. Each level reads them at random: they take as few cache
    /// lines as possible.
    steps: Vec<(u32, u32)>,
    least: u64,
    clock: usize,
    /// The number of further branches that the tree may have.
    left: usize,
    left_out: LeftOut,
    /// Memory for the next level of paths that go the same way.
    next: Vec<u32>,
    /// The number of paths that were dealt out to the methods of their callers, one by one.
    dealt: u64,
}

impl BottomUp {
    fn new(steps: Vec<(u32, u32)>, least: u64, clock: usize) -> BottomUp {
        let left_out = LeftOut::default();
        BottomUp { steps, least, clock, left: MAX_BRANCHES, left_out, next: Vec::new(), dealt: 0 }
    }

    /// The callers on one level. Those with less time than `least` ticks are left out. The paths of this
    /// level are freed before the next level is made, so that each node is in one path at a time.
    fn branches(&mut self, mut at: CallerPaths, depth: usize) -> Vec<TreeBranch> {
        let mut by_method = match self.step_together(&mut at) {
            Some(method) => BTreeMap::from([(method, at)]),
            None => self.deal(at),
        };
        let BottomUp { left_out, clock, least, .. } = self;
        by_method.retain(|_, callers| left_out.keeps(callers.total.own[*clock], *least, depth));
        let mut branches = Vec::new();
        for (method, callers) in by_method {
            let Some(left) = self.left.checked_sub(1) else {
                self.left_out.is_cut = true;
                break;
            };
            self.left = left;
            let PathWeight { calls, own } = callers.total;
            let children = self.branches(callers, depth + 1);
            let node = BranchNode::Method(method);
            branches.push(TreeBranch { node, calls, total: own, own, children });
        }
        branches.sort_by_key(|branch| Reverse(branch.total[self.clock]));
        branches
    }

    /// Goes one level up where all paths that go on lead to one method, which is returned. Their sum is that
    /// of the level before without those that end.
    fn step_together(&mut self, at: &mut CallerPaths) -> Option<u32> {
        let method_of = |reached: &u32| self.steps.get(*reached as usize).map_or(ROOT, |(method, _)| *method);
        let first = at.reached.iter().map(method_of).find(|method| *method != ROOT)?;
        self.next.clear();
        let mut ends = Vec::new();
        for (number, reached) in at.reached.iter().enumerate() {
            match self.steps.get(*reached as usize) {
                Some((method, parent)) if *method == first => self.next.push(*parent),
                Some((ROOT, _)) => {
                    ends.push(number);
                    self.next.push(ENDED);
                }
                Some(_) => return None,
                None => self.next.push(ENDED),
            }
        }
        ends.iter().for_each(|number| at.total.subtract(at.weights[*number]));
        std::mem::swap(&mut at.reached, &mut self.next);
        Some(first)
    }

    /// Goes one level up: the paths by the methods of their callers.
    fn deal(&mut self, at: CallerPaths) -> BTreeMap<u32, CallerPaths> {
        let mut by_method: BTreeMap<u32, CallerPaths> = BTreeMap::new();
        self.dealt += at.reached.len() as u64;
        for (reached, weight) in at.iter() {
            let (method, parent) = self.steps[reached as usize];
            if method != ROOT {
                by_method.entry(method).or_default().push(parent, weight);
            }
        }
        by_method
    }
}

/// The columns that each level is indented by.
const INDENT: usize = 2;
/// The widest indentation where the terminal sets no limit. See [`indent`].
const MAX_INDENT: usize = 120;

/// A printed tree.
pub(super) struct PrintedTree<'a> {
    pub branches: &'a [TreeBranch],
    pub left_out: LeftOut,
    pub direction: TreeDirection,
    /// The time of all threads in the main clock, ticks.
    pub whole: u64,
    pub figures: FigureColumns,
    /// The unit of times.
    pub tick_ns: u64,
}

impl PrintedTree<'_> {
    /// Writes a tree for people, indented by depth.
    pub(super) fn write(
        &self,
        names: &TraceNames<'_, '_>,
        look: RowLook,
        out: &mut impl Write,
    ) -> io::Result<()> {
        let clocks = clocks_from(self.figures, look.clock);
        let mut shown: HashMap<BranchNode, ShownName> = HashMap::new();
        let mut widest = 0;
        for (depth, branch) in depth_first(self.branches) {
            let name = shown.entry(branch.node).or_insert_with(|| match branch.node {
                BranchNode::Thread(thread) => ShownName::plain(&names.thread(thread)),
                BranchNode::Method(method) => names.shown(method, look.descriptors),
            });
            widest = widest.max((INDENT * depth).min(MAX_INDENT) + name.width());
        }
        let table = TextTable::new(self.columns(&clocks, look.clock), self.title(), widest, look.style);
        writeln!(out, "{}", table.head())?;
        let room = table.name_room().map_or(MAX_INDENT, |room| (room / 3).min(MAX_INDENT));
        let mut whole = self.whole;
        for (depth, branch) in depth_first(self.branches) {
            let total = branch.total[look.clock];
            if matches!(branch.node, BranchNode::Thread(_)) {
                whole = total;
            }
            let part = percent(total, whole);
            let mut figures = vec![share(part)];
            for (clock, _) in &clocks {
                let time = |ticks: u64| self.figures.show(*clock, ticks.saturating_mul(self.tick_ns));
                figures.push(time(branch.total[*clock]));
                if self.direction == TreeDirection::TopDown {
                    figures.push(time(branch.own[*clock]));
                }
            }
            // A thread is not called.
            figures.push(if branch.calls == 0 { String::new() } else { count(branch.calls) });
            // From the threads down the path to a hot branch is as large as the branch, so that the time in
            // the branch itself decides.
            let heat = Heat::from_percent(percent(branch.own[look.clock], whole));
            let Some(name) = shown.get(&branch.node) else { continue };
            writeln!(out, "{}", table.row(&figures, &indent(depth, room), name, heat))?;
        }
        Ok(())
    }

    /// Says which branches the tree lacks, in one sentence.
    pub(super) fn left_out_line(&self, threshold_percent: f64) -> String {
        let whole = match self.direction {
            TreeDirection::TopDown => "their thread's time",
            TreeDirection::BottomUp => "the time of all threads",
        };
        let LeftOut { small, deep, .. } = self.left_out;
        let mut parts = Vec::new();
        if small > 0 && threshold_percent > 0.0 {
            let small = count(small);
            parts.push(format!("{small} below {threshold_percent}% of {whole} (--threshold 0 shows all)"));
        }
        if deep > 0 {
            parts.push(format!("{} deeper than {MAX_DEPTH} levels", count(deep)));
        }
        if parts.is_empty() {
            return "No branch is left out".to_owned();
        }
        format!("Branches left out: {}", parts.join("; "))
    }

    fn title(&self) -> &'static str {
        match self.direction {
            TreeDirection::TopDown => "thread and calls",
            TreeDirection::BottomUp => "method and callers",
        }
    }

    fn columns(&self, clocks: &[(usize, &'static str)], main: usize) -> Vec<PrintedColumn> {
        let mut columns = vec![PrintedColumn::hot("share", SHARE_WIDTH)];
        for (clock, name) in clocks {
            let largest = depth_first(self.branches).map(|(_, branch)| branch.total[*clock]).max();
            let width = self.figures.width(*clock, largest.unwrap_or(0));
            let (total, own) = if *clock == main {
                (Keep::Always, Keep::Other)
            } else {
                (Keep::SecondInclusive, Keep::SecondExclusive)
            };
            match self.direction {
                TreeDirection::TopDown => columns.extend([
                    PrintedColumn::new(format!("{name} incl"), width, total),
                    PrintedColumn::new(format!("{name} excl"), width, own),
                ]),
                // The time of a path of callers is the method's own time.
                TreeDirection::BottomUp => columns.push(PrintedColumn::new(*name, width, total)),
            }
        }
        let calls = count_width(depth_first(self.branches).map(|(_, branch)| branch.calls));
        columns.push(PrintedColumn::new(self.figures.count_name(), calls, Keep::Calls));
        columns
    }
}

/// The indentation of a level. Levels that would be indented by more than `room` columns have their number
/// there.
fn indent(depth: usize, room: usize) -> String {
    if INDENT * depth <= room {
        return " ".repeat(INDENT * depth);
    }
    format!("{depth:>width$} ", width = room.saturating_sub(1))
}

/// The branches with their depths, each before its children.
fn depth_first(branches: &[TreeBranch]) -> impl Iterator<Item = (usize, &TreeBranch)> {
    let mut left: Vec<(usize, &TreeBranch)> = branches.iter().rev().map(|branch| (0, branch)).collect();
    std::iter::from_fn(move || {
        let (depth, branch) = left.pop()?;
        left.extend(branch.children.iter().rev().map(|child| (depth + 1, child)));
        Some((depth, branch))
    })
}

/// A branch of a tree as JSON; times in ns.
#[derive(Serialize, JsonSchema)]
pub(crate) struct BranchJson {
    name: String,
    #[serde(flatten)]
    figures: FigureFields,
    children: Vec<BranchJson>,
}

/// A tree as nested JSON.
pub(super) fn json_branches(
    branches: &[TreeBranch],
    names: &TraceNames<'_, '_>,
    columns: FigureColumns,
    tick_ns: u64,
) -> Vec<BranchJson> {
    let one = |branch: &TreeBranch| {
        let name = match branch.node {
            BranchNode::Thread(thread) => names.thread(thread),
            BranchNode::Method(method) => names.full(method),
        };
        let [own, total] =
            [branch.own, branch.total].map(|ticks| ticks.map(|ticks| ticks.saturating_mul(tick_ns)));
        BranchJson {
            name,
            figures: FigureFields::new(columns, branch.calls, own, total),
            children: json_branches(&branch.children, names, columns, tick_ns),
        }
    };
    branches.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A chain of `depth` calls of two methods in turn, of one call and one tick each.
    fn chain(depth: u32) -> (BottomUp, CallerPaths) {
        let mut steps = vec![(ROOT, 0)];
        let mut paths = CallerPaths::default();
        for number in 1..=depth {
            steps.push((number % 2, number - 1));
            paths.push(number, PathWeight { calls: 1, own: [1; 2] });
        }
        (BottomUp::new(steps, 1, 0), paths)
    }

    #[test]
    fn nested_calls_are_dealt_out_once_and_not_once_for_each_level() {
        let depth = 10_000;
        let (mut up, paths) = chain(depth);
        let branches = up.branches(paths, 0);
        assert_eq!(up.dealt, u64::from(depth));
        assert_eq!(up.left_out.deep, 2);
        assert_eq!(branches.len(), 2);
        for first in &branches {
            let BranchNode::Method(parity) = first.node else { panic!("{first:?}") };
            // The calls on a level are those of the nodes that lie deeper.
            let calls = |level: u32| (level + 1..=depth).filter(|number| number % 2 == parity).count() as u64;
            let mut branch = first;
            for level in 0..MAX_DEPTH as u32 {
                assert_eq!((branch.calls, branch.total), (calls(level), [calls(level); 2]), "level {level}");
                branch = branch.children.first().unwrap_or(branch);
            }
            assert!(branch.children.is_empty());
        }
    }
}
