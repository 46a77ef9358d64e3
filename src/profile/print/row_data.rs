//! Rows as JSON and as CSV, and the JSON members about their trace.

use std::borrow::Cow;
use std::io::{self, Write};

use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};

use super::row_print::{CallRelation, CallRelations};
use crate::formats::art_method::{CPU, MAX_WORKERS, Ticks, WALL};
use crate::ids::Pid;
use crate::profile::count::flat::MethodStat;
use crate::profile::count::sample_tree::{OFF_CPU, WEIGHT};
use crate::profile::figures::{FigureColumns, percent};
use crate::profile::names::TraceNames;
use crate::profile::profile_run::ProfileRun;
use crate::profile::request::RowKind;
use crate::profile::rows::{ProfileRow, ProfileRows};
use crate::profile::source::{ProfileSource, SampleProfile};
use crate::text::csv_field;
use crate::workers::{run_parts, worker_count};

/// The figures of a row as JSON members; times in ns.
pub(super) fn members(stat: &MethodStat, columns: FigureColumns) -> Map<String, Value> {
    let mut map = Map::new();
    map.insert(columns.count_name().into(), json!(stat.calls));
    if !columns.is_sampled {
        map.insert("recursive_calls".into(), json!(stat.recursive));
    }
    for (clock, _) in columns.named() {
        map.insert(columns.field(clock, "exclusive"), json!(stat.exclusive[clock]));
        map.insert(columns.field(clock, "inclusive"), json!(stat.inclusive[clock]));
    }
    map
}

/// With fewer rows than this a second thread gains nothing.
const PARALLEL_FROM_ROWS: usize = 1_000;

/// Rows for JSON; times in ns. With `relations` each row has its `called_by` and `callees`.
pub(super) struct JsonRows<'r> {
    pub rows: &'r ProfileRows,
    pub shown: &'r [ProfileRow],
    pub names: &'r TraceNames<'r, 'r>,
    pub relations: Option<&'r CallRelations>,
}

impl JsonRows<'_> {
    /// The text of each row. A trace has tens of thousands of rows: each is written as it is made, not from a
    /// tree of values, and the rows are distributed over the processors.
    pub(super) fn texts(&self) -> serde_json::Result<Vec<Box<RawValue>>> {
        let workers = if self.shown.len() < PARALLEL_FROM_ROWS { 1 } else { worker_count(MAX_WORKERS) };
        let parts: Vec<&[ProfileRow]> =
            self.shown.chunks(self.shown.len().div_ceil(workers).max(1)).collect();
        let texts = run_parts(&parts, |rows| -> serde_json::Result<Vec<_>> {
            let is_sampled = self.rows.columns.is_sampled;
            let text = |row: &ProfileRow| {
                if is_sampled { to_raw_value(&self.sample_row(row)) } else { to_raw_value(&self.row(row)) }
            };
            rows.iter().map(text).collect()
        });
        Ok(texts.into_iter().collect::<serde_json::Result<Vec<_>>>()?.into_iter().flatten().collect())
    }
}

/// One row. The fields of all objects here are in the order of their names, as in a [`serde_json::Value`].
#[derive(Serialize)]
struct JsonRow<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    called_by: Option<Vec<JsonRelation>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    callees: Option<Vec<JsonRelation>>,
    calls: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    class: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cpu_exclusive_ns: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cpu_exclusive_percent: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cpu_inclusive_ns: Option<u64>,
    /// `null` where a method's file is not known. Rows that are no methods have no such field.
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<Option<&'a str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    inlined: Option<&'a [String]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<Option<i64>>,
    name: String,
    recursive_calls: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    wall_exclusive_ns: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    wall_exclusive_percent: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    wall_inclusive_ns: Option<u64>,
}

/// A caller or callee of a row.
#[derive(Serialize)]
struct JsonRelation {
    calls: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    cpu_ns: Option<u64>,
    name: String,
    share_percent: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    wall_ns: Option<u64>,
}

impl<'r> JsonRows<'r> {
    fn row(&self, row: &ProfileRow) -> JsonRow<'r> {
        let stat = &row.stat;
        let share = |clock: usize| percent(stat.exclusive[clock], self.rows.total[clock]);
        let is_method = self.rows.by == RowKind::Method;
        let (file, line) = self.names.source(row.id);
        let [called_by, callees] = match self.relations.map(|relations| relations.of_method(row.id)) {
            Some(lists) => lists.map(|list| Some(list.iter().map(|other| self.relation(other)).collect())),
            None => [None, None],
        };
        JsonRow {
            called_by,
            callees,
            calls: stat.calls,
            class: is_method.then(|| self.names.class(row.id)),
            cpu_exclusive_ns: self.of_clock(CPU, stat.exclusive),
            cpu_exclusive_percent: self.rows.columns.has(CPU).then(|| share(CPU)),
            cpu_inclusive_ns: self.of_clock(CPU, stat.inclusive),
            file: is_method.then_some(file),
            inlined: is_method.then(|| self.names.inlined(row.id)),
            line: is_method.then_some(line),
            name: self.rows.label(self.names, row),
            recursive_calls: stat.recursive,
            wall_exclusive_ns: self.of_clock(WALL, stat.exclusive),
            wall_exclusive_percent: self.rows.columns.has(WALL).then(|| share(WALL)),
            wall_inclusive_ns: self.of_clock(WALL, stat.inclusive),
        }
    }

    /// A row of samples.
    fn sample_row(&self, row: &ProfileRow) -> Map<String, Value> {
        let columns = self.rows.columns;
        let mut map = members(&row.stat, columns);
        for (clock, _) in columns.named() {
            let field = columns.field(clock, "exclusive_percent").trim_end_matches("_ns").to_owned();
            map.insert(field, json!(percent(row.stat.exclusive[clock], self.rows.total[clock])));
        }
        map.insert("name".into(), json!(self.rows.label(self.names, row)));
        if self.rows.by == RowKind::Method {
            map.insert("class".into(), json!(self.names.class(row.id)));
            map.insert("file".into(), json!(self.names.source(row.id).0));
        }
        if let Some(relations) = self.relations {
            for (field, list) in ["called_by", "callees"].into_iter().zip(relations.of_method(row.id)) {
                let list = list.iter().map(|other| {
                    let mut map = Map::new();
                    map.insert("name".into(), json!(other.name(self.names)));
                    map.insert("samples".into(), json!(other.calls));
                    map.insert("share_percent".into(), json!(other.share));
                    for (clock, _) in columns.named() {
                        map.insert(columns.field(clock, "inclusive"), json!(other.total[clock]));
                    }
                    Value::Object(map)
                });
                map.insert(field.into(), list.collect());
            }
        }
        map
    }

    fn relation(&self, other: &CallRelation) -> JsonRelation {
        JsonRelation {
            calls: other.calls,
            cpu_ns: self.of_clock(CPU, other.total),
            name: other.name(self.names),
            share_percent: other.share,
            wall_ns: self.of_clock(WALL, other.total),
        }
    }

    /// The time in a clock that the trace has.
    fn of_clock(&self, clock: usize, times: Ticks) -> Option<u64> {
        self.rows.columns.has(clock).then_some(times[clock])
    }
}

/// Writes rows as CSV with a header line; times in ns.
pub(super) fn write_csv(
    rows: &ProfileRows,
    shown: &[ProfileRow],
    names: &TraceNames<'_, '_>,
    out: &mut impl Write,
) -> io::Result<()> {
    let columns = rows.columns;
    write!(out, "name,{}", columns.count_name())?;
    if !columns.is_sampled {
        write!(out, ",recursive_calls")?;
    }
    for (clock, _) in columns.named() {
        write!(out, ",{},{}", columns.field(clock, "exclusive"), columns.field(clock, "inclusive"))?;
    }
    writeln!(out)?;
    for row in shown {
        let label = rows.label(names, row);
        write!(out, "{},{}", csv_field(&label), row.stat.calls)?;
        if !columns.is_sampled {
            write!(out, ",{}", row.stat.recursive)?;
        }
        for (clock, _) in columns.named() {
            write!(out, ",{},{}", row.stat.exclusive[clock], row.stat.inclusive[clock])?;
        }
        writeln!(out)?;
    }
    Ok(())
}

/// The JSON members about a trace and its profile. The fields are in the order of their names, as in a
/// [`Value`]. Method traces have some of them, samples others.
#[derive(Serialize)]
pub(super) struct ProfileSummary<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    clock: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    counts: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cpu_total_ns: Option<u64>,
    damage: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    event: Option<String>,
    file: &'a str,
    format: String,
    notes: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    off_cpu_total_ns: Option<u64>,
    pid: Option<Pid>,
    #[serde(skip_serializing_if = "Option::is_none")]
    problems: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rows: Option<Vec<Box<RawValue>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    samples: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    streaming: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    vm: Option<Option<&'a str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    wall_total_ns: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    weight_total: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    weight_unit: Option<String>,
}

impl<'a> ProfileSummary<'a> {
    /// The members about the trace of `run` and its whole profile `rows`, with the rows to show, where
    /// there are any.
    pub(super) fn new(
        run: &'a ProfileRun<'_, '_>,
        rows: &ProfileRows,
        shown: Option<Vec<Box<RawValue>>>,
    ) -> ProfileSummary<'a> {
        let report = run.trace.report();
        let total = |clock: usize| rows.columns.has(clock).then_some(rows.total[clock]);
        let calls = match run.trace {
            ProfileSource::Calls(trace) => Some(trace),
            ProfileSource::Samples(_) => None,
        };
        let samples = match run.trace {
            ProfileSource::Calls(_) => None,
            ProfileSource::Samples(samples) => Some(samples),
        };
        let header = calls.map(|trace| trace.header());
        ProfileSummary {
            clock: header.map(|header| header.clock.name()),
            counts: calls.map(|trace| json!(trace.counts())),
            cpu_total_ns: calls.and_then(|_| total(CPU)),
            damage: json!(report.damage),
            event: samples.map(SampleProfile::event_name),
            file: &run.input.name,
            format: run.trace.format(),
            notes: &report.notes,
            off_cpu_total_ns: samples.and_then(|_| total(OFF_CPU)),
            pid: run.trace.pid(),
            problems: calls.map(|_| json!(rows.anomalies)),
            rows: shown,
            samples: samples.map(|samples| samples.samples),
            streaming: header.map(|header| header.streaming),
            version: header.map(|header| header.version),
            vm: header.map(|header| header.vm.as_deref()),
            wall_total_ns: calls.and_then(|_| total(WALL)),
            weight_total: samples.map(|_| rows.total[WEIGHT]),
            weight_unit: samples.map(SampleProfile::unit),
        }
    }
}
