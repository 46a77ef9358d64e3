//! Folded stacks, the input of flame graph tools: one line `thread;outermost;…;innermost time` for each path
//! of calls.
//!
//! A line names its whole path, so the lines of a recursion of N calls have N²/2 names. The paths are kept as
//! a tree and written one after another, and paths that would make the output too long end earlier.

use std::collections::HashMap;
use std::io::{self, Write};

use crate::profile::count::tree::{CallTree, ROOT};
use crate::profile::names::TraceNames;

/// The longest output of any profile, bytes: 256 MiB.
pub(super) const MAX_DRAWN_BYTES: u64 = 256 << 20;
/// The longest output of folded stacks for each node of the call tree, bytes. Lines of ordinary profiles have
/// some hundred bytes.
const MAX_BYTES_PER_NODE: u64 = 2 << 10;
/// The last name of a line that stands for all calls below its path.
const DEEPER_CALLS: &str = "(deeper calls)";
/// The name of time outside of all calls, where the paths do not begin with the thread.
const OUTSIDE: &str = "(outside of traced methods)";

/// Times in ticks of one clock: of a profile, or of two profiles that are compared.
type FoldedTimes = [u64; 2];

/// A path of names.
#[derive(Debug, Clone, Copy)]
struct FoldedNode {
    /// Index of the path without its last name, which is an earlier node; for the root 0.
    parent: u32,
    /// Index of the last name.
    name: u32,
    /// Number of names.
    depth: u32,
    /// Length of the path as text, bytes.
    bytes: u64,
    own: FoldedTimes,
}

/// The paths of calls of one or two profiles, each with its times. Paths with the same names are one path.
#[derive(Debug, Default)]
pub(super) struct FoldedStacks {
    /// The root, an empty path, and the other paths in order of appearance.
    nodes: Vec<FoldedNode>,
    children: HashMap<(u32, u32), u32>,
    names: Vec<String>,
    name_ids: HashMap<String, u32>,
    /// By name: whether a method has this name. Otherwise only a thread or a sum has it.
    method_names: Vec<bool>,
}

impl FoldedStacks {
    /// Adds the paths of a profile; `side` is the profile's place in [`FoldedTimes`]. The paths of a thread
    /// begin with the names that `first_names` gives for the thread's index, before the outermost method.
    /// Time outside of all calls has these names as its path, so that the lines of a thread add up to the
    /// time from its first record to its last.
    pub(super) fn add(
        &mut self,
        tree: &CallTree,
        names: &TraceNames<'_, '_>,
        clock: usize,
        first_names: impl Fn(u32) -> Vec<String>,
        side: usize,
    ) {
        if self.nodes.is_empty() {
            self.nodes.push(FoldedNode { parent: 0, name: 0, depth: 0, bytes: 0, own: [0; 2] });
        }
        let mut by_method: HashMap<u32, u32> = HashMap::new();
        let mut paths: Vec<u32> = Vec::with_capacity(tree.nodes.len());
        for node in &tree.nodes {
            let path = match node.method {
                ROOT => first_names(node.thread).iter().fold(0, |path, name| {
                    let name = self.name(name);
                    self.child(path, name)
                }),
                method => {
                    let name = *by_method.entry(method).or_insert_with(|| {
                        let name = self.name(&names.full(method));
                        self.method_names[name as usize] = true;
                        name
                    });
                    self.child(paths[node.parent as usize], name)
                }
            };
            paths.push(path);
            let counted = match path {
                0 if node.own[clock] > 0 => {
                    let name = self.name(OUTSIDE);
                    self.child(0, name)
                }
                path => path,
            };
            let own = &mut self.nodes[counted as usize].own[side];
            *own = own.saturating_add(node.own[clock]);
        }
    }

    fn name(&mut self, name: &str) -> u32 {
        let name = clean(name);
        if let Some(id) = self.name_ids.get(&name) {
            return *id;
        }
        let id = self.names.len() as u32;
        self.names.push(name.clone());
        self.method_names.push(false);
        self.name_ids.insert(name, id);
        id
    }

    fn child(&mut self, parent: u32, name: u32) -> u32 {
        let next = self.nodes.len() as u32;
        let index = *self.children.entry((parent, name)).or_insert(next);
        if index == next {
            let above = self.nodes[parent as usize];
            let bytes = above.bytes + self.names[name as usize].len() as u64 + 1;
            self.nodes.push(FoldedNode { parent, name, depth: above.depth + 1, bytes, own: [0; 2] });
        }
        index
    }

    /// The largest number of names in a line with which the lines of `--folded` stay within a length that is
    /// proportional to the profile.
    pub(super) fn written_depth(&self) -> u32 {
        self.depth_within(MAX_DRAWN_BYTES.max(MAX_BYTES_PER_NODE * self.nodes.len() as u64))
    }

    /// The largest number of names in a line with which all lines together have at most `max_bytes`.
    pub(super) fn depth_within(&self, max_bytes: u64) -> u32 {
        let deepest = self.nodes.iter().map(|node| node.depth).max().unwrap_or(0);
        let mut by_depth = vec![0u64; deepest as usize + 1];
        for node in self.nodes.iter().filter(|node| node.own != [0; 2]) {
            by_depth[node.depth as usize] += node.bytes;
        }
        let mut left = max_bytes;
        for (depth, bytes) in by_depth.iter().enumerate() {
            match left.checked_sub(*bytes) {
                Some(rest) => left = rest,
                None => return (depth as u32).saturating_sub(1).max(1),
            }
        }
        deepest
    }

    /// The names in the paths, each with whether it is a method's.
    pub(super) fn names(&self) -> impl Iterator<Item = (&str, bool)> {
        self.names.iter().map(String::as_str).zip(self.method_names.iter().copied())
    }

    /// Whether no path takes time.
    pub(super) fn is_empty(&self) -> bool {
        self.nodes.iter().all(|node| node.own == [0; 2])
    }

    /// Whether paths have more names than `max_depth`.
    pub(super) fn is_deeper_than(&self, max_depth: u32) -> bool {
        self.nodes.iter().any(|node| node.depth > max_depth)
    }

    /// Gives every path with its times to `line`, callers before callees, callees by name. The times of paths
    /// with more than `max_depth` names are added up under a last name `(deeper calls)`.
    pub(super) fn each_line(
        &self,
        max_depth: u32,
        mut line: impl FnMut(&str, FoldedTimes) -> io::Result<()>,
    ) -> io::Result<()> {
        let deeper = self.times_below(max_depth);
        let children = self.sorted_children(max_depth);
        let mut path = String::new();
        let mut to_visit = vec![0u32];
        while let Some(index) = to_visit.pop() {
            let node = &self.nodes[index as usize];
            if index > 0 {
                // The path's text begins with the parent's text, which is still there.
                let above = &self.nodes[node.parent as usize];
                path.truncate((above.bytes as usize).saturating_sub(1));
                if node.depth > 1 {
                    path.push(';');
                }
                path.push_str(&self.names[node.name as usize]);
                if node.own != [0; 2] {
                    line(&path, node.own)?;
                }
                if let Some(times) = deeper.get(&index) {
                    line(&format!("{path};{DEEPER_CALLS}"), *times)?;
                }
            }
            to_visit.extend(children.of_node(index).iter().rev());
        }
        Ok(())
    }

    /// For each path with `max_depth` names the times of all longer paths that begin with it.
    fn times_below(&self, max_depth: u32) -> HashMap<u32, FoldedTimes> {
        let mut cut_at = vec![0u32; self.nodes.len()];
        let mut below: HashMap<u32, FoldedTimes> = HashMap::new();
        for (index, node) in self.nodes.iter().enumerate() {
            if node.depth <= max_depth {
                cut_at[index] = index as u32;
                continue;
            }
            cut_at[index] = cut_at[node.parent as usize];
            if node.own != [0; 2] {
                let times = below.entry(cut_at[index]).or_default();
                times.iter_mut().zip(node.own).for_each(|(sum, own)| *sum = sum.saturating_add(own));
            }
        }
        below
    }

    /// The children of each path with less than `max_depth` names, by name.
    fn sorted_children(&self, max_depth: u32) -> Children {
        let mut order: Vec<u32> = (1..self.nodes.len() as u32).collect();
        order.retain(|index| self.nodes[*index as usize].depth <= max_depth);
        order.sort_unstable_by(|a, b| {
            let key = |index: &u32| {
                let node = &self.nodes[*index as usize];
                (node.parent, &self.names[node.name as usize])
            };
            key(a).cmp(&key(b))
        });
        let mut starts = vec![0u32; self.nodes.len() + 1];
        for index in &order {
            starts[self.nodes[*index as usize].parent as usize + 1] += 1;
        }
        for at in 1..starts.len() {
            starts[at] += starts[at - 1];
        }
        Children { order, starts }
    }
}

/// The children of all nodes, those of one node beside each other.
struct Children {
    order: Vec<u32>,
    /// By node: the begin of its children in `order`; and the end of the last node's.
    starts: Vec<u32>,
}

impl Children {
    fn of_node(&self, node: u32) -> &[u32] {
        let node = node as usize;
        &self.order[self.starts[node] as usize..self.starts[node + 1] as usize]
    }
}

/// A name without the characters that are syntax in the format, or that XML cannot hold.
pub(super) fn clean(name: &str) -> String {
    let plain = |c: char| match c {
        ';' => ':',
        c if c.is_control() => ' ',
        '\u{fffe}' | '\u{ffff}' => char::REPLACEMENT_CHARACTER,
        c => c,
    };
    name.chars().map(plain).collect()
}

/// Writes lines with one time each, or with two where two profiles are compared.
pub(super) fn write_folded(
    stacks: &FoldedStacks,
    max_depth: u32,
    compared: bool,
    out: &mut impl Write,
) -> io::Result<()> {
    stacks.each_line(max_depth, |path, times| {
        if compared {
            writeln!(out, "{path} {} {}", times[0], times[1])
        } else {
            writeln!(out, "{path} {}", times[0])
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A chain of `depth` calls of the method `f` in thread `main`, each with 1 tick of its own.
    fn chain(depth: u32) -> FoldedStacks {
        let mut stacks = FoldedStacks::default();
        stacks.nodes.push(FoldedNode { parent: 0, name: 0, depth: 0, bytes: 0, own: [0; 2] });
        let main = stacks.name("main");
        let f = stacks.name("f");
        let mut path = stacks.child(0, main);
        for _ in 0..depth {
            path = stacks.child(path, f);
            stacks.nodes[path as usize].own = [1, 0];
        }
        stacks
    }

    fn lines(stacks: &FoldedStacks, max_depth: u32) -> String {
        let mut out = Vec::new();
        write_folded(stacks, max_depth, false, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn calls_below_the_largest_depth_are_added_up() {
        assert_eq!(lines(&chain(3), 9), "main;f 1\nmain;f;f 1\nmain;f;f;f 1\n");
        assert_eq!(lines(&chain(9), 2), "main;f 1\nmain;f;(deeper calls) 8\n");
        assert!(chain(9).is_deeper_than(2) && !chain(3).is_deeper_than(4));
    }

    #[test]
    fn a_million_calls_inside_each_other_are_folded_in_bounded_length() {
        let stacks = chain(1_000_000);
        let depth = stacks.depth_within(1 << 20);
        assert!((900..1_100).contains(&depth), "{depth}");
        let text = lines(&stacks, depth);
        assert!(text.len() < 2 << 20, "{}", text.len());
        assert!(text.ends_with(&format!(";(deeper calls) {}\n", 1_000_001 - u64::from(depth))));
    }

    #[test]
    fn names_are_written_without_syntax_and_control_characters() {
        assert_eq!(clean("a;b\n\u{1b}[1m\u{ffff}"), "a:b  [1m\u{fffd}");
    }
}
