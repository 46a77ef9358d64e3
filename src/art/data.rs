//! The binary header in front of the records: magic `SLOW`, version, data offset, start time, record size.

use thiserror::Error;

use super::{u16_at, u64_at};

/// The four bytes that open the binary part: `SLOW`.
pub const MAGIC: &[u8; 4] = b"SLOW";

/// The bits that mark a streaming file in the version field.
const STREAMING: u16 = 0xf0;

/// The binary header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DataHeader {
    /// 1 to 5, without the streaming mark.
    pub version: u16,
    /// Records are interleaved with declarations of methods and threads.
    pub streaming: bool,
    /// Where records begin, bytes from the magic.
    pub data_offset: usize,
    /// When the trace began, as written: µs (ns in newer version 4 and 5 files), in a clock the file does not name.
    pub start: u64,
    /// Bytes a record; 0 where the file does not say.
    pub record_size: u16,
    /// Versions 4 and 5 of one encoding only: ticks a second of the counter that stamps events; 0 elsewhere.
    pub tsc_frequency: u64,
    /// The same encoding's counter reading at the start, ticks.
    pub start_tsc: u64,
}

/// Why the binary header cannot be used; offsets are from the magic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum DataHeaderError {
    /// The file ends before or inside the header.
    #[error("the file ends inside the binary header ({0} of 32 bytes are there): no records are left")]
    Cut(usize),
    /// Something else stands where `SLOW` belongs.
    #[error("the binary part does not begin with SLOW: this is no method trace, or its header was cut out")]
    Magic,
    /// No runtime is known to write it.
    #[error(
        "the binary header says version {0}, and versions 1 to 5 exist: the bytes behind the text are no records"
    )]
    Version(u16),
    /// The data offset points into the header or past the end.
    #[error("the binary header places the records at {0}, outside of the file's {1} remaining bytes")]
    Offset(usize, usize),
}

impl DataHeader {
    /// Reads the header at the start of `bytes`.
    pub fn parse(bytes: &[u8]) -> Result<DataHeader, DataHeaderError> {
        let cut = DataHeaderError::Cut(bytes.len().min(31));
        if bytes.len() < 4 && MAGIC.starts_with(bytes) {
            return Err(cut);
        }
        if !bytes.starts_with(MAGIC) {
            return Err(DataHeaderError::Magic);
        }
        let written = u16_at(bytes, 4).ok_or(cut)?;
        let streaming = written & !0xf == STREAMING;
        let version = if streaming { written & 0xf } else { written };
        match version {
            1..=3 => Self::parse_v1_to_v3(bytes, version, streaming).ok_or(cut)?,
            4 | 5 => Self::parse_v4(bytes, version, streaming).ok_or(cut),
            _ => Err(DataHeaderError::Version(written)),
        }
    }

    fn parse_v1_to_v3(
        bytes: &[u8],
        version: u16,
        streaming: bool,
    ) -> Option<Result<DataHeader, DataHeaderError>> {
        let data_offset = usize::from(u16_at(bytes, 6)?);
        let start = u64_at(bytes, 8)?;
        if data_offset < 16 || data_offset > bytes.len() {
            return Some(Err(DataHeaderError::Offset(data_offset, bytes.len())));
        }
        // Version 3 added the size; files of version 1 and 2 have padding there, or records already (offset 16).
        let record_size = if version >= 3 && data_offset >= 18 { u16_at(bytes, 16)? } else { 0 };
        Some(Ok(DataHeader {
            version,
            streaming,
            data_offset,
            start,
            record_size,
            tsc_frequency: 0,
            start_tsc: 0,
        }))
    }

    fn parse_v4(bytes: &[u8], version: u16, streaming: bool) -> Option<DataHeader> {
        Some(DataHeader {
            version,
            streaming,
            data_offset: 32,
            start: u64_at(bytes, 6)?,
            record_size: 0,
            start_tsc: u64_at(bytes, 14)?,
            tsc_frequency: u64_at(bytes, 22)?,
        })
        .filter(|_| bytes.len() >= 32)
    }
}
