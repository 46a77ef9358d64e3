//! The stacks of samples, as the member `stackFrames` holds them: each has its innermost frame, and the id of
//! the stack of the caller.

use std::fmt;
use std::io::{self, Write};
use std::sync::Arc;

use super::json_text::json_string;
use crate::export::writer_thread::WriterThread;
use crate::formats::samples::{FrameKind, SampleTables, StackNode};

/// The id of a stack in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct StackId {
    set: u32,
    stack: u32,
}

impl fmt::Display for StackId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.set, self.stack)
    }
}

/// The stacks of all sets of samples, and which of them the file's samples have.
#[derive(Default)]
pub(super) struct StackFrames {
    /// By the number of the set: the tables, and a flag for each stack.
    sets: Vec<(Arc<SampleTables>, Vec<bool>)>,
}

impl StackFrames {
    /// Adds the next set.
    pub(super) fn add_set(&mut self, tables: &Arc<SampleTables>) {
        self.sets.push((Arc::clone(tables), vec![false; tables.stacks.nodes().len()]));
    }

    /// The id of a stack, which the file then holds; `None` for an empty stack.
    pub(super) fn use_stack(&mut self, set: u32, stack: u32) -> Option<StackId> {
        let (tables, used) = self.sets.get_mut(set as usize)?;
        let mut at = stack;
        // The callers of a stack that is used are used already.
        while let Some(flag) = used.get_mut(at as usize).filter(|flag| !**flag) {
            *flag = true;
            at = tables.stacks.nodes()[at as usize].parent;
        }
        ((stack as usize) < used.len()).then_some(StackId { set, stack })
    }

    /// Writes the member, if there is a stack.
    pub(super) fn write(&self, writer: &mut WriterThread, out: &mut Vec<u8>) -> io::Result<()> {
        let mut before: &[u8] = b"\"stackFrames\":{\n";
        for (set, (tables, used)) in self.sets.iter().enumerate() {
            let nodes = tables.stacks.nodes().iter().enumerate();
            for (stack, node) in nodes.filter(|(stack, _)| used[*stack]) {
                out.extend_from_slice(before);
                before = b",\n";
                let id = StackId { set: set as u32, stack: stack as u32 };
                write_frame(out, tables, id, *node);
                writer.write_if_full(out)?;
            }
        }
        if before == b",\n" {
            out.extend_from_slice(b"\n},\n");
        }
        Ok(())
    }
}

/// Appends a stack: its innermost frame with the library as its category, and the id of the caller's stack.
fn write_frame(out: &mut Vec<u8>, tables: &SampleTables, id: StackId, node: StackNode) {
    let frame = &tables.frames[node.frame as usize];
    let module = tables.modules.get(frame.module as usize);
    let category = match (frame.kind, module) {
        (FrameKind::Kernel, _) => "kernel",
        (_, Some(module)) => module.file_name(),
        (_, None) => "",
    };
    let _ = write!(out, "\"{id}\":{{\"name\":");
    json_string(out, frame.name.as_bytes());
    out.extend_from_slice(b",\"category\":");
    json_string(out, category.as_bytes());
    if (node.parent as usize) < tables.stacks.nodes().len() {
        let _ = write!(out, ",\"parent\":\"{}\"", StackId { stack: node.parent, ..id });
    }
    out.push(b'}');
}
