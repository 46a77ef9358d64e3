//! Copies parts: whole as files, and by rows where some are left out or several parts become one.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use super::batches::{make_parent, part_name};
use super::error::DatasetError;
use super::place::Part;
use crate::output_file::ScratchDir;
use crate::tables::{PartFiles, TABLES, TableFile, UNFINISHED_PREFIX};

/// Adds the rows of `parts` to `files`, but for those of the traces and rejected inputs whose id `keep`
/// refuses.
///
/// # Errors
/// [`DatasetError`].
pub(super) fn copy_rows(
    parts: &[Part],
    files: &mut PartFiles,
    keep: impl Fn(&str) -> bool,
) -> Result<(), DatasetError> {
    for table in TABLES {
        for part in parts {
            let old = TableFile::open(&part.dir, table)?;
            for group in 0..old.row_groups() {
                let mut rows = old.rows(group)?;
                rows.retain(0, &keep);
                files.add(&rows).map_err(DatasetError::io(files.dir()))?;
            }
        }
    }
    Ok(())
}

/// Makes one part of several in the directory `day`. `ids` are those of their traces and rejected inputs.
///
/// # Errors
/// [`DatasetError`].
pub(super) fn combine(parts: &[Part], ids: Vec<String>, day: &Path) -> Result<(), DatasetError> {
    let mut files = PartFiles::create(day).map_err(DatasetError::io(day))?;
    copy_rows(parts, &mut files, |_| true)?;
    let target = day.join(part_name(ids));
    files.publish(&target).map_err(DatasetError::io(&target))?;
    Ok(())
}

/// Publishes a second copy of a part under the name `target`. Its directory is made in `scratch_parent`, a
/// directory of the same file system. Returns the size of its files, bytes.
///
/// # Errors
/// The system's error; nothing is left then.
pub(super) fn link(part: &Part, target: &Path, scratch_parent: &Path) -> io::Result<u64> {
    make_parent(target)?;
    let copy = ScratchDir::create_shared(scratch_parent, UNFINISHED_PREFIX)?;
    let mut bytes = 0;
    for table in TABLES {
        let (from, to) = (part.dir.join(table.file_name()), copy.path().join(table.file_name()));
        if table.may_be_absent() && !from.exists() {
            continue;
        }
        // No file of a part is ever written again, so that two parts may share it.
        if fs::hard_link(&from, &to).is_err() {
            fs::copy(&from, &to)?;
            File::open(&to)?.sync_all()?;
        }
        bytes += fs::metadata(&to)?.len();
    }
    copy.publish(target)?;
    Ok(bytes)
}
