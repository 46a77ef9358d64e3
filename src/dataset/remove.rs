//! Removes a trace from a dataset.

use std::path::Path;

use super::error::DatasetError;
use super::place::{Part, WritablePlace};
use super::trace::ID_DIGITS;
use crate::output_file::ScratchDir;
use crate::tables::{PartFiles, TABLES, TableFile, TableId, UNFINISHED_PREFIX};

/// Removes the trace whose id begins with `id`, or forgets the rejected input whose id does. Returns the
/// whole id. The part with the trace is written again without it, and takes the older one's place with one
/// exchange of names where the system can do that (Linux): a reader finds either all traces of the part, or
/// all but this one. Elsewhere a reader may find the others twice for a moment.
///
/// # Errors
/// [`DatasetError`]; the dataset is then as it was.
pub fn remove(dataset: &Path, id: &str, wait: &mut dyn FnMut()) -> Result<String, DatasetError> {
    super::place::Place::open(dataset)?;
    let writable = WritablePlace::lock(dataset, wait)?;
    let mut found: Vec<(Part, String)> = Vec::new();
    for part in writable.place.parts()? {
        let ids = [part.ids(TableId::Trace)?, part.ids(TableId::Rejected)?].concat();
        let matching = ids.into_iter().filter(|known| known.starts_with(id));
        found.extend(matching.map(|known| (part.clone(), known)));
    }
    let is_id = !id.is_empty() && id.len() <= ID_DIGITS;
    match &found[..] {
        [(part, whole)] if is_id => {
            rewrite(part, whole, writable.place.dir())?;
            Ok(whole.clone())
        }
        [] => Err(DatasetError::NoSuchTrace { id: id.to_owned() }),
        _ => Err(DatasetError::SeveralTraces { id: id.to_owned(), count: found.len() }),
    }
}

/// Writes a part again without the rows of `id`.
fn rewrite(part: &Part, id: &str, dataset: &Path) -> Result<(), DatasetError> {
    let is_only = part.ids(TableId::Trace)?.len() + part.ids(TableId::Rejected)?.len() == 1;
    if is_only {
        let scratch = ScratchDir::take(&part.dir, dataset, UNFINISHED_PREFIX);
        drop(scratch.map_err(DatasetError::io(&part.dir))?);
        // The day's directory goes with its last part; where others are in it, this fails.
        let _ = part.dir.parent().map(std::fs::remove_dir);
        return Ok(());
    }
    let mut files = PartFiles::create(dataset).map_err(DatasetError::io(dataset))?;
    for table in TABLES {
        let old = TableFile::open(&part.dir, table)?;
        for group in 0..old.row_groups() {
            let mut rows = old.rows(group)?;
            rows.retain(0, |row_id| row_id != id);
            files.add(&rows).map_err(DatasetError::io(files.dir()))?;
        }
    }
    files.publish_over(&part.dir).map_err(DatasetError::io(&part.dir))?;
    Ok(())
}
