//! The bytes of an input: a mapped file, or bytes in memory. Bytes that the program itself makes, because a
//! file unpacks to them or because they wait for their turn, are in memory while they are few, else in a
//! temporary file that is mapped: a small file may unpack to more than memory should hold.

use std::borrow::Cow;
use std::env;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::ops::{Deref, Range};
use std::sync::Arc;

use super::mapped_file::MappedFile;

/// The most bytes that are kept in memory.
const MEMORY_BYTES: usize = 32 << 20;

/// How many bytes a reader reads before it has their memory released.
pub(in crate::formats) const RELEASE_BYTES: usize = 16 << 20;

/// The owner of a file's bytes, which may free memory that a reader does not need for now.
pub trait Release: Sync {
    /// A reader is done with the bytes in `range`. Another reader may use them again.
    fn release(&self, range: Range<usize>);
}

/// Bytes in memory or in a mapped file.
#[derive(Debug)]
pub(in crate::formats) enum FileBytes {
    Mapped(MappedFile),
    Owned(Vec<u8>),
}

impl Deref for FileBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            FileBytes::Mapped(map) => map,
            FileBytes::Owned(bytes) => bytes,
        }
    }
}

impl Release for FileBytes {
    fn release(&self, range: Range<usize>) {
        if let FileBytes::Mapped(map) = self {
            map.release(range);
        }
    }
}

/// A part of an input's bytes, or of bytes that the program made of them.
#[derive(Debug, Clone)]
pub(in crate::formats) enum FilePart<'a> {
    Borrowed(&'a [u8]),
    Made { bytes: Arc<FileBytes>, range: Range<usize> },
}

impl FilePart<'_> {
    /// The parts before and behind the offset `at`.
    pub(in crate::formats) fn split_at(self, at: usize) -> (Self, Self) {
        match self {
            FilePart::Borrowed(bytes) => {
                let (before, behind) = bytes.split_at(at.min(bytes.len()));
                (FilePart::Borrowed(before), FilePart::Borrowed(behind))
            }
            FilePart::Made { bytes, range } => {
                let at = (range.start + at).min(range.end);
                let before = FilePart::Made { bytes: bytes.clone(), range: range.start..at };
                (before, FilePart::Made { bytes, range: at..range.end })
            }
        }
    }
}

impl From<FileBytes> for FilePart<'_> {
    fn from(bytes: FileBytes) -> Self {
        let range = 0..bytes.len();
        FilePart::Made { bytes: Arc::new(bytes), range }
    }
}

impl<'a> From<Cow<'a, [u8]>> for FilePart<'a> {
    fn from(bytes: Cow<'a, [u8]>) -> Self {
        match bytes {
            Cow::Borrowed(bytes) => FilePart::Borrowed(bytes),
            Cow::Owned(bytes) => FileBytes::Owned(bytes).into(),
        }
    }
}

#[cfg(test)]
impl PartialEq<&[u8]> for FilePart<'_> {
    fn eq(&self, other: &&[u8]) -> bool {
        **self == **other
    }
}

impl Default for FilePart<'_> {
    fn default() -> Self {
        FilePart::Borrowed(&[])
    }
}

impl Deref for FilePart<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            FilePart::Borrowed(bytes) => bytes,
            FilePart::Made { bytes, range } => &bytes[range.clone()],
        }
    }
}

/// The temporary file cannot be made or written.
#[derive(Debug, thiserror::Error)]
#[error("a temporary file in {dir}: {source}")]
struct TemporaryFile {
    dir: String,
    source: io::Error,
}

fn temporary_file(source: io::Error) -> io::Error {
    let kind = source.kind();
    io::Error::new(kind, TemporaryFile { dir: env::temp_dir().display().to_string(), source })
}

/// Whether an error is that of the temporary file.
pub(in crate::formats) fn is_of_temporary_file(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|inner| inner.is::<TemporaryFile>())
}

/// Collects bytes.
#[derive(Debug, Default)]
pub(in crate::formats) struct SpillWriter {
    memory: Vec<u8>,
    file: Option<BufWriter<File>>,
    len: usize,
}

impl SpillWriter {
    /// The number of bytes so far.
    pub(in crate::formats) fn len(&self) -> usize {
        self.len
    }

    /// Whether nothing was written.
    pub(in crate::formats) fn is_empty(&self) -> bool {
        self.len == 0
    }

    fn spill(&mut self) -> io::Result<()> {
        let mut file = tempfile::tempfile()?;
        file.write_all(&std::mem::take(&mut self.memory))?;
        self.file = Some(BufWriter::with_capacity(1 << 20, file));
        Ok(())
    }

    /// The bytes that were written.
    ///
    /// # Errors
    /// Those of the temporary file.
    pub(in crate::formats) fn finish(self) -> io::Result<FileBytes> {
        let Some(file) = self.file else { return Ok(FileBytes::Owned(self.memory)) };
        let file = file.into_inner().map_err(|error| temporary_file(error.into_error()))?;
        MappedFile::new(file, "a temporary file").map(FileBytes::Mapped).map_err(temporary_file)
    }
}

impl Write for SpillWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.file.is_none() && self.memory.len() + bytes.len() > MEMORY_BYTES {
            self.spill().map_err(temporary_file)?;
        }
        match &mut self.file {
            Some(file) => file.write_all(bytes).map_err(temporary_file)?,
            None => self.memory.extend_from_slice(bytes),
        }
        self.len += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_bytes_are_in_a_file_and_few_in_memory_and_both_are_as_they_were_written() {
        for (parts, is_mapped) in [(3, false), (40, true)] {
            let mut writer = SpillWriter::default();
            for part in 0..parts {
                writer.write_all(&vec![part as u8; 1 << 20]).unwrap();
            }
            assert_eq!(writer.len(), parts << 20);
            let bytes = writer.finish().unwrap();
            assert_eq!(matches!(bytes, FileBytes::Mapped(_)), is_mapped);
            bytes.release(0..bytes.len());
            assert_eq!(bytes.len(), parts << 20);
            assert!(bytes.chunks(1 << 20).enumerate().all(|(n, part)| part.iter().all(|b| *b == n as u8)));
        }
    }
}
