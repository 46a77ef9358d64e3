//! Reads the numbers and the texts of a trace.dat's header in order. Where the bytes end too early, the error
//! has the offset and the part of the header.

use super::error::TraceDatError;
use crate::ftrace::Endian;

/// A position in some bytes of the file, or of a decompressed section.
#[derive(Debug, Clone)]
pub(super) struct HeaderReader<'a> {
    data: &'a [u8],
    /// Offset in `data`.
    at: usize,
    /// Offset of `data` in the file.
    base: u64,
    pub(super) endian: Endian,
    /// The part of the header that is being read, for errors.
    pub(super) what: &'static str,
}

type Result<T> = std::result::Result<T, TraceDatError>;

impl<'a> HeaderReader<'a> {
    pub(super) fn new(data: &'a [u8], base: u64, endian: Endian, what: &'static str) -> HeaderReader<'a> {
        HeaderReader { data, at: 0, base, endian, what }
    }

    /// A reader of the whole file that starts at `offset`.
    pub(super) fn at(
        file: &'a [u8],
        offset: u64,
        endian: Endian,
        what: &'static str,
    ) -> Result<HeaderReader<'a>> {
        let start = usize::try_from(offset).ok().filter(|s| *s < file.len());
        let Some(start) = start else { return Err(TraceDatError::Cut { offset: file.len() as u64, what }) };
        Ok(HeaderReader { data: file, at: start, base: 0, endian, what })
    }

    /// Bytes from the start of the file.
    pub(super) fn offset(&self) -> u64 {
        self.base + self.at as u64
    }

    pub(super) fn cut(&self) -> TraceDatError {
        TraceDatError::Cut { offset: self.base + self.data.len() as u64, what: self.what }
    }

    pub(super) fn bad(&self, what: String) -> TraceDatError {
        TraceDatError::Bad { offset: self.offset(), what }
    }

    pub(super) fn bytes(&mut self, len: u64) -> Result<&'a [u8]> {
        let end = usize::try_from(len).ok().and_then(|len| self.at.checked_add(len));
        let got = end.and_then(|end| self.data.get(self.at..end)).ok_or_else(|| self.cut())?;
        self.at += got.len();
        Ok(got)
    }

    fn uint(&mut self, len: u64) -> Result<u64> {
        let bytes = self.bytes(len)?;
        Ok(self.endian.uint(bytes).unwrap_or_default())
    }

    pub(super) fn u8(&mut self) -> Result<u8> {
        Ok(self.uint(1)? as u8)
    }

    pub(super) fn u16(&mut self) -> Result<u16> {
        Ok(self.uint(2)? as u16)
    }

    pub(super) fn u32(&mut self) -> Result<u32> {
        Ok(self.uint(4)? as u32)
    }

    pub(super) fn u64(&mut self) -> Result<u64> {
        self.uint(8)
    }

    /// Reads a text that ends with a NUL, and skips the NUL.
    pub(super) fn text(&mut self) -> Result<&'a [u8]> {
        let rest = self.data.get(self.at..).unwrap_or_default();
        let len = rest.iter().position(|b| *b == 0).ok_or_else(|| self.cut())?;
        self.at += len + 1;
        Ok(&rest[..len])
    }

    /// Skips `wanted`, or returns an error where other bytes follow.
    pub(super) fn expect(&mut self, wanted: &[u8]) -> Result<()> {
        let start = self.offset();
        if self.bytes(wanted.len() as u64)? != wanted {
            let what = format!("`{}` expected", wanted.trim_ascii_end().escape_ascii());
            return Err(TraceDatError::Bad { offset: start, what });
        }
        Ok(())
    }

    /// Reads a u32 length and as many bytes.
    pub(super) fn sized32(&mut self) -> Result<&'a [u8]> {
        let len = self.u32()?;
        self.bytes(len.into())
    }

    /// Reads a u64 length and as many bytes.
    pub(super) fn sized64(&mut self) -> Result<&'a [u8]> {
        let len = self.u64()?;
        self.bytes(len)
    }

    /// Reads a list of event formats, and calls `each` with the subsystem and the text of each format.
    ///
    /// The list of the subsystem `ftrace` is a u32 count, and then each text behind its u64 length. The list
    /// of all other subsystems is a u32 count of subsystems, and then for each the name and such a list.
    pub(super) fn each_format(&mut self, ftrace: bool, each: &mut dyn FnMut(&str, &'a [u8])) -> Result<()> {
        let systems = if ftrace { 1 } else { self.u32()? };
        for _ in 0..systems {
            let system = if ftrace { "ftrace".into() } else { String::from_utf8_lossy(self.text()?) };
            for _ in 0..self.u32()? {
                each(&system, self.sized64()?);
            }
        }
        Ok(())
    }
}
