//! Rows as a table for people, with the callers and callees of each method where they are requested.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};

use super::table::{Keep, PrintedColumn, TextTable};
use crate::profile::count::add;
use crate::profile::count::tree::{CallGraph, ROOT};
use crate::profile::figures::{FigureColumns, SHARE_WIDTH, count, percent, share};
use crate::profile::names::{ShownName, TraceNames};
use crate::profile::request::SortKey;
use crate::profile::rows::{ProfileRow, ProfileRows, figure};
use crate::profile::text_style::{Heat, TextStyle};

/// The look of a table of rows.
#[derive(Debug, Clone, Copy)]
pub(super) struct RowLook {
    /// The figure that the rows are sorted by, which no terminal is too narrow for.
    pub sort: SortKey,
    /// The clock that stands first.
    pub clock: usize,
    /// Whether methods have their JVM descriptors.
    pub descriptors: bool,
    pub style: TextStyle,
    pub figures: FigureColumns,
}

/// Writes rows as a table; with `relations` each row is followed by its callers and callees.
pub(super) fn write_table(
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
    let table = TextTable::new(columns(shown, &clocks, look), rows.by.name(), widest, look.style);
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
        let heat = Heat::from_percent(percent(hot_time(row, look), rows.total[look.clock]));
        writeln!(out, "{}", table.row(&figures, "", name, heat))?;
        if let Some(relation_table) = &relation_table {
            relation_table.write(row, out)?;
        }
    }
    Ok(())
}

/// The clocks of a table with their names, `first` first.
pub(super) fn clocks_from(columns: FigureColumns, first: usize) -> Vec<(usize, &'static str)> {
    let mut clocks: Vec<_> = columns.named().collect();
    clocks.sort_by_key(|(clock, _)| *clock != first);
    clocks
}

/// The width of a column of numbers.
pub(super) fn count_width(numbers: impl Iterator<Item = u64>) -> usize {
    count(numbers.max().unwrap_or(0)).len()
}

/// The time that decides how strongly a row is coloured.
fn hot_time(row: &ProfileRow, look: RowLook) -> u64 {
    let by = if look.sort == SortKey::Inclusive { SortKey::Inclusive } else { SortKey::Exclusive };
    figure(&row.stat, by, look.clock)
}

fn columns(shown: &[ProfileRow], clocks: &[(usize, &'static str)], look: RowLook) -> Vec<PrintedColumn> {
    let mut columns = Vec::new();
    for (clock, name) in clocks {
        let is_main = *clock == look.clock;
        let largest = shown.iter().map(|row| row.stat.inclusive[*clock]).max().unwrap_or(0);
        let width = look.figures.width(*clock, largest);
        for (kind, title) in [(SortKey::Exclusive, "excl"), (SortKey::Inclusive, "incl")] {
            let head = format!("{name} {title}");
            let (keep_time, keep_share) = match (is_main, kind) {
                (true, kind) if kind == look.sort => (Keep::Always, Keep::Always),
                // Rows that are sorted by their calls have their exclusive time beside them.
                (true, SortKey::Exclusive) if look.sort == SortKey::Calls => (Keep::Always, Keep::Always),
                (true, _) if look.sort == SortKey::Calls => (Keep::Calls, Keep::Share),
                (true, _) => (Keep::Other, Keep::Share),
                (false, SortKey::Exclusive) => (Keep::SecondExclusive, Keep::SecondShare),
                (false, _) => (Keep::SecondInclusive, Keep::SecondShare),
            };
            let is_hot = keep_time == Keep::Always;
            columns.push(PrintedColumn { is_hot, ..PrintedColumn::new(head, width, keep_time) });
            columns.push(PrintedColumn { is_hot, ..PrintedColumn::new("share", SHARE_WIDTH, keep_share) });
        }
    }
    // The number of calls that rows are sorted by includes the recursive ones.
    let is_sorted = look.sort == SortKey::Calls;
    let unless_sorted = |keep| if is_sorted { Keep::Always } else { keep };
    let width = |number: fn(&ProfileRow) -> u64| count_width(shown.iter().map(number));
    if clocks.is_empty() {
        let inclusive = count_width(shown.iter().map(|row| row.stat.inclusive[look.clock]));
        columns.push(PrintedColumn::new("calls incl", inclusive, Keep::Other));
        columns.push(PrintedColumn::new("share", SHARE_WIDTH, Keep::Share));
    }
    let calls = PrintedColumn::new(
        look.figures.count_name(),
        width(|row| row.stat.calls),
        unless_sorted(Keep::Calls),
    );
    columns.push(calls);
    if look.figures.is_sampled {
        return columns;
    }
    columns.push(PrintedColumn::new(
        "recursive",
        width(|row| row.stat.recursive),
        unless_sorted(Keep::Recursive),
    ));
    columns
}

/// The table of the callers and callees below each row. Its columns are the same below all rows.
struct RelationTable<'a> {
    relations: &'a CallRelations,
    names: &'a TraceNames<'a, 'a>,
    clocks: &'a [(usize, &'static str)],
    look: RowLook,
    table: TextTable,
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
        let all = || shown.iter().flat_map(|row| relations.of_method(row.id)).flatten();
        let widest = all().map(|relation| relation.shown(names, look.descriptors).width()).max().unwrap_or(0);
        let mut columns = vec![PrintedColumn::new("", RELATION_INDENT + SHARE_WIDTH, Keep::Always)];
        for (clock, _) in clocks {
            let keep = if *clock == look.clock { Keep::Always } else { Keep::SecondInclusive };
            let largest = shown.iter().map(|row| row.stat.inclusive[*clock]).max().unwrap_or(0);
            columns.push(PrintedColumn::new("", look.figures.width(*clock, largest), keep));
        }
        let calls = all().map(|relation| calls_of(relation).len()).max().unwrap_or(0);
        columns.push(PrintedColumn::new("", calls, Keep::Always));
        columns.push(PrintedColumn::new("", CALLER.len(), Keep::Always));
        RelationTable {
            relations,
            names,
            clocks,
            look,
            table: TextTable::new(columns, "", widest, look.style),
        }
    }

    /// Writes a method's callers, its own time, and its callees.
    fn write(&self, row: &ProfileRow, out: &mut impl Write) -> io::Result<()> {
        let [callers, callees] = self.relations.of_method(row.id);
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

/// The callers and callees of all methods.
pub(super) struct CallRelations {
    /// By dense method index: callers and callees, those with the longest time first.
    lists: HashMap<u32, [Vec<CallRelation>; 2]>,
}

/// One caller or callee of a method.
#[derive(Debug, Clone, Copy)]
pub(super) struct CallRelation {
    /// Dense method index of the caller or callee; [`ROOT`] outside of all calls.
    pub method: u32,
    /// Calls between the two methods.
    pub calls: u64,
    /// All calls of the callee, from wherever.
    pub callee_calls: u64,
    /// Whether all these calls are inside of another call of the callee. The time of that call includes their
    /// time.
    pub is_recursive: bool,
    /// Time of those calls, ns.
    pub total: [u64; 2],
    /// Share of the method's inclusive time that those calls take, percent.
    pub share: f64,
}

impl CallRelations {
    /// The relations in `graph`, sorted by `clock`.
    pub(super) fn new(graph: &CallGraph, tick_ns: u64, clock: usize) -> CallRelations {
        let mut sums: BTreeMap<(u32, usize, u32), CallRelation> = BTreeMap::new();
        for (key, edge) in &graph.edges {
            for (list, this, other) in [(0, key.callee, key.caller), (1, key.caller, key.callee)] {
                let callee_calls = graph.methods.get(key.callee as usize).map_or(0, |m| m.calls.iter().sum());
                let empty = CallRelation {
                    method: other,
                    calls: 0,
                    callee_calls,
                    is_recursive: true,
                    total: [0; 2],
                    share: 0.0,
                };
                let sum = sums.entry((this, list, other)).or_insert(empty);
                sum.calls += edge.calls;
                // The time of a recursive call is part of the outermost call's time.
                if !key.callee_recursive {
                    sum.is_recursive = false;
                    add(&mut sum.total, edge.total.map(|t| t.saturating_mul(tick_ns)));
                }
            }
        }
        let mut lists: HashMap<u32, [Vec<CallRelation>; 2]> = HashMap::new();
        for ((this, list, _), mut relative) in sums {
            let inclusive = graph.methods.get(this as usize).map_or(0, |stat| stat.inclusive[clock]);
            relative.share = percent(relative.total[clock], inclusive.saturating_mul(tick_ns));
            lists.entry(this).or_default()[list].push(relative);
        }
        for list in lists.values_mut().flatten() {
            list.sort_by_key(|relative| Reverse(relative.total[clock]));
        }
        CallRelations { lists }
    }

    /// The callers and the callees of a method.
    pub(super) fn of_method(&self, method: u32) -> [&[CallRelation]; 2] {
        self.lists.get(&method).map_or([&[], &[]], |[callers, callees]| [callers, callees])
    }
}

/// The caller of calls that no traced method makes.
const OUTSIDE: &str = "(outside of traced methods)";

impl CallRelation {
    /// The name of the caller or callee in JSON.
    pub(super) fn name(&self, names: &TraceNames<'_, '_>) -> String {
        if self.method == ROOT { OUTSIDE.to_owned() } else { names.full(self.method) }
    }

    /// The name of the caller or callee for people.
    pub(super) fn shown(&self, names: &TraceNames<'_, '_>, descriptors: bool) -> ShownName {
        match self.method {
            ROOT => ShownName::plain(OUTSIDE),
            method if self.is_recursive => names.shown(method, descriptors).with_note(" (recursive)"),
            method => names.shown(method, descriptors),
        }
    }
}
