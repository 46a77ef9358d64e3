//! Rows as JSON and as CSV, and the JSON members about their trace.

use std::borrow::Cow;
use std::io::{self, Write};

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

use super::row_print::{CallRelation, CallRelations};
use crate::formats::Damage;
use crate::formats::art_method::{CPU, CallAnomalies, Counts, MAX_WORKERS, Ticks, WALL};
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

/// The figures of a row; times in ns. Method traces have some of them, samples others. The fields of all
/// objects here are in the order of their names, as in a [`Value`].
#[derive(Serialize, JsonSchema)]
pub(super) struct FigureFields {
    /// Calls that are not recursive.
    #[serde(skip_serializing_if = "Option::is_none")]
    calls: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cpu_exclusive_ns: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cpu_inclusive_ns: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    off_cpu_exclusive_ns: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    off_cpu_inclusive_ns: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    recursive_calls: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    samples: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    wall_exclusive_ns: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    wall_inclusive_ns: Option<u64>,
    /// In `weight_unit`.
    #[serde(skip_serializing_if = "Option::is_none")]
    weight_exclusive: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    weight_inclusive: Option<u64>,
}

impl FigureFields {
    /// FigureFields of `count` calls or samples.
    pub(super) fn new(
        columns: FigureColumns,
        count: u64,
        exclusive: Ticks,
        inclusive: Ticks,
    ) -> FigureFields {
        let calls =
            |clock: usize, ticks: Ticks| (!columns.is_sampled && columns.has(clock)).then_some(ticks[clock]);
        let samples =
            |clock: usize, ticks: Ticks| (columns.is_sampled && columns.has(clock)).then_some(ticks[clock]);
        FigureFields {
            calls: (!columns.is_sampled).then_some(count),
            cpu_exclusive_ns: calls(CPU, exclusive),
            cpu_inclusive_ns: calls(CPU, inclusive),
            off_cpu_exclusive_ns: samples(OFF_CPU, exclusive),
            off_cpu_inclusive_ns: samples(OFF_CPU, inclusive),
            recursive_calls: None,
            samples: columns.is_sampled.then_some(count),
            wall_exclusive_ns: calls(WALL, exclusive),
            wall_inclusive_ns: calls(WALL, inclusive),
            weight_exclusive: samples(WEIGHT, exclusive),
            weight_inclusive: samples(WEIGHT, inclusive),
        }
    }

    /// The figures of a row.
    pub(super) fn of_row(stat: &MethodStat, columns: FigureColumns) -> FigureFields {
        FigureFields {
            recursive_calls: (!columns.is_sampled).then_some(stat.recursive),
            ..FigureFields::new(columns, stat.calls, stat.exclusive, stat.inclusive)
        }
    }
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

/// A row of a profile.
#[derive(JsonSchema)]
#[schemars(untagged)]
#[expect(dead_code, reason = "each row is written as a text of its own; the schema alone knows both kinds")]
enum RowJson<'a> {
    Calls(JsonRow<'a>),
    Samples(SampleRow<'a>),
}

/// A row of a method trace. `class`, `file`, `line` and `inlined` are there in rows of methods,
/// `called_by` and `callees` with --calls, times where the trace has the clock.
#[derive(Serialize, JsonSchema)]
struct JsonRow<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    called_by: Option<Vec<JsonRelation>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    callees: Option<Vec<JsonRelation>>,
    /// Calls that are not recursive.
    calls: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    class: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cpu_exclusive_ns: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cpu_exclusive_percent: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cpu_inclusive_ns: Option<u64>,
    /// Null for a method whose file is not known.
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

/// A row of samples.
#[derive(Serialize, JsonSchema)]
struct SampleRow<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    called_by: Option<Vec<SampleRelation>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    callees: Option<Vec<SampleRelation>>,
    /// The class, or the library of a native function.
    #[serde(skip_serializing_if = "Option::is_none")]
    class: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<Option<&'a str>>,
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    off_cpu_exclusive_ns: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    off_cpu_exclusive_percent: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    off_cpu_inclusive_ns: Option<u64>,
    samples: u64,
    /// In `weight_unit`.
    #[serde(skip_serializing_if = "Option::is_none")]
    weight_exclusive: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    weight_exclusive_percent: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    weight_inclusive: Option<u64>,
}

/// A caller or callee of a row of samples.
#[derive(Serialize, JsonSchema)]
struct SampleRelation {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    off_cpu_inclusive_ns: Option<u64>,
    samples: u64,
    share_percent: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    weight_inclusive: Option<u64>,
}

/// A caller or callee of a row.
#[derive(Serialize, JsonSchema)]
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
    fn sample_row(&self, row: &ProfileRow) -> SampleRow<'r> {
        let columns = self.rows.columns;
        let percent_of = |clock: usize| percent(row.stat.exclusive[clock], self.rows.total[clock]);
        let is_method = self.rows.by == RowKind::Method;
        let [called_by, callees] = match self.relations.map(|relations| relations.of_method(row.id)) {
            Some(lists) => {
                lists.map(|list| Some(list.iter().map(|other| self.sample_relation(other)).collect()))
            }
            None => [None, None],
        };
        let figures = FigureFields::of_row(&row.stat, columns);
        SampleRow {
            called_by,
            callees,
            class: is_method.then(|| self.names.class(row.id)),
            file: is_method.then(|| self.names.source(row.id).0),
            name: self.rows.label(self.names, row),
            off_cpu_exclusive_ns: figures.off_cpu_exclusive_ns,
            off_cpu_exclusive_percent: columns.has(OFF_CPU).then(|| percent_of(OFF_CPU)),
            off_cpu_inclusive_ns: figures.off_cpu_inclusive_ns,
            samples: row.stat.calls,
            weight_exclusive: figures.weight_exclusive,
            weight_exclusive_percent: columns.has(WEIGHT).then(|| percent_of(WEIGHT)),
            weight_inclusive: figures.weight_inclusive,
        }
    }

    fn sample_relation(&self, other: &CallRelation) -> SampleRelation {
        SampleRelation {
            name: other.name(self.names),
            off_cpu_inclusive_ns: self.of_clock(OFF_CPU, other.total),
            samples: other.calls,
            share_percent: other.share,
            weight_inclusive: self.of_clock(WEIGHT, other.total),
        }
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

/// A trace and its profile. Method traces have `clock`, `counts`, `problems`, `streaming`, `version` and
/// `vm`, files of samples `event`, `samples`, `weight_total` and `weight_unit`.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ProfileSummary<'a> {
    /// The clocks of the records: wall, thread-cpu, dual, or none where records have no times.
    #[serde(skip_serializing_if = "Option::is_none")]
    clock: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    counts: Option<&'a Counts>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cpu_total_ns: Option<u64>,
    damage: &'a [Damage],
    /// The event type whose samples are weighed.
    #[serde(skip_serializing_if = "Option::is_none")]
    event: Option<String>,
    /// The path as given.
    file: &'a str,
    format: String,
    notes: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    off_cpu_total_ns: Option<u64>,
    pid: Option<Pid>,
    #[serde(skip_serializing_if = "Option::is_none")]
    problems: Option<CallAnomalies>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Vec<RowJson>>")]
    rows: Option<Vec<Box<RawValue>>>,
    /// Number of samples.
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
    /// In `weight_unit`.
    #[serde(skip_serializing_if = "Option::is_none")]
    weight_total: Option<u64>,
    /// ns, samples, or the name of the event type.
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
            counts: calls.map(|trace| trace.counts()),
            cpu_total_ns: calls.and_then(|_| total(CPU)),
            damage: &report.damage,
            event: samples.map(SampleProfile::event_name),
            file: &run.input.name,
            format: run.trace.format(),
            notes: &report.notes,
            off_cpu_total_ns: samples.and_then(|_| total(OFF_CPU)),
            pid: run.trace.pid(),
            problems: calls.map(|_| rows.anomalies),
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
