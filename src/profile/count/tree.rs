//! The call tree: each distinct path of calls is one node with its calls and times, below one root for each
//! thread. The call graph is made of the tree: callers and callees of each method, with recursive calls
//! counted separately.

use std::collections::HashMap;

use rustc_hash::FxHashMap;

use super::add;
use super::call_stacks::{CallStacks, CallVisitor, OpenCall};
use super::selection::{ProfileSelection, stream};
use crate::formats::art_method::records::{ExitBit, RecordSink};
use crate::formats::art_method::{CallAnomalies, MethodTrace, Ticks};
use crate::progress::Pass;

/// The method of a thread's root.
pub const ROOT: u32 = u32::MAX;

/// One path of calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallNode {
    /// Index of the caller's node, which is an earlier node; for a root its own index.
    pub parent: u32,
    /// Dense method index of the innermost call; [`ROOT`] for a root.
    pub method: u32,
    /// Dense thread index.
    pub thread: u32,
    /// Number of calls; 0 for a root.
    pub calls: u64,
    /// Time in the innermost call and not in calls inside of it; for a root the time outside of all calls.
    /// Ticks.
    pub own: Ticks,
    /// Time of the calls from entry to exit, ticks. A call that began before the trace counts from the
    /// thread's first record. Its callees are its siblings in the tree, so their time counts twice here;
    /// [`CallTree::totals`] counts every tick once.
    pub recorded: Ticks,
}

/// The call tree of a trace.
#[derive(Debug, Clone, Default)]
pub struct CallTree {
    /// First a root for each thread, then the paths in order of appearance.
    pub nodes: Vec<CallNode>,
    /// Irregularities of the records.
    pub anomalies: CallAnomalies,
    children: FxHashMap<u64, u32>,
}

/// Options for building a tree.
#[derive(Debug, Clone, Copy, Default)]
pub struct TreeOptions {
    /// Treats all undeclared methods as one method, which has the index of the first undeclared method.
    pub merge_undeclared: bool,
    /// Counts calls that had begun before the trace did from time 0, not from the thread's first record.
    pub unentered_from_zero: bool,
}

impl CallTree {
    /// Builds the tree of the selected records.
    pub fn from_trace(
        trace: &MethodTrace<'_>,
        selection: &ProfileSelection,
        options: TreeOptions,
    ) -> CallTree {
        let mut tree = CallTree::default();
        for thread in 0..trace.threads().len() as u32 {
            tree.nodes.push(CallNode {
                parent: thread,
                method: ROOT,
                thread,
                calls: 0,
                own: [0; 2],
                recorded: [0; 2],
            });
        }
        let mut stacks = CallStacks::new(trace.threads().len(), tree);
        stacks.unentered_from_zero = options.unentered_from_zero;
        let first_undeclared = trace.counts().declared_methods as u32;
        let merged = if options.merge_undeclared { first_undeclared } else { u32::MAX };
        let _pass = Pass::begin("building the call tree", trace.record_bytes());
        stream(trace, selection, &mut MergeUndeclared { merged, sink: &mut stacks });
        stacks.finish(trace.may_wrap());
        let mut tree = stacks.visitor;
        tree.anomalies = stacks.anomalies;
        for (root, state) in tree.nodes.iter_mut().zip(&stacks.threads) {
            root.recorded = state.total();
        }
        tree
    }

    fn child(&mut self, parent: u32, method: u32, thread: u32) -> u32 {
        let next = self.nodes.len() as u32;
        let index = *self.children.entry(u64::from(parent) << 32 | u64::from(method)).or_insert(next);
        if index == next {
            self.nodes.push(CallNode { parent, method, thread, calls: 0, own: [0; 2], recorded: [0; 2] });
        }
        index
    }

    /// Whether there is any call.
    pub fn has_calls(&self) -> bool {
        self.nodes.iter().any(|node| node.calls > 0)
    }

    /// For each node the sum of [`CallNode::own`] over the node and all nodes below it.
    pub fn totals(&self) -> Vec<Ticks> {
        let mut totals: Vec<Ticks> = self.nodes.iter().map(|n| n.own).collect();
        for (index, node) in self.nodes.iter().enumerate().rev() {
            if node.parent as usize != index {
                let total = totals[index];
                add(&mut totals[node.parent as usize], total);
            }
        }
        totals
    }

    /// For each node its children, in order of appearance.
    pub fn children(&self) -> Vec<Vec<u32>> {
        let mut children = vec![Vec::new(); self.nodes.len()];
        for (index, node) in self.nodes.iter().enumerate() {
            if node.parent as usize != index {
                children[node.parent as usize].push(index as u32);
            }
        }
        children
    }
}

impl CallVisitor for CallTree {
    fn enter(&mut self, thread: u32, method: u32, caller: Option<&OpenCall>, _: Ticks) -> u32 {
        self.child(caller.map_or(thread, |caller| caller.tag), method, thread)
    }

    fn leave(&mut self, _: u32, call: &OpenCall, total: Ticks, _: Ticks) {
        if let Some(node) = self.nodes.get_mut(call.tag as usize) {
            node.calls += 1;
            add(&mut node.own, call.own);
            add(&mut node.recorded, total);
        }
    }

    fn leave_unentered(&mut self, thread: u32, method: u32, own: Ticks, total: Ticks, at: Ticks) {
        let tag = self.child(thread, method, thread);
        self.leave(thread, &OpenCall { method, tag, entry: at, own }, total, at);
    }

    fn idle(&mut self, thread: u32, spent: Ticks) {
        add(&mut self.nodes[thread as usize].own, spent);
    }
}

/// Replaces all methods from the index `merged` on by `merged`.
struct MergeUndeclared<'a, S> {
    merged: u32,
    sink: &'a mut S,
}

impl<S: RecordSink> RecordSink for MergeUndeclared<'_, S> {
    #[inline(always)]
    fn record(&mut self, thread: u32, method: u32, exit: ExitBit, at: Ticks) {
        self.sink.record(thread, method.min(self.merged), exit, at);
    }

    fn advance(&mut self, thread: u32, at: Ticks) {
        self.sink.advance(thread, at);
    }
}

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
