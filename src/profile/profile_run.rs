//! One trace of a request, with the names, the selection and the clock that its outputs are made from.

use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::error::ProfileError;
use super::names::TraceNames;
use super::output::ProfileOutput;
use super::record_stream::ProfileSelection;
use super::request::{PrintForm, ProfileRequest, RecordFilter};
use super::rows::{ProfileRows, SortKey, clocks, main_clock};
use super::thread_filter;
use super::tree::{CallTree, TreeOptions};
use crate::formats::art_method::{CPU, MethodTrace, WALL};
use crate::formats::input::Input;

/// The number of rows in a table where the request gives none.
const TABLE_ROWS: usize = 40;

/// One trace of a request.
pub(super) struct ProfileRun<'t, 'a> {
    pub request: &'t ProfileRequest,
    pub input: &'t Input,
    pub trace: &'t MethodTrace<'a>,
    pub names: TraceNames<'t, 'a>,
    pub selection: ProfileSelection,
    /// The clock to sort, draw and cut by: an index into [`crate::formats::art_method::Ticks`].
    pub clock: usize,
}

impl<'t, 'a> ProfileRun<'t, 'a> {
    /// Prepares the profile of `trace`, which was read from `input`.
    pub(super) fn new(
        request: &'t ProfileRequest,
        input: &'t Input,
        trace: &'t MethodTrace<'a>,
        mapping: Option<&Input>,
        output: &mut ProfileOutput<'_>,
    ) -> Result<Self, ProfileError> {
        let clock = request.clock.unwrap_or_else(|| main_clock(trace));
        let name = || input.name.clone();
        if !trace.header().has_times() && request.filter.window_ns.is_some() {
            return Err(ProfileError::NoTimes { name: name(), purpose: "a window of time" });
        }
        if !trace.header().has_times() && request.clock.is_some() {
            return Err(ProfileError::NoTimes { name: name(), purpose: "--clock" });
        }
        if trace.header().has_times() && !clocks(trace)[clock] {
            return Err(ProfileError::NoSuchClock { name: name(), recorded: trace.header().clock.name() });
        }
        let names = match mapping {
            Some(mapping) => TraceNames::mapped(trace, mapping)
                .map_err(|source| ProfileError::Mapping { name: mapping.name.clone(), source })?,
            None => TraceNames::new(trace),
        };
        if mapping.is_some() && names.mapped_count() == 0 {
            (output.message)(&input.name, "the mapping file knows none of its methods");
        }
        let selection = selection(&request.filter, input, trace)?;
        for unmatched in
            request.filter.threads.iter().filter(|name| !thread_filter::matching(trace, name).contains(&true))
        {
            (output.message)(&input.name, &format!("no thread is called {unmatched}"));
        }
        if let Some(window) = &selection.window {
            let end = end_ns(trace);
            if window.start >= end {
                let (from, end) = (window.start as f64 / 1e9, end as f64 / 1e9);
                let said = format!("nothing lies behind --from {from} s: the trace ends at {end} s");
                (output.message)(&input.name, &said);
            }
        }
        Ok(ProfileRun { request, input, trace, names, selection, clock })
    }

    pub(super) fn rows(&self) -> ProfileRows {
        let kind = self.request.rows.kind;
        ProfileRows::of(self.trace, &self.names, &self.selection, kind, (self.sort(), self.clock))
    }

    /// The figure to sort by: without times, calls in place of exclusive times.
    pub(super) fn sort(&self) -> SortKey {
        match self.request.rows.sort {
            SortKey::Exclusive if !self.trace.header().has_times() => SortKey::Calls,
            sort => sort,
        }
    }

    /// The unit of times, ns; `None` in a trace without times, where they are numbers of calls.
    pub(super) fn tick_ns(&self) -> Option<u64> {
        self.trace.header().has_times().then_some(self.trace.header().tick_ns)
    }

    pub(super) fn tree(&self) -> CallTree {
        CallTree::of(self.trace, &self.selection, TreeOptions::default())
    }

    /// The number of rows to print of `all`.
    pub(super) fn shown_rows(&self, all: usize) -> usize {
        match (self.request.rows.limit, self.request.form) {
            (Some(0), _) | (None, PrintForm::Json | PrintForm::Csv) => all,
            (Some(limit), _) => limit.min(all),
            (None, PrintForm::Text) => TABLE_ROWS.min(all),
        }
    }

    /// The error of a request that needs times, for a trace that has none.
    pub(super) fn no_times(&self, purpose: &'static str) -> ProfileError {
        ProfileError::NoTimes { name: self.input.name.clone(), purpose }
    }

    /// The unit of the trace's ticks.
    pub(super) fn tick_unit(&self) -> &'static str {
        match self.tick_ns() {
            None => "calls",
            Some(1) => "ns",
            Some(_) => "µs",
        }
    }

    /// The JSON members about the trace and the whole profile, with the rows to show, where there are any.
    pub(super) fn summary<'r>(
        &'r self,
        rows: &ProfileRows,
        shown: Option<Vec<Box<RawValue>>>,
    ) -> ProfileSummary<'r> {
        let header = self.trace.header();
        let report = self.trace.report();
        let total = |clock: usize| rows.clocks[clock].then_some(rows.total[clock]);
        ProfileSummary {
            clock: header.clock.name(),
            counts: json!(self.trace.counts()),
            cpu_total_ns: total(CPU),
            damage: json!(report.damage),
            file: &self.input.name,
            format: self.trace.format(),
            notes: &report.notes,
            pid: header.pid,
            problems: json!(rows.anomalies),
            rows: shown,
            streaming: header.streaming,
            version: header.version,
            vm: header.vm.as_deref(),
            wall_total_ns: total(WALL),
        }
    }
}

/// What `--json` says about a trace and its profile. The fields are in the order of their names, as in a
/// [`Value`].
#[derive(Serialize)]
pub(super) struct ProfileSummary<'a> {
    clock: &'static str,
    counts: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    cpu_total_ns: Option<u64>,
    damage: Value,
    file: &'a str,
    format: String,
    notes: &'a [String],
    pid: Option<i32>,
    problems: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    rows: Option<Vec<Box<RawValue>>>,
    streaming: bool,
    version: u16,
    vm: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    wall_total_ns: Option<u64>,
}

/// The time of the trace's last record, ns since the trace's start.
pub(super) fn end_ns(trace: &MethodTrace<'_>) -> u64 {
    trace.records().filter_map(|record| record.wall.or(record.cpu)).max().unwrap_or(0)
}

fn selection(
    filter: &RecordFilter,
    input: &Input,
    trace: &MethodTrace<'_>,
) -> Result<ProfileSelection, ProfileError> {
    let mut selection = ProfileSelection { threads: None, window: filter.window_ns.clone() };
    if !filter.threads.is_empty() {
        let mut threads = vec![false; trace.threads().len()];
        for wanted in &filter.threads {
            let matching = thread_filter::matching(trace, wanted);
            threads.iter_mut().zip(matching).for_each(|(selected, matches)| *selected |= matches);
        }
        if !threads.contains(&true) {
            let (name, requested) = (input.name.clone(), filter.threads.join(", "));
            return Err(ProfileError::NoSuchThread { name, requested });
        }
        selection.threads = Some(threads);
    }
    if filter.window_ns.as_ref().is_some_and(|window| window.is_empty()) {
        return Err(ProfileError::EmptyWindow);
    }
    Ok(selection)
}
