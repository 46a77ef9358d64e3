//! Folded stacks, the input of flame graph tools: one line `thread;outermost;…;innermost time` for each path
//! of calls.

use std::collections::BTreeMap;
use std::io::{self, Write};

use super::names::TraceNames;
use super::tree::{CallTree, ROOT};

/// The time of each path of calls, in ticks of `clock`. Time outside of all calls has the thread as its path,
/// so that the lines of a thread add up to the time from its first record to its last. With `merge` the paths
/// of all threads are added up, and begin with the outermost method.
pub(super) fn fold(
    tree: &CallTree,
    names: &TraceNames<'_, '_>,
    clock: usize,
    merge: bool,
) -> BTreeMap<String, u64> {
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

/// A name without the characters that are syntax in the format.
fn clean(name: &str) -> String {
    name.replace(';', ":").replace(['\n', '\r'], " ")
}

pub(super) fn write_folded(lines: &BTreeMap<String, u64>, out: &mut impl Write) -> io::Result<()> {
    lines.iter().try_for_each(|(path, time)| writeln!(out, "{path} {time}"))
}

/// The paths of two profiles, each path with its time in both profiles: the input of a differential flame
/// graph.
pub(super) fn differential(before: &BTreeMap<String, u64>, after: &BTreeMap<String, u64>) -> Vec<String> {
    let mut lines: Vec<String> = after
        .iter()
        .map(|(path, time)| format!("{path} {} {time}", before.get(path).copied().unwrap_or(0)))
        .collect();
    let gone = before.iter().filter(|(path, _)| !after.contains_key(*path));
    lines.extend(gone.map(|(path, time)| format!("{path} {time} 0")));
    lines
}

/// Draws the flame graph of folded lines with one time each, or the differential flame graph of lines with
/// two. `unit` names the unit of the times (`µs`).
pub(super) fn draw(lines: &[String], title: &str, unit: &str, out: impl Write) -> io::Result<()> {
    let mut options = inferno::flamegraph::Options::default();
    options.title = title.to_owned();
    options.count_name = unit.to_owned();
    let mut sorted: Vec<&str> = lines.iter().map(String::as_str).collect();
    sorted.sort_unstable();
    inferno::flamegraph::from_lines(&mut options, sorted, out).map_err(io::Error::other)
}
