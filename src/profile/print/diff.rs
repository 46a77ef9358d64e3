//! Compares two profiles row by row, and prints the changes as a table, as JSON and as CSV. Rows are
//! matched by their names, because ids differ from run to run.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io::{self, Write};

use schemars::JsonSchema;
use serde::Serialize;

use super::row_data::FigureFields;
use super::row_print::{RowLook, count_width};
use super::table::{Keep, PrintedColumn, TextTable};
use crate::profile::count::flat::MethodStat;
use crate::profile::figures::{FigureColumns, count, duration, percent};
use crate::profile::names::ShownName;
use crate::profile::profile_run::ProfileRun;
use crate::profile::request::SortKey;
use crate::profile::rows::{ProfileRow, ProfileRows, figure};
use crate::profile::text_style::Heat;
use crate::text::csv_field;

/// One of the two profiles that are compared.
pub(super) struct ComparedProfile<'r, 't, 'a> {
    pub run: &'r ProfileRun<'t, 'a>,
    pub rows: ProfileRows,
}

impl<'r, 't, 'a> ComparedProfile<'r, 't, 'a> {
    pub(super) fn new(run: &'r ProfileRun<'t, 'a>) -> ComparedProfile<'r, 't, 'a> {
        ComparedProfile { run, rows: run.rows() }
    }
}

/// The change of a row from the earlier profile to the later one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RowChange {
    Slower,
    Faster,
    Same,
    /// Only the later profile has the row.
    New,
    /// Only the earlier profile has the row.
    Gone,
}

impl RowChange {
    pub(super) fn name(self) -> &'static str {
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
pub(super) struct DiffRow {
    pub name: String,
    /// Which profile `row` is of: 1 for the later one.
    pub profile: usize,
    pub row: ProfileRow,
    pub before: MethodStat,
    pub after: MethodStat,
    pub change: RowChange,
    /// The change of the figure that rows are sorted by, later minus earlier: ns, or a number of calls.
    pub delta: i128,
}

/// Compares the earlier profile with the later one. The rows with the largest changes come first, whether
/// slower or faster.
pub(super) fn diff(profiles: &[ComparedProfile<'_, '_, '_>; 2]) -> Vec<DiffRow> {
    let later = profiles[1].run;
    let sort = later.sort();
    let mut by_name: BTreeMap<String, DiffRow> = BTreeMap::new();
    for (number, compared) in profiles.iter().enumerate() {
        for row in &compared.rows.rows {
            let name = compared.rows.label(&compared.run.names, row);
            let found = by_name.entry(name).or_insert_with(|| DiffRow {
                name: String::new(),
                profile: number,
                row: *row,
                before: MethodStat::default(),
                after: MethodStat::default(),
                change: RowChange::Same,
                delta: 0,
            });
            let stat = if number == 0 { &mut found.before } else { &mut found.after };
            stat.add(&row.stat);
            found.profile = number;
            found.row = *row;
        }
    }
    let mut rows: Vec<DiffRow> = by_name.into_iter().map(|(name, row)| DiffRow { name, ..row }).collect();
    for row in &mut rows {
        let value = |stat| i128::from(figure(stat, sort, later.clock));
        row.delta = value(&row.after) - value(&row.before);
        row.change = match (row.before.is_empty(), row.after.is_empty(), row.delta) {
            (true, _, _) => RowChange::New,
            (_, true, _) => RowChange::Gone,
            (_, _, 0) => RowChange::Same,
            (_, _, 1..) => RowChange::Slower,
            _ => RowChange::Faster,
        };
    }
    rows.sort_by_key(|row| Reverse(row.delta.unsigned_abs()));
    rows
}

/// A change as JSON; times in ns, of the clocks that both profiles have.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ChangeJson<'a> {
    after: FigureFields,
    before: FigureFields,
    change: &'static str,
    delta: i64,
    name: &'a str,
}

impl<'a> ChangeJson<'a> {
    pub(super) fn new(row: &'a DiffRow, columns: FigureColumns) -> ChangeJson<'a> {
        ChangeJson {
            after: FigureFields::of_row(&row.after, columns),
            before: FigureFields::of_row(&row.before, columns),
            change: row.change.name(),
            delta: row.delta as i64,
            name: &row.name,
        }
    }
}

/// Writes changes as CSV with a header line; times in ns, of the clocks that both profiles have.
pub(super) fn write_csv(rows: &[DiffRow], columns: FigureColumns, out: &mut impl Write) -> io::Result<()> {
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
        write!(out, "{},{},{}", csv_field(&row.name), row.change.name(), row.delta)?;
        write!(out, ",{},{}", calls(&row.before), calls(&row.after))?;
        for (clock, _) in columns.named() {
            write!(out, ",{},{}", row.before.exclusive[clock], row.after.exclusive[clock])?;
            write!(out, ",{},{}", row.before.inclusive[clock], row.after.inclusive[clock])?;
        }
        writeln!(out)?;
    }
    Ok(())
}

/// Writes changes as a table. `profiles` are the earlier and the later one.
pub(super) fn write_table(
    changes: &[DiffRow],
    profiles: &[ComparedProfile<'_, '_, '_>; 2],
    look: RowLook,
    out: &mut impl Write,
) -> io::Result<()> {
    let by = profiles[1].rows.by.name();
    let has_figures = profiles.iter().any(|compared| compared.rows.columns.named().next().is_some());
    let clock = look.figures.named().find(|(clock, _)| *clock == look.clock).map_or("", |(_, name)| name);
    let counts = look.figures.count_name();
    let title = match look.sort {
        SortKey::Exclusive => format!("{by}, {clock} excl"),
        SortKey::Inclusive if !has_figures => format!("{by}, calls incl"),
        SortKey::Inclusive => format!("{by}, {clock} incl"),
        SortKey::Calls => format!("{by}, {counts}"),
    };
    let sorted_by = |stat| figure(stat, look.sort, look.clock);
    let is_count = look.sort == SortKey::Calls || !has_figures || !look.figures.is_time(look.clock);
    let show = |value| if is_count { count(value) } else { duration(value) };
    let width = if is_count {
        count_width(changes.iter().map(|row| sorted_by(&row.before).max(sorted_by(&row.after))))
    } else {
        look.figures.width(look.clock, 0)
    };
    let shown_name = |row: &DiffRow| {
        let ComparedProfile { run, rows } = &profiles[row.profile];
        rows.shown(&run.names, &row.row, look.descriptors)
    };
    let names: Vec<ShownName> = changes.iter().map(shown_name).collect();
    let columns = vec![
        PrintedColumn::hot("change", 1 + width),
        PrintedColumn::new("before", width, Keep::Other),
        PrintedColumn::new("after", width, Keep::Always),
        PrintedColumn::new("", "slower".len(), Keep::Always),
    ];
    let table =
        TextTable::new(columns, &title, names.iter().map(ShownName::width).max().unwrap_or(0), look.style);
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
            show(sorted_by(&row.before)),
            show(sorted_by(&row.after)),
            row.change.name().into(),
        ];
        writeln!(out, "{}", table.row(&figures, "", name, heat(row, delta, &profiles[0].rows, look)))?;
    }
    Ok(())
}

/// A change stands out by its share of the earlier profile's time. A row that became faster is at most bold.
fn heat(row: &DiffRow, delta: u64, before: &ProfileRows, look: RowLook) -> Heat {
    if look.sort == SortKey::Calls {
        return Heat::Plain;
    }
    match (Heat::from_percent(percent(delta, before.total[look.clock])), row.change) {
        (Heat::Hot, RowChange::Faster | RowChange::Gone) => Heat::Warm,
        (heat, _) => heat,
    }
}
