//! Prints a profile, or the comparison of two, in the requested form: a table, a call tree, JSON or CSV.

mod diff;
mod row_data;
mod row_print;
mod table;
mod tree_print;

use std::io::{self, Write};

use schemars::JsonSchema;
use serde::Serialize;

use self::diff::{ChangeJson, ComparedProfile, DiffRow, RowChange, diff};
use self::row_data::{JsonRows, ProfileSummary};
use self::row_print::{CallRelations, RowLook};
use self::tree_print::{BranchJson, MAX_BRANCHES, PrintedTree, TreeThreshold, whole_time};
use super::count::tree::{CallGraph, CallTree};
use super::error::ProfileError;
use super::figures::{count, duration};
use super::profile_run::{ProfileOutput, ProfileReport, ProfileRun};
use super::request::{PrintForm, RowKind, SampleWeight, TreeDirection};
use super::rows::{ProfileRow, ProfileRows};
use super::source::{ProfileSource, SampleProfile};
use super::text_style::NO_BREAK_SPACE;
use crate::formats::art_method::Ticks;
use crate::text::contains_pattern;

/// Call trees leave out branches below the first of these shares that any branch has, percent, unless the
/// request gives a share.
const TREE_THRESHOLDS_PERCENT: [f64; 3] = [1.0, 0.1, 0.01];

/// One line of `profile --json`.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum ProfileLine<'a> {
    /// The rows of one trace.
    Rows(Box<ProfileSummary<'a>>),
    /// With `--tree` or `--bottom-up`.
    Tree {
        /// The path as given.
        file: &'a str,
        tree: Vec<BranchJson>,
    },
    /// With `--against`.
    Changes { after: Box<ProfileSummary<'a>>, before: Box<ProfileSummary<'a>>, rows: Vec<ChangeJson<'a>> },
}

/// Prints profiles in the requested form.
pub(super) struct ProfilePrinter {
    /// Prints the name of each file above its table.
    titled: bool,
    /// The JSON of the traces so far, a line each; [`ProfilePrinter::finish`] prints it.
    json: Vec<Vec<u8>>,
}

impl ProfilePrinter {
    /// A printer for one trace, or for several.
    pub(super) fn new(several: bool) -> ProfilePrinter {
        ProfilePrinter { titled: several, json: Vec::new() }
    }

    fn add_json(&mut self, value: &impl Serialize) -> io::Result<()> {
        self.json.push(serde_json::to_vec(value)?);
        Ok(())
    }

    /// Prints the rows of one trace.
    fn write_rows(
        &mut self,
        profile: &ProfileRun<'_, '_>,
        output: &mut ProfileOutput<'_>,
    ) -> Result<ProfileReport, ProfileError> {
        let rows = profile.rows();
        let matching: Vec<ProfileRow> =
            rows.rows.iter().filter(|row| is_wanted(profile, &rows, row)).copied().collect();
        if rows.rows.is_empty() {
            send_message(profile, profile.no_calls(), output);
        } else if matching.is_empty() {
            send_message(profile, Some(no_match(profile, &rows, rows.rows.len())), output);
        }
        output.print(|mut out| self.print_rows(profile, &rows, &matching, &mut out))?;
        let report = output.report_anomalies(profile.input, &rows.anomalies);
        Ok(ProfileReport { has_results: !matching.is_empty(), ..report })
    }

    fn print_rows(
        &mut self,
        profile: &ProfileRun<'_, '_>,
        rows: &ProfileRows,
        matching: &[ProfileRow],
        out: &mut impl Write,
    ) -> io::Result<()> {
        let request = profile.request;
        let names = &profile.names;
        let shown = &matching[..profile.shown_rows(matching.len())];
        let relations = (request.rows.relations && rows.by == RowKind::Method).then(|| {
            let graph = CallGraph::from_tree(&profile.tree(), profile.trace.methods().len());
            CallRelations::new(&graph, profile.trace.tick_ns(), profile.clock)
        });
        let relations = relations.as_ref();
        match request.form {
            PrintForm::Json => {
                let shown = JsonRows { rows, shown, names, relations };
                let summary = ProfileSummary::new(profile, rows, Some(shown.texts()?));
                return self.add_json(&ProfileLine::Rows(Box::new(summary)));
            }
            PrintForm::Csv => return row_data::write_csv(rows, shown, names, out),
            PrintForm::Text => {}
        }
        self.print_title(profile, out)?;
        writeln!(out, "{}", request.style.wrap(&trace_line(profile, rows.total)))?;
        if shown.is_empty() {
            return Ok(());
        }
        row_print::write_table(rows, shown, names, relations, look(profile), out)?;
        print_more(profile, matching.len() - shown.len(), out)
    }

    /// Prints the call tree of one trace.
    fn write_tree(
        &mut self,
        profile: &ProfileRun<'_, '_>,
        direction: TreeDirection,
        output: &mut ProfileOutput<'_>,
    ) -> Result<ProfileReport, ProfileError> {
        let tree = profile.tree();
        let branches_from = |percent| {
            let threshold = TreeThreshold { percent, clock: profile.clock };
            match direction {
                TreeDirection::TopDown => tree_print::top_down(&tree, threshold),
                TreeDirection::BottomUp => tree_print::bottom_up(&tree, threshold),
            }
        };
        let [first, lower @ ..] = TREE_THRESHOLDS_PERCENT;
        let mut percent = profile.request.threshold_percent.unwrap_or(first);
        let (mut branches, mut left_out) = branches_from(percent);
        for lower in lower.into_iter().filter(|_| profile.request.threshold_percent.is_none()) {
            if branches.is_empty() {
                percent = lower;
                (branches, left_out) = branches_from(percent);
            }
        }
        if left_out.is_cut {
            let cut = format!(
                "the tree has more than {} branches, and lacks the others: a higher --threshold leaves more of \
                 them out",
                count(MAX_BRANCHES as u64)
            );
            send_message(profile, Some(cut), output);
        }
        if tree.nodes.len() == profile.trace.threads().len() {
            send_message(profile, profile.no_calls(), output);
        } else if branches.is_empty() {
            send_message(profile, Some(no_branch(direction, percent)), output);
        }
        let printed = PrintedTree {
            branches: &branches,
            left_out,
            direction,
            whole: whole_time(&tree, profile.clock),
            figures: profile.trace.columns(),
            tick_ns: profile.trace.tick_ns(),
        };
        output.print(|mut out| self.print_tree(profile, &tree, &printed, percent, &mut out))?;
        let report = output.report_anomalies(profile.input, &tree.anomalies);
        Ok(ProfileReport { has_results: !branches.is_empty(), ..report })
    }

    fn print_tree(
        &mut self,
        profile: &ProfileRun<'_, '_>,
        tree: &CallTree,
        printed: &PrintedTree<'_>,
        threshold_percent: f64,
        out: &mut impl Write,
    ) -> io::Result<()> {
        if profile.request.form == PrintForm::Json {
            let branches =
                tree_print::json_branches(printed.branches, &profile.names, printed.figures, printed.tick_ns);
            let line = ProfileLine::Tree { file: &profile.input.name, tree: branches };
            return self.add_json(&serde_json::to_value(line)?);
        }
        let style = profile.request.style;
        self.print_title(profile, out)?;
        let total = tree_total(profile, tree);
        writeln!(out, "{}", style.wrap(&trace_line(profile, total)))?;
        if !printed.branches.is_empty() {
            printed.write(&profile.names, look(profile), out)?;
        }
        print_note(profile, &printed.left_out_line(threshold_percent), out)
    }

    fn print_title(&self, profile: &ProfileRun<'_, '_>, out: &mut impl Write) -> io::Result<()> {
        let style = profile.request.style;
        if self.titled { writeln!(out, "\n{}", style.bold(&style.wrap(&profile.input.name))) } else { Ok(()) }
    }

    fn print_changes(
        &mut self,
        profiles: &[ComparedProfile<'_, '_, '_>; 2],
        changes: &[DiffRow],
        out: &mut impl Write,
    ) -> io::Result<()> {
        let [earlier, later] = profiles;
        let request = later.run.request;
        let shown = &changes[..later.run.shown_rows(changes.len())];
        let columns = later.rows.columns.common(&earlier.rows.columns);
        match request.form {
            PrintForm::Json => {
                let before = ProfileSummary::new(earlier.run, &earlier.rows, None);
                let after = ProfileSummary::new(later.run, &later.rows, None);
                let rows = shown.iter().map(|row| ChangeJson::new(row, columns)).collect();
                return self.add_json(&ProfileLine::Changes {
                    after: Box::new(after),
                    before: Box::new(before),
                    rows,
                });
            }
            PrintForm::Csv => return diff::write_csv(shown, columns, out),
            PrintForm::Text => {}
        }
        for (side, ComparedProfile { run, rows }) in ["before", "after"].into_iter().zip(profiles) {
            let line = format!("{side}: {}: {}", run.input.name, trace_line(run, rows.total));
            writeln!(out, "{}", request.style.wrap(&line))?;
        }
        if shown.is_empty() {
            return Ok(());
        }
        diff::write_table(shown, profiles, look(later.run), out)?;
        print_more(later.run, changes.len() - shown.len(), out)?;
        if changes.iter().all(|row| row.change == RowChange::Same) {
            print_note(later.run, &format!("No {} has changed", later.rows.by.name()), out)?;
        }
        Ok(())
    }

    /// Prints the rows or the call tree of one trace.
    pub(super) fn print(
        &mut self,
        profile: &ProfileRun<'_, '_>,
        output: &mut ProfileOutput<'_>,
    ) -> Result<ProfileReport, ProfileError> {
        match profile.request.tree {
            Some(direction) => self.write_tree(profile, direction, output),
            None => self.write_rows(profile, output),
        }
    }

    /// Prints the changes from `earlier` to `later`.
    pub(super) fn compare(
        &mut self,
        earlier: &ProfileRun<'_, '_>,
        later: &ProfileRun<'_, '_>,
        output: &mut ProfileOutput<'_>,
    ) -> Result<ProfileReport, ProfileError> {
        let profiles = [earlier, later].map(ComparedProfile::new);
        let mut changes = diff(&profiles);
        let all = changes.len();
        changes.retain(|row| {
            let ComparedProfile { run, rows } = &profiles[row.profile];
            is_wanted(run, rows, &row.row)
        });
        if all == 0 {
            profiles.iter().for_each(|compared| send_message(compared.run, compared.run.no_calls(), output));
        } else if changes.is_empty() {
            send_message(later, Some(no_match(later, &profiles[1].rows, all)), output);
        }
        output.print(|mut out| self.print_changes(&profiles, &changes, &mut out))?;
        let mut report = ProfileReport::default();
        for compared in &profiles {
            report |= output.report_anomalies(compared.run.input, &compared.rows.anomalies);
        }
        Ok(ProfileReport { has_results: !changes.is_empty(), ..report })
    }

    /// Prints the JSON: one object on one line for each trace or comparison.
    pub(super) fn finish(&mut self, output: &mut ProfileOutput<'_>) -> Result<(), ProfileError> {
        output.print(|out| {
            std::mem::take(&mut self.json).into_iter().try_for_each(|mut line| {
                line.push(b'\n');
                out.write_all(&line)
            })
        })
    }
}

/// The look of the tables of a profile.
fn look(profile: &ProfileRun<'_, '_>) -> RowLook {
    let request = profile.request;
    RowLook {
        sort: profile.sort(),
        clock: profile.clock,
        descriptors: request.descriptors,
        style: request.style,
        figures: profile.trace.columns(),
    }
}

/// Passes on a message about a trace.
fn send_message(profile: &ProfileRun<'_, '_>, message: Option<String>, output: &mut ProfileOutput<'_>) {
    if let Some(message) = message {
        (output.message)(&profile.input.name, &message);
    }
}

/// Whether the pattern of `--method` matches the row's name, as JSON has it or as tables do.
fn is_wanted(profile: &ProfileRun<'_, '_>, rows: &ProfileRows, row: &ProfileRow) -> bool {
    let Some(pattern) = &profile.request.rows.name_pattern else { return true };
    contains_pattern(pattern, &rows.label(&profile.names, row))
        || contains_pattern(pattern, &rows.shown(&profile.names, row, false).to_string())
}

/// Says that the pattern of `--method` matches none of `all` rows.
fn no_match(profile: &ProfileRun<'_, '_>, rows: &ProfileRows, all: usize) -> String {
    let pattern = profile.request.rows.name_pattern.as_deref().unwrap_or_default();
    format!("no {} matches {pattern}; {} do not match", rows.by.name(), count(all as u64))
}

/// Says how many more rows there are.
fn print_more(profile: &ProfileRun<'_, '_>, more: usize, out: &mut impl Write) -> io::Result<()> {
    match more {
        0 => Ok(()),
        more => print_note(profile, &format!("… and {} more (--top 0 shows all)", count(more as u64)), out),
    }
}

/// Prints a sentence below a table.
fn print_note(profile: &ProfileRun<'_, '_>, note: &str, out: &mut impl Write) -> io::Result<()> {
    let style = profile.request.style;
    style.wrap(note).lines().try_for_each(|line| writeln!(out, "{}", style.dim(line)))
}

/// Format, counts and times of a trace, in one sentence. `total` is the time of the selected threads, ns.
fn trace_line(profile: &ProfileRun<'_, '_>, total: Ticks) -> String {
    let trace = profile.trace;
    let selection = &profile.selection;
    let threads = trace.threads().iter().filter(|thread| thread.records > 0).count();
    let is_used = |n: &usize| trace.threads()[*n].records > 0 && selection.has_thread(*n as u32);
    let used = (0..trace.threads().len()).filter(is_used).count();
    let of = if used == threads { String::new() } else { format!("{} of ", count(used as u64)) };
    let mut line = format!("{}; {} {}", trace.format(), count(trace.records()), trace.record_name());
    if let ProfileSource::Samples(samples) = trace {
        line += &format!(", weighed by {}", weight_name(samples));
    }
    line += &format!(", {of}{} threads", count(threads as u64));
    if let Some(window) = &selection.window {
        line += &format!("; from {}", time(window.start));
        if window.end < u64::MAX {
            line += &format!(" to {}", time(window.end));
        }
    }
    let columns = trace.columns();
    for (clock, name) in columns.named() {
        let figure = columns.show(clock, total[clock]);
        line += &format!("; {} {name}", figure.trim_end().replace(' ', NO_BREAK_SPACE));
    }
    let whose = match (used, used == threads) {
        _ if !trace.has_figures() => "",
        (0 | 1, _) => "",
        (_, true) => " in all threads",
        (_, false) => " in these threads",
    };
    line + whose
}

/// The weight of a sample, for people.
fn weight_name(samples: &SampleProfile) -> String {
    let event = samples.event_name();
    match samples.weight {
        SampleWeight::Period => format!("the period of {event}"),
        SampleWeight::Count => format!("the number of samples of {event}"),
        SampleWeight::Time => format!("the time between samples of {event}"),
    }
}

/// The time of all selected threads, ns.
fn tree_total(profile: &ProfileRun<'_, '_>, tree: &CallTree) -> Ticks {
    [0, 1].map(|clock| whole_time(tree, clock).saturating_mul(profile.trace.tick_ns()))
}

/// Says why a tree has no branch although there are calls.
fn no_branch(direction: TreeDirection, threshold_percent: f64) -> String {
    let reason = match direction {
        TreeDirection::TopDown => "no thread has any time",
        TreeDirection::BottomUp => "no method has this share of the time of all threads",
    };
    format!("--threshold {threshold_percent}: {reason}")
}

/// A time in a sentence, which is not parted from its unit.
fn time(ns: u64) -> String {
    duration(ns).trim_end().replace(' ', NO_BREAK_SPACE)
}
