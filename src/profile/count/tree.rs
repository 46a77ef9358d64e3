//! The call tree: each distinct path of calls is one node with its calls and times, below one root for each
//! thread.

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
    /// Time of the calls from entry to exit, ticks. A call that had begun before the trace did counts from
    /// the thread's first record. Its callees are its siblings in the tree, so their time counts twice
    /// here; [`CallTree::totals`] counts every tick once.
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
