//! The rows of one trace: in memory, and of a large trace in files of its own.

use std::io;
use std::path::{Path, PathBuf};

use super::rows::{Cell, Rows};
use super::schema::{TABLES, TableId};
use super::table_file::PartFiles;
use crate::clock::Timestamp;

/// The most memory that the rows of a trace take, bytes. What is more goes into files of the trace's own.
const MAX_BYTES: usize = 20 << 20;

/// How often the memory is looked at, in rows.
const CHECK_ROWS: usize = 4096;

/// The trace is too large for memory, and its rows have to be made again with its start known. The source
/// of an [`io::Error`].
#[derive(Debug, thiserror::Error)]
#[error("the rows of this trace need its start")]
pub struct StartUnknown;

impl StartUnknown {
    /// Whether this is what an error says.
    pub fn is_in(error: &io::Error) -> bool {
        error.get_ref().is_some_and(|source| source.is::<StartUnknown>())
    }
}

/// The rows of one trace.
pub struct TraceRows {
    trace_id: String,
    /// By [`TableId`].
    rows: Vec<Rows>,
    /// The rows of each table that are not in memory any more.
    written: Vec<u64>,
    /// When the trace begins, in its clock, where that is known before its end.
    start: Option<Timestamp>,
    /// Where the trace's own files are made, if it needs some.
    scratch_parent: PathBuf,
    files: Option<PartFiles>,
    since_check: usize,
}

impl TraceRows {
    /// No rows yet. The rows of a trace that is too large for memory go into files in a new directory in
    /// `scratch_parent`. Without `start`, the beginning of the trace in its clock, such a trace ends
    /// with [`StartUnknown`].
    pub fn new(trace_id: &str, start: Option<Timestamp>, scratch_parent: &Path) -> TraceRows {
        TraceRows {
            trace_id: trace_id.to_owned(),
            rows: TABLES.iter().map(Rows::new).collect(),
            written: vec![0; TABLES.len()],
            start,
            scratch_parent: scratch_parent.to_owned(),
            files: None,
            since_check: 0,
        }
    }

    /// Adds a row: the cells behind `trace_id`.
    ///
    /// # Errors
    /// The system's error; [`StartUnknown`].
    pub fn push<const N: usize>(&mut self, table: TableId, cells: [Cell<'_>; N]) -> io::Result<()> {
        let mut all = [Cell::Null; MAX_CELLS];
        all[0] = Cell::Text(&self.trace_id);
        all[1..=N].copy_from_slice(&cells);
        self.rows[table as usize].push(&all[..=N]);
        self.since_check += 1;
        if self.since_check >= CHECK_ROWS {
            self.check()?;
        }
        Ok(())
    }

    /// Says that the trace begins at `start` of its clock.
    pub fn set_start(&mut self, start: Timestamp) {
        self.start = Some(start);
    }

    /// The number of rows of a table.
    pub fn count(&self, table: TableId) -> u64 {
        self.written[table as usize] + self.rows[table as usize].len() as u64
    }

    /// Writes all rows to the trace's own files if they take too much memory.
    fn check(&mut self) -> io::Result<()> {
        self.since_check = 0;
        if self.rows.iter().map(Rows::bytes).sum::<usize>() < MAX_BYTES {
            return Ok(());
        }
        let start = self.start.ok_or_else(|| io::Error::other(StartUnknown))?;
        let mut files = match self.files.take() {
            Some(files) => files,
            None => PartFiles::create(&self.scratch_parent)?,
        };
        self.write_to(&mut files, start)?;
        self.files = Some(files);
        Ok(())
    }

    fn write_to(&mut self, files: &mut PartFiles, start: Timestamp) -> io::Result<()> {
        for (rows, written) in self.rows.iter_mut().zip(&mut self.written) {
            let empty = Rows::new(rows.table());
            let mut whole = std::mem::replace(rows, empty);
            whole.set_relative_times(i64::try_from(start.0).unwrap_or(i64::MAX));
            whole.sort();
            *written += whole.len() as u64;
            files.add(&whole)?;
        }
        Ok(())
    }

    /// Ends the rows of a trace whose start is known. Returns the trace's own files, where it has some;
    /// else its rows are still to be written, by [`TraceRows::write_to_part`].
    ///
    /// # Errors
    /// The system's error.
    pub fn finish(&mut self) -> io::Result<Option<PartFiles>> {
        let Some(mut files) = self.files.take() else { return Ok(None) };
        self.write_to(&mut files, self.start.unwrap_or_default())?;
        Ok(Some(files))
    }

    /// Writes the rows of a finished trace to the files of a part.
    ///
    /// # Errors
    /// The system's error.
    pub fn write_to_part(mut self, part: &mut PartFiles) -> io::Result<()> {
        let start = self.start.unwrap_or_default();
        self.write_to(part, start)
    }
}

/// The most columns of a table.
const MAX_CELLS: usize = 40;
