//! Rows as a table for people, as JSON and as CSV.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};

use serde_json::{Map, Value, json};

use super::drive::{CPU, WALL};
use super::flat::Stat;
use super::graph::CallGraph;
use super::names::Names;
use super::rows::{By, Row, Rows};
use super::tree::ROOT;
use crate::text::csv_field;

/// How a table looks.
#[derive(Debug, Clone, Copy)]
pub struct Style {
    /// Columns of the terminal; names are cut to fit. `None`: as long as they are.
    pub width: Option<usize>,
    /// Whether to use colour.
    pub colour: bool,
}

impl Style {
    /// Bold, where colour is on.
    pub fn bold(self, text: &str) -> String {
        if self.colour { format!("\x1b[1m{text}\x1b[0m") } else { text.to_owned() }
    }

    /// Grey, where colour is on.
    pub fn dim(self, text: &str) -> String {
        if self.colour { format!("\x1b[2m{text}\x1b[0m") } else { text.to_owned() }
    }

    /// Cuts a line to the terminal's width.
    pub fn fit(self, line: &str) -> String {
        match self.width {
            Some(width) if line.chars().count() > width => {
                line.chars().take(width.saturating_sub(1)).chain(['…']).collect()
            }
            _ => line.to_owned(),
        }
    }
}

/// ns as ms with µs behind the point.
pub fn ms(ns: u64) -> String {
    format!("{}.{:03}", ns / 1_000_000, ns / 1_000 % 1_000)
}

/// A share in percent; 0 where there is nothing to share.
pub fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { 100.0 * part as f64 / whole as f64 }
}

/// Wall first: the order of columns.
pub const CLOCKS: [(usize, &str); 2] = [(WALL, "wall"), (CPU, "cpu")];

/// The clocks that the rows have, in the order of columns.
fn clocks(rows: &Rows) -> impl Iterator<Item = (usize, &'static str)> + Clone {
    let has = rows.clocks;
    CLOCKS.into_iter().filter(move |(clock, _)| has[*clock])
}

/// Writes a table of rows.
pub fn table(
    rows: &Rows,
    shown: &[Row],
    names: &Names<'_, '_>,
    calls: Option<&Calls>,
    style: Style,
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
        By::Method => "method",
        By::Class => "class",
        By::Package => "package",
        By::Thread => "thread",
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
        for (title, relatives) in calls.into_iter().flat_map(|calls| calls.of(row.id)) {
            for relative in relatives {
                writeln!(out, "{}", style.dim(&style.fit(&relative.line(title, rows, names))))?;
            }
        }
    }
    Ok(())
}

/// Callers and callees by method.
pub struct Calls {
    /// Callers, longest first, and callees.
    lists: HashMap<u32, [Vec<Relative>; 2]>,
}

/// One caller or callee.
#[derive(Debug, Clone, Copy)]
pub struct Relative {
    /// Dense method index, or [`ROOT`].
    pub method: u32,
    /// Calls between the two.
    pub calls: u64,
    /// Their times, ns.
    pub total: [u64; 2],
    /// Their share of the method's inclusive time, percent.
    pub share: f64,
}

impl Calls {
    /// Callers and callees of all methods, sorted by `clock`.
    pub fn new(graph: &CallGraph, tick_ns: u64, clock: usize) -> Calls {
        let mut sums: BTreeMap<(u32, usize, u32), Relative> = BTreeMap::new();
        for (key, edge) in &graph.edges {
            for (list, this, other) in [(0, key.callee, key.caller), (1, key.caller, key.callee)] {
                let empty = Relative { method: other, calls: 0, total: [0; 2], share: 0.0 };
                let sum = sums.entry((this, list, other)).or_insert(empty);
                sum.calls += edge.calls;
                // What a recursive call took is part of what the outermost one took.
                if !key.callee_recursive {
                    super::machine::add(&mut sum.total, edge.total.map(|t| t.saturating_mul(tick_ns)));
                }
            }
        }
        let mut lists: HashMap<u32, [Vec<Relative>; 2]> = HashMap::new();
        for ((this, list, _), mut relative) in sums {
            let inclusive = graph.methods.get(this as usize).map_or(0, |stat| stat.inclusive[clock]);
            relative.share = percent(relative.total[clock], inclusive.saturating_mul(tick_ns));
            lists.entry(this).or_default()[list].push(relative);
        }
        for list in lists.values_mut().flatten() {
            list.sort_by_key(|relative| std::cmp::Reverse(relative.total[clock]));
        }
        Calls { lists }
    }

    /// Callers and callees of a method.
    pub fn of(&self, method: u32) -> [(&'static str, &[Relative]); 2] {
        let [callers, callees] = self.lists.get(&method).map_or([&[][..], &[]], |[a, b]| [&a[..], &b[..]]);
        [("called by", callers), ("calls", callees)]
    }
}

impl Relative {
    fn name(&self, names: &Names<'_, '_>) -> String {
        if self.method == ROOT { "(outside of traced methods)".to_owned() } else { names.full(self.method) }
    }

    fn line(&self, title: &str, rows: &Rows, names: &Names<'_, '_>) -> String {
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

/// A stat's figures as JSON members, for the clocks there are.
pub fn members(stat: &Stat, has: [bool; 2]) -> Map<String, Value> {
    let mut map = Map::new();
    map.insert("calls".into(), json!(stat.calls));
    map.insert("recursive_calls".into(), json!(stat.recursive));
    for (clock, name) in CLOCKS.into_iter().filter(|(clock, _)| has[*clock]) {
        map.insert(format!("{name}_exclusive_ns"), json!(stat.exclusive[clock]));
        map.insert(format!("{name}_inclusive_ns"), json!(stat.inclusive[clock]));
    }
    map
}

/// Rows as a JSON array.
pub fn to_json(rows: &Rows, shown: &[Row], names: &Names<'_, '_>, calls: Option<&Calls>) -> Value {
    let one = |row: &Row| {
        let mut map = members(&row.stat, rows.clocks);
        map.insert("name".into(), json!(rows.label(names, row)));
        if rows.by == By::Method {
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
        for (title, relatives) in calls.into_iter().flat_map(|calls| calls.of(row.id)) {
            let list = relatives.iter().map(|r| {
                let mut map = Map::new();
                map.insert("name".into(), json!(r.name(names)));
                map.insert("calls".into(), json!(r.calls));
                map.insert("share_percent".into(), json!(r.share));
                map.extend(clocks(rows).map(|(clock, name)| (format!("{name}_ns"), json!(r.total[clock]))));
                Value::Object(map)
            });
            map.insert(title.replace(' ', "_"), list.collect());
        }
        Value::Object(map)
    };
    shown.iter().map(one).collect()
}

/// Rows as CSV with a header line; times in ns.
pub fn csv(rows: &Rows, shown: &[Row], names: &Names<'_, '_>, out: &mut impl Write) -> io::Result<()> {
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
