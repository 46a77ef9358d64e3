//! The call graph in Graphviz's language: a box for each method that takes a share of the whole time, with
//! times and shares, and an arrow for each kind of call.

use std::collections::HashMap;
use std::fmt::Write as _;

use crate::markup::escape_attribute;
use crate::profile::count::tree::{CallGraph, ROOT};
use crate::profile::figures::{duration, percent};
use crate::profile::names::TraceNames;

/// The least share of the whole time, percent, from which on a method is drawn, unless a request gives
/// another share.
const DEFAULT_THRESHOLD_PERCENT: f64 = 5.0;
/// The largest width and height of the picture, inches. Graphviz scales a larger picture down, and draws 96
/// pixels for an inch: 3,994 at most.
const MAX_INCHES: f64 = 41.6;
/// The longest line of a box, in characters. A longer `Class.method` has its method on a line of its own.
const MAX_LINE: usize = 28;

/// A call graph to draw, in one clock.
pub(super) struct GraphPicture<'a> {
    pub graph: &'a CallGraph,
    pub names: &'a TraceNames<'a, 'a>,
    /// An index into [`crate::formats::art_method::Ticks`].
    pub clock: usize,
    /// The unit of times, ns; `None` in a trace without times, where they are numbers of calls.
    pub tick_ns: Option<u64>,
    /// The file, the threads and the clock.
    pub title: &'a str,
    /// The least share of the whole time of a method that is drawn, percent. `None` selects 5.
    pub threshold_percent: Option<f64>,
}

/// The calls of one method to another.
#[derive(Default)]
struct GraphArrow {
    calls: u64,
    /// Ticks of the calls that are not recursive. They include the ticks of recursive calls.
    time: u64,
}

impl GraphPicture<'_> {
    /// The graph in Graphviz's language.
    pub(super) fn to_dot(&self) -> String {
        let total = self.graph.outside.inclusive[self.clock];
        let threshold = self.threshold_percent.unwrap_or(DEFAULT_THRESHOLD_PERCENT);
        let is_drawn = |method: u32| match self.graph.methods.get(method as usize) {
            None => true,
            Some(stat) => stat.calls != [0; 2] && percent(stat.inclusive[self.clock], total) >= threshold,
        };
        let mut drawn: Vec<u32> = (0..self.graph.methods.len() as u32).filter(|m| is_drawn(*m)).collect();
        drawn.sort_by_key(|method| {
            std::cmp::Reverse(self.graph.methods[*method as usize].inclusive[self.clock])
        });
        let methods = self.graph.methods.iter().filter(|stat| stat.calls != [0; 2]).count();
        let rule = format!(
            "{} of {methods} methods: those with at least {threshold} % of {}",
            drawn.len(),
            self.time(total)
        );
        let mut out = String::from("digraph calls {\n");
        let _ = writeln!(
            out,
            "graph [label=<{}<br/>{}>, labelloc=t, size=\"{MAX_INCHES},{MAX_INCHES}\", ranksep=0.35, \
             nodesep=0.2, fontname=\"sans-serif\"]",
            html(self.title),
            html(&rule)
        );
        out += "node [shape=box, style=filled, margin=\"0.08,0.04\", fontname=\"sans-serif\", fontsize=11]\n\
                edge [fontname=\"sans-serif\", fontsize=9, color=\"#888888\"]\n";
        let _ = writeln!(out, "root [label=<<b>total</b><br/>{}>, fillcolor=\"#eeeeee\"]", self.time(total));
        for method in &drawn {
            self.write_box(*method, total, &mut out);
        }
        for ((caller, callee), arrow) in self.arrows(is_drawn, total, threshold) {
            let share = match arrow.time {
                0 => String::new(),
                time => format!("{:.1} %", percent(time, total)),
            };
            let calls = count(arrow.calls);
            let width = 1.0 + percent(arrow.time, total) / 25.0;
            let _ = writeln!(
                out,
                "{} -> {} [label=\"{share}\", tooltip=\"{calls}, {}\", penwidth={width:.1}]",
                node(caller),
                node(callee),
                self.time(arrow.time)
            );
        }
        out + "}\n"
    }

    fn write_box(&self, method: u32, total: u64, out: &mut String) {
        let stat = &self.graph.methods[method as usize];
        let inclusive = stat.inclusive[self.clock];
        let exclusive = stat.exclusive[self.clock];
        let full = self.names.full(method);
        let (package, class, name) = parts(&full);
        let break_line = if class.chars().count() + name.chars().count() >= MAX_LINE { "<br/>" } else { "" };
        let class = if class.is_empty() { String::new() } else { format!("{}.{break_line}", html(class)) };
        let package = match package {
            "" => String::new(),
            package => format!("<font point-size=\"8\">{}</font><br/>", html(package)),
        };
        let share = percent(inclusive, total);
        let own = match exclusive {
            0 => String::new(),
            _ => format!("self {} ({:.1} %), ", self.time(exclusive), percent(exclusive, total)),
        };
        let _ = writeln!(
            out,
            "{} [label=<{package}{class}<b>{}</b><br/>{} ({share:.1} %)<br/>{own}{}>, \
             fillcolor=\"{}\", tooltip=\"{}\"]",
            node(method),
            html(name),
            self.time(inclusive),
            count(stat.calls[0] + stat.calls[1]),
            fill(share),
            quoted(&self.names.long(method))
        );
    }

    /// The arrows between boxes, in a fixed order: those with at least the share `threshold`, and to every
    /// box the largest one.
    fn arrows(
        &self,
        is_drawn: impl Fn(u32) -> bool,
        total: u64,
        threshold: f64,
    ) -> Vec<((u32, u32), GraphArrow)> {
        let mut arrows: HashMap<(u32, u32), GraphArrow> = HashMap::new();
        for (key, edge) in &self.graph.edges {
            if is_drawn(key.callee) && is_drawn(key.caller) {
                let arrow = arrows.entry((key.caller, key.callee)).or_default();
                arrow.calls += edge.calls;
                if !key.callee_recursive {
                    arrow.time = arrow.time.saturating_add(edge.total[self.clock]);
                }
            }
        }
        let mut arrows: Vec<_> = arrows.into_iter().collect();
        arrows.sort_by_key(|((caller, callee), arrow)| (*callee, std::cmp::Reverse(arrow.time), *caller));
        let mut last = None;
        arrows.retain(|((_, callee), arrow)| {
            let is_largest = last.replace(*callee) != Some(*callee);
            is_largest || percent(arrow.time, total) >= threshold
        });
        arrows
    }

    fn time(&self, ticks: u64) -> String {
        match self.tick_ns {
            Some(tick_ns) => duration(ticks.saturating_mul(tick_ns)).trim_end().to_owned(),
            None => count(ticks),
        }
    }
}

fn count(calls: u64) -> String {
    if calls == 1 { "1 call".to_owned() } else { format!("{calls} calls") }
}

/// The name of a box. A box stands for a method or for all threads together.
fn node(method: u32) -> String {
    if method == ROOT { "root".to_owned() } else { format!("m{method}") }
}

/// Package, class and method of a full name.
fn parts(full: &str) -> (&str, &str, &str) {
    let Some((class, name)) = full.rsplit_once('.') else { return ("", "", full) };
    let (package, class) = class.rsplit_once('.').unwrap_or(("", class));
    (package, class, name)
}

/// From white to red, by the share in percent.
fn fill(share: f64) -> String {
    let light = 255.0 - 1.35 * share.clamp(0.0, 100.0);
    format!("#ff{:02x}{:02x}", light as u8, light as u8)
}

/// A name in one of Graphviz's labels with markup.
fn html(name: &str) -> String {
    escape_attribute(&plain(name))
}

/// A name in one of Graphviz's quoted texts.
fn quoted(name: &str) -> String {
    plain(name).replace('\\', "\\\\").replace('"', "\\\"")
}

/// A name without the characters that XML cannot hold.
fn plain(name: &str) -> String {
    super::folded::clean(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_split_and_escaped() {
        assert_eq!(parts("a.b.Main.<init>"), ("a.b", "Main", "<init>"));
        assert_eq!(parts("Main.run"), ("", "Main", "run"));
        assert_eq!(parts("(unknown 0x1f)"), ("", "", "(unknown 0x1f)"));
        assert_eq!(html("<init>\u{1}\""), "&lt;init&gt; &quot;");
        assert_eq!(quoted("a\\\"b"), "a\\\\\\\"b");
    }

    #[test]
    fn a_larger_share_has_a_deeper_colour() {
        assert_eq!(fill(0.0), "#ffffff");
        assert_eq!(fill(100.0), "#ff7878");
        assert_eq!(fill(250.0), fill(100.0));
    }
}
