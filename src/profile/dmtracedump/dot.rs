//! The call graph in Graphviz's language, with dmtracedump's labels and threshold.

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

use super::dump::MethodDump;
use crate::profile::error::DrawError;
use crate::profile::tree::ROOT;

/// The least share of its caller's inclusive time, percent, from which on a method is drawn, unless a request
/// gives another share.
pub(crate) const DEFAULT_THRESHOLD_PERCENT: u64 = 20;

/// A kind of picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Picture {
    Png,
    Svg,
}

/// The graph of all methods below `(toplevel)`. A method is drawn if its inclusive time is at least
/// `threshold` percent of the inclusive time of a caller that is drawn. A label reads `[number] class.method
/// (inclusive ms, exclusive ms, calls)`.
pub(crate) fn to_dot(dump: &MethodDump, threshold: u64) -> String {
    let mut out = String::from("digraph g {\nnode [shape = record,height=.1];\n");
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
        let _ = writeln!(out, "node{}[label = \"{label}\"]", row.index);
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
        let _ = writeln!(out, "node{caller} -> node{callee}");
    }
    out + "}\n"
}

/// Escapes the characters that are syntax in a record's label. Graphviz takes `<init>` for a port and does
/// not show it.
fn escape(name: &str) -> String {
    name.chars().flat_map(|c| ("<>{}|\"\\ ".contains(c)).then_some('\\').into_iter().chain([c])).collect()
}

/// Runs Graphviz's `dot`, which draws `graph` into `path`.
pub(crate) fn draw(graph: &str, picture: Picture, path: &Path) -> Result<(), DrawError> {
    let format = match picture {
        Picture::Png => "-Tpng",
        Picture::Svg => "-Tsvg",
    };
    let mut command = Command::new("dot");
    let mut dot = match command.arg(format).arg("-o").arg(path).stdin(Stdio::piped()).spawn() {
        Ok(dot) => dot,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(DrawError::NotInstalled),
        Err(error) => return Err(error.into()),
    };
    let written = dot.stdin.take().map_or(Ok(()), |mut stdin| stdin.write_all(graph.as_bytes()));
    let status = dot.wait()?;
    if !status.success() {
        return Err(DrawError::Failed(status));
    }
    Ok(written?)
}
