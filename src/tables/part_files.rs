//! The files of all tables in one directory, while they are written.

use std::io;
use std::path::Path;

use super::rows::Rows;
use super::schema::TABLES;
use super::table_file::TableWriter;
use crate::output_file::ScratchDir;

/// All tables of a directory. Every table has its file, also where it has no row, so that a query finds it.
/// The directory has a temporary name, and is removed unless it is published.
pub struct PartFiles {
    dir: ScratchDir,
    writers: Vec<TableWriter>,
}

/// The name of a directory that is not complete begins so.
pub const UNFINISHED_PREFIX: &str = ".tmp";

/// The most memory that rows take which are not written yet, bytes.
const MAX_PENDING_BYTES: usize = 24 << 20;

impl PartFiles {
    /// Begins the files in a new directory in `parent`.
    ///
    /// # Errors
    /// The system's error.
    pub fn create(parent: &Path) -> io::Result<PartFiles> {
        let dir = ScratchDir::create_shared(parent, UNFINISHED_PREFIX)?;
        let create = |table| TableWriter::create(dir.path(), table);
        let writers = TABLES.iter().map(create).collect::<Result<_, _>>()?;
        Ok(PartFiles { dir, writers })
    }

    /// The directory under its temporary name.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Adds rows of a table.
    ///
    /// # Errors
    /// The system's error.
    pub fn add(&mut self, rows: &Rows) -> io::Result<()> {
        if rows.is_empty() {
            return Ok(());
        }
        self.writers[rows.table().id as usize].add(rows)?;
        while self.writers.iter().map(TableWriter::pending_bytes).sum::<usize>() > MAX_PENDING_BYTES {
            let largest = self.writers.iter_mut().max_by_key(|writer| writer.pending_bytes());
            largest.map_or(Ok(()), TableWriter::flush)?;
        }
        Ok(())
    }

    /// Completes the files. When they are on the disk, the directory gets the name `target`, which nothing
    /// has yet. Returns the size of the files, bytes.
    ///
    /// # Errors
    /// The system's error; nothing is left then.
    pub fn publish(self, target: &Path) -> io::Result<u64> {
        let (dir, bytes) = self.finish()?;
        dir.publish(target)?;
        Ok(bytes)
    }

    /// The same for a directory that takes the place of `target`, which is removed. See
    /// [`ScratchDir::publish_over`].
    ///
    /// # Errors
    /// The system's error.
    pub fn publish_over(self, target: &Path) -> io::Result<u64> {
        let (dir, bytes) = self.finish()?;
        dir.publish_over(target)?;
        Ok(bytes)
    }

    fn finish(self) -> io::Result<(ScratchDir, u64)> {
        let bytes = self.writers.into_iter().map(TableWriter::finish).sum::<io::Result<u64>>()?;
        Ok((self.dir, bytes))
    }
}
