//! The bytes of ART's and Dalvik's method traces: the binary header, records, packets. All decoders are pure
//! functions over `&[u8]`.
//!
//! The formats are those of AOSP art `runtime/trace.h` and `runtime/trace.cc` (versions 1 to 5, the
//! `*version` text and the streaming form), of `runtime/trace_profile.cc` (the always-on tracer), and of
//! dalvik `vm/Profile.cpp` for files of older devices. Everything is little-endian.
//!
//! The binary header in front of the records has the magic `SLOW`, the version, the offset of the data, the
//! start time and the size of a record.

mod block_packet;
mod block_record;
mod code_origin;
mod fixed;
mod key;
mod mapping;

use thiserror::Error;

pub(crate) use block_packet::{
    BlockPacket, EntriesPacket, PacketForm, always_on_form, end_of_whole_packets, next_block_packet,
};
pub(crate) use block_record::{BlockEncoding, BlockRecord, BlockState, CounterTime, next_record};
pub(crate) use code_origin::{CodeOrigin, is_within};
pub(crate) use fixed::{FixedRecord, Packet, RecordLayout, next_packet};
pub(crate) use key::{KeySection, MethodLine, parse_method_line};
pub use mapping::{MappedMethod, Mapping, MappingError};

/// The way in which a record enters or leaves its method.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    /// The method was entered.
    Enter,
    /// The method returned.
    Exit,
    /// The method was left by an exception.
    Unroll,
}

impl Action {
    /// The action in the low two bits of a record's method word; `None` for 3, which no runtime writes.
    #[inline]
    pub fn from_bits(word: u64) -> Option<Action> {
        // A match would be a jump, which the processor predicts wrongly every other time.
        const ACTIONS: [Option<Action>; 4] =
            [Some(Action::Enter), Some(Action::Exit), Some(Action::Unroll), None];
        ACTIONS[(word & 3) as usize]
    }
}

/// The clocks that a method trace was recorded with: its `clock=` key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ClockMode {
    /// Only the CPU time of each thread.
    ThreadCpu,
    /// Only wall time (`wall`, in old files `global`).
    Wall,
    /// Both clocks. Records of versions 1 to 3 hold thread-CPU time first, records of versions 4 and 5 wall
    /// time.
    Dual,
    /// No clock: the records have an order but no times. Only the always-on tracer writes such files.
    NoTimes,
}

impl ClockMode {
    /// The mode that a `clock=` value names.
    pub fn from_key(value: &str) -> Option<ClockMode> {
        match value {
            "thread-cpu" => Some(ClockMode::ThreadCpu),
            "wall" | "global" => Some(ClockMode::Wall),
            "dual" => Some(ClockMode::Dual),
            _ => None,
        }
    }

    /// The `clock=` value of this mode; `none` for [`ClockMode::NoTimes`].
    pub fn name(self) -> &'static str {
        match self {
            ClockMode::ThreadCpu => "thread-cpu",
            ClockMode::Wall => "wall",
            ClockMode::Dual => "dual",
            ClockMode::NoTimes => "none",
        }
    }

    /// Whether records carry wall time.
    pub fn has_wall(self) -> bool {
        matches!(self, ClockMode::Wall | ClockMode::Dual)
    }

    /// Whether records carry thread-CPU time.
    pub fn has_cpu(self) -> bool {
        matches!(self, ClockMode::ThreadCpu | ClockMode::Dual)
    }
}

/// The little-endian `u16` at offset `at`; `None` where the bytes end before.
pub(crate) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(bytes.get(at..)?.first_chunk().copied()?))
}

/// The little-endian `u32` at offset `at`; `None` where the bytes end before.
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..)?.first_chunk().copied()?))
}

/// The little-endian `u64` at offset `at`; `None` where the bytes end before.
pub(crate) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..)?.first_chunk().copied()?))
}

/// The four bytes that open the binary part: `SLOW`.
pub const MAGIC: &[u8; 4] = b"SLOW";

/// The first bytes of a stream of the always-on tracer behind a header, as packets of Perfetto have it:
/// `SLOW`, and version 6 of a streaming file.
pub const ALWAYS_ON_MAGIC: &[u8; 6] = b"SLOW\xf6\0";

/// The bits that mark a streaming file in the version field.
const STREAMING: u16 = 0xf0;

/// The binary header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DataHeader {
    /// The format's version, 1 to 6, without the streaming bits. 6 is a stream of the always-on tracer's
    /// long-running methods behind a header, as packets of Perfetto have it.
    pub version: u16,
    /// Whether the file was written while the app ran: records alternate with declarations of methods and
    /// threads.
    pub streaming: bool,
    /// The offset of the first record, bytes from the magic.
    pub data_offset: usize,
    /// The start of the trace as written: µs (ns in newer version 4 and 5 files), in a clock that the file
    /// does not name.
    pub start: u64,
    /// The size of a record, bytes; 0 where the file does not state it.
    pub record_size: u16,
    /// The frequency of the counter whose readings [`BlockEncoding::TimeFirst`] has, ticks per second;
    /// 0 in other encodings.
    pub tsc_frequency: u64,
    /// The reading of that counter at the start of the trace, ticks.
    pub start_tsc: u64,
}

/// The reason why the binary header cannot be used. Offsets count from the magic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum DataHeaderError {
    /// The file ends before or inside the header.
    #[error("the file ends inside the binary header ({0} of 32 bytes are there): no records are left")]
    Cut(usize),
    /// The binary part begins with other bytes.
    #[error("the binary part does not begin with SLOW: this is no method trace, or its header was cut out")]
    Magic,
    /// No runtime is known to write this version.
    #[error(
        "the binary header says version {0}, and versions 1 to 6 exist: the bytes behind the text are no records"
    )]
    Version(u16),
    /// The offset of the records points into the header or beyond the end of the file.
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
            4..=6 => Self::parse_v4(bytes, version, streaming).ok_or(cut),
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
        // Only version 3 has the size. Versions 1 and 2 have padding here, or the first record (at offset
        // 16).
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
