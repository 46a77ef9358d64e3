//! Prints a profile, or the comparison of two, in the requested form.

use std::io::{self, Write};

use serde_json::{Value, json};

use super::diff::{self, diff};
use super::error::ProfileError;
use super::graph::CallGraph;
use super::output::ProfileOutput;
use super::profile_run::ProfileRun;
use super::request::{PrintForm, TreeDirection};
use super::row_print::{self, CallRelations};
use super::rows::{ProfileRow, ProfileRows, RowKind, clocks};
use super::text_style::{CLOCKS, ms};
use super::tree::CallTree;
use super::tree_print::{self, TreeThreshold};

/// Call trees leave out what is below this share of the whole, percent, unless the request says otherwise.
const TREE_THRESHOLD_PERCENT: f64 = 1.0;

/// Prints the rows or the call tree of one trace; `titled` prints the file's name above them. JSON is appended to
/// `json`, so that several traces make one array. Returns whether the calls have irregularities.
pub(super) fn print_profile(
    profile: &ProfileRun<'_, '_>,
    titled: bool,
    json: &mut Vec<Value>,
    output: &mut ProfileOutput<'_>,
) -> Result<bool, ProfileError> {
    let anomalies = match profile.request.tree {
        Some(direction) => {
            let tree = profile.tree();
            output.print(|mut out| print_tree(profile, &tree, direction, json, &mut out))?;
            tree.anomalies
        }
        None => {
            let rows = profile.rows();
            output.print(|mut out| print_rows(profile, &rows, titled, json, &mut out))?;
            rows.anomalies
        }
    };
    Ok(output.report_anomalies(profile.input, &anomalies))
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
        Some(pattern) => contains_pattern(&rows.label(names, row), pattern),
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
        writeln!(out, "\n{}", style.bold(&profile.input.name))?;
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
    direction: TreeDirection,
    json: &mut Vec<Value>,
    out: &mut impl Write,
) -> io::Result<()> {
    let (request, clock) = (profile.request, profile.clock);
    let percent = request.threshold_percent.unwrap_or(TREE_THRESHOLD_PERCENT);
    let threshold = TreeThreshold { percent, clock };
    let branches = match direction {
        TreeDirection::TopDown => tree_print::top_down(tree, &profile.names, threshold),
        TreeDirection::BottomUp => tree_print::bottom_up(tree, &profile.names, threshold),
    };
    let (has, tick_ns) = (clocks(profile.trace), profile.trace.header().tick_ns);
    if request.form == PrintForm::Json {
        let tree = tree_print::to_json(&branches, has, tick_ns);
        json.push(json!({ "file": profile.input.name, "tree": tree }));
        return Ok(());
    }
    let whole = tree.nodes.iter().map(|node| node.own[clock]).sum();
    tree_print::write_tree(&branches, has, clock, whole, tick_ns, request.style, out)
}

/// Prints the changes from `earlier` to `later`. JSON is appended to `json`. Returns whether the calls of either trace
/// have irregularities.
pub(super) fn print_comparison(
    earlier: &ProfileRun<'_, '_>,
    later: &ProfileRun<'_, '_>,
    json: &mut Vec<Value>,
    output: &mut ProfileOutput<'_>,
) -> Result<bool, ProfileError> {
    let (before, after) = (earlier.rows(), later.rows());
    let request = later.request;
    let sort = (request.rows.sort, later.clock);
    let mut changes = diff((&before, &earlier.names), (&after, &later.names), sort);
    if let Some(pattern) = &request.rows.name_pattern {
        changes.retain(|row| contains_pattern(&row.name, pattern));
    }
    changes.truncate(later.shown_rows(changes.len()));
    let has = [0, 1].map(|clock| after.clocks[clock] && before.clocks[clock]);
    match request.form {
        PrintForm::Json => {
            let (from, to) = (earlier.summary(&before), later.summary(&after));
            json.push(json!({ "before": from, "after": to, "rows": diff::to_json(&changes, has) }));
        }
        PrintForm::Csv => output.print(|mut out| diff::write_csv(&changes, has, &mut out))?,
        PrintForm::Text => {
            output.print(|mut out| diff::write_table(&changes, sort, request.style, &mut out))?;
        }
    }
    let irregular = output.report_anomalies(earlier.input, &before.anomalies);
    Ok(output.report_anomalies(later.input, &after.anomalies) | irregular)
}

/// Prints the JSON of all traces: one object, or an array where there are several.
pub(super) fn print_json(mut traces: Vec<Value>, output: &mut ProfileOutput<'_>) -> Result<(), ProfileError> {
    let value = if traces.len() == 1 { traces.remove(0) } else { Value::Array(traces) };
    output.print(|out| {
        serde_json::to_writer_pretty(&mut *out, &value)?;
        writeln!(out)
    })
}

/// Whether `name` contains `pattern`, in which `*` stands for any text.
fn contains_pattern(name: &str, pattern: &str) -> bool {
    let mut rest = name;
    pattern.split('*').filter(|part| !part.is_empty()).all(|part| match rest.split_once(part) {
        Some((_, after)) => {
            rest = after;
            true
        }
        None => false,
    })
}

#[cfg(test)]
mod tests {
    use super::contains_pattern;

    #[test]
    fn a_pattern_may_stand_anywhere_in_a_name_and_its_parts_keep_their_order() {
        assert!(contains_pattern("com.example.Main.run", "example"));
        assert!(contains_pattern("com.example.Main.run", "com*run"));
        assert!(contains_pattern("com.example.Main.run", ""));
        assert!(!contains_pattern("com.example.Main.run", "run*com"));
        assert!(!contains_pattern("com.example.Main.run", "Example"));
    }
}
