//! The output of a conversion: a file that appears under its name once it is complete, or standard output.

use std::fs::{File, Metadata};
use std::io::{self, IsTerminal, Write};
use std::path::Path;

use flate2::write::GzEncoder;

use super::Out;
use super::convert_error::ConvertError;
use super::named_out::NamedOut;
use crate::output_file::{OutputFile, Readers, is_stdout};

/// Where a conversion writes.
pub(super) struct ConversionOutput<'a> {
    path: &'a Path,
    gzip: bool,
    /// `None` for standard output.
    file: Option<OutputFile>,
}

impl<'a> ConversionOutput<'a> {
    /// Begins the output. What it is given is compressed with `gzip` set, or if the path ends in `.gz`.
    pub(super) fn create(path: &'a Path, gzip: bool) -> Result<ConversionOutput<'a>, ConvertError> {
        let mut output = ConversionOutput { path, gzip, file: None };
        if !is_stdout(path) {
            let file = OutputFile::create(path, Readers::AsTarget);
            output.file = Some(file.map_err(|source| output.error(source))?);
        } else if io::stdout().is_terminal() {
            return Err(ConvertError::OutputIsTerminal);
        }
        Ok(output)
    }

    /// For a writer that writes from front to back.
    pub(super) fn stream(&self) -> Result<Out, ConvertError> {
        let out: Out = match &self.file {
            Some(file) => Box::new(self.named(file)?),
            None => Box::new(NamedOut { name: "standard output".to_owned(), out: io::stdout() }),
        };
        let gzip = self.gzip || self.path.extension().is_some_and(|ending| ending == "gz");
        Ok(if gzip { Box::new(GzipOut(GzEncoder::new(out, flate2::Compression::fast()))) } else { out })
    }

    /// For a writer that goes back to what it has written; `None` where the output is no regular file.
    pub(super) fn seekable(&self) -> Result<Option<NamedOut<File>>, ConvertError> {
        self.file.as_ref().filter(|file| !file.is_direct()).map(|file| self.named(file)).transpose()
    }

    /// Gives the output its name. Returns its size in bytes; `None` where it is no regular file.
    pub(super) fn commit(mut self) -> Result<Option<u64>, ConvertError> {
        let Some(file) = self.file.take() else { return Ok(None) };
        let meta = file.file().metadata().ok();
        file.commit().map_err(|source| self.error(source))?;
        log::debug!("{}: written", self.path.display());
        Ok(meta.filter(Metadata::is_file).map(|meta| meta.len()))
    }

    fn named(&self, file: &OutputFile) -> Result<NamedOut<File>, ConvertError> {
        let out = file.file().try_clone().map_err(|source| self.error(source))?;
        Ok(NamedOut { name: self.path.display().to_string(), out })
    }

    fn error(&self, source: io::Error) -> ConvertError {
        ConvertError::Output { path: self.path.display().to_string(), source }
    }
}

/// A gzip stream whose end is written by `flush`, which exporters call once, at the end.
struct GzipOut(GzEncoder<Out>);

impl Write for GzipOut {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.try_finish()?;
        self.0.get_mut().flush()
    }
}
