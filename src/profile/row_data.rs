//! Rows as JSON and as CSV.

use std::io::{self, Write};

use serde_json::{Map, Value, json};

use super::call_relations::CallRelations;
use super::figures::{CLOCKS, percent};
use super::flat::MethodStat;
use super::names::TraceNames;
use super::rows::{ProfileRow, ProfileRows, RowKind};
use crate::text::csv_field;

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
        for (clock, name) in rows.named_clocks() {
            map.insert(
                format!("{name}_exclusive_percent"),
                json!(percent(row.stat.exclusive[clock], rows.total[clock])),
            );
        }
        let lists = relations.map(|relations| relations.of(row.id)).into_iter().flatten();
        for (key, list) in ["called_by", "callees"].into_iter().zip(lists) {
            let list = list.iter().map(|r| {
                let mut map = Map::new();
                map.insert("name".into(), json!(r.name(names)));
                map.insert("calls".into(), json!(r.calls));
                map.insert("share_percent".into(), json!(r.share));
                map.extend(
                    rows.named_clocks().map(|(clock, name)| (format!("{name}_ns"), json!(r.total[clock]))),
                );
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
    for (_, name) in rows.named_clocks() {
        write!(out, ",{name}_exclusive_ns,{name}_inclusive_ns")?;
    }
    writeln!(out)?;
    for row in shown {
        let label = rows.label(names, row);
        write!(out, "{},{},{}", csv_field(&label), row.stat.calls, row.stat.recursive)?;
        for (clock, _) in rows.named_clocks() {
            write!(out, ",{},{}", row.stat.exclusive[clock], row.stat.inclusive[clock])?;
        }
        writeln!(out)?;
    }
    Ok(())
}
