//! The call graph for Graphviz, with dmtracedump's labels and threshold.

use std::io::{self, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use super::dmtracedump::Dump;
use super::tree::ROOT;

/// The share of its caller's inclusive time that a method needs to be drawn, percent, unless told otherwise.
pub const DEFAULT_THRESHOLD: u64 = 20;

/// What Graphviz can make of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Picture {
    /// A bitmap.
    Png,
    /// Scalable.
    Svg,
}

/// Writes the graph below `(toplevel)`. A method is drawn if its inclusive time is at least `threshold` percent of a
/// drawn caller's. A label reads `[number] class.method (inclusive ms, exclusive ms, calls)`.
pub fn write_dot(dump: &Dump, threshold: u64, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "digraph g {{\nnode [shape = record,height=.1];")?;
    let top = dump.rows.iter().position(|row| row.method == ROOT);
    let mut drawn = vec![false; dump.rows.len()];
    let mut to_draw: Vec<usize> = top.into_iter().collect();
    let mut links = Vec::new();
    while let Some(n) = to_draw.pop() {
        if std::mem::replace(&mut drawn[n], true) {
            continue;
        }
        let row = &dump.rows[n];
        let name = row.name.as_ref().map_or(row.class.clone(), |name| format!("{}.{name}", row.class));
        let (inclusive, exclusive) = (row.inclusive / 1_000, row.exclusive / 1_000);
        let label = format!("[{}] {} ({inclusive}, {exclusive}, {})", row.index, escape(&name), row.calls[0]);
        writeln!(out, "node{}[label = \"{label}\"]", row.index)?;
        for child in &dump.children[n][0] {
            let other = &dump.rows[child.row];
            let share = (100 * u128::from(other.inclusive)).checked_div(u128::from(row.inclusive));
            if share.is_some_and(|share| share >= u128::from(threshold)) {
                links.push((row.index, other.index));
                to_draw.push(child.row);
            }
        }
    }
    for (caller, callee) in links {
        writeln!(out, "node{caller} -> node{callee}")?;
    }
    writeln!(out, "}}")
}

/// In a record's label these characters are syntax: `<init>` would be a port, and not be shown.
fn escape(name: &str) -> String {
    name.chars().flat_map(|c| ("<>{}|\"\\ ".contains(c)).then_some('\\').into_iter().chain([c])).collect()
}

/// Has Graphviz's `dot` draw `graph` into `path`.
pub fn draw(graph: &[u8], picture: Picture, path: &Path) -> io::Result<()> {
    let format = match picture {
        Picture::Png => "-Tpng",
        Picture::Svg => "-Tsvg",
    };
    let missing = |e: io::Error| match e.kind() {
        io::ErrorKind::NotFound => {
            io::Error::new(e.kind(), "Graphviz's dot is not installed (package graphviz)")
        }
        _ => e,
    };
    let mut dot =
        Command::new("dot").arg(format).arg("-o").arg(path).stdin(Stdio::piped()).spawn().map_err(missing)?;
    let written = dot.stdin.take().map_or(Ok(()), |mut stdin| stdin.write_all(graph));
    let status = dot.wait()?;
    if !status.success() {
        return Err(io::Error::other(format!("Graphviz's dot failed: {status}")));
    }
    written
}
