//! Reads the sizes that the pages of a column state, before the pages are read.
//!
//! A page's header is a Thrift structure in the compact protocol:
//! <https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift> and
//! <https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md>. The crate `parquet`
//! takes as much memory as the header says, and some kilobytes of zstd can become gigabytes.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;

use crate::depth::Depth;

/// The longest header of a page that is read, bytes. One of tracebridge has some 40.
const MAX_HEADER_BYTES: u64 = 4096;

/// The deepest structure in a header. One of Parquet has three levels.
const DEPTH: Depth = Depth::new(8);

/// A dictionary page, in the field `type` of a header.
const DICTIONARY_PAGE: i64 = 2;

/// Memory that a value of a dictionary takes beside its own bytes, bytes.
const DICTIONARY_VALUE_BYTES: u64 = 48;

/// The pages of one column in one row group.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct PageSizes {
    /// Values in all data pages, nulls among them.
    pub values: u64,
    /// The memory that reading takes at once: the dictionary and the largest other page, bytes.
    pub memory: u64,
}

/// Reads the headers of the pages in the bytes `chunk` of the file.
///
/// # Errors
/// The system's error, and one of [`io::ErrorKind::InvalidData`] where a header is none, or says what cannot
/// be.
pub(super) fn page_sizes(mut file: &File, chunk: Range<u64>) -> io::Result<PageSizes> {
    let mut sizes = PageSizes::default();
    let mut dictionary = 0;
    let mut largest = 0;
    let mut at = chunk.start;
    while at < chunk.end {
        let mut bytes = Vec::new();
        file.seek(SeekFrom::Start(at))?;
        file.by_ref().take((chunk.end - at).min(MAX_HEADER_BYTES)).read_to_end(&mut bytes)?;
        let (header, length) = PageHeader::read(&bytes).ok_or_else(|| invalid(at, "no header of a page"))?;
        let next = at + length as u64 + header.compressed;
        if next > chunk.end {
            return Err(invalid(at, "a page that is longer than its column"));
        }
        let memory = header.uncompressed + header.compressed;
        if header.is_dictionary {
            dictionary = memory.max(dictionary) + header.values.saturating_mul(DICTIONARY_VALUE_BYTES);
        } else {
            largest = memory.max(largest);
            sizes.values = sizes.values.saturating_add(header.values);
        }
        at = next;
    }
    sizes.memory = dictionary.saturating_add(largest);
    Ok(sizes)
}

fn invalid(at: u64, what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("{what} at byte {at}"))
}

/// The header of a page.
#[derive(Debug, Default, PartialEq, Eq)]
struct PageHeader {
    is_dictionary: bool,
    /// Size of the page behind its header, bytes.
    compressed: u64,
    /// Its size when it is unpacked, bytes.
    uncompressed: u64,
    values: u64,
}

impl PageHeader {
    /// Reads a header, and returns its length too.
    fn read(bytes: &[u8]) -> Option<(PageHeader, usize)> {
        let mut header = PageHeader::default();
        let mut thrift = Thrift { rest: bytes };
        let mut sizes = [None; 3];
        let mut values = None;
        thrift.structure(|thrift, id, kind| match id {
            // type, uncompressed_page_size, compressed_page_size
            1..=3 if kind == INT32 => {
                sizes[id as usize - 1] = Some(thrift.int()?);
                Some(())
            }
            // data_page_header, dictionary_page_header, data_page_header_v2: each begins with num_values.
            5 | 7 | 8 if kind == STRUCT => thrift.structure(|thrift, id, kind| {
                if id == 1 && kind == INT32 {
                    values = Some(thrift.int()?);
                    return Some(());
                }
                thrift.skip(kind, DEPTH)
            }),
            _ => thrift.skip(kind, DEPTH),
        })?;
        header.is_dictionary = sizes[0]? == DICTIONARY_PAGE;
        header.uncompressed = u64::try_from(sizes[1]?).ok()?;
        header.compressed = u64::try_from(sizes[2]?).ok()?;
        header.values = u64::try_from(values?).ok()?;
        Some((header, bytes.len() - thrift.rest.len()))
    }
}

/// The types of fields that are read. 1 and 2 are true and false, without bytes of their own.
const INT32: u8 = 5;
const STRUCT: u8 = 12;

/// A reader of the compact protocol.
struct Thrift<'a> {
    rest: &'a [u8],
}

impl Thrift<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    fn varint(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    fn int(&mut self) -> Option<i64> {
        let value = self.varint()?;
        Some((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    fn bytes(&mut self, count: u64) -> Option<()> {
        self.rest = self.rest.get(usize::try_from(count).ok()?..)?;
        Some(())
    }

    /// Calls `field` with the number and the type of each field of a structure. It reads or skips the field.
    fn structure(&mut self, mut field: impl FnMut(&mut Self, i64, u8) -> Option<()>) -> Option<()> {
        let mut id: i64 = 0;
        loop {
            let head = self.byte()?;
            if head == 0 {
                return Some(());
            }
            id = match head >> 4 {
                0 => self.int()?,
                delta => id.checked_add(delta.into())?,
            };
            field(self, id, head & 15)?;
        }
    }

    fn skip(&mut self, kind: u8, depth: Depth) -> Option<()> {
        let depth = depth.inner().ok()?;
        match kind {
            1 | 2 => Some(()),
            3 => self.bytes(1),
            4..=6 => self.varint().map(drop),
            7 => self.bytes(8),
            8 => {
                let count = self.varint()?;
                self.bytes(count)
            }
            9 | 10 => {
                let head = self.byte()?;
                let count = if head >> 4 == 15 { self.varint()? } else { u64::from(head >> 4) };
                (0..count).try_for_each(|_| self.skip_element(head & 15, depth))
            }
            STRUCT => self.structure(|thrift, _, kind| thrift.skip(kind, depth)),
            _ => None,
        }
    }

    /// An element of a list: a truth value has a byte there.
    fn skip_element(&mut self, kind: u8, depth: Depth) -> Option<()> {
        if matches!(kind, 1 | 2) { self.bytes(1) } else { self.skip(kind, depth) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// type 0, 300 bytes unpacked, 7 packed, a data page of 100 values.
    const DATA: &[u8] = &[0x15, 0, 0x15, 0xd8, 0x04, 0x15, 14, 0x2c, 0x15, 0xc8, 0x01, 0x15, 0, 0, 0];

    #[test]
    fn a_header_says_the_sizes_of_its_page() {
        let (header, length) = PageHeader::read(DATA).unwrap();
        let expected = PageHeader { is_dictionary: false, compressed: 7, uncompressed: 300, values: 100 };
        assert_eq!((header, length), (expected, DATA.len()));
        assert!((0..DATA.len()).all(|cut| PageHeader::read(&DATA[..cut]).is_none()));
    }

    #[test]
    fn pages_that_do_not_end_with_their_column_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("pages");
        let page = [DATA, &[0; 7]].concat();
        std::fs::write(&path, page.repeat(3)).unwrap();
        let file = File::open(&path).unwrap();
        let all = 3 * page.len() as u64;
        assert_eq!(page_sizes(&file, 0..all).unwrap(), PageSizes { values: 300, memory: 307 });
        assert!(page_sizes(&file, 0..all - 1).is_err());
        assert!(page_sizes(&file, 1..all).is_err());
    }
}
