//! Two profiles side by side: what got slower, faster, new, gone. Methods are matched by their names, since ids differ
//! from run to run.

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde_json::{Value, json};

use super::flat::Stat;
use super::names::Names;
use super::print::{CLOCKS, Style, members, ms};
use super::rows::{Rows, Sort, figure};
use crate::text::csv_field;

/// What became of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// It takes more.
    Slower,
    /// It takes less.
    Faster,
    /// It takes as much.
    Same,
    /// Only the later profile has it.
    New,
    /// Only the earlier profile has it.
    Gone,
}

impl Change {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Change::Slower => "slower",
            Change::Faster => "faster",
            Change::Same => "same",
            Change::New => "new",
            Change::Gone => "gone",
        }
    }
}

/// One row of both profiles; times in ns.
#[derive(Debug, Clone)]
pub struct DiffRow {
    /// Name.
    pub name: String,
    /// In the earlier profile.
    pub before: Stat,
    /// In the later one.
    pub after: Stat,
    /// What became of it.
    pub change: Change,
    /// How much more it takes, by what was sorted by: ns, or calls.
    pub delta: i128,
}

/// Compares; rows with the largest change first, whatever its direction.
pub fn diff(
    before: (&Rows, &Names<'_, '_>),
    after: (&Rows, &Names<'_, '_>),
    sort: (Sort, usize),
) -> Vec<DiffRow> {
    let mut by_name: BTreeMap<String, [Stat; 2]> = BTreeMap::new();
    for (side, (rows, names)) in [before, after].into_iter().enumerate() {
        for row in &rows.rows {
            by_name.entry(rows.label(names, row)).or_default()[side].add(&row.stat);
        }
    }
    let mut rows: Vec<DiffRow> = by_name
        .into_iter()
        .map(|(name, [before, after])| {
            let value = |stat| i128::from(figure(stat, sort.0, sort.1));
            let delta = value(&after) - value(&before);
            let change = match (before.is_empty(), after.is_empty(), delta) {
                (true, _, _) => Change::New,
                (_, true, _) => Change::Gone,
                (_, _, 0) => Change::Same,
                (_, _, 1..) => Change::Slower,
                _ => Change::Faster,
            };
            DiffRow { name, before, after, change, delta }
        })
        .collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.delta.unsigned_abs()));
    rows
}

/// Writes a table.
pub fn table(rows: &[DiffRow], sort: (Sort, usize), style: Style, out: &mut impl Write) -> io::Result<()> {
    let clock = CLOCKS.iter().find(|(clock, _)| *clock == sort.1).map_or("", |(_, name)| name);
    let what = match sort.0 {
        Sort::Exclusive => format!("{clock} excl, ms"),
        Sort::Inclusive => format!("{clock} incl, ms"),
        Sort::Calls => "calls".to_owned(),
    };
    let head = format!("{:>13} {:>12} {:>12} {:>7}  name ({what})", "change", "before", "after", "");
    writeln!(out, "{}", style.bold(&style.fit(&head)))?;
    for row in rows {
        let show = |value: u64| if sort.0 == Sort::Calls { value.to_string() } else { ms(value) };
        let delta = show(u64::try_from(row.delta.unsigned_abs()).unwrap_or(u64::MAX));
        let sign = if row.delta < 0 { '-' } else { '+' };
        let (before, after) = (figure(&row.before, sort.0, sort.1), figure(&row.after, sort.0, sort.1));
        let (change, delta) = (row.change.name(), format!("{sign}{delta}"));
        let line = format!("{delta:>13} {:>12} {:>12} {change:>7}  {}", show(before), show(after), row.name);
        writeln!(out, "{}", style.fit(&line))?;
    }
    Ok(())
}

/// Rows as a JSON array.
pub fn to_json(rows: &[DiffRow], has: [bool; 2]) -> Value {
    let one = |row: &DiffRow| {
        json!({
            "name": row.name, "change": row.change.name(), "delta": row.delta as i64,
            "before": members(&row.before, has), "after": members(&row.after, has),
        })
    };
    rows.iter().map(one).collect()
}

/// Rows as CSV with a header line; times in ns.
pub fn csv(rows: &[DiffRow], has: [bool; 2], out: &mut impl Write) -> io::Result<()> {
    let clocks = || CLOCKS.into_iter().filter(|(clock, _)| has[*clock]);
    write!(out, "name,change,delta,before_calls,after_calls")?;
    for (_, name) in clocks() {
        write!(out, ",before_{name}_exclusive_ns,after_{name}_exclusive_ns")?;
        write!(out, ",before_{name}_inclusive_ns,after_{name}_inclusive_ns")?;
    }
    writeln!(out)?;
    for row in rows {
        let calls = |stat: &Stat| stat.calls + stat.recursive;
        let (name, change, delta) = (csv_field(&row.name), row.change.name(), row.delta);
        write!(out, "{name},{change},{delta},{},{}", calls(&row.before), calls(&row.after))?;
        for (clock, _) in clocks() {
            write!(out, ",{},{}", row.before.exclusive[clock], row.after.exclusive[clock])?;
            write!(out, ",{},{}", row.before.inclusive[clock], row.after.inclusive[clock])?;
        }
        writeln!(out)?;
    }
    Ok(())
}
