//! The parts that are being written: each holds traces of one day, until it has enough of them.

use std::io;
use std::path::{Path, PathBuf};

use super::error::DatasetError;
use super::place::{PART, Place};
use super::trace::{IngestedTrace, hex_id};
use crate::tables::{Cell, PartFiles, Rows, TableId};

/// A part with so many traces is published.
pub(super) const PART_TRACES: usize = 64;

/// A part of traces whose files were so large together is published, bytes.
const PART_INPUT_BYTES: u64 = 256 << 20;

/// Parts of so many days are open at once: each may keep a row group of each table in memory.
const OPEN_PARTS: usize = 2;

/// The parts that are being written, the one that was used last at the end.
pub(super) struct Batches<'p> {
    place: &'p Place,
    open: Vec<Batch>,
    /// Parts that are published.
    pub parts: usize,
    /// The size of their files, bytes.
    pub bytes: u64,
}

struct Batch {
    day: String,
    files: PartFiles,
    ids: Vec<String>,
    input_bytes: u64,
}

/// An input that was rejected.
pub(super) struct RejectedInput<'a> {
    pub path: &'a Path,
    /// Its size, bytes, where the system tells.
    pub bytes: Option<u64>,
    pub reason: &'a str,
}

impl RejectedInput<'_> {
    /// The same for each time that the same file is rejected for the same reason.
    pub fn id(&self) -> String {
        hex_id([b"rejected", self.path.as_os_str().as_encoded_bytes(), self.reason.as_bytes()].into_iter())
    }
}

impl<'p> Batches<'p> {
    /// No parts yet.
    pub fn new(place: &'p Place) -> Batches<'p> {
        Batches { place, open: Vec::new(), parts: 0, bytes: 0 }
    }

    /// Adds a trace. It is published at once if it has files of its own, else together with others.
    ///
    /// # Errors
    /// [`DatasetError`].
    pub fn add(&mut self, trace: IngestedTrace) -> Result<(), DatasetError> {
        let IngestedTrace { id, day, rows, files, bytes, .. } = trace;
        if let Some(files) = files {
            return self.publish(Batch { day, files, ids: vec![id], input_bytes: bytes });
        }
        let mut batch = self.take(&day)?;
        rows.write_to_part(&mut batch.files).map_err(DatasetError::io(batch.files.dir()))?;
        batch.ids.push(id);
        batch.input_bytes += bytes;
        self.keep(batch)
    }

    /// Adds a row of an input that was rejected on `day`.
    ///
    /// # Errors
    /// [`DatasetError`].
    pub fn reject(&mut self, day: &str, input: &RejectedInput<'_>) -> Result<(), DatasetError> {
        let mut batch = self.take(day)?;
        let mut rows = Rows::new(TableId::Rejected.table());
        let (id, path) = (input.id(), input.path.to_string_lossy());
        let bytes = input.path.to_str().is_none().then_some(input.path.as_os_str().as_encoded_bytes());
        rows.push(&[
            (&id).into(),
            (&*path).into(),
            bytes.map_or(Cell::Null, Cell::Bytes),
            input.bytes.into(),
            input.reason.into(),
        ]);
        batch.files.add(&rows).map_err(DatasetError::io(batch.files.dir()))?;
        batch.ids.push(id);
        self.keep(batch)
    }

    /// Publishes all parts.
    ///
    /// # Errors
    /// [`DatasetError`].
    pub fn finish(&mut self) -> Result<(), DatasetError> {
        std::mem::take(&mut self.open).into_iter().try_for_each(|batch| self.publish(batch))
    }

    /// The open part of a day, or a new one.
    fn take(&mut self, day: &str) -> Result<Batch, DatasetError> {
        if let Some(at) = self.open.iter().position(|batch| batch.day == day) {
            return Ok(self.open.remove(at));
        }
        if self.open.len() >= OPEN_PARTS {
            let oldest = self.open.remove(0);
            self.publish(oldest)?;
        }
        let files = PartFiles::create(self.place.dir()).map_err(DatasetError::io(self.place.dir()))?;
        Ok(Batch { day: day.to_owned(), files, ids: Vec::new(), input_bytes: 0 })
    }

    fn keep(&mut self, batch: Batch) -> Result<(), DatasetError> {
        if batch.ids.len() >= PART_TRACES || batch.input_bytes >= PART_INPUT_BYTES {
            return self.publish(batch);
        }
        self.open.push(batch);
        Ok(())
    }

    fn publish(&mut self, batch: Batch) -> Result<(), DatasetError> {
        let target = self.place.day_dir(&batch.day).join(part_name(batch.ids));
        self.bytes += make_parent(&target)
            .and_then(|()| batch.files.publish(&target))
            .map_err(DatasetError::io(&target))?;
        self.parts += 1;
        Ok(())
    }
}

/// The name of the part with these traces and rejected inputs: the same for the same ids.
pub(super) fn part_name(mut ids: Vec<String>) -> String {
    ids.sort_unstable();
    format!("{PART}{}", hex_id(ids.iter().map(String::as_bytes)))
}

/// Makes the directory that `target` is in.
pub(super) fn make_parent(target: &Path) -> io::Result<()> {
    let parent: PathBuf = target.parent().unwrap_or(Path::new(".")).to_owned();
    std::fs::create_dir_all(parent)
}
