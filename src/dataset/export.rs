//! `convert IN -o x.parquet`: the tables of one trace in a directory of that name.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::batches::make_parent;
use super::error::DatasetError;
use super::trace::{Ingested, IngestedTrace, Refusal, TraceOptions, ingest};
use crate::output_file::dir_of;
use crate::tables::{PartFiles, TABLES};
use crate::timeline::MergeSummary;

/// The tables of a trace that were written.
#[derive(Debug)]
pub struct Exported {
    /// Size of the files, bytes.
    pub bytes: u64,
    /// The summary of the timeline.
    pub summary: MergeSummary,
}

/// Writes the tables of the trace in `inputs` to the directory `output`. The directory appears when it is
/// complete, and replaces one of the same kind.
///
/// # Errors
/// [`DatasetError`]; `output` is then as it was.
pub fn export(
    inputs: &[PathBuf],
    output: &Path,
    options: &TraceOptions<'_>,
) -> Result<Exported, DatasetError> {
    let replaces = fs::symlink_metadata(output).is_ok();
    if replaces && !holds_tables(output) {
        return Err(DatasetError::NoTables { path: output.display().to_string() });
    }
    make_parent(output).map_err(DatasetError::io(output))?;
    let parent = dir_of(output);
    let trace = match ingest(inputs, options, parent, &|_| false) {
        Ok(Ingested::New(trace)) => *trace,
        Ok(Ingested::Known(id)) => return Err(DatasetError::Input(id)),
        Err(Refusal::Input(reason)) => return Err(DatasetError::Input(reason)),
        Err(Refusal::Dataset(error)) => return Err(error),
    };
    let IngestedTrace { rows, files, summary, .. } = trace;
    let publish = || -> io::Result<u64> {
        let files = match files {
            Some(files) => files,
            None => {
                let mut files = PartFiles::create(parent)?;
                rows.write_to_part(&mut files)?;
                files
            }
        };
        if replaces { files.publish_over(output) } else { files.publish(output) }
    };
    Ok(Exported { bytes: publish().map_err(DatasetError::io(output))?, summary })
}

/// Whether a directory holds tables and nothing else.
fn holds_tables(dir: &Path) -> bool {
    let Ok(entries) = fs::read_dir(dir) else { return false };
    let names: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.file_name())).collect();
    let is_table = |name: &std::ffi::OsString| TABLES.iter().any(|table| *name == *table.file_name());
    !names.is_empty() && names.iter().all(is_table)
}
