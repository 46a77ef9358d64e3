//! Compares two profiles row by row. Rows are matched by their names, because ids differ from run to run.

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde_json::{Value, json};

use super::row_data::members;
use crate::profile::count::flat::MethodStat;
use crate::profile::figures::Columns;
use crate::profile::names::TraceNames;
use crate::profile::request::SortKey;
use crate::profile::rows::{ProfileRow, ProfileRows, figure};
use crate::text::csv_field;

/// The change of a row from the earlier profile to the later one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::profile) enum RowChange {
    Slower,
    Faster,
    Same,
    /// Only the later profile has the row.
    New,
    /// Only the earlier profile has the row.
    Gone,
}

impl RowChange {
    pub(in crate::profile) fn name(self) -> &'static str {
        match self {
            RowChange::Slower => "slower",
            RowChange::Faster => "faster",
            RowChange::Same => "same",
            RowChange::New => "new",
            RowChange::Gone => "gone",
        }
    }
}

/// One row of two profiles; times in ns.
#[derive(Debug, Clone)]
pub(in crate::profile) struct DiffRow {
    pub name: String,
    /// Which profile has the row, 1 for the later one, and the row there.
    pub in_profile: (usize, ProfileRow),
    pub before: MethodStat,
    pub after: MethodStat,
    pub change: RowChange,
    /// The change of the figure that rows are sorted by, later minus earlier: ns, or a number of calls.
    pub delta: i128,
}

/// Compares two profiles. The rows with the largest changes come first, whether slower or faster.
pub(in crate::profile) fn diff(
    before: (&ProfileRows, &TraceNames<'_, '_>),
    after: (&ProfileRows, &TraceNames<'_, '_>),
    sort: (SortKey, usize),
) -> Vec<DiffRow> {
    type Sides = ([MethodStat; 2], (usize, ProfileRow));
    let mut by_name: BTreeMap<String, Sides> = BTreeMap::new();
    for (side, (rows, names)) in [before, after].into_iter().enumerate() {
        for row in &rows.rows {
            let empty = ([MethodStat::default(); 2], (side, *row));
            let (stats, in_profile) = by_name.entry(rows.label(names, row)).or_insert(empty);
            stats[side].add(&row.stat);
            *in_profile = (side, *row);
        }
    }
    let mut rows: Vec<DiffRow> = by_name
        .into_iter()
        .map(|(name, ([before, after], in_profile))| {
            let value = |stat| i128::from(figure(stat, sort.0, sort.1));
            let delta = value(&after) - value(&before);
            let change = match (before.is_empty(), after.is_empty(), delta) {
                (true, _, _) => RowChange::New,
                (_, true, _) => RowChange::Gone,
                (_, _, 0) => RowChange::Same,
                (_, _, 1..) => RowChange::Slower,
                _ => RowChange::Faster,
            };
            DiffRow { name, in_profile, before, after, change, delta }
        })
        .collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.delta.unsigned_abs()));
    rows
}

/// Changes as a JSON array; times in ns, of the clocks that both profiles have.
pub(in crate::profile) fn to_json(rows: &[DiffRow], columns: Columns) -> Value {
    let one = |row: &DiffRow| {
        json!({
            "name": row.name, "change": row.change.name(), "delta": row.delta as i64,
            "before": members(&row.before, columns), "after": members(&row.after, columns),
        })
    };
    rows.iter().map(one).collect()
}

/// Writes changes as CSV with a header line; times in ns, of the clocks that both profiles have.
pub(in crate::profile) fn write_csv(
    rows: &[DiffRow],
    columns: Columns,
    out: &mut impl Write,
) -> io::Result<()> {
    let counts = columns.count_name();
    write!(out, "name,change,delta,before_{counts},after_{counts}")?;
    for (clock, _) in columns.named() {
        for kind in ["exclusive", "inclusive"] {
            let field = columns.field(clock, kind);
            write!(out, ",before_{field},after_{field}")?;
        }
    }
    writeln!(out)?;
    for row in rows {
        let calls = |stat: &MethodStat| stat.calls + stat.recursive;
        let (name, change, delta) = (csv_field(&row.name), row.change.name(), row.delta);
        write!(out, "{name},{change},{delta},{},{}", calls(&row.before), calls(&row.after))?;
        for (clock, _) in columns.named() {
            write!(out, ",{},{}", row.before.exclusive[clock], row.after.exclusive[clock])?;
            write!(out, ",{},{}", row.before.inclusive[clock], row.after.inclusive[clock])?;
        }
        writeln!(out)?;
    }
    Ok(())
}
