//! Call trees as indented lines for people, and as JSON.

use std::collections::HashMap;
use std::io::{self, Write};

use serde_json::{Value, json};

use super::row_print::{RowLook, clocks_from, count_width};
use super::table::{Column, Keep, Table};
use crate::profile::count::tree_branches::{BranchNode, LeftOut, MAX_DEPTH, TreeBranch};
use crate::profile::figures::{Columns, SHARE_WIDTH, count, percent, share};
use crate::profile::names::TraceNames;
use crate::profile::request::TreeDirection;
use crate::profile::shown_name::ShownName;
use crate::profile::text_style::Heat;

/// The columns that each level is indented by.
const INDENT: usize = 2;
/// The widest indentation where the terminal sets no limit. See [`indent`].
const MAX_INDENT: usize = 120;

/// A printed tree.
pub(in crate::profile) struct PrintedTree<'a> {
    pub branches: &'a [TreeBranch],
    pub left_out: LeftOut,
    pub direction: TreeDirection,
    /// The time of all threads in the main clock, ticks.
    pub whole: u64,
    pub figures: Columns,
    /// The unit of times.
    pub tick_ns: u64,
}

impl PrintedTree<'_> {
    /// Writes a tree for people, indented by depth.
    pub(in crate::profile) fn write(
        &self,
        names: &TraceNames<'_, '_>,
        look: RowLook,
        out: &mut impl Write,
    ) -> io::Result<()> {
        let clocks = clocks_from(self.figures, look.clock);
        let mut shown: HashMap<BranchNode, ShownName> = HashMap::new();
        let mut widest = 0;
        for (depth, branch) in depth_first(self.branches) {
            let name = shown.entry(branch.node).or_insert_with(|| match branch.node {
                BranchNode::Thread(thread) => ShownName::plain(&names.thread(thread)),
                BranchNode::Method(method) => names.shown(method, look.descriptors),
            });
            widest = widest.max((INDENT * depth).min(MAX_INDENT) + name.width());
        }
        let table = Table::new(self.columns(&clocks, look.clock), self.title(), widest, look.style);
        writeln!(out, "{}", table.head())?;
        let room = table.name_room().map_or(MAX_INDENT, |room| (room / 3).min(MAX_INDENT));
        let mut whole = self.whole;
        for (depth, branch) in depth_first(self.branches) {
            let total = branch.total[look.clock];
            if matches!(branch.node, BranchNode::Thread(_)) {
                whole = total;
            }
            let part = percent(total, whole);
            let mut figures = vec![share(part)];
            for (clock, _) in &clocks {
                let time = |ticks: u64| self.figures.show(*clock, ticks.saturating_mul(self.tick_ns));
                figures.push(time(branch.total[*clock]));
                if self.direction == TreeDirection::TopDown {
                    figures.push(time(branch.own[*clock]));
                }
            }
            // A thread is not called.
            figures.push(if branch.calls == 0 { String::new() } else { count(branch.calls) });
            // From the threads down the path to a hot branch is as large as the branch, so that the time in
            // the branch itself decides.
            let heat = Heat::of(percent(branch.own[look.clock], whole));
            let Some(name) = shown.get(&branch.node) else { continue };
            writeln!(out, "{}", table.row(&figures, &indent(depth, room), name, heat))?;
        }
        Ok(())
    }

    /// What the tree lacks, in one sentence.
    pub(in crate::profile) fn left_out_line(&self, threshold_percent: f64) -> String {
        let whole = match self.direction {
            TreeDirection::TopDown => "their thread's time",
            TreeDirection::BottomUp => "the time of all threads",
        };
        let LeftOut { small, deep, .. } = self.left_out;
        let mut parts = Vec::new();
        if small > 0 && threshold_percent > 0.0 {
            let small = count(small);
            parts.push(format!("{small} below {threshold_percent}% of {whole} (--threshold 0 shows all)"));
        }
        if deep > 0 {
            parts.push(format!("{} deeper than {MAX_DEPTH} levels", count(deep)));
        }
        match parts.is_empty() {
            true => "No branch is left out".to_owned(),
            false => format!("Branches left out: {}", parts.join("; ")),
        }
    }

    fn title(&self) -> &'static str {
        match self.direction {
            TreeDirection::TopDown => "thread and calls",
            TreeDirection::BottomUp => "method and callers",
        }
    }

    fn columns(&self, clocks: &[(usize, &'static str)], main: usize) -> Vec<Column> {
        let mut columns = vec![Column::hot("share", SHARE_WIDTH)];
        for (clock, name) in clocks {
            let largest = depth_first(self.branches).map(|(_, branch)| branch.total[*clock]).max();
            let width = self.figures.width(*clock, largest.unwrap_or(0));
            let (total, own) = match *clock == main {
                true => (Keep::Always, Keep::Other),
                false => (Keep::SecondInclusive, Keep::SecondExclusive),
            };
            match self.direction {
                TreeDirection::TopDown => columns.extend([
                    Column::new(format!("{name} incl"), width, total),
                    Column::new(format!("{name} excl"), width, own),
                ]),
                // The time of a path of callers is the method's own time.
                TreeDirection::BottomUp => columns.push(Column::new(*name, width, total)),
            }
        }
        let calls = count_width(depth_first(self.branches).map(|(_, branch)| branch.calls));
        columns.push(Column::new(self.figures.count_name(), calls, Keep::Calls));
        columns
    }
}

/// The indentation of a level. Levels that would be indented by more than `room` columns have their number
/// there.
fn indent(depth: usize, room: usize) -> String {
    match INDENT * depth <= room {
        true => " ".repeat(INDENT * depth),
        false => format!("{depth:>width$} ", width = room.saturating_sub(1)),
    }
}

/// The branches with their depths, each before its children.
fn depth_first(branches: &[TreeBranch]) -> impl Iterator<Item = (usize, &TreeBranch)> {
    let mut left: Vec<(usize, &TreeBranch)> = branches.iter().rev().map(|branch| (0, branch)).collect();
    std::iter::from_fn(move || {
        let (depth, branch) = left.pop()?;
        left.extend(branch.children.iter().rev().map(|child| (depth + 1, child)));
        Some((depth, branch))
    })
}

/// A tree as nested JSON; times in ns.
pub(in crate::profile) fn to_json(
    branches: &[TreeBranch],
    names: &TraceNames<'_, '_>,
    columns: Columns,
    tick_ns: u64,
) -> Value {
    let one = |branch: &TreeBranch| {
        let name = match branch.node {
            BranchNode::Thread(thread) => names.thread(thread),
            BranchNode::Method(method) => names.full(method),
        };
        let mut value = json!({ "name": name, columns.count_name(): branch.calls });
        for (clock, _) in columns.named() {
            for (kind, ticks) in [("inclusive", branch.total), ("exclusive", branch.own)] {
                value[columns.field(clock, kind)] = json!(ticks[clock].saturating_mul(tick_ns));
            }
        }
        value["children"] = to_json(&branch.children, names, columns, tick_ns);
        value
    };
    branches.iter().map(one).collect()
}
