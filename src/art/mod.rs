//! The bytes of ART's and Dalvik's method traces: headers, records, packets. All decoders are pure functions
//! over `&[u8]`.
//!
//! The formats are those of AOSP art `runtime/trace.h` and `runtime/trace.cc` (versions 1 to 5, the
//! `*version` text and the streaming form), of `runtime/trace_profile.cc` (the always-on tracer), and of
//! dalvik `vm/Profile.cpp` for files of older devices.
//! Everything is little-endian.

mod block_packet;
mod block_record;
mod data;
mod fixed;
mod key;
mod mapping;

pub(crate) use block_packet::{
    BlockPacket, EntriesPacket, PacketForm, always_on_form, end_of_whole_packets, next_block_packet,
};
pub(crate) use block_record::{BlockEncoding, BlockRecord, BlockState, CounterTime, next_record};
pub use data::DataHeaderError;
pub(crate) use data::{ALWAYS_ON_MAGIC, DataHeader, MAGIC};
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
