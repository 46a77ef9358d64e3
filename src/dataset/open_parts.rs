//! The parts that are being written: each holds traces of one day, until it has enough of them.

use std::path::Path;

use super::dataset_dir::{DatasetDir, hex_id, make_parent, part_name};
use super::error::DatasetError;
use super::trace::IngestedTrace;
use crate::tables::{Cell, PartFiles, Rows, TableId};

/// A part with so many traces is published.
pub(super) const PART_TRACES: usize = 64;

/// A part of traces whose files were so large together is published, bytes.
const PART_INPUT_BYTES: u64 = 256 << 20;

/// Parts of so many days are open at once: each may keep a row group of each table in memory.
const OPEN_PARTS: usize = 2;

/// The parts that are being written, the one that was used last at the end.
pub(super) struct OpenParts<'p> {
    dataset: &'p DatasetDir,
    open: Vec<OpenPart>,
    /// Parts that are published.
    pub parts: usize,
    /// The size of their files, bytes.
    pub bytes: u64,
}

struct OpenPart {
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

impl<'p> OpenParts<'p> {
    /// No parts yet.
    pub fn new(dataset: &'p DatasetDir) -> OpenParts<'p> {
        OpenParts { dataset, open: Vec::new(), parts: 0, bytes: 0 }
    }

    /// Adds a trace. It is published at once if it has files of its own, else together with others.
    ///
    /// # Errors
    /// [`DatasetError`].
    pub fn add(&mut self, trace: IngestedTrace) -> Result<(), DatasetError> {
        let IngestedTrace { id, day, rows, files, bytes, .. } = trace;
        if let Some(files) = files {
            return self.publish(OpenPart { day, files, ids: vec![id], input_bytes: bytes });
        }
        let mut part = self.take(&day)?;
        rows.write_to_part(&mut part.files).map_err(DatasetError::io(part.files.dir()))?;
        part.ids.push(id);
        part.input_bytes += bytes;
        self.put_back(part)
    }

    /// Adds a row of an input that was rejected on `day`.
    ///
    /// # Errors
    /// [`DatasetError`].
    pub fn reject(&mut self, day: &str, input: &RejectedInput<'_>) -> Result<(), DatasetError> {
        let mut part = self.take(day)?;
        let mut rows = Rows::new(TableId::Rejected.table());
        let id = input.id();
        let path = input.path.to_string_lossy();
        let bytes = input.path.to_str().is_none().then_some(input.path.as_os_str().as_encoded_bytes());
        rows.push(&[
            (&id).into(),
            (&*path).into(),
            bytes.map_or(Cell::Null, Cell::Bytes),
            input.bytes.into(),
            input.reason.into(),
        ]);
        part.files.add(&rows).map_err(DatasetError::io(part.files.dir()))?;
        part.ids.push(id);
        self.put_back(part)
    }

    /// Publishes all parts.
    ///
    /// # Errors
    /// [`DatasetError`].
    pub fn finish(&mut self) -> Result<(), DatasetError> {
        std::mem::take(&mut self.open).into_iter().try_for_each(|part| self.publish(part))
    }

    /// The open part of a day, or a new one.
    fn take(&mut self, day: &str) -> Result<OpenPart, DatasetError> {
        if let Some(at) = self.open.iter().position(|part| part.day == day) {
            return Ok(self.open.remove(at));
        }
        if self.open.len() >= OPEN_PARTS {
            let oldest = self.open.remove(0);
            self.publish(oldest)?;
        }
        let files = PartFiles::create(self.dataset.path()).map_err(DatasetError::io(self.dataset.path()))?;
        Ok(OpenPart { day: day.to_owned(), files, ids: Vec::new(), input_bytes: 0 })
    }

    fn put_back(&mut self, part: OpenPart) -> Result<(), DatasetError> {
        if part.ids.len() >= PART_TRACES || part.input_bytes >= PART_INPUT_BYTES {
            return self.publish(part);
        }
        self.open.push(part);
        Ok(())
    }

    fn publish(&mut self, part: OpenPart) -> Result<(), DatasetError> {
        let target = self.dataset.day_dir(&part.day).join(part_name(part.ids));
        self.bytes += make_parent(&target)
            .and_then(|()| part.files.publish(&target))
            .map_err(DatasetError::io(&target))?;
        self.parts += 1;
        Ok(())
    }
}
