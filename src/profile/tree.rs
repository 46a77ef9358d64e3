//! The call tree: every distinct path of calls once, with its calls and times, below one root per thread.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use super::drive::{Feed, Selection, drive};
use super::machine::{Frame, Machine, Ticks, Visitor, add};
use crate::formats::art_method::ids::IdHasher;
use crate::formats::art_method::{CallAnomalies, MethodTrace};

/// The method of a thread's root.
pub const ROOT: u32 = u32::MAX;

/// One path of calls; its caller is an earlier node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Node {
    /// Index of the caller's node; a root's own.
    pub parent: u32,
    /// Dense method index, or [`ROOT`].
    pub method: u32,
    /// Dense index of the thread.
    pub thread: u32,
    /// Calls along this path; 0 for a root.
    pub calls: u64,
    /// Time in it and not in what it called; for a root, outside of all calls.
    pub own: Ticks,
    /// Time of its calls as recorded, entry to exit. A call whose entry is not in the trace counts from the thread's
    /// first event, though its callees then stand beside it: for sums along the tree use [`CallTree::totals`].
    pub recorded: Ticks,
}

/// The call tree of a trace.
#[derive(Debug, Clone, Default)]
pub struct CallTree {
    /// One root per thread with records first, then in order of appearance; callers before callees.
    pub nodes: Vec<Node>,
    /// What did not fit together.
    pub problems: CallAnomalies,
    children: HashMap<u64, u32, BuildHasherDefault<IdHasher>>,
}

/// How to build a tree.
#[derive(Debug, Clone, Copy, Default)]
pub struct TreeOptions {
    /// Undeclared methods count as one, with the index of the first of them.
    pub merge_undeclared: bool,
    /// Calls whose entry is not in the trace began at time 0, not at the thread's first event.
    pub orphans_from_zero: bool,
}

impl CallTree {
    /// Builds the tree of the selected records.
    pub fn of(trace: &MethodTrace<'_>, selection: &Selection, options: TreeOptions) -> CallTree {
        let mut tree = CallTree::default();
        for thread in 0..trace.threads().len() as u32 {
            let parent = thread;
            tree.nodes.push(Node { parent, method: ROOT, thread, calls: 0, own: [0; 2], recorded: [0; 2] });
        }
        let mut machine = Machine::new(trace.threads().len(), tree);
        machine.orphans_from_zero = options.orphans_from_zero;
        let first_undeclared = trace.counts().declared_methods as u32;
        let merged = if options.merge_undeclared { first_undeclared } else { u32::MAX };
        drive(trace, selection, &mut AtMost { merged, to: &mut machine });
        machine.finish(trace.may_wrap());
        let mut tree = machine.visitor;
        tree.problems = machine.problems;
        for (root, state) in tree.nodes.iter_mut().zip(&machine.threads) {
            root.recorded = state.total();
        }
        tree
    }

    fn child(&mut self, parent: u32, method: u32, thread: u32) -> u32 {
        let next = self.nodes.len() as u32;
        let index = *self.children.entry(u64::from(parent) << 32 | u64::from(method)).or_insert(next);
        if index == next {
            self.nodes.push(Node { parent, method, thread, calls: 0, own: [0; 2], recorded: [0; 2] });
        }
        index
    }

    /// The time of each node with all below it: the sum of [`Node::own`] over its subtree.
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

    /// Each node's children, in order of appearance.
    pub fn children(&self) -> Vec<Vec<u32>> {
        let mut children = vec![Vec::new(); self.nodes.len()];
        for (index, node) in self.nodes.iter().enumerate() {
            if node.parent as usize != index {
                children[node.parent as usize].push(index as u32);
            }
        }
        children
    }

    /// The methods from the thread's outermost call to this node's own.
    pub fn path(&self, node: u32) -> Vec<u32> {
        let mut path = Vec::new();
        let mut at = node;
        while let Some(n) = self.nodes.get(at as usize).filter(|n| n.method != ROOT) {
            path.push(n.method);
            at = n.parent;
        }
        path.reverse();
        path
    }
}

impl Visitor for CallTree {
    fn enter(&mut self, thread: u32, method: u32, caller: Option<&Frame>, _: Ticks) -> u32 {
        self.child(caller.map_or(thread, |caller| caller.tag), method, thread)
    }

    fn leave(&mut self, _: u32, frame: &Frame, total: Ticks, _: Ticks) {
        if let Some(node) = self.nodes.get_mut(frame.tag as usize) {
            node.calls += 1;
            add(&mut node.own, frame.own);
            add(&mut node.recorded, total);
        }
    }

    fn orphan(&mut self, thread: u32, method: u32, own: Ticks, total: Ticks, at: Ticks) {
        let tag = self.child(thread, method, thread);
        self.leave(thread, &Frame { method, tag, entry: at, own }, total, at);
    }

    fn idle(&mut self, thread: u32, spent: Ticks) {
        add(&mut self.nodes[thread as usize].own, spent);
    }
}

/// Takes all methods from one index on for one.
struct AtMost<'a, F> {
    merged: u32,
    to: &'a mut F,
}

impl<F: Feed> Feed for AtMost<'_, F> {
    #[inline(always)]
    fn feed(&mut self, thread: u32, method: u32, exit: bool, at: Ticks) {
        self.to.feed(thread, method.min(self.merged), exit, at);
    }

    fn pass(&mut self, thread: u32, at: Ticks) {
        self.to.pass(thread, at);
    }
}
