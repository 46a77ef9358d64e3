//! The call graph: callers and callees of each method, with recursive calls counted separately.

use std::collections::HashMap;

use super::add;
use super::tree::{CallTree, ROOT};
use crate::formats::art_method::Ticks;

/// The figures of one method; times in ticks. A call is recursive while another call of the same method is
/// open.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct GraphStat {
    /// Calls that are not recursive, and recursive calls.
    pub calls: [u64; 2],
    /// Time in the method and not in the methods it called.
    pub exclusive: Ticks,
    /// The part of `exclusive` in calls that are not recursive.
    pub outermost_exclusive: Ticks,
    /// Time in the method and in all methods it called, in calls that are not recursive.
    pub inclusive: Ticks,
}

/// A caller and a callee.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CallEdgeKey {
    /// Dense method index of the caller; [`ROOT`] outside of all calls.
    pub caller: u32,
    /// Dense method index of the callee.
    pub callee: u32,
    /// Whether the call of the caller is recursive.
    pub caller_recursive: bool,
    /// Whether the call of the callee is recursive.
    pub callee_recursive: bool,
}

/// Calls from one method to another.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CallEdge {
    /// Number of calls.
    pub calls: u64,
    /// Time of the calls from entry to exit, ticks.
    pub total: Ticks,
}

/// The call graph of a trace.
#[derive(Debug, Clone, Default)]
pub struct CallGraph {
    /// By dense method index.
    pub methods: Vec<GraphStat>,
    /// The sums over all threads: time outside of all calls (exclusive), and time from first record to last
    /// (inclusive).
    pub outside: GraphStat,
    /// The calls between each caller and callee.
    pub edges: HashMap<CallEdgeKey, CallEdge>,
}

impl CallGraph {
    /// The call graph of a tree whose dense method indexes lie below `methods`.
    pub fn from_tree(tree: &CallTree, methods: usize) -> CallGraph {
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
        let key = CallEdgeKey { caller, callee: node.method, caller_recursive, callee_recursive: recursive };
        let edge = self.edges.entry(key).or_default();
        edge.calls += node.calls;
        add(&mut edge.total, node.recorded);
    }
}
