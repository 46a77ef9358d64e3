//! Interned stacks and frames: each distinct path of calls is one node that refers to its caller's.

use rustc_hash::FxHashMap;

use super::{FrameKind, SampleFrame, SampleTables};

/// The number that stands for an empty stack.
pub const NO_STACK: u32 = u32::MAX;

/// A stack: its innermost frame, and the stack of the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StackNode {
    /// The stack without its innermost frame, which has a lower number; [`NO_STACK`] below the outermost.
    pub parent: u32,
    /// The index of the innermost frame.
    pub frame: u32,
}

/// All distinct stacks, by number.
#[derive(Debug, Clone, Default)]
pub struct StackTable {
    nodes: Vec<StackNode>,
    children: FxHashMap<(u32, u32), u32>,
}

impl StackTable {
    /// The stack of `frame` called from `parent`.
    pub fn child(&mut self, parent: u32, frame: u32) -> u32 {
        let next = self.nodes.len() as u32;
        let stack = *self.children.entry((parent, frame)).or_insert(next);
        if stack == next {
            self.nodes.push(StackNode { parent, frame });
        }
        stack
    }

    /// The stack of frames, the outermost first.
    pub fn of_frames(&mut self, outermost_first: impl IntoIterator<Item = u32>) -> u32 {
        outermost_first.into_iter().fold(NO_STACK, |parent, frame| self.child(parent, frame))
    }

    /// The nodes; a parent stands before its children.
    pub fn nodes(&self) -> &[StackNode] {
        &self.nodes
    }

    /// The frames of a stack, the innermost first.
    pub fn frames(&self, stack: u32) -> impl Iterator<Item = u32> {
        let mut at = stack;
        std::iter::from_fn(move || {
            let node = self.nodes.get(at as usize)?;
            at = node.parent;
            Some(node.frame)
        })
    }
}

/// What makes a frame the same as another one: its name, its file and its kind.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FrameKey {
    /// The name of the symbol; empty for a frame without one.
    pub symbol: String,
    /// The index of the file.
    pub module: u32,
    /// The code's owner.
    pub kind: FrameKind,
    /// The address in the file of a frame without a symbol; else 0.
    pub unknown_address: u64,
}

/// The frames of [`SampleTables`] by what makes them the same.
#[derive(Debug, Default)]
pub struct FrameIndex {
    known: FxHashMap<FrameKey, u32>,
}

impl FrameIndex {
    /// The index of a frame; a new frame is added to `tables`. `address` is the address in the file, and
    /// `symbol` the readable name of the function, empty where it is not known.
    pub fn intern(
        &mut self,
        tables: &mut SampleTables,
        symbol: &str,
        module: u32,
        kind: FrameKind,
        address: u64,
    ) -> u32 {
        let has_symbol = !symbol.is_empty();
        let unknown_address = if has_symbol { 0 } else { address };
        let key = FrameKey { symbol: symbol.to_owned(), module, kind, unknown_address };
        let next = tables.frames.len() as u32;
        let index = *self.known.entry(key).or_insert(next);
        if index == next {
            let name = match has_symbol {
                true => symbol.to_owned(),
                false => {
                    let file = tables.modules.get(module as usize).map_or("[unknown]", |m| m.file_name());
                    format!("{file}+0x{address:x}")
                }
            };
            tables.frames.push(SampleFrame { name, has_symbol, kind, module, address });
        }
        index
    }
}
