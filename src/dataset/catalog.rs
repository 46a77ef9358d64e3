//! The traces of a dataset.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;

use super::dataset_dir::{DatasetDir, Part};
use super::error::DatasetError;
use crate::tables::{Cell, Rows, TableFile, TableId};

/// A trace of a dataset.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct ListedTrace {
    /// 32 hexadecimal digits: a hash of the contents of the trace's files.
    pub trace_id: String,
    /// The day of its start, in UTC: 2026-11-22.
    pub day: String,
    /// The names of its files.
    pub name: String,
    /// The format of its files.
    pub format: String,
    /// Its length, ns.
    pub dur_ns: i64,
    /// When it began, ns since 1970, where that is known.
    pub start_realtime_ns: Option<i64>,
    /// The device that recorded it, where that is known.
    pub device: Option<String>,
    /// Kernel events.
    pub events: i64,
    /// Events that are known to be lost.
    pub lost_events: i64,
    /// Rows of the table `slice`.
    pub slices: i64,
    /// Rows of the table `method_profile`.
    pub method_profiles: i64,
    /// The tags.
    pub tags: BTreeMap<String, String>,
}

/// The traces of a dataset, by day and part.
///
/// # Errors
/// [`DatasetError`].
pub fn list(dataset: &Path) -> Result<Vec<ListedTrace>, DatasetError> {
    let mut all = Vec::new();
    for part in DatasetDir::open(dataset)?.parts()? {
        all.extend(traces_of(&part)?);
    }
    Ok(all)
}

fn traces_of(part: &Part) -> Result<Vec<ListedTrace>, DatasetError> {
    let rows = TableFile::open(&part.dir, TableId::Trace.table())?.all_rows()?;
    let tags = TableFile::open(&part.dir, TableId::Tag.table())?.all_rows()?;
    let mut tags_of: BTreeMap<&str, BTreeMap<String, String>> = BTreeMap::new();
    for row in 0..tags.len() {
        if let (Some(id), Some(key), Some(value)) = (tags.text(row, 0), tags.text(row, 1), tags.text(row, 2))
        {
            tags_of.entry(id).or_default().insert(key.to_owned(), value.to_owned());
        }
    }
    let trace = |row: usize| {
        let text = |column| text(&rows, row, column).unwrap_or_default();
        let int = |column| int(&rows, row, column).unwrap_or_default();
        let trace_id = text("trace_id");
        let tags = tags_of.get(trace_id.as_str()).cloned().unwrap_or_default();
        ListedTrace {
            trace_id,
            day: text("day"),
            name: text("name"),
            format: text("format"),
            dur_ns: int("dur"),
            start_realtime_ns: self::int(&rows, row, "start_realtime"),
            device: self::text(&rows, row, "device"),
            events: int("events"),
            lost_events: int("lost_events"),
            slices: int("slices"),
            method_profiles: int("method_profiles"),
            tags,
        }
    };
    Ok((0..rows.len()).map(trace).collect())
}

/// The text in a column of the table `trace`.
pub(super) fn text(rows: &Rows, row: usize, column: &str) -> Option<String> {
    rows.text(row, TableId::Trace.table().column(column)?).map(str::to_owned)
}

/// The integer in a column of the table `trace`.
pub(super) fn int(rows: &Rows, row: usize, column: &str) -> Option<i64> {
    match rows.cell(row, TableId::Trace.table().column(column)?) {
        Cell::Int(value) => Some(value),
        _ => None,
    }
}
