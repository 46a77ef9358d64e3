//! Adds the traces of another dataset.

use std::collections::HashSet;

use super::add_summary::AddSummary;
use super::batches::{make_parent, part_name};
use super::error::DatasetError;
use super::part_copy::{copy_rows, link};
use super::place::Place;
use crate::tables::{PartFiles, TableId};

/// Adds the traces and rejected inputs of the dataset `from` that `to` has not, with their tags, and their
/// ids to `known`. A part of which every trace is new is taken as it is: its files get second names, or are
/// copied.
///
/// # Errors
/// [`DatasetError`]. What was published until then stays.
pub(super) fn adopt(
    from: &Place,
    to: &Place,
    known: &mut HashSet<String>,
    summary: &mut AddSummary,
) -> Result<(), DatasetError> {
    for part in from.parts()? {
        let traces = part.ids(TableId::Trace)?;
        let new_traces = traces.iter().filter(|id| !known.contains(*id)).count();
        let ids = part.all_ids()?;
        let new: HashSet<String> = ids.iter().filter(|id| !known.contains(*id)).cloned().collect();
        summary.added += new_traces;
        summary.known += traces.len() - new_traces;
        if new.is_empty() {
            continue;
        }
        let target = to.dir().join(part.day_name()).join(part_name(new.iter().cloned().collect()));
        summary.bytes += match new.len() == ids.len() {
            true => link(&part, &target, to.dir()).map_err(DatasetError::io(&target))?,
            false => {
                let mut files = PartFiles::create(to.dir()).map_err(DatasetError::io(to.dir()))?;
                copy_rows(&[part], &mut files, |id| new.contains(id))?;
                make_parent(&target)
                    .and_then(|()| files.publish(&target))
                    .map_err(DatasetError::io(&target))?
            }
        };
        summary.parts += 1;
        known.extend(new);
    }
    Ok(())
}
