//! Prints the call tree: from the threads down to the calls, or from the methods with the most exclusive
//! time up to their callers.

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde_json::{Value, json};

use super::names::TraceNames;
use super::text_style::{CLOCKS, TextStyle, ms, percent};
use super::ticks::add;
use super::tree::{CallTree, ROOT};
use crate::formats::art_method::Ticks;

/// Levels below this depth are left out.
const MAX_DEPTH: usize = 500;
/// The most branches of a tree from the methods up to their callers. In a tree without a threshold every path
/// of calls has one branch for each of its callers.
pub(super) const MAX_BRANCHES: usize = 1_000_000;

/// A node of a printed tree; times in ticks.
#[derive(Debug, Clone)]
pub(super) struct TreeBranch {
    pub name: String,
    pub calls: u64,
    /// Top-down: time in the node and all nodes below it. Bottom-up: time in the method at the outermost
    /// level, in calls that were made through this path of callers.
    pub total: Ticks,
    /// Time in the node without the nodes below it; bottom-up the same as `total`.
    pub own: Ticks,
    /// Callees (top-down) or callers (bottom-up), those with the longest time first.
    pub children: Vec<TreeBranch>,
}

/// Nodes below this share of the whole time are not printed.
#[derive(Debug, Clone, Copy)]
pub(super) struct TreeThreshold {
    /// Percent of the time of all threads.
    pub percent: f64,
    /// The clock of that time.
    pub clock: usize,
}

impl TreeThreshold {
    fn ticks(self, whole: &[Ticks]) -> u64 {
        let all: u64 = whole.iter().map(|t| t[self.clock]).sum();
        (all as f64 * self.percent / 100.0).ceil() as u64
    }
}

/// The tree from the threads down to the calls.
pub(super) fn top_down(
    tree: &CallTree,
    names: &TraceNames<'_, '_>,
    threshold: TreeThreshold,
) -> Vec<TreeBranch> {
    let (totals, children) = (tree.totals(), tree.children());
    let roots: Vec<u32> =
        (0..tree.nodes.len() as u32).take_while(|n| tree.nodes[*n as usize].method == ROOT).collect();
    let least = threshold.ticks(&totals[..roots.len()]).max(1);
    let down = TopDown { tree, names, totals: &totals, children: &children, least, clock: threshold.clock };
    down.branches(&roots, 0)
}

struct TopDown<'a> {
    tree: &'a CallTree,
    names: &'a TraceNames<'a, 'a>,
    totals: &'a [Ticks],
    children: &'a [Vec<u32>],
    least: u64,
    clock: usize,
}

impl TopDown<'_> {
    fn branches(&self, of: &[u32], depth: usize) -> Vec<TreeBranch> {
        let mut branches: Vec<TreeBranch> = of
            .iter()
            .filter(|n| self.totals[**n as usize][self.clock] >= self.least && depth < MAX_DEPTH)
            .map(|n| {
                let node = &self.tree.nodes[*n as usize];
                let name = match node.method {
                    ROOT => self.names.thread(node.thread),
                    method => self.names.full(method),
                };
                let children = self.branches(&self.children[*n as usize], depth + 1);
                TreeBranch {
                    name,
                    calls: node.calls,
                    total: self.totals[*n as usize],
                    own: node.own,
                    children,
                }
            })
            .collect();
        branches.sort_by_key(|branch| std::cmp::Reverse(branch.total[self.clock]));
        branches
    }
}

/// The methods by exclusive time, each with the paths of its callers; and whether the tree lacks branches
/// because it would have more than [`MAX_BRANCHES`].
pub(super) fn bottom_up(
    tree: &CallTree,
    names: &TraceNames<'_, '_>,
    threshold: TreeThreshold,
) -> (Vec<TreeBranch>, bool) {
    let owns: Vec<Ticks> = tree.nodes.iter().map(|n| n.own).collect();
    let least = threshold.ticks(&owns).max(1);
    let all = (0..tree.nodes.len() as u32).filter(|n| tree.nodes[*n as usize].method != ROOT);
    let path = |n| {
        let node = &tree.nodes[n as usize];
        CallerPath { calls: node.calls, own: node.own, reached: n }
    };
    let start: Vec<CallerPath> = all.map(path).collect();
    let steps = tree.nodes.iter().map(|n| (n.method, n.parent)).collect();
    let clock = threshold.clock;
    let mut up = BottomUp { steps, names, least, clock, left: MAX_BRANCHES, is_cut: false };
    let branches = up.branches(start, 0);
    (branches, up.is_cut)
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

struct BottomUp<'a> {
    /// The method and the parent of each node: what each level reads at random, in as few cache lines as
    /// possible.
    steps: Vec<(u32, u32)>,
    names: &'a TraceNames<'a, 'a>,
    least: u64,
    clock: usize,
    /// How many more branches the tree may have.
    left: usize,
    /// Whether branches were left out because of that.
    is_cut: bool,
}

impl BottomUp<'_> {
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
        by_method.retain(|_, callers| callers.own[self.clock] >= self.least && depth < MAX_DEPTH);
        let mut branches = Vec::new();
        for (method, Callers { calls, own, next }) in by_method {
            let Some(left) = self.left.checked_sub(1) else {
                self.is_cut = true;
                break;
            };
            self.left = left;
            let children = self.branches(next, depth + 1);
            branches.push(TreeBranch { name: self.names.full(method), calls, total: own, own, children });
        }
        branches.sort_by_key(|branch| std::cmp::Reverse(branch.total[self.clock]));
        branches
    }
}

/// Writes a tree for people, indented by depth; `whole` is the time of all threads, in ticks.
pub(super) fn write_tree(
    branches: &[TreeBranch],
    has: [bool; 2],
    clock: usize,
    whole: u64,
    tick_ns: u64,
    style: TextStyle,
    out: &mut impl Write,
) -> io::Result<()> {
    let mut head = format!("{:>7} ", "%");
    for (_, name) in CLOCKS.into_iter().filter(|(clock, _)| has[*clock]) {
        head += &format!("{:>12} {:>12} ", format!("{name} incl"), format!("{name} excl"));
    }
    writeln!(out, "{}", style.bold(&style.fit(&format!("{head}{:>10}  (times in ms)", "calls"))))?;
    let mut left: Vec<(usize, &TreeBranch)> = branches.iter().rev().map(|b| (0, b)).collect();
    while let Some((depth, branch)) = left.pop() {
        let mut line = format!("{:>7.2} ", percent(branch.total[clock], whole));
        for (clock, _) in CLOCKS.into_iter().filter(|(clock, _)| has[*clock]) {
            line += &format!(
                "{:>12} {:>12} ",
                ms(branch.total[clock].saturating_mul(tick_ns)),
                ms(branch.own[clock].saturating_mul(tick_ns))
            );
        }
        let indent = "  ".repeat(depth.min(60));
        writeln!(out, "{}", style.fit(&format!("{line}{:>10}  {indent}{}", branch.calls, branch.name)))?;
        left.extend(branch.children.iter().rev().map(|child| (depth + 1, child)));
    }
    Ok(())
}

/// A tree as nested JSON; times in ns.
pub(super) fn to_json(branches: &[TreeBranch], has: [bool; 2], tick_ns: u64) -> Value {
    let one = |branch: &TreeBranch| {
        let mut value = json!({ "name": branch.name, "calls": branch.calls });
        for (clock, name) in CLOCKS.into_iter().filter(|(clock, _)| has[*clock]) {
            value[format!("{name}_inclusive_ns")] = json!(branch.total[clock].saturating_mul(tick_ns));
            value[format!("{name}_exclusive_ns")] = json!(branch.own[clock].saturating_mul(tick_ns));
        }
        value["children"] = to_json(&branch.children, has, tick_ns);
        value
    };
    branches.iter().map(one).collect()
}
