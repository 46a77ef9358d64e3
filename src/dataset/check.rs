//! Checks that a dataset is whole: every file can be read to its end, and holds what the table `trace` says.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::catalog::int;
use super::dataset_dir::{DatasetDir, ID_DIGITS, Part};
use super::error::DatasetError;
use crate::tables::{COUNTED, SCHEMA_VERSION, TABLES, TableFile, TableId, TableSchema};

/// Faults of one part that are told; the others are counted.
const MAX_FAULTS: usize = 100;

/// The result of a check.
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
    let dir = DatasetDir::open(dataset)?;
    let mut report = CheckReport { unfinished: dir.unfinished()?, ..CheckReport::default() };
    let mut seen: BTreeMap<String, PathBuf> = BTreeMap::new();
    for part in dir.parts()? {
        report.parts += 1;
        let checked = check_part(&part);
        report.traces += checked.traces.len();
        report.rows += checked.rows;
        for id in checked.traces {
            if let Some(other) = seen.insert(id.clone(), part.dir.clone()) {
                let first = other.display();
                let second = part.dir.display();
                report.faults.push(format!("the trace {id} is there twice: in {first} and in {second}"));
            }
        }
        let untold = checked.faults.len().saturating_sub(MAX_FAULTS);
        report.faults.extend(checked.faults.into_iter().take(MAX_FAULTS));
        if untold > 0 {
            report.faults.push(format!("{}: and {untold} more faults", part.dir.display()));
        }
    }
    Ok(report)
}

/// The contents of a part, as a check finds them.
#[derive(Debug, Default)]
pub(super) struct CheckedPart {
    /// The ids of its traces.
    pub traces: BTreeSet<String>,
    /// The rows of all its tables.
    pub rows: u64,
    /// Sentences about what is wrong.
    pub faults: Vec<String>,
}

/// Reads all tables of a part, and compares them with its table `trace`.
pub(super) fn check_part(part: &Part) -> CheckedPart {
    let mut checked = CheckedPart::default();
    let traces = TableFile::open(&part.dir, TableId::Trace.table()).and_then(|file| file.all_rows());
    let traces = match traces {
        Ok(traces) => traces,
        Err(error) => {
            checked.faults.push(error.to_string());
            return checked;
        }
    };
    let mut expected: BTreeMap<(TableId, String), i64> = BTreeMap::new();
    for row in 0..traces.len() {
        let id = traces.text(row, 0).unwrap_or_default().to_owned();
        if int(&traces, row, "schema_version") != Some(SCHEMA_VERSION.into()) {
            checked.faults.push(format!("{}: {id} has another schema version", part.dir.display()));
        }
        for (table, column) in COUNTED {
            expected.insert((table, id.clone()), int(&traces, row, column).unwrap_or(0));
        }
        if id.len() != ID_DIGITS || !id.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            checked.faults.push(format!("{}: {id:?} is no id of a trace", part.dir.display()));
        }
        if !checked.traces.insert(id.clone()) {
            checked.faults.push(format!("{}: the trace {id} is there twice", part.dir.display()));
        }
    }
    for table in TABLES {
        check_table(part, table, &expected, &mut checked);
    }
    checked
}

/// Compares the rows of each trace in a table with those that are expected.
fn check_table(
    part: &Part,
    table: &'static TableSchema,
    expected: &BTreeMap<(TableId, String), i64>,
    checked: &mut CheckedPart,
) {
    let counts = match count_rows(part, table, checked) {
        Ok(counts) => counts,
        Err(error) => {
            checked.faults.push(error.to_string());
            return;
        }
    };
    let file = part.dir.join(table.file_name());
    for id in counts.strangers {
        checked.faults.push(format!("{}: has rows of {id}, which `trace` lacks", file.display()));
    }
    for ((_, id), should) in expected.iter().filter(|((counted, _), _)| *counted == table.id) {
        let is = counts.of_traces.get(id).copied().unwrap_or(0);
        if is != *should {
            checked.faults.push(format!("{}: has {is} rows of {id}, not {should}", file.display()));
        }
    }
}

#[derive(Default)]
struct RowCounts {
    of_traces: BTreeMap<String, i64>,
    /// Ids that the table `trace` lacks, the first few.
    strangers: BTreeSet<String>,
}

/// The rows of each trace in a table.
fn count_rows(
    part: &Part,
    table: &'static TableSchema,
    checked: &mut CheckedPart,
) -> Result<RowCounts, DatasetError> {
    let file = TableFile::open(&part.dir, table)?;
    let mut counts = RowCounts::default();
    for rows in file.batches() {
        let rows = rows?;
        checked.rows += rows.len() as u64;
        if table.id == TableId::Rejected {
            continue;
        }
        for row in 0..rows.len() {
            let id = rows.text(row, 0).unwrap_or_default();
            match counts.of_traces.get_mut(id) {
                Some(count) => *count += 1,
                None if checked.traces.contains(id) => _ = counts.of_traces.insert(id.to_owned(), 1),
                None if counts.strangers.len() < MAX_FAULTS => _ = counts.strangers.insert(id.to_owned()),
                None => {}
            }
        }
    }
    Ok(counts)
}
