//! Versions 4 and 5, streaming or not: packets, and blocks of records whose fields are differences of
//! variable length.
//!
//! Two encodings exist under the same version numbers. AOSP's `runtime/trace.cc` has written
//! [`BlockEncoding::Aosp`] since June 2024. Perfetto's importer of March 2026 reads [`BlockEncoding::Tsc`]; a
//! header that states the frequency of a counter marks this encoding. **No real file of either was
//! available**: this module follows the sources.

use thiserror::Error;

use super::{u16_at, u32_at, u64_at};

/// The encoding of the records of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockEncoding {
    /// A signed difference of the method word, then unsigned differences of wall time and CPU time, where
    /// present.
    Aosp {
        /// Whether records carry wall time.
        wall: bool,
        /// Whether records carry CPU time.
        cpu: bool,
    },
    /// A signed difference of counter and action; with two clocks a difference of CPU time; in records that
    /// enter a method also a difference of the method.
    Tsc {
        /// Whether records also carry CPU time.
        cpu: bool,
        /// Frequency of the counter, ticks per second.
        frequency: u64,
        /// The counter at the start of the trace, ticks.
        start: u64,
    },
}

/// One packet of a version 4 or 5 file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockPacket<'a> {
    /// A thread's id and name.
    Thread(u32, &'a [u8]),
    /// A method: its id, then class, name, signature and file, separated by tabs.
    Method(u64, &'a [u8]),
    /// Records of a thread: the thread id, the number of records that the runtime states (modulo 65,536,
    /// summed over the blocks of one flush), and the bytes of the records.
    Entries(u32, u32, &'a [u8]),
    /// The text section.
    Summary(&'a [u8]),
}

/// The reason why no further packet can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum BlockError {
    /// The file ends inside a packet.
    #[error("the file ends in the middle of a packet")]
    Cut,
    /// A packet of an unknown kind has an unknown length, so nothing behind it can be read.
    #[error("no runtime writes packets of kind {0} (0 thread, 1 method, 2 entries, 3 summary)")]
    Kind(u8),
}

/// Reads the packet at the start of `bytes` and returns it with its length; `None` at the end of the file. If
/// the end of the file cuts off a block of records, the packet holds the bytes that are there.
pub fn next_block_packet(bytes: &[u8]) -> Option<Result<(BlockPacket<'_>, usize), BlockError>> {
    let kind = *bytes.first()?;
    Some(read_packet(kind, bytes))
}

fn read_packet(kind: u8, bytes: &[u8]) -> Result<(BlockPacket<'_>, usize), BlockError> {
    let cut = BlockError::Cut;
    let text = |from: usize, len: u16| {
        let end = from + usize::from(len);
        bytes.get(from..end).map(|text| (text, end)).ok_or(cut)
    };
    match kind {
        0 => {
            let (name, end) = text(7, u16_at(bytes, 5).ok_or(cut)?)?;
            Ok((BlockPacket::Thread(u32_at(bytes, 1).ok_or(cut)?, name), end))
        }
        1 => {
            let (line, end) = text(11, u16_at(bytes, 9).ok_or(cut)?)?;
            Ok((BlockPacket::Method(u64_at(bytes, 1).ok_or(cut)?, line), end))
        }
        2 => {
            let thread = u32_at(bytes, 1).ok_or(cut)?;
            let count = u32_at(bytes, 5).ok_or(cut)? & 0xff_ffff;
            let size = u32_at(bytes, 8).ok_or(cut)? as usize;
            let rest = bytes.get(12..).ok_or(cut)?;
            let entries = &rest[..size.min(rest.len())];
            Ok((BlockPacket::Entries(thread, count, entries), 12 + entries.len()))
        }
        3 => {
            let (summary, end) = text(3, u16_at(bytes, 1).ok_or(cut)?)?;
            Ok((BlockPacket::Summary(summary), end))
        }
        other => Err(BlockError::Kind(other)),
    }
}

/// Whether `packet` is a block of records that is cut off at the end of `bytes`, from which it was read.
pub fn is_cut(bytes: &[u8], packet: &BlockPacket<'_>) -> bool {
    matches!(packet, BlockPacket::Entries(_, _, entries) if u32_at(bytes, 8).is_some_and(|n| n as usize > entries.len()))
}

/// The number of records in a block of [`BlockEncoding::Aosp`], counted in its bytes.
pub fn count_aosp(entries: &[u8], wall: bool, cpu: bool) -> u64 {
    let numbers = entries.iter().filter(|b| **b & 0x80 == 0).count() as u64;
    numbers / (1 + u64::from(wall) + u64::from(cpu))
}

/// The values to which a thread's next differences are added: zero at the start of a block, unless the block
/// continues the previous one.
#[derive(Debug, Clone, Default)]
pub struct BlockState {
    word: i64,
    wall: u64,
    cpu: u64,
    method: u64,
    stack: Vec<u64>,
}

impl BlockState {
    /// Starts a new block. Open calls stay, because a record of [`BlockEncoding::Tsc`] that ends a call names
    /// no method.
    pub fn restart(&mut self) {
        (self.word, self.wall, self.cpu, self.method) = (0, 0, 0, 0);
    }
}

/// One record of versions 4 and 5.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockRecord {
    /// Method word: the method id, with the action in the lowest two bits.
    pub word: u64,
    /// Wall time since the start of the trace, in the file's unit (ns for [`BlockEncoding::Tsc`]); 0 where
    /// absent.
    pub wall: u64,
    /// CPU time, in the file's unit; 0 where absent.
    pub cpu: u64,
}

/// Decodes the next record and removes its bytes from `entries`; `None` at the end. Bytes that then remain in
/// `entries` are an incomplete record.
#[inline]
pub fn next_record(
    entries: &mut &[u8],
    encoding: BlockEncoding,
    state: &mut BlockState,
) -> Option<BlockRecord> {
    let mut rest = *entries;
    let record = match encoding {
        BlockEncoding::Aosp { wall, cpu } => {
            let word = state.word.wrapping_add(sleb(&mut rest)?);
            let wall_step = if wall { uleb(&mut rest)? } else { 0 };
            let cpu_step = if cpu { uleb(&mut rest)? } else { 0 };
            state.word = word;
            state.wall = state.wall.wrapping_add(wall_step);
            state.cpu = state.cpu.wrapping_add(cpu_step);
            BlockRecord { word: word as u64, wall: state.wall, cpu: state.cpu }
        }
        BlockEncoding::Tsc { cpu, frequency, start } => {
            let word = state.word.wrapping_add(sleb(&mut rest)?);
            let cpu_step = if cpu { sleb(&mut rest)? } else { 0 };
            let action = word as u64 & 3;
            let method = match action {
                0 => state.method.wrapping_add(sleb(&mut rest)? as u64),
                _ => state.stack.last().copied().unwrap_or(0),
            };
            if action == 0 {
                state.method = method;
                state.stack.push(method);
            } else {
                state.stack.pop();
            }
            state.word = word;
            state.cpu = state.cpu.wrapping_add(cpu_step as u64);
            let ticks = u128::from((word as u64 >> 2).saturating_sub(start));
            let wall = (ticks * 1_000_000_000).checked_div(u128::from(frequency)).unwrap_or(0) as u64;
            BlockRecord { word: method & !3 | action, wall, cpu: state.cpu }
        }
    };
    *entries = rest;
    Some(record)
}

/// Decodes an unsigned LEB128 number and removes it from `bytes`.
#[inline]
fn uleb(bytes: &mut &[u8]) -> Option<u64> {
    leb(bytes).map(|(value, _, _)| value)
}

/// Decodes a signed LEB128 number and removes it from `bytes`.
#[inline]
fn sleb(bytes: &mut &[u8]) -> Option<i64> {
    let (value, bits, last) = leb(bytes)?;
    let negative = last & 0x40 != 0 && bits < 64;
    Some(if negative { value | u64::MAX << bits } else { value } as i64)
}

/// Decodes a LEB128 number and removes it from `bytes`. Returns its value, the number of its bits, and its
/// last byte. Drops bits beyond the 64th.
#[inline]
fn leb(bytes: &mut &[u8]) -> Option<(u64, u32, u8)> {
    let mut value = 0;
    let mut bits = 0;
    for (n, byte) in bytes.iter().enumerate() {
        if bits < 64 {
            value |= u64::from(byte & 0x7f) << bits;
            bits += 7;
        }
        if byte & 0x80 == 0 {
            *bytes = &bytes[n + 1..];
            return Some((value, bits, *byte));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leb128_numbers_of_both_signs() {
        let mut bytes: &[u8] = &[0xe5, 0x8e, 0x26, 0x9b, 0xf1, 0x59, 0x7f, 0x80];
        assert_eq!(uleb(&mut bytes), Some(624_485));
        assert_eq!(sleb(&mut bytes), Some(-624_485));
        assert_eq!(sleb(&mut bytes), Some(-1));
        assert_eq!(uleb(&mut bytes), None);
    }
}
