//! Removes a trace from a dataset.

use std::path::Path;

use super::error::DatasetError;
use super::part_copy::copy_readable_rows;
use super::place::{PART, Part, WritablePlace};
use super::trace::ID_DIGITS;
use crate::output_file::ScratchDir;
use crate::tables::{PartFiles, UNFINISHED_PREFIX};

/// What was removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Removed {
    /// The whole id of the trace or of the rejected input; the name of a part.
    pub name: String,
    /// Sentences about damaged tables of the same part, of which what cannot be read is gone too.
    pub damaged: Vec<String>,
}

/// Removes the trace whose id begins with `id`, or forgets the rejected input whose id does; or removes the
/// part of which `id` is the name (`part=…`), whatever is in it. The part with the trace is written again
/// without it, and takes the older one's place with one exchange of names where the system can do that
/// (Linux): a reader finds either all traces of the part, or all but this one. Elsewhere a reader may find
/// the others twice for a moment.
///
/// # Errors
/// [`DatasetError`]; the dataset is then as it was. Damaged parts are none, unless they may hold the trace.
pub fn remove(dataset: &Path, id: &str, wait: &mut dyn FnMut()) -> Result<Removed, DatasetError> {
    super::place::Place::open(dataset)?;
    let writable = WritablePlace::lock(dataset, wait)?;
    let parts = writable.place.parts()?;
    if id.starts_with(PART) {
        return remove_named(&parts, id, writable.place.dir());
    }
    let mut found: Vec<(Part, String)> = Vec::new();
    let mut unreadable: Vec<(Part, DatasetError)> = Vec::new();
    for part in parts {
        match part.all_ids() {
            Ok(ids) => {
                let matching = ids.into_iter().filter(|known| known.starts_with(id));
                found.extend(matching.map(|known| (part.clone(), known)));
            }
            Err(error) => unreadable.push((part, error)),
        }
    }
    let is_id = !id.is_empty() && id.len() <= ID_DIGITS;
    match (&found[..], unreadable.into_iter().next()) {
        ([(part, whole)], _) if is_id => {
            let damaged = rewrite(part, whole, writable.place.dir())?;
            Ok(Removed { name: whole.clone(), damaged })
        }
        ([], Some((part, error))) => Err(DatasetError::UnreadablePart {
            id: id.to_owned(),
            part: part.name().to_string_lossy().into_owned(),
            source: Box::new(error),
        }),
        ([], None) => Err(DatasetError::NoSuchTrace { id: id.to_owned() }),
        _ => Err(DatasetError::SeveralTraces { id: id.to_owned(), count: found.len() }),
    }
}

/// Removes the part whose directory has this name.
fn remove_named(parts: &[Part], name: &str, dataset: &Path) -> Result<Removed, DatasetError> {
    let part = parts.iter().find(|part| part.name() == name);
    let part = part.ok_or_else(|| DatasetError::NoSuchTrace { id: name.to_owned() })?;
    remove_part(part, dataset)?;
    Ok(Removed { name: name.to_owned(), damaged: Vec::new() })
}

fn remove_part(part: &Part, dataset: &Path) -> Result<(), DatasetError> {
    let scratch = ScratchDir::take(&part.dir, dataset, UNFINISHED_PREFIX);
    drop(scratch.map_err(DatasetError::io(&part.dir))?);
    // The day's directory goes with its last part; where others are in it, this fails.
    let _ = part.dir.parent().map(std::fs::remove_dir);
    Ok(())
}

/// Writes a part again without the rows of `id`. Returns sentences about damaged tables.
fn rewrite(part: &Part, id: &str, dataset: &Path) -> Result<Vec<String>, DatasetError> {
    if part.all_ids()?.len() == 1 {
        remove_part(part, dataset)?;
        return Ok(Vec::new());
    }
    let mut files = PartFiles::create(dataset).map_err(DatasetError::io(dataset))?;
    let damaged = copy_readable_rows(part, &mut files, |row_id| row_id != id)?;
    files.publish_over(&part.dir).map_err(DatasetError::io(&part.dir))?;
    Ok(damaged)
}
