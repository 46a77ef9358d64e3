//! Prints a profile, or the comparison of two, in the requested form.

use crate::text::contains_pattern;
use std::io::{self, Write};

use serde_json::{Value, json};

use super::diff::{self, diff};
use super::error::ProfileError;
use super::graph::CallGraph;
use super::output::{ProfileOutput, ProfileReport};
use super::profile_run::ProfileRun;
use super::request::{PrintForm, TreeDirection};
use super::row_print::{self, CallRelations};
use super::rows::{ProfileRow, ProfileRows, RowKind, clocks};
use super::text_style::{CLOCKS, ms};
use super::tree::CallTree;
use super::tree_print::{self, TreeBranch, TreeThreshold};
use super::writer::ProfileWriter;

/// Call trees leave out nodes below this share of the whole time, percent, unless the request gives a share.
const TREE_THRESHOLD_PERCENT: f64 = 1.0;

/// Prints profiles in the requested form.
pub(super) struct ProfilePrinter {
    /// Prints the name of each file above its table.
    titled: bool,
    /// The JSON of the traces so far; [`ProfileWriter::finish`] prints it.
    json: Vec<Value>,
}

impl ProfilePrinter {
    /// A printer for one trace, or for several.
    pub(super) fn new(several: bool) -> ProfilePrinter {
        ProfilePrinter { titled: several, json: Vec::new() }
    }
}

impl ProfileWriter for ProfilePrinter {
    /// Prints the rows or the call tree of one trace.
    fn write(
        &mut self,
        profile: &ProfileRun<'_, '_>,
        output: &mut ProfileOutput<'_>,
    ) -> Result<ProfileReport, ProfileError> {
        let anomalies = match profile.request.tree {
            Some(direction) => {
                let tree = profile.tree();
                let percent = profile.request.threshold_percent.unwrap_or(TREE_THRESHOLD_PERCENT);
                let threshold = TreeThreshold { percent, clock: profile.clock };
                let branches = match direction {
                    TreeDirection::TopDown => tree_print::top_down(&tree, &profile.names, threshold),
                    TreeDirection::BottomUp => {
                        let (branches, is_cut) = tree_print::bottom_up(&tree, &profile.names, threshold);
                        if is_cut {
                            let (name, most) = (&profile.input.name, tree_print::MAX_BRANCHES);
                            (output.message)(&format!(
                                "{name}: the tree has more than {most} branches, and lacks the others: a higher \
                                 --threshold leaves more of them out"
                            ));
                        }
                        branches
                    }
                };
                output.print(|mut out| print_tree(profile, &tree, &branches, &mut self.json, &mut out))?;
                tree.anomalies
            }
            None => {
                let rows = profile.rows();
                report_no_match(profile, &rows, output);
                output.print(|mut out| print_rows(profile, &rows, self.titled, &mut self.json, &mut out))?;
                rows.anomalies
            }
        };
        Ok(output.report_anomalies(profile.input, &anomalies))
    }

    /// Prints the changes from `earlier` to `later`.
    fn compare(
        &mut self,
        earlier: &ProfileRun<'_, '_>,
        later: &ProfileRun<'_, '_>,
        output: &mut ProfileOutput<'_>,
    ) -> Result<ProfileReport, ProfileError> {
        let (before, after) = (earlier.rows(), later.rows());
        report_no_match(later, &after, output);
        output
            .print(|mut out| print_changes((earlier, &before), (later, &after), &mut self.json, &mut out))?;
        let (before, after) = (&before.anomalies, &after.anomalies);
        Ok(output.report_anomalies_of_both((earlier.input, before), (later.input, after)))
    }

    /// Prints the JSON: one object on one line for each trace or comparison.
    fn finish(&mut self, output: &mut ProfileOutput<'_>) -> Result<(), ProfileError> {
        output
            .print(|out| std::mem::take(&mut self.json).iter().try_for_each(|value| writeln!(out, "{value}")))
    }
}

/// Says that the pattern of `--method` matches no row, and how many rows there are.
fn report_no_match(profile: &ProfileRun<'_, '_>, rows: &ProfileRows, output: &mut ProfileOutput<'_>) {
    let Some(pattern) = &profile.request.rows.name_pattern else { return };
    let matches = |row| contains_pattern(pattern, &rows.label(&profile.names, row));
    if !rows.rows.iter().any(matches) {
        let (kind, count) = (rows.by.name(), rows.rows.len());
        let name = &profile.input.name;
        (output.message)(&format!("{name}: no {kind} matches {pattern}; {count} do not match"));
    }
}

fn print_rows(
    profile: &ProfileRun<'_, '_>,
    rows: &ProfileRows,
    titled: bool,
    json: &mut Vec<Value>,
    out: &mut impl Write,
) -> io::Result<()> {
    let (request, names) = (profile.request, &profile.names);
    let is_wanted = |row: &&ProfileRow| match &request.rows.name_pattern {
        Some(pattern) => contains_pattern(pattern, &rows.label(names, row)),
        None => true,
    };
    let matching: Vec<ProfileRow> = rows.rows.iter().filter(is_wanted).copied().collect();
    let shown = &matching[..profile.shown_rows(matching.len())];
    let relations = (request.rows.relations && rows.by == RowKind::Method).then(|| {
        let graph = CallGraph::of(&profile.tree(), profile.trace.methods().len());
        CallRelations::new(&graph, profile.trace.header().tick_ns, profile.clock)
    });
    let relations = relations.as_ref();
    match request.form {
        PrintForm::Json => {
            let mut value = profile.summary(rows);
            value["rows"] = row_print::to_json(rows, shown, names, relations);
            json.push(value);
            return Ok(());
        }
        PrintForm::Csv => return row_print::write_csv(rows, shown, names, out),
        PrintForm::Text => {}
    }
    let style = request.style;
    if titled {
        writeln!(out, "\n{}", style.bold(&style.fit(&profile.input.name)))?;
    }
    print_head(profile, rows, out)?;
    row_print::write_table(rows, shown, names, relations, style, out)?;
    match matching.len() - shown.len() {
        0 => Ok(()),
        more => writeln!(out, "{}", style.dim(&format!("… and {more} more (--top 0 shows all)"))),
    }
}

/// Prints the lines above a table: format, counts, totals, and calls that are open at an end of the trace.
fn print_head(profile: &ProfileRun<'_, '_>, rows: &ProfileRows, out: &mut impl Write) -> io::Result<()> {
    let (trace, style) = (profile.trace, profile.request.style);
    let threads = trace.threads().iter().filter(|t| t.records > 0).count();
    let mut line = format!("{}; {} records, {threads} threads", trace.format(), trace.counts().records);
    for (clock, name) in CLOCKS.into_iter().filter(|(clock, _)| rows.clocks[*clock]) {
        line += &format!("; {} ms {name} in all threads", ms(rows.total[clock]));
    }
    writeln!(out, "{}", style.fit(&line))?;
    let (before, after) = (rows.anomalies.exits_without_enter, rows.anomalies.open_at_end);
    if before + after > 0 {
        let line = format!("{before} calls had begun before the trace did, {after} were open at its end");
        writeln!(out, "{}", style.fit(&line))?;
    }
    Ok(())
}

fn print_tree(
    profile: &ProfileRun<'_, '_>,
    tree: &CallTree,
    branches: &[TreeBranch],
    json: &mut Vec<Value>,
    out: &mut impl Write,
) -> io::Result<()> {
    let (request, clock) = (profile.request, profile.clock);
    let (has, tick_ns) = (clocks(profile.trace), profile.trace.header().tick_ns);
    if request.form == PrintForm::Json {
        let tree = tree_print::to_json(branches, has, tick_ns);
        json.push(json!({ "file": profile.input.name, "tree": tree }));
        return Ok(());
    }
    let whole = tree.nodes.iter().map(|node| node.own[clock]).sum();
    tree_print::write_tree(branches, has, clock, whole, tick_ns, request.style, out)
}

fn print_changes(
    (earlier, before): (&ProfileRun<'_, '_>, &ProfileRows),
    (later, after): (&ProfileRun<'_, '_>, &ProfileRows),
    json: &mut Vec<Value>,
    out: &mut impl Write,
) -> io::Result<()> {
    let request = later.request;
    let sort = (request.rows.sort, later.clock);
    let mut changes = diff((before, &earlier.names), (after, &later.names), sort);
    if let Some(pattern) = &request.rows.name_pattern {
        changes.retain(|row| contains_pattern(pattern, &row.name));
    }
    changes.truncate(later.shown_rows(changes.len()));
    let has = [0, 1].map(|clock| after.clocks[clock] && before.clocks[clock]);
    match request.form {
        PrintForm::Json => {
            let (from, to) = (earlier.summary(before), later.summary(after));
            json.push(json!({ "before": from, "after": to, "rows": diff::to_json(&changes, has) }));
            Ok(())
        }
        PrintForm::Csv => diff::write_csv(&changes, has, out),
        PrintForm::Text => diff::write_table(&changes, sort, request.style, out),
    }
}
