//! Rows as a table for people, with the callers and callees of each method where they are requested.

use std::io::{self, Write};

use super::call_relations::{CallRelation, CallRelations};
use super::table::{Column, Keep, Table};
use crate::profile::figures::{Columns, SHARE_WIDTH, count, percent, share};
use crate::profile::names::TraceNames;
use crate::profile::request::SortKey;
use crate::profile::rows::{ProfileRow, ProfileRows, figure};
use crate::profile::shown_name::ShownName;
use crate::profile::text_style::{Heat, TextStyle};

/// How a table shows its rows.
#[derive(Debug, Clone, Copy)]
pub(in crate::profile) struct RowLook {
    /// The figure that the rows are sorted by, which no terminal is too narrow for.
    pub sort: SortKey,
    /// The clock that stands first.
    pub clock: usize,
    /// Whether methods have their JVM descriptors.
    pub descriptors: bool,
    pub style: TextStyle,
    pub figures: Columns,
}

/// Writes rows as a table; with `relations` each row is followed by its callers and callees.
pub(in crate::profile) fn write_table(
    rows: &ProfileRows,
    shown: &[ProfileRow],
    names: &TraceNames<'_, '_>,
    relations: Option<&CallRelations>,
    look: RowLook,
    out: &mut impl Write,
) -> io::Result<()> {
    let shown_names: Vec<ShownName> =
        shown.iter().map(|row| rows.shown(names, row, look.descriptors)).collect();
    let widest = shown_names.iter().map(ShownName::width).max().unwrap_or(0);
    let clocks = clocks_from(rows.columns, look.clock);
    let table = Table::new(columns(shown, &clocks, look), rows.by.name(), widest, look.style);
    writeln!(out, "{}", table.head())?;
    let relation_table =
        relations.map(|relations| RelationTable::new(relations, shown, names, &clocks, look));
    for (row, name) in shown.iter().zip(&shown_names) {
        let mut figures = Vec::new();
        for (clock, _) in &clocks {
            for time in [row.stat.exclusive[*clock], row.stat.inclusive[*clock]] {
                figures.extend([look.figures.show(*clock, time), share(percent(time, rows.total[*clock]))]);
            }
        }
        if clocks.is_empty() {
            let inclusive = row.stat.inclusive[look.clock];
            figures.extend([count(inclusive), share(percent(inclusive, rows.total[look.clock]))]);
        }
        figures.push(count(row.stat.calls));
        if !look.figures.is_sampled {
            figures.push(count(row.stat.recursive));
        }
        let heat = Heat::of(percent(hot_time(row, look), rows.total[look.clock]));
        writeln!(out, "{}", table.row(&figures, "", name, heat))?;
        if let Some(relation_table) = &relation_table {
            relation_table.write(row, out)?;
        }
    }
    Ok(())
}

/// The clocks of a table with their names, `first` first.
pub(in crate::profile) fn clocks_from(columns: Columns, first: usize) -> Vec<(usize, &'static str)> {
    let mut clocks: Vec<_> = columns.named().collect();
    clocks.sort_by_key(|(clock, _)| *clock != first);
    clocks
}

/// The width of a column of numbers.
pub(in crate::profile) fn count_width(numbers: impl Iterator<Item = u64>) -> usize {
    count(numbers.max().unwrap_or(0)).len()
}

/// The time of a row by which it stands out.
fn hot_time(row: &ProfileRow, look: RowLook) -> u64 {
    let by = if look.sort == SortKey::Inclusive { SortKey::Inclusive } else { SortKey::Exclusive };
    figure(&row.stat, by, look.clock)
}

fn columns(shown: &[ProfileRow], clocks: &[(usize, &'static str)], look: RowLook) -> Vec<Column> {
    let mut columns = Vec::new();
    for (clock, name) in clocks {
        let is_main = *clock == look.clock;
        let largest = shown.iter().map(|row| row.stat.inclusive[*clock]).max().unwrap_or(0);
        let width = look.figures.width(*clock, largest);
        for (kind, title) in [(SortKey::Exclusive, "excl"), (SortKey::Inclusive, "incl")] {
            let head = format!("{name} {title}");
            let (time, part) = match (is_main, kind) {
                (true, kind) if kind == look.sort => (Keep::Always, Keep::Always),
                // Rows that are sorted by their calls have their exclusive time beside them.
                (true, SortKey::Exclusive) if look.sort == SortKey::Calls => (Keep::Always, Keep::Always),
                (true, _) if look.sort == SortKey::Calls => (Keep::Calls, Keep::Share),
                (true, _) => (Keep::Other, Keep::Share),
                (false, SortKey::Exclusive) => (Keep::SecondExclusive, Keep::SecondShare),
                (false, _) => (Keep::SecondInclusive, Keep::SecondShare),
            };
            let is_hot = time == Keep::Always;
            columns.push(Column { is_hot, ..Column::new(head, width, time) });
            columns.push(Column { is_hot, ..Column::new("share", SHARE_WIDTH, part) });
        }
    }
    // The number of calls that rows are sorted by includes the recursive ones.
    let is_sorted = look.sort == SortKey::Calls;
    let keep = |keep| if is_sorted { Keep::Always } else { keep };
    let width = |number: fn(&ProfileRow) -> u64| count_width(shown.iter().map(number));
    if clocks.is_empty() {
        let inclusive = count_width(shown.iter().map(|row| row.stat.inclusive[look.clock]));
        columns.push(Column::new("calls incl", inclusive, Keep::Other));
        columns.push(Column::new("share", SHARE_WIDTH, Keep::Share));
    }
    let calls = Column::new(look.figures.count_name(), width(|row| row.stat.calls), keep(Keep::Calls));
    columns.push(calls);
    if look.figures.is_sampled {
        return columns;
    }
    columns.push(Column::new("recursive", width(|row| row.stat.recursive), keep(Keep::Recursive)));
    columns
}

/// The table of the callers and callees below each row. Its columns are the same below all rows.
struct RelationTable<'a> {
    relations: &'a CallRelations,
    names: &'a TraceNames<'a, 'a>,
    clocks: &'a [(usize, &'static str)],
    look: RowLook,
    table: Table,
}

/// Sets callers and callees apart from the rows.
const RELATION_INDENT: usize = 4;

impl<'a> RelationTable<'a> {
    fn new(
        relations: &'a CallRelations,
        shown: &[ProfileRow],
        names: &'a TraceNames<'a, 'a>,
        clocks: &'a [(usize, &'static str)],
        look: RowLook,
    ) -> Self {
        let all = || shown.iter().flat_map(|row| relations.of(row.id)).flatten();
        let widest = all().map(|relation| relation.shown(names, look.descriptors).width()).max().unwrap_or(0);
        let mut columns = vec![Column::new("", RELATION_INDENT + SHARE_WIDTH, Keep::Always)];
        for (clock, _) in clocks {
            let keep = if *clock == look.clock { Keep::Always } else { Keep::SecondInclusive };
            let largest = shown.iter().map(|row| row.stat.inclusive[*clock]).max().unwrap_or(0);
            columns.push(Column::new("", look.figures.width(*clock, largest), keep));
        }
        let calls = all().map(|relation| calls_of(relation).len()).max().unwrap_or(0);
        columns.push(Column::new("", calls, Keep::Always));
        columns.push(Column::new("", CALLER.len(), Keep::Always));
        RelationTable { relations, names, clocks, look, table: Table::new(columns, "", widest, look.style) }
    }

    /// Writes a method's callers, its own time, and its callees.
    fn write(&self, row: &ProfileRow, out: &mut impl Write) -> io::Result<()> {
        let [callers, callees] = self.relations.of(row.id);
        self.write_list(CALLER, callers, out)?;
        let own = percent(row.stat.exclusive[self.look.clock], row.stat.inclusive[self.look.clock]);
        self.write_line("self", own, row.stat.exclusive, String::new(), &ShownName::plain(""), out)?;
        self.write_list(CALLEE, callees, out)
    }

    fn write_list(&self, role: &str, list: &[CallRelation], out: &mut impl Write) -> io::Result<()> {
        for relation in list {
            let name = relation.shown(self.names, self.look.descriptors);
            self.write_line(role, relation.share, relation.total, calls_of(relation), &name, out)?;
        }
        Ok(())
    }

    fn write_line(
        &self,
        role: &str,
        percent: f64,
        times: [u64; 2],
        calls: String,
        name: &ShownName,
        out: &mut impl Write,
    ) -> io::Result<()> {
        let mut figures = vec![share(percent)];
        figures.extend(self.clocks.iter().map(|(clock, _)| self.look.figures.show(*clock, times[*clock])));
        figures.extend([calls, role.to_owned()]);
        let line = self.table.row(&figures, "", name, Heat::Plain);
        line.lines().try_for_each(|line| writeln!(out, "{}", self.look.style.dim(line.trim_end())))
    }
}

const CALLER: &str = "caller";
const CALLEE: &str = "callee";

/// The calls of a relation, and all calls of the callee: `3/120`.
fn calls_of(relation: &CallRelation) -> String {
    format!("{}/{}", count(relation.calls), count(relation.callee_calls))
}
