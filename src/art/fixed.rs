//! Records of fixed size: versions 1 to 3.

use super::{Action, ClockMode, u16_at, u32_at};

/// The layout of one record's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordLayout {
    /// Version 1: `u8` thread, `u32` method and action, `u32` µs.
    Narrow,
    /// Versions 2 and 3: `u16` thread, `u32` method and action, `u32` µs.
    Single,
    /// Version 3 with two clocks: `u16` thread, `u32` method and action, `u32` thread-CPU µs, `u32` wall µs.
    Dual,
}

impl RecordLayout {
    /// The layout for the stated record size; where the file states 0, the layout that runtimes use for this
    /// version and clock. `None` for a size that no layout has.
    pub fn choose(version: u16, record_size: u16, clock: Option<ClockMode>) -> Option<RecordLayout> {
        match (record_size, version, clock) {
            (9, _, _) | (0, 1, _) => Some(RecordLayout::Narrow),
            (10, _, _) | (0, 2, _) => Some(RecordLayout::Single),
            (14, _, _) | (0, 3, Some(ClockMode::Dual)) => Some(RecordLayout::Dual),
            (0, 3, _) => Some(RecordLayout::Single),
            _ => None,
        }
    }

    /// The size of a record, bytes.
    pub fn size(self) -> usize {
        match self {
            RecordLayout::Narrow => 9,
            RecordLayout::Single => 10,
            RecordLayout::Dual => 14,
        }
    }
}

/// One record of versions 1 to 3 as written. Times are 32-bit µs, which wrap after 71.6 minutes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FixedRecord {
    /// The thread's id in this trace.
    pub thread: u16,
    /// Method word: the method id, with the action in the lowest two bits.
    pub word: u32,
    /// The first time of a record, or the only one, µs.
    pub first: u32,
    /// The second time of [`RecordLayout::Dual`], µs; 0 in other layouts.
    pub second: u32,
}

impl FixedRecord {
    /// Decodes a record of [`RecordLayout::Narrow`].
    #[inline]
    pub fn narrow(b: &[u8; 9]) -> FixedRecord {
        FixedRecord { thread: u16::from(b[0]), word: number(b, 1), first: number(b, 5), second: 0 }
    }

    /// Decodes a record of [`RecordLayout::Single`].
    #[inline]
    pub fn single(b: &[u8; 10]) -> FixedRecord {
        FixedRecord { thread: thread(b), word: number(b, 2), first: number(b, 6), second: 0 }
    }

    /// Decodes a record of [`RecordLayout::Dual`].
    #[inline]
    pub fn dual(b: &[u8; 14]) -> FixedRecord {
        FixedRecord { thread: thread(b), word: number(b, 2), first: number(b, 6), second: number(b, 10) }
    }

    /// The record's thread-CPU time and wall time, µs; 0 for a clock that the trace does not have.
    #[inline(always)]
    pub fn times(&self, clock: ClockMode) -> [u32; 2] {
        match clock {
            ClockMode::ThreadCpu => [self.first, 0],
            ClockMode::Wall => [0, self.first],
            ClockMode::Dual => [self.first, self.second],
            ClockMode::NoTimes => [0, 0],
        }
    }

    /// The action; `None` for one that no runtime writes.
    #[inline]
    pub fn action(&self) -> Option<Action> {
        Action::from_bits(u64::from(self.word))
    }

    /// The method id as the method list writes it.
    #[inline]
    pub fn method(&self) -> u32 {
        self.word & !3
    }
}

/// The thread's id at the start of a record.
#[inline(always)]
fn thread(record: &[u8]) -> u16 {
    u16_at(record, 0).unwrap_or_default()
}

/// The number at a fixed offset of a record, which lies inside of the record: the compiler removes the check.
#[inline(always)]
fn number(record: &[u8], at: usize) -> u32 {
    u32_at(record, at).unwrap_or_default()
}
