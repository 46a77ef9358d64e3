//! Prints rows as a table for people, as JSON and as CSV.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};

use serde_json::{Map, Value, json};

use super::flat::MethodStat;
use super::graph::CallGraph;
use super::names::TraceNames;
use super::rows::{ProfileRow, ProfileRows, RowKind};
use super::text_style::{CLOCKS, TextStyle, ms, percent};
use super::ticks::add;
use super::tree::ROOT;
use crate::text::csv_field;

/// The clocks of the rows with their names, in the order of columns.
fn clocks(rows: &ProfileRows) -> impl Iterator<Item = (usize, &'static str)> + Clone {
    let has = rows.clocks;
    CLOCKS.into_iter().filter(move |(clock, _)| has[*clock])
}

/// Writes rows as a table for people; with `relations` each row is followed by its callers and callees.
pub(super) fn write_table(
    rows: &ProfileRows,
    shown: &[ProfileRow],
    names: &TraceNames<'_, '_>,
    relations: Option<&CallRelations>,
    style: TextStyle,
    out: &mut impl Write,
) -> io::Result<()> {
    let mut head = String::new();
    for (_, clock) in clocks(rows) {
        head += &format!(
            "{:>12} {:>6} {:>12} {:>6} ",
            format!("{clock} excl"),
            "%",
            format!("{clock} incl"),
            "%"
        );
    }
    let what = match rows.by {
        RowKind::Method => "method",
        RowKind::Class => "class",
        RowKind::Package => "package",
        RowKind::Thread => "thread",
    };
    head += &format!("{:>10} {:>10}  {what} (times in ms)", "calls", "recursive");
    writeln!(out, "{}", style.bold(&style.fit(&head)))?;
    for row in shown {
        let mut line = String::new();
        for (clock, _) in clocks(rows) {
            let (own, all, total) = (row.stat.exclusive[clock], row.stat.inclusive[clock], rows.total[clock]);
            let (own_share, all_share) = (percent(own, total), percent(all, total));
            line += &format!("{:>12} {own_share:>6.2} {:>12} {all_share:>6.2} ", ms(own), ms(all));
        }
        line += &format!("{:>10} {:>10}  {}", row.stat.calls, row.stat.recursive, rows.label(names, row));
        writeln!(out, "{}", style.fit(&line))?;
        for (title, relatives) in relations.into_iter().flat_map(|relations| relations.of(row.id)) {
            for relative in relatives {
                writeln!(out, "{}", style.dim(&style.fit(&relative.line(title, rows, names))))?;
            }
        }
    }
    Ok(())
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
                let empty = CallRelation { method: other, calls: 0, total: [0; 2], share: 0.0 };
                let sum = sums.entry((this, list, other)).or_insert(empty);
                sum.calls += edge.calls;
                // The time of a recursive call is part of the outermost call's time.
                if !key.callee_recursive {
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
            list.sort_by_key(|relative| std::cmp::Reverse(relative.total[clock]));
        }
        CallRelations { lists }
    }

    /// The callers and the callees of a method, each list with its title.
    pub(super) fn of(&self, method: u32) -> [(&'static str, &[CallRelation]); 2] {
        let [callers, callees] = self.lists.get(&method).map_or([&[][..], &[]], |[a, b]| [&a[..], &b[..]]);
        [("called by", callers), ("calls", callees)]
    }
}

impl CallRelation {
    fn name(&self, names: &TraceNames<'_, '_>) -> String {
        if self.method == ROOT { "(outside of traced methods)".to_owned() } else { names.full(self.method) }
    }

    fn line(&self, title: &str, rows: &ProfileRows, names: &TraceNames<'_, '_>) -> String {
        let times: Vec<_> =
            clocks(rows).map(|(clock, name)| format!("{name} {} ms", ms(self.total[clock]))).collect();
        format!(
            "    {title:>9} {:>6.2}% {} {}x  {}",
            self.share,
            times.join(" "),
            self.calls,
            self.name(names)
        )
    }
}

/// The figures of a row as JSON members; times in ns, of the clocks in `has`.
pub(super) fn members(stat: &MethodStat, has: [bool; 2]) -> Map<String, Value> {
    let mut map = Map::new();
    map.insert("calls".into(), json!(stat.calls));
    map.insert("recursive_calls".into(), json!(stat.recursive));
    for (clock, name) in CLOCKS.into_iter().filter(|(clock, _)| has[*clock]) {
        map.insert(format!("{name}_exclusive_ns"), json!(stat.exclusive[clock]));
        map.insert(format!("{name}_inclusive_ns"), json!(stat.inclusive[clock]));
    }
    map
}

/// Rows as a JSON array; times in ns. With `relations` each row has its `called_by` and `callees`.
pub(super) fn to_json(
    rows: &ProfileRows,
    shown: &[ProfileRow],
    names: &TraceNames<'_, '_>,
    relations: Option<&CallRelations>,
) -> Value {
    let one = |row: &ProfileRow| {
        let mut map = members(&row.stat, rows.clocks);
        map.insert("name".into(), json!(rows.label(names, row)));
        if rows.by == RowKind::Method {
            let (file, line) = names.source(row.id);
            map.insert("class".into(), json!(names.class(row.id)));
            map.insert("file".into(), json!(file));
            map.insert("line".into(), json!(line));
            map.insert("inlined".into(), json!(names.inlined(row.id)));
        }
        for (clock, name) in clocks(rows) {
            map.insert(
                format!("{name}_exclusive_percent"),
                json!(percent(row.stat.exclusive[clock], rows.total[clock])),
            );
        }
        let lists = relations.map(|relations| relations.of(row.id)).into_iter().flatten();
        for (key, (_, list)) in ["called_by", "callees"].into_iter().zip(lists) {
            let list = list.iter().map(|r| {
                let mut map = Map::new();
                map.insert("name".into(), json!(r.name(names)));
                map.insert("calls".into(), json!(r.calls));
                map.insert("share_percent".into(), json!(r.share));
                map.extend(clocks(rows).map(|(clock, name)| (format!("{name}_ns"), json!(r.total[clock]))));
                Value::Object(map)
            });
            map.insert(key.into(), list.collect());
        }
        Value::Object(map)
    };
    shown.iter().map(one).collect()
}

/// Writes rows as CSV with a header line; times in ns.
pub(super) fn write_csv(
    rows: &ProfileRows,
    shown: &[ProfileRow],
    names: &TraceNames<'_, '_>,
    out: &mut impl Write,
) -> io::Result<()> {
    write!(out, "name,calls,recursive_calls")?;
    for (_, name) in clocks(rows) {
        write!(out, ",{name}_exclusive_ns,{name}_inclusive_ns")?;
    }
    writeln!(out)?;
    for row in shown {
        let label = rows.label(names, row);
        write!(out, "{},{},{}", csv_field(&label), row.stat.calls, row.stat.recursive)?;
        for (clock, _) in clocks(rows) {
            write!(out, ",{},{}", row.stat.exclusive[clock], row.stat.inclusive[clock])?;
        }
        writeln!(out)?;
    }
    Ok(())
}
