//! Prints a profile, or the comparison of two, in the requested form.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::json;

use super::call_relations::CallRelations;
use super::diff::{self, DiffRow, RowChange, diff};
use super::row_data::{self, JsonRows};
use super::row_print::{self, RowLook, count_width};
use super::table::{Column, Keep, Table};
use super::tree_print::{self, PrintedTree};
use crate::formats::art_method::Ticks;
use crate::profile::count::graph::CallGraph;
use crate::profile::count::tree::CallTree;
use crate::profile::count::tree_branches::{self, MAX_BRANCHES, TreeThreshold, whole_time};
use crate::profile::error::ProfileError;
use crate::profile::figures::{count, duration, percent};
use crate::profile::names::TraceNames;
use crate::profile::profile_run::{ProfileOutput, ProfileReport, ProfileRun};
use crate::profile::request::{PrintForm, RowKind, SampleWeight, SortKey, TreeDirection};
use crate::profile::rows::{ProfileRow, ProfileRows, figure};
use crate::profile::sample_profile::SampleProfile;
use crate::profile::shown_name::ShownName;
use crate::profile::source::ProfileSource;
use crate::profile::text_style::{Heat, NO_BREAK_SPACE};
use crate::text::contains_pattern;

/// Call trees leave out branches below the first of these shares that any branch has, percent, unless the
/// request gives a share.
const TREE_THRESHOLDS_PERCENT: [f64; 3] = [1.0, 0.1, 0.01];

/// Prints profiles in the requested form.
pub(in crate::profile) struct ProfilePrinter {
    /// Prints the name of each file above its table.
    titled: bool,
    /// The JSON of the traces so far, a line each; [`ProfilePrinter::finish`] prints it.
    json: Vec<Vec<u8>>,
}

impl ProfilePrinter {
    /// A printer for one trace, or for several.
    pub(in crate::profile) fn new(several: bool) -> ProfilePrinter {
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
            say(profile, no_calls(profile), output);
        } else if matching.is_empty() {
            say(profile, Some(no_match(profile, &rows, rows.rows.len())), output);
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
        let (request, names) = (profile.request, &profile.names);
        let shown = &matching[..profile.shown_rows(matching.len())];
        let relations = (request.rows.relations && rows.by == RowKind::Method).then(|| {
            let graph = CallGraph::of(&profile.tree(), profile.trace.methods().len());
            CallRelations::new(&graph, profile.trace.tick_ns(), profile.clock)
        });
        let relations = relations.as_ref();
        match request.form {
            PrintForm::Json => {
                let shown = JsonRows { rows, shown, names, relations };
                return self.add_json(&profile.summary(rows, Some(shown.texts()?)));
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
            let (branches, left_out) = match direction {
                TreeDirection::TopDown => tree_branches::top_down(&tree, threshold),
                TreeDirection::BottomUp => tree_branches::bottom_up(&tree, threshold),
            };
            (percent, branches, left_out)
        };
        let [first, lower @ ..] = TREE_THRESHOLDS_PERCENT;
        let mut found = branches_from(profile.request.threshold_percent.unwrap_or(first));
        for percent in lower.into_iter().filter(|_| profile.request.threshold_percent.is_none()) {
            if found.1.is_empty() {
                found = branches_from(percent);
            }
        }
        let (percent, branches, left_out) = found;
        if left_out.is_cut {
            let cut = format!(
                "the tree has more than {} branches, and lacks the others: a higher --threshold leaves more of \
                 them out",
                count(MAX_BRANCHES as u64)
            );
            say(profile, Some(cut), output);
        }
        if tree.nodes.len() == profile.trace.threads().len() {
            say(profile, no_calls(profile), output);
        } else if branches.is_empty() {
            say(profile, Some(no_branch(direction, percent)), output);
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
            let tree =
                tree_print::to_json(printed.branches, &profile.names, printed.figures, printed.tick_ns);
            return self.add_json(&json!({ "file": profile.input.name, "tree": tree }));
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
        (earlier, before): (&ProfileRun<'_, '_>, &ProfileRows),
        (later, after): (&ProfileRun<'_, '_>, &ProfileRows),
        changes: &[DiffRow],
        out: &mut impl Write,
    ) -> io::Result<()> {
        let shown = &changes[..later.shown_rows(changes.len())];
        let has = after.columns.common(&before.columns);
        match later.request.form {
            PrintForm::Json => {
                let (from, to) = (earlier.summary(before, None), later.summary(after, None));
                let changes = diff::to_json(shown, has);
                return self.add_json(&json!({ "before": from, "after": to, "rows": changes }));
            }
            PrintForm::Csv => return diff::write_csv(shown, has, out),
            PrintForm::Text => {}
        }
        for (side, profile, rows) in [("before", earlier, before), ("after", later, after)] {
            let line = format!("{side}: {}: {}", profile.input.name, trace_line(profile, rows.total));
            writeln!(out, "{}", later.request.style.wrap(&line))?;
        }
        if shown.is_empty() {
            return Ok(());
        }
        let profiles = [(before, &earlier.names), (after, &later.names)];
        write_changes(shown, profiles, look(later), out)?;
        print_more(later, changes.len() - shown.len(), out)?;
        match changes.iter().all(|row| row.change == RowChange::Same) {
            true => print_note(later, &format!("No {} has changed", after.by.name()), out),
            false => Ok(()),
        }
    }
}

impl ProfilePrinter {
    /// Prints the rows or the call tree of one trace.
    pub(in crate::profile) fn print(
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
    pub(in crate::profile) fn compare(
        &mut self,
        earlier: &ProfileRun<'_, '_>,
        later: &ProfileRun<'_, '_>,
        output: &mut ProfileOutput<'_>,
    ) -> Result<ProfileReport, ProfileError> {
        let (before, after) = (earlier.rows(), later.rows());
        let sort = (later.sort(), later.clock);
        let mut changes = diff((&before, &earlier.names), (&after, &later.names), sort);
        let all = changes.len();
        let sides = [(earlier, &before), (later, &after)];
        changes.retain(|row| {
            let (profile, rows) = sides[row.in_profile.0];
            is_wanted(profile, rows, &row.in_profile.1)
        });
        if all == 0 {
            sides.iter().for_each(|(profile, _)| say(profile, no_calls(profile), output));
        } else if changes.is_empty() {
            say(later, Some(no_match(later, &after, all)), output);
        }
        output
            .print(|mut out| self.print_changes((earlier, &before), (later, &after), &changes, &mut out))?;
        let (before, after) = (&before.anomalies, &after.anomalies);
        let report = output.report_anomalies_of_both((earlier.input, before), (later.input, after));
        Ok(ProfileReport { has_results: !changes.is_empty(), ..report })
    }

    /// Prints the JSON: one object on one line for each trace or comparison.
    pub(in crate::profile) fn finish(&mut self, output: &mut ProfileOutput<'_>) -> Result<(), ProfileError> {
        output.print(|out| {
            std::mem::take(&mut self.json).into_iter().try_for_each(|mut line| {
                line.push(b'\n');
                out.write_all(&line)
            })
        })
    }
}

/// How tables show the rows of a profile.
fn look(profile: &ProfileRun<'_, '_>) -> RowLook {
    let request = profile.request;
    let (sort, descriptors) = (profile.sort(), request.descriptors);
    RowLook {
        sort,
        clock: profile.clock,
        descriptors,
        style: request.style,
        figures: profile.trace.columns(),
    }
}

/// Passes on a message about a trace.
fn say(profile: &ProfileRun<'_, '_>, message: Option<String>, output: &mut ProfileOutput<'_>) {
    if let Some(message) = message {
        (output.message)(&profile.input.name, &message);
    }
}

/// Whether the pattern of `--method` matches the row's name, as JSON has it or as tables do.
fn is_wanted(profile: &ProfileRun<'_, '_>, rows: &ProfileRows, row: &ProfileRow) -> bool {
    let Some(pattern) = &profile.request.rows.name_pattern else { return true };
    let names: &TraceNames<'_, '_> = &profile.names;
    contains_pattern(pattern, &rows.label(names, row))
        || contains_pattern(pattern, &rows.shown(names, row, false).to_string())
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
pub(in crate::profile) fn trace_line(profile: &ProfileRun<'_, '_>, total: Ticks) -> String {
    let (trace, selection) = (profile.trace, &profile.selection);
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

/// What a sample weighs, for people.
fn weight_name(samples: &SampleProfile) -> String {
    let event = samples.event_name();
    match samples.weight {
        SampleWeight::Period => format!("the period of {event}"),
        SampleWeight::Count => format!("the number of samples of {event}"),
        SampleWeight::Time => format!("the time between samples of {event}"),
    }
}

/// The time of all selected threads, ns.
pub(in crate::profile) fn tree_total(profile: &ProfileRun<'_, '_>, tree: &CallTree) -> Ticks {
    [0, 1].map(|clock| whole_time(tree, clock).saturating_mul(profile.trace.tick_ns()))
}

/// Why the selection has no calls; `None` where a message has said so before.
pub(in crate::profile) fn no_calls(profile: &ProfileRun<'_, '_>) -> Option<String> {
    let selection = &profile.selection;
    if profile.trace.records() == 0 {
        return Some("the trace has no records".to_owned());
    }
    let whose = if selection.threads.is_some() { " of the selected threads" } else { "" };
    let Some(window) = &selection.window else {
        return Some(format!(
            "no call{whose} is in the trace; --by thread lists the threads that have calls"
        ));
    };
    let end = profile.trace.end_ns();
    let until =
        if window.end < u64::MAX { format!("and {}", time(window.end)) } else { "and the end".to_owned() };
    (window.start < end).then(|| {
        let (from, end) = (time(window.start), time(end));
        let why = format!("no call{whose} lies between {from} {until}; the trace ends at {end}");
        why.replace(NO_BREAK_SPACE, " ")
    })
}

/// Why a tree has no branch although there are calls.
pub(in crate::profile) fn no_branch(direction: TreeDirection, threshold_percent: f64) -> String {
    let what = match direction {
        TreeDirection::TopDown => "no thread has any time",
        TreeDirection::BottomUp => "no method has this share of the time of all threads",
    };
    format!("--threshold {threshold_percent}: {what}")
}

/// A time in a sentence, which is not parted from its unit.
fn time(ns: u64) -> String {
    duration(ns).trim_end().replace(' ', NO_BREAK_SPACE)
}

/// Writes changes as a table. `profiles` are the earlier and the later one.
fn write_changes(
    changes: &[DiffRow],
    profiles: [(&ProfileRows, &TraceNames<'_, '_>); 2],
    look: RowLook,
    out: &mut impl Write,
) -> io::Result<()> {
    let by = profiles[1].0.by.name();
    let has_figures = profiles.iter().any(|(rows, _)| rows.columns.named().next().is_some());
    let clock = look.figures.named().find(|(clock, _)| *clock == look.clock).map_or("", |(_, name)| name);
    let counts = look.figures.count_name();
    let what = match look.sort {
        SortKey::Exclusive => format!("{by}, {clock} excl"),
        SortKey::Inclusive if !has_figures => format!("{by}, calls incl"),
        SortKey::Inclusive => format!("{by}, {clock} incl"),
        SortKey::Calls => format!("{by}, {counts}"),
    };
    let of = |stat| figure(stat, look.sort, look.clock);
    let is_count = look.sort == SortKey::Calls || !has_figures || !look.figures.is_time(look.clock);
    let show = |value| if is_count { count(value) } else { duration(value) };
    let width = match is_count {
        true => count_width(changes.iter().map(|row| of(&row.before).max(of(&row.after)))),
        false => look.figures.width(look.clock, 0),
    };
    let names: Vec<ShownName> = changes
        .iter()
        .map(|row| {
            let (rows, names) = profiles[row.in_profile.0];
            rows.shown(names, &row.in_profile.1, look.descriptors)
        })
        .collect();
    let columns = vec![
        Column::hot("change", 1 + width),
        Column::new("before", width, Keep::Other),
        Column::new("after", width, Keep::Always),
        Column::new("", "slower".len(), Keep::Always),
    ];
    let table = Table::new(columns, &what, names.iter().map(ShownName::width).max().unwrap_or(0), look.style);
    writeln!(out, "{}", table.head())?;
    for (row, name) in changes.iter().zip(&names) {
        let delta = u64::try_from(row.delta.unsigned_abs()).unwrap_or(u64::MAX);
        let sign = match row.delta {
            0 => "",
            1.. => "+",
            _ => "-",
        };
        let figures = [
            format!("{sign}{}", show(delta)),
            show(of(&row.before)),
            show(of(&row.after)),
            row.change.name().into(),
        ];
        writeln!(out, "{}", table.row(&figures, "", name, heat(row, delta, profiles, look)))?;
    }
    Ok(())
}

/// A change stands out by its share of the earlier profile's time. What became faster is at most bold.
fn heat(
    row: &DiffRow,
    delta: u64,
    profiles: [(&ProfileRows, &TraceNames<'_, '_>); 2],
    look: RowLook,
) -> Heat {
    if look.sort == SortKey::Calls {
        return Heat::Plain;
    }
    match (Heat::of(percent(delta, profiles[0].0.total[look.clock])), row.change) {
        (Heat::Hot, RowChange::Faster | RowChange::Gone) => Heat::Warm,
        (heat, _) => heat,
    }
}
