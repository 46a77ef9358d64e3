//! Makes few parts of the many small ones that frequent small additions leave.

use std::path::Path;

use super::batches::PART_TRACES;
use super::error::DatasetError;
use super::part_copy::{combine, link};
use super::place::{Part, Place};
use crate::output_file::ScratchDir;
use crate::tables::UNFINISHED_PREFIX;

/// So many small parts of a day are combined. A trace that is added alone is written again at most nine times
/// before its part is full.
const MIN_SMALL_PARTS: usize = 8;

/// A part is small that could hold more traces, and whose files are smaller than this together, bytes.
const SMALL_PART_BYTES: u64 = 16 << 20;

/// A combined part is not made larger than this, bytes.
const MAX_COMBINED_BYTES: u64 = 64 << 20;

/// A part that may be combined with others.
struct SmallPart {
    part: Part,
    /// The ids of its traces and rejected inputs.
    ids: Vec<String>,
    bytes: u64,
}

/// Combines the small parts of each day that has [`MIN_SMALL_PARTS`] of them, if that leaves half as many.
/// The day's directory is made anew beside the older one, with the large parts as they are, and takes its
/// place with one exchange of names where the system can do that: a reader finds each trace once, in the
/// older parts or in the newer ones.
///
/// # Errors
/// [`DatasetError`]; the day is then as it was.
pub(super) fn compact(place: &Place) -> Result<(), DatasetError> {
    place.days()?.iter().try_for_each(|day| compact_day(place.dir(), day))
}

fn compact_day(dataset: &Path, day: &Path) -> Result<(), DatasetError> {
    let parts = Part::all_of(day)?;
    if parts.len() < MIN_SMALL_PARTS {
        return Ok(());
    }
    let (mut small, mut others) = (Vec::new(), Vec::new());
    for part in parts {
        let bytes = part.bytes()?;
        // Only files that are small are opened: a dataset has many large ones.
        let ids = if bytes < SMALL_PART_BYTES { part.all_ids()? } else { Vec::new() };
        match bytes < SMALL_PART_BYTES && ids.len() < PART_TRACES {
            true => small.push(SmallPart { part, ids, bytes }),
            false => others.push(part),
        }
    }
    let before = small.len();
    small.sort_by_key(|part| part.ids.len());
    let mut groups: Vec<Vec<SmallPart>> = Vec::new();
    for part in small {
        match groups.last_mut().filter(|group| fits(group, &part)) {
            Some(group) => group.push(part),
            None => groups.push(vec![part]),
        }
    }
    // Parts that are nearly full would be written again for each trace more.
    if before < MIN_SMALL_PARTS || groups.len() > before / 2 {
        return Ok(());
    }
    let scratch = ScratchDir::create_shared(dataset, UNFINISHED_PREFIX).map_err(DatasetError::io(dataset))?;
    for group in groups {
        if let [alone] = &group[..] {
            others.push(alone.part.clone());
            continue;
        }
        let parts: Vec<Part> = group.iter().map(|small| small.part.clone()).collect();
        let ids = group.into_iter().flat_map(|small| small.ids).collect();
        combine(&parts, ids, scratch.path())?;
    }
    for part in others {
        let name = part.dir.file_name().unwrap_or_default();
        link(&part, &scratch.path().join(name), scratch.path()).map_err(DatasetError::io(&part.dir))?;
    }
    scratch.publish_over(day).map_err(DatasetError::io(day))
}

/// Whether a group of parts and one more become a part of no more than the usual size.
fn fits(group: &[SmallPart], more: &SmallPart) -> bool {
    let ids: usize = group.iter().map(|part| part.ids.len()).sum();
    let bytes: u64 = group.iter().map(|part| part.bytes).sum();
    ids + more.ids.len() <= PART_TRACES && bytes + more.bytes <= MAX_COMBINED_BYTES
}
