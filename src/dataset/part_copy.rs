//! Copies parts: whole as files, and by rows where some are left out or several parts become one.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

use super::batches::{make_parent, part_name};
use super::error::DatasetError;
use super::place::Part;
use crate::output_file::ScratchDir;
use crate::tables::{PartFiles, TABLES, Table, TableFile, UNFINISHED_PREFIX, open_regular};

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
            copy_table(part, table, files, &keep)?;
        }
    }
    Ok(())
}

/// The same for one part, of which damaged tables are copied as far as they can be read. Returns a sentence
/// about each damaged table.
///
/// # Errors
/// [`DatasetError`] where the rows cannot be written.
pub(super) fn copy_readable_rows(
    part: &Part,
    files: &mut PartFiles,
    keep: impl Fn(&str) -> bool,
) -> Result<Vec<String>, DatasetError> {
    let mut damaged = Vec::new();
    for table in TABLES {
        match copy_table(part, table, files, &keep) {
            Err(DatasetError::Table(error)) => damaged.push(error.to_string()),
            copied => copied?,
        }
    }
    Ok(damaged)
}

fn copy_table(
    part: &Part,
    table: &'static Table,
    files: &mut PartFiles,
    keep: &impl Fn(&str) -> bool,
) -> Result<(), DatasetError> {
    let old = TableFile::open(&part.dir, table)?;
    for rows in old.batches() {
        let mut rows = rows?;
        rows.retain(0, keep);
        files.add(&rows).map_err(DatasetError::io(files.dir()))?;
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

/// Publishes a second copy of a part of the same dataset under the name `target`. Its directory is made in
/// `scratch_parent`, a directory of the same file system.
///
/// # Errors
/// The system's error; nothing is left then.
pub(super) fn link(part: &Part, target: &Path, scratch_parent: &Path) -> io::Result<()> {
    make_parent(target)?;
    let copy = ScratchDir::create_shared(scratch_parent, UNFINISHED_PREFIX)?;
    for_each_file(part, copy.path(), |from, to| {
        // No file of a part is ever written again, so that two parts may share it.
        if fs::hard_link(from, to).is_err() {
            copy_file(from, to)?;
        }
        Ok(())
    })?;
    copy.publish(target)
}

/// A copy of a part of another dataset in a new directory in `scratch_parent`. It shares no file with the
/// other dataset, which somebody else may write to.
///
/// # Errors
/// The system's error; nothing is left then.
pub(super) fn private_copy(part: &Part, scratch_parent: &Path) -> io::Result<ScratchDir> {
    let copy = ScratchDir::create_shared(scratch_parent, UNFINISHED_PREFIX)?;
    for_each_file(part, copy.path(), copy_file)?;
    Ok(copy)
}

/// Calls `make` with the path of each table's file, and with the path of that in `dir`.
fn for_each_file(
    part: &Part,
    dir: &Path,
    mut make: impl FnMut(&Path, &Path) -> io::Result<()>,
) -> io::Result<()> {
    for table in TABLES {
        let (from, to) = (part.dir.join(table.file_name()), dir.join(table.file_name()));
        if table.may_be_absent() && !from.exists() {
            continue;
        }
        make(&from, &to)?;
    }
    Ok(())
}

/// Copies a regular file. File systems that can share the blocks of two files do so.
fn copy_file(from: &Path, to: &Path) -> io::Result<()> {
    let mut copy = File::options().write(true).create_new(true).open(to)?;
    let from = open_regular(from)?;
    let bytes = from.metadata()?.len();
    io::copy(&mut from.take(bytes), &mut copy)?;
    copy.sync_all()
}
