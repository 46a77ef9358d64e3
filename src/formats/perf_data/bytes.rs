//! Numbers and texts of a perf.data file, in the byte order of the machine that wrote it.

/// Bytes that are taken from the front.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bytes<'a> {
    data: &'a [u8],
    is_big_endian: bool,
}

impl<'a> Bytes<'a> {
    /// All of `data`.
    pub(super) fn new(data: &'a [u8], is_big_endian: bool) -> Bytes<'a> {
        Bytes { data, is_big_endian }
    }

    /// Whether the highest byte of a number comes first.
    pub(super) fn is_big_endian(&self) -> bool {
        self.is_big_endian
    }

    /// The bytes that are left.
    pub(super) fn rest(&self) -> &'a [u8] {
        self.data
    }

    /// Takes `len` bytes; `None` where fewer are left.
    #[inline]
    pub(super) fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.data.split_at_checked(len)?;
        self.data = rest;
        Some(taken)
    }

    /// Takes bytes whose number is itself a field of the file.
    pub(super) fn take_u64_len(&mut self, len: u64) -> Option<&'a [u8]> {
        self.take(usize::try_from(len).ok()?)
    }

    /// Takes a number of 16 bits.
    #[inline]
    pub(super) fn u16(&mut self) -> Option<u16> {
        let bytes = *self.take(2)?.first_chunk()?;
        Some(if self.is_big_endian { u16::from_be_bytes(bytes) } else { u16::from_le_bytes(bytes) })
    }

    /// Takes a number of 32 bits.
    #[inline]
    pub(super) fn u32(&mut self) -> Option<u32> {
        let bytes = *self.take(4)?.first_chunk()?;
        Some(if self.is_big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) })
    }

    /// Takes a number of 64 bits.
    #[inline]
    pub(super) fn u64(&mut self) -> Option<u64> {
        let bytes = *self.take(8)?.first_chunk()?;
        Some(if self.is_big_endian { u64::from_be_bytes(bytes) } else { u64::from_le_bytes(bytes) })
    }

    /// Takes a text that ends with a NUL, or with the bytes.
    pub(super) fn text(&mut self) -> &'a [u8] {
        let len = memchr::memchr(0, self.data).unwrap_or(self.data.len());
        let text = &self.data[..len];
        self.data = self.data.get(len + 1..).unwrap_or(&[]);
        text
    }

    /// Takes a text behind its length in 32 bits (`perf_header_string`): NULs at its end are padding.
    pub(super) fn sized_text(&mut self) -> Option<&'a [u8]> {
        let len = self.u32()?;
        let mut text = Bytes::new(self.take(len as usize)?, self.is_big_endian);
        Some(text.text())
    }
}

/// Text that a file may have in any encoding.
pub(super) fn lossy(text: &[u8]) -> String {
    String::from_utf8_lossy(text).into_owned()
}
