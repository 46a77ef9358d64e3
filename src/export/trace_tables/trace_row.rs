//! The rows of the tables `trace` and `source`.

use std::io;

use crate::clock::Clock;
use crate::formats::{Damage, Head};
use crate::tables::{COUNTED, Cell, SCHEMA_VERSION, TableId, TraceRows};
use crate::timeline::{DataKind, InputSummary, MergeSummary};

/// What is known of a trace at its end.
pub struct TraceFacts<'a> {
    /// The names of its inputs, for people.
    pub name: &'a str,
    /// The timeline's head.
    pub head: &'a Head,
    /// The timeline's counts, losses and verdicts.
    pub summary: &'a MergeSummary,
    /// When the trace begins by the wall clock, ns since 1970 in UTC.
    pub start_realtime: Option<u64>,
    /// The day of the partition, `2026-11-22`.
    pub day: &'a str,
    /// What the day comes from: `wall clock` or `file`.
    pub day_from: &'static str,
    /// Ends of asynchronous slices whose begin was not recorded.
    pub unmatched_asyncs: u64,
    /// Whether the table `method_call` has the calls.
    pub has_method_calls: bool,
}

/// The places of damage that a row names; the others are counted.
const NAMED_DAMAGE: usize = 3;

/// Makes the row of the trace: the last one of its rows.
///
/// # Errors
/// The system's error.
pub fn push_trace(rows: &mut TraceRows, facts: &TraceFacts<'_>) -> io::Result<()> {
    let TraceFacts { head, summary, .. } = facts;
    let report = &summary.report;
    let (first, last) = (report.first_ts.unwrap_or(0), report.last_ts.unwrap_or(0));
    let gaps: u64 = report.cpus.values().map(|cpu| cpu.gaps).sum();
    let unmatched = summary.not_written.get(DataKind::UnmatchedEnds).saturating_add(facts.unmatched_asyncs);
    let named: Vec<String> = report.damage.iter().take(NAMED_DAMAGE).map(damage_text).collect();
    let damage = named.join("; ");
    let traced = || summary.inputs.iter().filter(|input| input.method_edges > 0);
    let verdict = traced().map(|input| input.verdict).min();
    let release = head.device.as_deref().and_then(|device| device.rsplit_once("Android "));
    let release = release.map(|(_, release)| release.trim());
    let counts = COUNTED.map(|(table, _)| Cell::from(rows.count(table)));
    let [slices, scheds, states, counters, profiles, calls, launches, raw_events] = counts;
    rows.push(
        TableId::Trace,
        [
            SCHEMA_VERSION.into(),
            env!("CARGO_PKG_VERSION").into(),
            facts.name.into(),
            (&head.format).into(),
            summary.clock.name().into(),
            first.into(),
            last.saturating_sub(first).into(),
            facts.start_realtime.into(),
            facts.day.into(),
            facts.day_from.into(),
            head.machine.as_ref().into(),
            head.device.as_ref().into(),
            release.into(),
            head.cpus.into(),
            report.events().into(),
            report.lost().into(),
            gaps.into(),
            unmatched.into(),
            report.damage.len().into(),
            Some(&damage).filter(|damage| !damage.is_empty()).into(),
            verdict.map(|verdict| verdict.name()).into(),
            traced().filter_map(|input| input.residual_median_ns).max().into(),
            traced().filter_map(|input| input.residual_p99_ns).max().into(),
            facts.has_method_calls.into(),
            slices,
            scheds,
            states,
            counters,
            profiles,
            calls,
            launches,
            raw_events,
        ],
    )
}

fn damage_text(damage: &Damage) -> String {
    format!("at byte {}: {}", damage.offset, damage.what)
}

/// Makes the row of an input. `path_bytes` is its path where that is no text.
///
/// # Errors
/// The system's error.
pub fn push_source(
    rows: &mut TraceRows,
    number: usize,
    input: &InputSummary,
    path_bytes: Option<&[u8]>,
) -> io::Result<()> {
    rows.push(
        TableId::Source,
        [
            number.into(),
            (&input.name).into(),
            path_bytes.map_or(Cell::Null, Cell::Bytes),
            input.size.into(),
            (&input.format).into(),
            input.clock.name().into(),
            input.verdict.name().into(),
            (&input.why).into(),
            input.offset_ns.into(),
            input.residual_median_ns.into(),
            input.residual_p99_ns.into(),
            input.events.into(),
            input.duplicates.into(),
            input.method_edges.into(),
        ],
    )
}

/// The wall clock at `ts`, ns of the timeline's clock; `None` where nothing of the trace tells it.
pub fn realtime(head: &Head, clock: Clock, ts: u64) -> Option<u64> {
    head.snapshots.convert(ts, clock, Clock::Realtime)
}
