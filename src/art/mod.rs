//! ART's and Dalvik's method-trace bytes: headers, records, packets. Pure functions over `&[u8]`.
//!
//! The formats are those of AOSP art `runtime/trace.h` and `runtime/trace.cc` (versions 1 to 3, the `*version` text and
//! the streaming form), and dalvik `vm/Profile.cpp` for what older devices wrote. Everything is little-endian.

mod block;
mod data;
mod fixed;
mod key;
#[cfg(feature = "host")]
mod mapping;
mod packet;

pub use block::{
    BlockError, BlockPacket, BlockRecord, BlockState, Encoding, count_aosp, is_cut, next_block_packet,
    next_record,
};
pub use data::{DataHeader, DataHeaderError, MAGIC};
pub use fixed::{Fixed, RecordLayout};
pub use key::{KeySection, MethodLine, parse_method_line};
#[cfg(feature = "host")]
pub use mapping::{Mapped, Mapping, MappingError};
pub use packet::{Packet, PacketError, next_packet};

/// What a record says happened to its method.
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
        match word & 3 {
            0 => Some(Action::Enter),
            1 => Some(Action::Exit),
            2 => Some(Action::Unroll),
            _ => None,
        }
    }
}

/// Which clocks a method trace was recorded with: its `clock=` key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ClockMode {
    /// CPU time of each thread alone.
    ThreadCpu,
    /// Wall time alone (`wall`; `global` in old files).
    Wall,
    /// Both: in versions 1 to 3 thread-CPU time first, in 4 and 5 wall time first.
    Dual,
}

impl ClockMode {
    /// The mode behind a `clock=` value.
    pub fn from_key(value: &str) -> Option<ClockMode> {
        match value {
            "thread-cpu" => Some(ClockMode::ThreadCpu),
            "wall" | "global" => Some(ClockMode::Wall),
            "dual" => Some(ClockMode::Dual),
            _ => None,
        }
    }

    /// The `clock=` value of this mode.
    pub fn name(self) -> &'static str {
        match self {
            ClockMode::ThreadCpu => "thread-cpu",
            ClockMode::Wall => "wall",
            ClockMode::Dual => "dual",
        }
    }

    /// Whether records carry wall time.
    pub fn has_wall(self) -> bool {
        self != ClockMode::ThreadCpu
    }

    /// Whether records carry thread-CPU time.
    pub fn has_cpu(self) -> bool {
        self != ClockMode::Wall
    }
}

/// A `u16` at `at`, where the bytes reach that far.
pub(crate) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(bytes.get(at..)?.first_chunk().copied()?))
}

/// A `u32` at `at`, where the bytes reach that far.
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..)?.first_chunk().copied()?))
}

/// A `u64` at `at`, where the bytes reach that far.
pub(crate) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..)?.first_chunk().copied()?))
}
