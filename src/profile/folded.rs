//! Folded stacks: one line per path of calls, `thread;outermost;…;innermost time`, as flame graph tools read it.

use std::collections::BTreeMap;
use std::io::{self, Write};

use super::names::Names;
use super::tree::{CallTree, ROOT};

/// Time by path. Time outside of all calls stands under the thread alone, so that all lines of a thread add up to its
/// time from first event to last.
///
/// Times are in ticks of `clock` ([`super::drive::CPU`] or [`super::drive::WALL`]). With `merge` all threads' paths
/// are taken together and begin with the outermost method.
pub fn fold(tree: &CallTree, names: &Names<'_, '_>, clock: usize, merge: bool) -> BTreeMap<String, u64> {
    let mut lines = BTreeMap::new();
    let mut paths: Vec<String> = Vec::with_capacity(tree.nodes.len());
    let mut method_names: Vec<Option<String>> = Vec::new();
    for node in &tree.nodes {
        let path = if node.method == ROOT {
            if merge { String::new() } else { clean(&names.thread(node.thread)) }
        } else {
            let place = node.method as usize;
            if place >= method_names.len() {
                method_names.resize(place + 1, None);
            }
            let name = method_names[place].get_or_insert_with(|| clean(&names.full(node.method)));
            let parent = &paths[node.parent as usize];
            if parent.is_empty() { name.clone() } else { format!("{parent};{name}") }
        };
        if node.own[clock] > 0 {
            let line = if path.is_empty() { "(outside of traced methods)" } else { &path };
            *lines.entry(line.to_owned()).or_default() += node.own[clock];
        }
        paths.push(path);
    }
    lines
}

/// A name without what the format uses itself.
fn clean(name: &str) -> String {
    name.replace(';', ":").replace(['\n', '\r'], " ")
}

/// Writes the lines.
pub fn write_folded(lines: &BTreeMap<String, u64>, out: &mut impl Write) -> io::Result<()> {
    lines.iter().try_for_each(|(path, time)| writeln!(out, "{path} {time}"))
}

/// The lines of two profiles with both times each, for a differential flame graph.
pub fn differential(before: &BTreeMap<String, u64>, after: &BTreeMap<String, u64>) -> Vec<String> {
    let mut lines: Vec<String> = after
        .iter()
        .map(|(path, time)| format!("{path} {} {time}", before.get(path).copied().unwrap_or(0)))
        .collect();
    let gone = before.iter().filter(|(path, _)| !after.contains_key(*path));
    lines.extend(gone.map(|(path, time)| format!("{path} {time} 0")));
    lines
}

/// Draws a flame graph of lines of either kind, sorted or not; `unit` is what the numbers are (`µs`).
pub fn draw(lines: &[String], title: &str, unit: &str, out: impl Write) -> io::Result<()> {
    let mut options = inferno::flamegraph::Options::default();
    options.title = title.to_owned();
    options.count_name = unit.to_owned();
    let mut sorted: Vec<&str> = lines.iter().map(String::as_str).collect();
    sorted.sort_unstable();
    inferno::flamegraph::from_lines(&mut options, sorted, out).map_err(io::Error::other)
}
