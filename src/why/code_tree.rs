//! The code in which threads ran: a tree of frames for each path, and when each of them was the innermost.
//!
//! The frames are calls of methods, else functions on the stacks of samples, else slices.

use rustc_hash::FxHashMap;

use super::cause::PathId;
use super::names::NameId;
use super::slices::Slice;
use crate::clock::Timestamp;
use crate::formats::samples::{FrameKind, SampleTables};

/// The kind of a frame's code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum CodeKind {
    /// A slice of a marker.
    Slice,
    /// A method of Java or Kotlin: `java.lang.String.valueOf`.
    Method,
    /// Machine code of a program or of a library that it carries.
    Program,
    /// Machine code of the system: its libraries, the runtime, the kernel.
    System,
}

/// A slice, a method or a function that was open while a thread ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct CodeFrame {
    pub name: NameId,
    pub kind: CodeKind,
}

/// The number of a stack of samples in [`SampledStacks`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct SampledStackId(u32);

/// The stacks of samples, from the outermost frame to the one that names the code.
#[derive(Debug, Default)]
pub(super) struct SampledStacks {
    stacks: Vec<Box<[CodeFrame]>>,
}

impl SampledStacks {
    /// Adds a stack. `None` where it has no frame.
    pub fn add(
        &mut self,
        tables: &SampleTables,
        stack: u32,
        mut name: impl FnMut(&str) -> NameId,
    ) -> Option<SampledStackId> {
        let own = tables.own_frame(stack)?;
        let frames = tables.stacks.frames(stack).filter_map(|number| tables.frames.get(number as usize));
        let mut from_own = frames.skip_while(|frame| !std::ptr::eq(*frame, own)).peekable();
        from_own.peek()?;
        let mut frames: Vec<CodeFrame> = from_own
            .map(|frame| {
                let path = tables.modules.get(frame.module as usize).map_or("", |module| &module.path);
                let kind = match frame.kind {
                    FrameKind::Java if frame.has_symbol => CodeKind::Method,
                    FrameKind::Kernel => CodeKind::System,
                    _ if is_system_code(path, &frame.name) => CodeKind::System,
                    _ => CodeKind::Program,
                };
                CodeFrame { name: name(&frame.name), kind }
            })
            .collect();
        frames.reverse();
        let id = SampledStackId(self.stacks.len() as u32);
        self.stacks.push(frames.into());
        Some(id)
    }

    fn get(&self, id: SampledStackId) -> &[CodeFrame] {
        self.stacks.get(id.0 as usize).map_or(&[], |frames| frames)
    }

    /// The name of the code that a thread ran.
    pub fn leaf(&self, id: SampledStackId) -> Option<NameId> {
        self.get(id).last().map(|frame| frame.name)
    }
}

/// Directories of libraries that belong to the system: Android's partitions, and those of Linux
/// (Filesystem Hierarchy Standard 3.0).
const SYSTEM_DIRECTORIES: [&str; 10] = [
    "/apex/",
    "/lib/",
    "/lib64/",
    "/product/",
    "/system/",
    "/system_ext/",
    "/usr/lib/",
    "/usr/lib64/",
    "/usr/libexec/",
    "/vendor/",
];
/// Begins of names of functions that lead to a program's own ones: the C library's start, Rust's standard
/// library, C++'s.
const SYSTEM_FUNCTIONS: [&str; 9] = [
    "_start",
    "__libc_start",
    "__rust_",
    "start_thread",
    "clone",
    "std::",
    "core::",
    "alloc::",
    "__gnu_cxx::",
];

fn is_system_code(path: &str, function: &str) -> bool {
    let function = function.trim_start_matches('<');
    path.starts_with('[')
        || SYSTEM_DIRECTORIES.iter().any(|directory| path.starts_with(directory))
        || SYSTEM_FUNCTIONS.iter().any(|begin| function.starts_with(begin))
}

/// The number of a node in a [`CodeTree`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct NodeId(u32);

impl NodeId {
    pub fn new(index: usize) -> NodeId {
        NodeId(index as u32)
    }

    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A frame, and the frames around it.
#[derive(Debug, Clone, Copy)]
pub(super) struct CodeNode {
    /// The path whose last thread ran.
    pub path: PathId,
    /// The frame around this one; of a root itself.
    pub parent: NodeId,
    /// `None` for the root of a path.
    pub frame: Option<CodeFrame>,
    /// How long it was the innermost, ns.
    pub ns: u64,
    /// How many samples found it to be the innermost.
    pub samples: u64,
}

/// A stretch in which one node was the innermost.
#[derive(Debug, Clone, Copy)]
pub(super) struct CodeStretch {
    pub node: NodeId,
    pub start: Timestamp,
    pub end: Timestamp,
    /// The number of the part of the span between or in two waits of the span's own thread.
    pub segment: u32,
}

/// The open slices of the last stretch, and their nodes.
#[derive(Debug)]
struct OpenNodes<'m> {
    root: NodeId,
    open: Vec<(&'m Slice, NodeId)>,
}

/// The frames of all paths. A node comes behind the one around it.
#[derive(Debug, Default)]
pub(super) struct CodeTree<'m> {
    pub nodes: Vec<CodeNode>,
    pub stretches: Vec<CodeStretch>,
    roots: FxHashMap<PathId, NodeId>,
    children: FxHashMap<(NodeId, CodeFrame), NodeId>,
    by_stack: FxHashMap<(NodeId, SampledStackId), NodeId>,
    open_calls: Option<OpenNodes<'m>>,
    open_slices: Option<OpenNodes<'m>>,
}

impl<'m> CodeTree<'m> {
    /// The node of a path outside of every frame.
    pub fn root(&mut self, path: PathId) -> NodeId {
        let next = NodeId(self.nodes.len() as u32);
        let root = *self.roots.entry(path).or_insert(next);
        if root == next {
            self.nodes.push(CodeNode { path, parent: root, frame: None, ns: 0, samples: 0 });
        }
        root
    }

    fn child(&mut self, parent: NodeId, frame: CodeFrame) -> NodeId {
        let next = NodeId(self.nodes.len() as u32);
        let node = *self.children.entry((parent, frame)).or_insert(next);
        if node == next {
            let path = self.nodes[parent.index()].path;
            self.nodes.push(CodeNode { path, parent, frame: Some(frame), ns: 0, samples: 0 });
        }
        node
    }

    /// The node of the innermost of these slices, which lie within each other: the outermost first.
    pub fn of_slices(&mut self, root: NodeId, open: &[&'m Slice]) -> NodeId {
        let last = self.open_slices.take();
        let nodes = self.opened(last, root, open, CodeKind::Slice);
        let node = nodes.open.last().map_or(root, |(_, node)| *node);
        self.open_slices = Some(nodes);
        node
    }

    /// The node of the innermost of these calls: the outermost first.
    pub fn of_calls(&mut self, root: NodeId, open: &[&'m Slice]) -> NodeId {
        let last = self.open_calls.take();
        let nodes = self.opened(last, root, open, CodeKind::Method);
        let node = nodes.open.last().map_or(root, |(_, node)| *node);
        self.open_calls = Some(nodes);
        node
    }

    /// Looks up those nodes alone that differ from the last ones: there are millions of calls.
    fn opened(
        &mut self,
        last: Option<OpenNodes<'m>>,
        root: NodeId,
        open: &[&'m Slice],
        kind: CodeKind,
    ) -> OpenNodes<'m> {
        let mut nodes = last.filter(|last| last.root == root).unwrap_or(OpenNodes { root, open: Vec::new() });
        let mut same = nodes.open.len().min(open.len());
        while same > 0 && !std::ptr::eq(nodes.open[same - 1].0, open[same - 1]) {
            same -= 1;
        }
        nodes.open.truncate(same);
        let mut node = nodes.open.last().map_or(root, |(_, node)| *node);
        for slice in &open[same..] {
            node = self.child(node, CodeFrame { name: slice.name, kind });
            nodes.open.push((slice, node));
        }
        nodes
    }

    /// The node of the innermost frame of a sample's stack.
    pub fn of_stack(&mut self, root: NodeId, stacks: &SampledStacks, stack: SampledStackId) -> NodeId {
        if let Some(node) = self.by_stack.get(&(root, stack)) {
            return *node;
        }
        let node = stacks.get(stack).iter().fold(root, |node, frame| self.child(node, *frame));
        self.by_stack.insert((root, stack), node);
        node
    }

    /// The thread ran in this node.
    pub fn add(&mut self, node: NodeId, start: Timestamp, end: Timestamp, segment: u32) {
        self.nodes[node.index()].ns += end - start;
        match self.stretches.last_mut() {
            Some(last) if last.end == start && last.node == node && last.segment == segment => last.end = end,
            _ => self.stretches.push(CodeStretch { node, start, end, segment }),
        }
    }

    /// A sample found the thread in this node.
    pub fn count_sample(&mut self, node: NodeId) {
        self.nodes[node.index()].samples += 1;
    }
}
