//! The table of what each output format holds, and what a conversion loses by it. The matrix of
//! docs/formats.md is generated from the table (`tests/it/golden/matrix.rs`).

use std::collections::BTreeMap;

use serde::Serialize;

use super::{FORMATS, OutputFormat};
use crate::timeline::{DataKind, MergeSummary};

/// The form in which a format holds one kind of data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Held {
    /// All of it.
    Whole,
    /// In a changed form, which the text describes in a few words.
    Changed(&'static str),
    /// Not at all.
    Nothing,
}

/// The column of a format in [`HELD`]. Formats that hold the same share one column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HeldColumn {
    Perfetto,
    PerfettoZip,
    TraceDat,
    Systrace,
    ChromeJson,
    Firefox,
    Csv,
    Report,
    SystraceHtml,
}

const ALL: Held = Held::Whole;
const NONE: Held = Held::Nothing;

/// For each kind of data how each format holds it, in the order of [`HeldColumn`].
#[rustfmt::skip]
const HELD: &[(DataKind, [Held; 9])] = &[
    // perfetto, zip, trace-dat, systrace, chrome-json, firefox, csv, report, systrace-html
    (DataKind::KernelEvents,          [ALL,     ALL,          ALL,        ALL,     ALL,        ALL,     ALL,    ALL,   ALL]),
    (DataKind::Markers,               [ALL,     ALL,          ALL,        ALL,     ALL,        ALL,     ALL,    ALL,   ALL]),
    (DataKind::Methods,               [ALL,     ALL,          NONE,       ALL,     ALL,        SAMPLED, ALL,    ALL,   ALL]),
    (DataKind::Samples,               [ALL,     ALL,          NONE,       NONE,    ALL,        MARKERS, NONE,   STRIPS, STRIPS]),
    (DataKind::TrackEvents,           [ALL,     ALL,          NONE,       NONE,    ALL,        ALL,     ALL,    ALL,   ALL]),
    (DataKind::SystemCallArguments,   [ALL,     ALL,          NONE,       NONE,    ALL,        ALL,     ALL,    ALL,   ALL]),
    (DataKind::Frames,                [ALL,     ALL,          NONE,       NONE,    ALL,        ALL,     ALL,    ALL,   ALL]),
    (DataKind::PerfettoPackets,       [ALL,     NONE,         NONE,       NONE,    NONE,       NONE,    NONE,   NONE,  NONE]),
    (DataKind::FieldValues,           [ALL,     ALL,          NO_SYMBOLS, ALL,     ALL,        ALL,     ALL,    ALL,   ALL]),
    (DataKind::LostEvents,            [ALL,     ALL,          ALL,        ALL,     ALL,        ALL,     ALL,    ALL,   ALL]),
    (DataKind::ThreadNames,           [ALL,     ALL,          ONE_NAME,   ALL,     ALL,        ALL,     ALL,    ALL,   ALL]),
    (DataKind::ProcessNames,          [ALL,     ALL,          ALL,        NONE,    ALL,        ALL,     ALL,    ALL,   ALL]),
    (DataKind::TimesBelowMicrosecond, [ALL,     ALL,          ALL,        NONE,    ALL,        ALL,     ALL,    ALL,   ALL]),
    (DataKind::Flags,                 [ALL,     ALL,          ALL,        ALL,     NONE,       NONE,    NONE,   NONE,  ALL]),
    (DataKind::PreemptCounts,         [NONE,    NONE,         ALL,        ALL,     NONE,       NONE,    NONE,   NONE,  ALL]),
    (DataKind::Wakeups,               [ALL,     ALL,          ALL,        ALL,     STATES,     STATES,  STATES, ALL,   ALL]),
    (DataKind::ClockSnapshots,        [ALL,     NO_MONOTONIC, ALL,        NONE,    NONE,       NONE,    NONE,   NONE,  NONE]),
    (DataKind::MethodSignatures,      [NONE,    ALL,          NONE,       NONE,    NONE,       NONE,    ALL,    ALL,   ALL]),
    (DataKind::MethodCpuTimes,        [NONE,    ALL,          NONE,       NONE,    ALL,        NONE,    ALL,    ALL,   ALL]),
    (DataKind::UnmatchedEnds,         [ALL,     ALL,          ALL,        ALL,     ALL,        ALL,     ALL,    ALL,   ALL]),
];

const SAMPLED: Held = Held::Changed("samples of 0.1 ms");
const STRIPS: Held = Held::Changed("strips of stacks");
const MARKERS: Held = Held::Changed("markers where off a CPU");
const NO_SYMBOLS: Held = Held::Changed("no names of symbols");
const NO_MONOTONIC: Held = Held::Changed("without MONOTONIC");
const STATES: Held = Held::Changed("states, no wakers");
const ONE_NAME: Held = Held::Changed("one a thread");

/// The form in which the format of `column` holds data of `kind`.
fn held(column: HeldColumn, kind: DataKind) -> Held {
    let row = HELD.iter().find(|(held, _)| *held == kind);
    row.map_or(Held::Nothing, |(_, columns)| columns[column as usize])
}

impl OutputFormat {
    /// The form in which this format holds data of `kind`.
    pub fn held(&self, kind: DataKind) -> Held {
        held(self.column, kind)
    }

    /// Whether this format holds data of `kind`, if only in a changed form.
    pub fn holds(&self, kind: DataKind) -> bool {
        self.held(kind) != Held::Nothing
    }
}

/// The names and first endings of the formats that hold `kind`, for messages: `perfetto (.pftrace)`.
pub fn formats_that_hold(kind: DataKind) -> String {
    let formats = FORMATS.iter().filter(|format| format.holds(kind));
    let named = formats.map(|format| format!("{} ({})", format.name, format.endings[0]));
    named.collect::<Vec<_>>().join(", ")
}

/// The data that a conversion did not write, by kind.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct ConversionLosses {
    /// Data that is not in the output, with counts. The program's exit status is then 3.
    pub dropped: BTreeMap<String, u64>,
    /// Details of data that the output holds without these details, with counts.
    pub reduced: BTreeMap<String, u64>,
}

impl ConversionLosses {
    /// Compares a timeline with what `format` holds.
    pub(super) fn new(format: &OutputFormat, summary: &MergeSummary) -> ConversionLosses {
        let mut losses = ConversionLosses::default();
        for (kind, count) in summary.contents.iter() {
            match format.held(kind) {
                Held::Nothing if kind == DataKind::PerfettoPackets => {
                    losses.dropped.extend(summary.report.unread.clone());
                }
                Held::Nothing if !kind.is_detail() => losses.add_dropped(kind, count),
                Held::Nothing | Held::Changed(_) => losses.add_reduced(kind, count),
                Held::Whole => {}
            }
        }
        for (kind, count) in summary.not_written.iter() {
            if kind.is_detail() {
                losses.add_reduced(kind, count);
            } else {
                losses.add_dropped(kind, count);
            }
        }
        losses
    }

    fn add_dropped(&mut self, kind: DataKind, count: u64) {
        *self.dropped.entry(kind.key().to_owned()).or_default() += count;
    }

    fn add_reduced(&mut self, kind: DataKind, count: u64) {
        *self.reduced.entry(kind.key().to_owned()).or_default() += count;
    }

    /// The counts for people: `12090 methods, 37 log messages`.
    pub fn list(counts: &BTreeMap<String, u64>) -> String {
        let name = |key: &str| match DataKind::ALL.into_iter().find(|kind| kind.key() == key) {
            Some(kind) => kind.name().to_owned(),
            None => key.replace('_', " "),
        };
        let items = counts.iter().map(|(key, count)| format!("{count} {}", name(key)));
        items.collect::<Vec<_>>().join(", ")
    }
}

/// The matrix of docs/formats.md: one row for each kind of data, one column for each format. Formats that
/// hold the same share a column.
pub fn matrix() -> String {
    let mut columns: Vec<(HeldColumn, String)> = Vec::new();
    for format in FORMATS {
        match columns.iter_mut().find(|(column, _)| *column == format.column) {
            Some((_, names)) => names.push_str(&format!(", `{}`", format.endings[0])),
            None => columns.push((format.column, format!("`{}`", format.endings[0]))),
        }
    }
    columns.sort_by_key(|(column, _)| *column as usize);
    let names: Vec<&str> = columns.iter().map(|(_, names)| names.as_str()).collect();
    let mut out = format!("| data | {} |\n| --- |{}\n", names.join(" | "), " :-: |".repeat(names.len()));
    for (kind, held) in HELD.iter().filter(|(kind, _)| *kind != DataKind::UnmatchedEnds) {
        let cells = columns.iter().map(|(column, _)| match held[*column as usize] {
            Held::Whole => "●".to_owned(),
            Held::Changed(form) => format!("◐ {form}"),
            Held::Nothing => "–".to_owned(),
        });
        let detail = if kind.is_detail() { " *" } else { "" };
        out += &format!("| {}{detail} | {} |\n", kind.name(), cells.collect::<Vec<_>>().join(" | "));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;
    use crate::formats::ReadReport;

    #[test]
    fn every_kind_of_data_has_its_row_in_the_table() {
        let kinds: Vec<DataKind> = HELD.iter().map(|(kind, _)| *kind).collect();
        assert_eq!(kinds, DataKind::ALL);
    }

    #[test]
    fn a_timeline_loses_what_the_format_does_not_hold_and_nothing_else() {
        let mut summary = MergeSummary::new(Clock::Boottime, Vec::new(), ReadReport::default());
        summary.contents.add(DataKind::KernelEvents, 10);
        summary.contents.add(DataKind::Methods, 12_090);
        summary.contents.add(DataKind::PreemptCounts, 4);
        summary.contents.add(DataKind::PerfettoPackets, 7_977);
        summary.report.unread.insert("perf_samples".into(), 7_977);
        summary.not_written.add(DataKind::FieldValues, 3);
        let losses = |name| ConversionLosses::new(OutputFormat::of_name(name).unwrap(), &summary);
        let dat = losses("trace-dat");
        assert_eq!(
            ConversionLosses::list(&dat.dropped),
            "3 values of fields, 12090 methods, 7977 perf samples"
        );
        assert!(dat.reduced.is_empty());
        let perfetto = losses("perfetto");
        assert_eq!(ConversionLosses::list(&perfetto.dropped), "3 values of fields");
        assert_eq!(ConversionLosses::list(&perfetto.reduced), "4 preempt counts");
        assert_eq!(losses("firefox").reduced.get("methods"), Some(&12_090));
    }
}
