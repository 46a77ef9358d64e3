//! Reads the header's numbers and strings one after the other; an end that comes too early says where and in what.

use super::error::TraceDatError;
use crate::ftrace::Endian;

/// A place in bytes that lie at `base` in the file.
#[derive(Debug, Clone)]
pub(super) struct Cursor<'a> {
    data: &'a [u8],
    at: usize,
    base: u64,
    pub(super) endian: Endian,
    /// What is being read, for errors.
    pub(super) what: &'static str,
}

type Result<T> = std::result::Result<T, TraceDatError>;

impl<'a> Cursor<'a> {
    pub(super) fn new(data: &'a [u8], base: u64, endian: Endian, what: &'static str) -> Cursor<'a> {
        Cursor { data, at: 0, base, endian, what }
    }

    /// From `offset` of the whole file on.
    pub(super) fn at(file: &'a [u8], offset: u64, endian: Endian, what: &'static str) -> Result<Cursor<'a>> {
        let start = usize::try_from(offset).ok().filter(|s| *s < file.len());
        let Some(start) = start else { return Err(TraceDatError::Cut { offset: file.len() as u64, what }) };
        Ok(Cursor { data: file, at: start, base: 0, endian, what })
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

    /// Text ended by NUL; the NUL is passed over.
    pub(super) fn text(&mut self) -> Result<&'a [u8]> {
        let rest = self.data.get(self.at..).unwrap_or_default();
        let len = rest.iter().position(|b| *b == 0).ok_or_else(|| self.cut())?;
        self.at += len + 1;
        Ok(&rest[..len])
    }

    /// Exactly these bytes.
    pub(super) fn expect(&mut self, wanted: &[u8]) -> Result<()> {
        let start = self.offset();
        if self.bytes(wanted.len() as u64)? != wanted {
            let what = format!("`{}` expected", wanted.trim_ascii_end().escape_ascii());
            return Err(TraceDatError::Bad { offset: start, what });
        }
        Ok(())
    }

    /// Bytes behind their size as a u32.
    pub(super) fn sized32(&mut self) -> Result<&'a [u8]> {
        let len = self.u32()?;
        self.bytes(len.into())
    }

    /// Bytes behind their size as a u64.
    pub(super) fn sized64(&mut self) -> Result<&'a [u8]> {
        let len = self.u64()?;
        self.bytes(len)
    }
}
