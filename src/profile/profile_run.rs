//! One trace of a request, with the names, the selection and the clock that its outputs are made from.

use serde_json::{Value, json};

use super::error::ProfileError;
use super::figures::CLOCKS;
use super::names::TraceNames;
use super::output::ProfileOutput;
use super::record_stream::ProfileSelection;
use super::request::{PrintForm, ProfileRequest, RecordFilter};
use super::rows::{ProfileRows, clocks, main_clock};
use super::thread_filter;
use super::tree::{CallTree, TreeOptions};
use crate::formats::art_method::MethodTrace;
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
        if !clocks(trace)[clock] {
            let (name, recorded) = (input.name.clone(), trace.header().clock.name());
            return Err(ProfileError::NoSuchClock { name, recorded });
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
        let rows = &self.request.rows;
        ProfileRows::of(self.trace, &self.names, &self.selection, rows.kind, (rows.sort, self.clock))
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

    /// The unit of the trace's ticks.
    pub(super) fn tick_unit(&self) -> &'static str {
        if self.trace.header().tick_ns == 1 { "ns" } else { "µs" }
    }

    /// The JSON members about the trace and the whole profile, without the rows.
    pub(super) fn summary(&self, rows: &ProfileRows) -> Value {
        let header = self.trace.header();
        let report = self.trace.report();
        let mut value = json!({
            "file": self.input.name, "format": self.trace.format(), "version": header.version,
            "streaming": header.streaming, "clock": header.clock.name(), "pid": header.pid, "vm": header.vm,
            "counts": self.trace.counts(), "problems": rows.anomalies, "damage": report.damage, "notes": report.notes,
        });
        for (clock, name) in CLOCKS.into_iter().filter(|(clock, _)| rows.clocks[*clock]) {
            value[format!("{name}_total_ns")] = json!(rows.total[clock]);
        }
        value
    }
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
