//! Removes a trace from a dataset.

use std::path::Path;
use std::slice;

use super::error::DatasetError;
use super::part_copy::copy_rows;
use super::place::{Part, WritablePlace};
use super::trace::ID_DIGITS;
use crate::output_file::ScratchDir;
use crate::tables::{PartFiles, UNFINISHED_PREFIX};

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
        let matching = part.all_ids()?.into_iter().filter(|known| known.starts_with(id));
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
    let is_only = part.all_ids()?.len() == 1;
    if is_only {
        let scratch = ScratchDir::take(&part.dir, dataset, UNFINISHED_PREFIX);
        drop(scratch.map_err(DatasetError::io(&part.dir))?);
        // The day's directory goes with its last part; where others are in it, this fails.
        let _ = part.dir.parent().map(std::fs::remove_dir);
        return Ok(());
    }
    let mut files = PartFiles::create(dataset).map_err(DatasetError::io(dataset))?;
    copy_rows(slice::from_ref(part), &mut files, |row_id| row_id != id)?;
    files.publish_over(&part.dir).map_err(DatasetError::io(&part.dir))?;
    Ok(())
}
