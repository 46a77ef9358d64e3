//! Adds the traces of another dataset.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::path::Path;

use super::add_summary::{AddSummary, AddedEvent};
use super::batches::{make_parent, part_name};
use super::check::check_part;
use super::error::DatasetError;
use super::part_copy::{copy_rows, private_copy};
use super::place::{Part, Place};
use crate::output_file::ScratchDir;
use crate::tables::{PartFiles, TABLES, TableFile};

/// Adds the traces and rejected inputs of the dataset `from` that `to` has not, with their tags, and their
/// ids to `known`. Somebody else may have made that dataset, and may write to it meanwhile: each part is
/// copied, the copy is read whole, and only then it is taken. A part with a fault is rejected and reported to
/// `report`.
///
/// # Errors
/// [`DatasetError`] where `to` cannot be written, or `from` cannot be listed. What was published until then
/// stays.
pub(super) fn adopt(
    from: &Place,
    to: &Place,
    known: &mut HashSet<String>,
    summary: &mut AddSummary,
    report: &mut dyn FnMut(AddedEvent<'_>),
) -> Result<(), DatasetError> {
    for part in from.parts()? {
        let mut reject = |fault: &str| {
            summary.rejected += 1;
            report(AddedEvent::Rejected(&format!("{}: is not added: {fault}", part.dir.display())));
        };
        if !is_day(part.day_name()) {
            reject("its directory is not named after a day");
            continue;
        }
        // Before anything is copied: the sizes of a file that is no table may be anything.
        if let Err(fault) = TABLES.iter().try_for_each(|table| TableFile::open(&part.dir, table).map(drop)) {
            reject(&fault.to_string());
            continue;
        }
        let copy = match private_copy(&part, to.dir()) {
            Ok(copy) => copy,
            Err(error) => return Err(DatasetError::io(to.dir())(error)),
        };
        let copied = Part { dir: copy.path().to_owned() };
        let checked = check_part(&copied);
        if let Some(fault) = checked.faults.first() {
            // The fault names a file of the copy, which is gone when somebody reads this.
            reject(&fault.replace(&*copied.dir.to_string_lossy(), &part.dir.to_string_lossy()));
            continue;
        }
        let ids = copied.all_ids()?;
        let new: HashSet<String> = ids.iter().filter(|id| !known.contains(*id)).cloned().collect();
        let new_traces = checked.traces.iter().filter(|id| !known.contains(*id)).count();
        summary.added += new_traces;
        summary.known += checked.traces.len() - new_traces;
        if new.is_empty() {
            continue;
        }
        let target = to.dir().join(part.day_name()).join(part_name(new.iter().cloned().collect()));
        summary.bytes += publish(copy, &copied, &new, ids.len(), &target, to)?;
        summary.parts += 1;
        known.extend(new);
    }
    Ok(())
}

/// Whether a directory is named after a day: `day=2026-11-22`.
fn is_day(name: &OsStr) -> bool {
    let day = name.to_str().and_then(|name| name.strip_prefix("day=")).unwrap_or_default();
    day.len() == "2026-11-22".len() && day.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-')
}

/// Publishes the checked copy of a part, or of its `all` ids the `new` ones, as `target`. Returns the size
/// of the files, bytes.
fn publish(
    copy: ScratchDir,
    copied: &Part,
    new: &HashSet<String>,
    all: usize,
    target: &Path,
    to: &Place,
) -> Result<u64, DatasetError> {
    if new.len() == all {
        let bytes = copied.bytes()?;
        make_parent(target).and_then(|()| copy.publish(target)).map_err(DatasetError::io(target))?;
        return Ok(bytes);
    }
    let mut files = PartFiles::create(to.dir()).map_err(DatasetError::io(to.dir()))?;
    copy_rows(std::slice::from_ref(copied), &mut files, |id| new.contains(id))?;
    make_parent(target).and_then(|()| files.publish(target)).map_err(DatasetError::io(target))
}
