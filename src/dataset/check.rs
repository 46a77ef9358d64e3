//! Checks that a dataset is whole: every file can be read to its end, and holds what the table `trace` says.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::catalog::int;
use super::error::DatasetError;
use super::place::{Part, Place};
use crate::tables::{COUNTED, SCHEMA_VERSION, TABLES, TableFile, TableId};

/// What a check found.
#[derive(Debug, Clone, Default)]
pub struct CheckReport {
    /// The number of traces.
    pub traces: usize,
    /// The number of parts.
    pub parts: usize,
    /// The rows of all tables.
    pub rows: u64,
    /// Sentences about what is wrong.
    pub faults: Vec<String>,
    /// Directories of a writer that is at work or was killed: the next `add` removes the latter.
    pub unfinished: Vec<PathBuf>,
}

/// Reads a whole dataset, and reports what is wrong with it.
///
/// # Errors
/// [`DatasetError`] where the directory cannot be read. A file that cannot be read is a fault in the report.
pub fn check(dataset: &Path) -> Result<CheckReport, DatasetError> {
    let place = Place::open(dataset)?;
    let mut report = CheckReport { unfinished: place.unfinished()?, ..CheckReport::default() };
    let mut seen: BTreeMap<String, PathBuf> = BTreeMap::new();
    for part in place.parts()? {
        report.parts += 1;
        match part_ids(&part, &mut report) {
            Ok(ids) => {
                report.traces += ids.len();
                for id in ids {
                    if let Some(other) = seen.insert(id.clone(), part.dir.clone()) {
                        let (a, b) = (other.display(), part.dir.display());
                        report.faults.push(format!("the trace {id} is there twice: in {a} and in {b}"));
                    }
                }
            }
            Err(error) => report.faults.push(error.to_string()),
        }
    }
    Ok(report)
}

/// Checks a part. Returns the ids of its traces.
fn part_ids(part: &Part, report: &mut CheckReport) -> Result<BTreeSet<String>, DatasetError> {
    let traces = TableFile::open(&part.dir, TableId::Trace.table())?.all_rows()?;
    let mut expected: BTreeMap<(TableId, String), i64> = BTreeMap::new();
    let mut ids = BTreeSet::new();
    for row in 0..traces.len() {
        let id = traces.text(row, 0).unwrap_or_default().to_owned();
        if int(&traces, row, "schema_version") != Some(SCHEMA_VERSION.into()) {
            report.faults.push(format!("{}: {id} has another schema version", part.dir.display()));
        }
        for (table, column) in COUNTED {
            expected.insert((table, id.clone()), int(&traces, row, column).unwrap_or(0));
        }
        if !ids.insert(id.clone()) {
            report.faults.push(format!("{}: the trace {id} is there twice", part.dir.display()));
        }
    }
    for table in TABLES {
        let counts = match count_rows(part, table.id, report) {
            Ok(counts) => counts,
            Err(error) => {
                report.faults.push(error.to_string());
                continue;
            }
        };
        let file = part.dir.join(table.file_name());
        let strangers = counts.keys().filter(|id| table.id != TableId::Rejected && !ids.contains(*id));
        let strangers =
            strangers.map(|id| format!("{}: has rows of {id}, which `trace` lacks", file.display()));
        report.faults.extend(strangers);
        for id in ids.iter().filter(|_| COUNTED.iter().any(|(counted, _)| *counted == table.id)) {
            let (is, should) = (counts.get(id).copied().unwrap_or(0), expected[&(table.id, id.clone())]);
            if is != should {
                let fault = format!("{}: has {is} rows of {id}, not {should}", file.display());
                report.faults.push(fault);
            }
        }
    }
    Ok(ids)
}

/// The rows of each trace in a table.
fn count_rows(
    part: &Part,
    table: TableId,
    report: &mut CheckReport,
) -> Result<BTreeMap<String, i64>, DatasetError> {
    let file = TableFile::open(&part.dir, table.table())?;
    let mut counts: BTreeMap<String, i64> = BTreeMap::new();
    for group in 0..file.row_groups() {
        let rows = file.rows(group)?;
        report.rows += rows.len() as u64;
        for row in 0..rows.len() {
            let id = rows.text(row, 0).unwrap_or_default();
            match counts.get_mut(id) {
                Some(count) => *count += 1,
                None => _ = counts.insert(id.to_owned(), 1),
            }
        }
    }
    Ok(counts)
}
