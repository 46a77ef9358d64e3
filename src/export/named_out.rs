//! An output whose errors name it.

use std::io::{self, Seek, SeekFrom, Write};

/// An output, and the name that its errors begin with.
pub struct NamedOut<W> {
    /// The output's path as given, or another name for people.
    pub(super) name: String,
    pub(super) out: W,
}

impl<W> NamedOut<W> {
    fn name(&self, error: io::Error) -> io::Error {
        match error.kind() {
            // The caller repeats the call.
            io::ErrorKind::Interrupted => error,
            kind => io::Error::new(kind, format!("{}: {error}", self.name)),
        }
    }
}

impl<W: Write> Write for NamedOut<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.out.write(bytes).map_err(|error| self.name(error))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush().map_err(|error| self.name(error))
    }
}

impl<W: Seek> Seek for NamedOut<W> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.out.seek(to).map_err(|error| self.name(error))
    }
}
