//! How a sub-buffer ("page") of the ring buffer is laid out, as tracefs' `events/header_page` tells it.

use thiserror::Error;

use super::Endian;
use super::format::field_lines;

/// Sub-buffers larger than this are taken for nonsense (the kernel's limit is 32 system pages of up to 64 KiB).
const MAX_SUB_BUFFER: u32 = 4 << 20;

/// How a sub-buffer ("page") of the ring buffer is laid out.
///
/// The timestamp is the u64 at its start; then a `local_t` that counts the bytes of events ("commit").
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageLayout {
    /// Byte order of the machine that recorded.
    pub endian: Endian,
    /// Where the commit counter lies, bytes.
    pub commit_offset: u32,
    /// 8 bytes, or 4 from a 32-bit kernel. Also the size of the lost-event count behind the events.
    pub commit_size: u32,
    /// Where the events start, bytes.
    pub data_offset: u32,
    /// The whole sub-buffer, bytes. Since Linux 6.8 it may be larger than a page (`buffer_subbuf_size_kb`).
    pub size: u32,
}

/// `header_page` does not describe a page.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LayoutError {
    /// No line for a field that must be there.
    #[error("header_page does not say where `{0}` is")]
    Missing(&'static str),
    /// A field that no kernel could have put there.
    #[error("header_page puts `{field}` at {offset} with {size} bytes")]
    Impossible {
        /// Its name.
        field: &'static str,
        /// Bytes.
        offset: u32,
        /// Bytes.
        size: u32,
    },
}

impl PageLayout {
    /// The usual layout of a kernel with `long_size` bytes per long, for pages of `size` bytes.
    pub fn usual(endian: Endian, long_size: u8, size: u32) -> PageLayout {
        let commit_size = if long_size == 4 { 4 } else { 8 };
        PageLayout { endian, commit_offset: 8, commit_size, data_offset: 8 + commit_size, size }
    }

    /// Reads the text of `events/header_page`. Its sizes are the recording kernel's, so a 32-bit kernel is known
    /// by its 4-byte commit counter, whatever else the capture says.
    pub fn parse(header_page: &str, endian: Endian) -> Result<PageLayout, LayoutError> {
        let mut commit = None;
        let mut data = None;
        for line in field_lines(header_page) {
            match line.name() {
                "commit" => commit = Some((line.offset, line.size)),
                "data" => data = Some((line.offset, line.size)),
                _ => {}
            }
        }
        let (commit_offset, commit_size) = commit.ok_or(LayoutError::Missing("commit"))?;
        let (data_offset, data_size) = data.ok_or(LayoutError::Missing("data"))?;
        let commit_end = commit_offset.checked_add(commit_size);
        if !matches!(commit_size, 4 | 8) || commit_offset < 8 || commit_end.is_none_or(|e| e > data_offset) {
            return Err(LayoutError::Impossible {
                field: "commit",
                offset: commit_offset,
                size: commit_size,
            });
        }
        match data_offset.checked_add(data_size) {
            Some(size) if data_size >= 16 && size <= MAX_SUB_BUFFER => {
                Ok(PageLayout { endian, commit_offset, commit_size, data_offset, size })
            }
            _ => Err(LayoutError::Impossible { field: "data", offset: data_offset, size: data_size }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_32_bit_kernel_is_known_by_its_commit_counter() {
        let text = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
                    \tfield: local_t commit;\toffset:8;\tsize:4;\tsigned:1;\n\
                    \tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\
                    \tfield: char data;\toffset:12;\tsize:4084;\tsigned:0;\n";
        let layout = PageLayout::parse(text, Endian::Little).unwrap();
        assert_eq!(layout, PageLayout::usual(Endian::Little, 4, 4096));
    }

    #[test]
    fn large_sub_buffers_are_believed_and_nonsense_is_not() {
        let text = |size: &str| {
            format!("field: local_t commit; offset:8; size:8;\nfield: char data; offset:16; size:{size};")
        };
        assert_eq!(PageLayout::parse(&text("16368"), Endian::Big).unwrap().size, 16384);
        assert!(PageLayout::parse(&text("4294967295"), Endian::Big).is_err());
        assert!(PageLayout::parse("", Endian::Big).is_err());
    }
}
