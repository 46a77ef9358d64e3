//! The form of a ring-buffer page: the commit counter of its header, the header word of a record, and the
//! layout that the tracefs file `events/header_page` describes.
//!
//! The kernel defines the numbers in include/linux/ring_buffer.h and kernel/trace/ring_buffer.c. The page
//! reader (`page`) and the page writer (`page_writer`) both take them from here. The file also has the limits
//! on what a recording may claim about the machine that made it: numbers beyond them are damage, not data.

use thiserror::Error;

use super::Endian;
use super::format::field_lines;

/// Bytes of the timestamp at the start of a page.
pub(crate) const TIMESTAMP_BYTES: u32 = 8;

/// Commit counter: these bits hold how many bytes of records the page has.
pub(super) const COMMIT_LENGTH_MASK: u64 = (1 << 27) - 1;
/// Commit counter: this bit says that events were lost before the page (RB_MISSED_EVENTS).
pub(super) const COMMIT_EVENTS_LOST: u64 = 1 << 31;
/// Commit counter: this bit says that the number of lost events is stored behind the records
/// (RB_MISSED_STORED).
pub(super) const COMMIT_LOST_COUNT_STORED: u64 = 1 << 30;

/// Bytes of a record's header word: `type_len` in 5 bits and the time since the record before in 27 bits.
pub(super) const RECORD_HEADER_BYTES: usize = 4;
/// Bits of the time delta in a record's header word.
pub(super) const DELTA_BITS: u32 = 27;
/// The bits of the time delta in a little-endian machine's header word, shifted down.
pub(super) const DELTA_MASK: u32 = (1 << DELTA_BITS) - 1;
/// Bits of `type_len` in a record's header word.
pub(super) const TYPE_LEN_BITS: u32 = 32 - DELTA_BITS;

/// `type_len`: the record is longer than [`MAX_SHORT_WORDS`], so its length is in the word behind the header
/// word.
pub(super) const TYPE_LONG_DATA: u32 = 0;
/// `type_len` from 1 to this number is the length of a record in words of 4 bytes.
pub(super) const MAX_SHORT_WORDS: u32 = 28;
/// `type_len`: the record was discarded, or (with a time delta of 0) the rest of the page is unused.
pub(super) const TYPE_PADDING: u32 = 29;
/// `type_len`: the word behind the header word holds the upper bits of a time delta.
pub(super) const TYPE_TIME_EXTEND: u32 = 30;
/// `type_len`: the word behind the header word holds the upper bits of an absolute time.
pub(super) const TYPE_TIME_STAMP: u32 = 31;

/// Bits of an absolute time. The bits above are those of the time before it.
pub(super) const ABSOLUTE_TIME_BITS: u32 = 59;

/// The largest number of CPUs a recording may have. Linux cannot be built for more (`CONFIG_NR_CPUS`).
pub const MAX_CPUS: u32 = 8192;

/// The smallest sub-buffer that a file may name, bytes.
const MIN_SUB_BUFFER_BYTES: u32 = 64;

/// The largest sub-buffer that a file may name, bytes. The kernel's own limit is 32 system pages of up to 64
/// KiB.
pub(super) const MAX_SUB_BUFFER_BYTES: u32 = 4 << 20;

/// Whether a sub-buffer ("page") of the ring buffer can be `bytes` long.
pub fn is_sub_buffer_size(bytes: u32) -> bool {
    (MIN_SUB_BUFFER_BYTES..=MAX_SUB_BUFFER_BYTES).contains(&bytes)
}

/// How a sub-buffer ("page") of the ring buffer is laid out.
///
/// A page starts with a u64 timestamp. The commit counter (a `local_t`) follows, and then the records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageLayout {
    /// Byte order of the machine that recorded.
    pub endian: Endian,
    /// Offset of the commit counter, bytes.
    pub commit_offset: u32,
    /// Size of the commit counter: 8 bytes, or 4 bytes from a 32-bit kernel. The count of lost events behind
    /// the records has the same size.
    pub commit_size: u32,
    /// Offset of the first record, bytes.
    pub data_offset: u32,
    /// Size of the whole sub-buffer, bytes. Since Linux 6.8 a sub-buffer may be larger than a system page
    /// (`buffer_subbuf_size_kb`).
    pub size: u32,
}

/// A `header_page` text does not describe a page.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum HeaderPageError {
    /// The line of a necessary field is missing.
    #[error("header_page does not say where `{0}` is")]
    Missing(&'static str),
    /// A field has an offset or a size that no kernel uses.
    #[error("header_page puts `{field}` at {offset} with {size} bytes")]
    Impossible {
        /// Name of the field.
        field: &'static str,
        /// Offset of the field, bytes.
        offset: u32,
        /// Size of the field, bytes.
        size: u32,
    },
}

impl PageLayout {
    /// The usual layout of a kernel with `long_size` bytes per `long`, for pages of `size` bytes.
    pub fn usual(endian: Endian, long_size: u8, size: u32) -> PageLayout {
        let commit_size = if long_size == 4 { 4 } else { 8 };
        let data_offset = TIMESTAMP_BYTES + commit_size;
        PageLayout { endian, commit_offset: TIMESTAMP_BYTES, commit_size, data_offset, size }
    }

    /// Reads the text of `events/header_page`. Its sizes are the recording kernel's: a commit counter of 4
    /// bytes means a 32-bit kernel, whatever else the recording says.
    ///
    /// # Errors
    /// Returns [`HeaderPageError`] where a field is missing, or has an offset or a size that no kernel uses.
    pub fn parse(header_page: &str, endian: Endian) -> Result<PageLayout, HeaderPageError> {
        let mut commit = None;
        let mut data = None;
        for line in field_lines(header_page) {
            match line.name() {
                "commit" => commit = Some((line.offset, line.size)),
                "data" => data = Some((line.offset, line.size)),
                _ => {}
            }
        }
        let (commit_offset, commit_size) = commit.ok_or(HeaderPageError::Missing("commit"))?;
        let (data_offset, data_size) = data.ok_or(HeaderPageError::Missing("data"))?;
        let commit_end = commit_offset.checked_add(commit_size);
        let overlaps = commit_offset < TIMESTAMP_BYTES || commit_end.is_none_or(|end| end > data_offset);
        if !matches!(commit_size, 4 | 8) || overlaps {
            return Err(HeaderPageError::Impossible {
                field: "commit",
                offset: commit_offset,
                size: commit_size,
            });
        }
        match data_offset.checked_add(data_size) {
            Some(size) if data_size >= 16 && size <= MAX_SUB_BUFFER_BYTES => {
                Ok(PageLayout { endian, commit_offset, commit_size, data_offset, size })
            }
            _ => Err(HeaderPageError::Impossible { field: "data", offset: data_offset, size: data_size }),
        }
    }

    /// The text of `events/header_page` for this layout, as the kernel prints it.
    pub fn header_page(&self) -> String {
        let PageLayout { commit_offset, commit_size, data_offset, size, .. } = *self;
        let data_size = size - data_offset;
        format!(
            "\tfield: u64 timestamp;\toffset:0;\tsize:{TIMESTAMP_BYTES};\tsigned:0;\n\
             \tfield: local_t commit;\toffset:{commit_offset};\tsize:{commit_size};\tsigned:1;\n\
             \tfield: int overwrite;\toffset:{commit_offset};\tsize:1;\tsigned:1;\n\
             \tfield: char data;\toffset:{data_offset};\tsize:{data_size};\tsigned:1;\n"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_counter_of_4_bytes_means_a_32_bit_kernel() {
        let text = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
                    \tfield: local_t commit;\toffset:8;\tsize:4;\tsigned:1;\n\
                    \tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\
                    \tfield: char data;\toffset:12;\tsize:4084;\tsigned:0;\n";
        let layout = PageLayout::parse(text, Endian::Little).unwrap();
        assert_eq!(layout, PageLayout::usual(Endian::Little, 4, 4096));
    }

    #[test]
    fn large_sub_buffers_are_accepted_and_impossible_sizes_are_not() {
        let text = |size: &str| {
            format!("field: local_t commit; offset:8; size:8;\nfield: char data; offset:16; size:{size};")
        };
        assert_eq!(PageLayout::parse(&text("16368"), Endian::Big).unwrap().size, 16384);
        assert!(PageLayout::parse(&text("4294967295"), Endian::Big).is_err());
        assert!(PageLayout::parse("", Endian::Big).is_err());
    }

    #[test]
    fn a_layout_written_as_header_page_parses_to_the_same_layout() {
        for endian in [Endian::Little, Endian::Big] {
            for long_size in [4, 8] {
                for size in [4096, 16384, 65536] {
                    let layout = PageLayout::usual(endian, long_size, size);
                    assert_eq!(PageLayout::parse(&layout.header_page(), endian), Ok(layout));
                }
            }
        }
    }
}
