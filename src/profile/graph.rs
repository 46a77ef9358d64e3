//! Callers and callees: the call tree folded so that each method stands once, with recursion kept apart.

use std::collections::HashMap;

use super::machine::{Ticks, add};
use super::tree::{CallTree, ROOT};

/// One method's figures; in pairs, recursive calls (those with another call of the method open) come second.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct GraphStat {
    /// Calls.
    pub calls: [u64; 2],
    /// Time in the method and not in what it called.
    pub exclusive: Ticks,
    /// Of that, in calls that are not recursive.
    pub outermost_exclusive: Ticks,
    /// Time in the method and all it called; outermost calls alone.
    pub inclusive: Ticks,
}

/// One caller and callee.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct EdgeKey {
    /// Dense method index, or [`ROOT`] for what is outside of all calls.
    pub caller: u32,
    /// Dense method index.
    pub callee: u32,
    /// Whether the caller's call is itself a recursive one.
    pub caller_recursive: bool,
    /// Whether the callee's is.
    pub callee_recursive: bool,
}

/// Calls from one method to another.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Edge {
    /// How many.
    pub calls: u64,
    /// Their time, entry to exit.
    pub total: Ticks,
}

/// The call graph of a trace.
#[derive(Debug, Clone, Default)]
pub struct CallGraph {
    /// By dense method index.
    pub methods: Vec<GraphStat>,
    /// Outside of all calls, over all threads: exclusive; and all threads' time: inclusive.
    pub outside: GraphStat,
    /// All callers with their callees.
    pub edges: HashMap<EdgeKey, Edge>,
}

impl CallGraph {
    /// Folds a tree over this many methods.
    pub fn of(tree: &CallTree, methods: usize) -> CallGraph {
        let mut graph = CallGraph { methods: vec![GraphStat::default(); methods], ..CallGraph::default() };
        let children = tree.children();
        let mut open = vec![0u32; methods];
        for (root, node) in tree.nodes.iter().enumerate().take_while(|(_, node)| node.method == ROOT) {
            add(&mut graph.outside.exclusive, node.own);
            add(&mut graph.outside.inclusive, node.recorded);
            // Depth first, with a mark to come back to when a call's subtree is done.
            let mut to_visit: Vec<(u32, bool)> = children[root].iter().map(|n| (*n, false)).collect();
            while let Some((index, done)) = to_visit.pop() {
                let method = tree.nodes[index as usize].method as usize;
                if done {
                    open[method] -= 1;
                    continue;
                }
                graph.take(tree, index, &open);
                open[method] += 1;
                to_visit.push((index, true));
                to_visit.extend(children[index as usize].iter().map(|n| (*n, false)));
            }
        }
        graph.outside.outermost_exclusive = graph.outside.exclusive;
        graph
    }

    fn take(&mut self, tree: &CallTree, index: u32, open: &[u32]) {
        let node = &tree.nodes[index as usize];
        let caller = tree.nodes[node.parent as usize].method;
        let recursive = open[node.method as usize] > 0;
        let stat = &mut self.methods[node.method as usize];
        stat.calls[usize::from(recursive)] += node.calls;
        add(&mut stat.exclusive, node.own);
        if !recursive {
            add(&mut stat.inclusive, node.recorded);
            add(&mut stat.outermost_exclusive, node.own);
        }
        let caller_recursive = caller != ROOT && open[caller as usize] > 1;
        let key = EdgeKey { caller, callee: node.method, caller_recursive, callee_recursive: recursive };
        let edge = self.edges.entry(key).or_default();
        edge.calls += node.calls;
        add(&mut edge.total, node.recorded);
    }
}
