//! The table of what each output format holds. The matrix of docs/formats.md is generated from it.

use crate::timeline::DataKind;

/// How a format holds one kind of data.
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
pub(super) enum Column {
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

/// For each kind of data how each format holds it, in the order of [`Column`].
#[rustfmt::skip]
pub(super) const HELD: &[(DataKind, [Held; 9])] = &[
    // perfetto, zip, trace-dat, systrace, chrome-json, firefox, csv, report, systrace-html
    (DataKind::KernelEvents,          [ALL,     ALL,          ALL,        ALL,     ALL,        ALL,     ALL,    ALL,   ALL]),
    (DataKind::Markers,               [ALL,     ALL,          ALL,        ALL,     ALL,        ALL,     ALL,    ALL,   ALL]),
    (DataKind::Methods,               [ALL,     ALL,          NONE,       ALL,     ALL,        SAMPLED, ALL,    ALL,   ALL]),
    (DataKind::TrackEvents,           [ALL,     ALL,          NONE,       NONE,    ALL,        ALL,     ALL,    ALL,   ALL]),
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
const NO_SYMBOLS: Held = Held::Changed("no names of symbols");
const NO_MONOTONIC: Held = Held::Changed("without MONOTONIC");
const STATES: Held = Held::Changed("states, no wakers");
const ONE_NAME: Held = Held::Changed("one a thread");

/// How the format of `column` holds data of `kind`.
pub(super) fn held(column: Column, kind: DataKind) -> Held {
    let row = HELD.iter().find(|(held, _)| *held == kind);
    row.map_or(Held::Nothing, |(_, columns)| columns[column as usize])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_data_has_its_row_in_the_table() {
        let kinds: Vec<DataKind> = HELD.iter().map(|(kind, _)| *kind).collect();
        assert_eq!(kinds, DataKind::ALL);
    }
}
