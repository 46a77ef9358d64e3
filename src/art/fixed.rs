//! Records of fixed size: versions 1 to 3.

use thiserror::Error;

use super::{Action, ClockMode, u16_at, u32_at};

/// The layout of one record's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordLayout {
    /// Version 1: `u8` thread, `u32` method and action, `u32` µs.
    Narrow,
    /// Versions 2 and 3: `u16` thread, `u32` method and action, `u32` µs.
    Single,
    /// [`RecordLayout::Single`] with 4 bytes of filler at the end: streaming files with one clock of ART 5
    /// to 13. Their header states 10 bytes, but `Trace::LogMethodTraceEvent` writes its whole buffer of 14.
    SingleWithFiller,
    /// Version 3 with two clocks: `u16` thread, `u32` method and action, `u32` thread-CPU µs, `u32` wall
    /// µs.
    Dual,
}

impl RecordLayout {
    /// The layout for the stated record size; where the file states 0, the layout that runtimes use for
    /// this version and clock. `None` for a size that no layout has.
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
            RecordLayout::SingleWithFiller | RecordLayout::Dual => 14,
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

    /// Decodes a record of [`RecordLayout::SingleWithFiller`].
    #[inline]
    pub fn single_with_filler(b: &[u8; 14]) -> FixedRecord {
        FixedRecord { second: 0, ..FixedRecord::dual(b) }
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

/// The number at a fixed offset of a record, which lies inside of the record: the compiler removes the
/// check.
#[inline(always)]
fn number(record: &[u8], at: usize) -> u32 {
    u32_at(record, at).unwrap_or_default()
}

/// One element of a streaming file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Packet<'a> {
    /// Consecutive records, by their size in bytes. They end at the next declaration, or with the last
    /// whole record of the file.
    Records(usize),
    /// A method, declared by a line like those of the method list.
    Method(&'a [u8]),
    /// A thread's id and name.
    Thread(u16, &'a [u8]),
    /// The text section, which ends the file.
    Summary(&'a [u8]),
}

/// The reason why no further element can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum PacketError {
    /// The file ends inside a declaration or record.
    #[error("the file ends in the middle of a record or declaration")]
    Cut,
    /// A declaration with an unknown code has an unknown length, so nothing behind it can be read.
    #[error("no runtime writes declarations with code {0} (1 method, 2 thread, 3 summary)")]
    Code(u8),
}

/// Reads the element at the start of `bytes` and returns it with its length in bytes; `None` at the end of
/// the file.
pub fn next_packet(bytes: &[u8], layout: RecordLayout) -> Option<Result<(Packet<'_>, usize), PacketError>> {
    if bytes.is_empty() {
        return None;
    }
    let run = records_run(bytes, layout);
    if run > 0 {
        return Some(Ok((Packet::Records(run), run)));
    }
    Some(declaration(bytes, layout))
}

/// The size in bytes of the whole records before the first thread id 0. That id marks a declaration.
fn records_run(bytes: &[u8], layout: RecordLayout) -> usize {
    let size = layout.size();
    let records = bytes.len() / size * size;
    let marks = |record: &[u8]| record[0] == 0 && (layout == RecordLayout::Narrow || record[1] == 0);
    bytes.chunks_exact(size).position(marks).map_or(records, |n| n * size)
}

fn declaration(bytes: &[u8], layout: RecordLayout) -> Result<(Packet<'_>, usize), PacketError> {
    let id_size = if layout == RecordLayout::Narrow { 1 } else { 2 };
    if bytes.len() < id_size || bytes[..id_size].iter().any(|b| *b != 0) {
        return Err(PacketError::Cut);
    }
    let code = *bytes.get(id_size).ok_or(PacketError::Cut)?;
    let at = id_size + 1;
    let text = |from: usize, len: usize| -> Result<&[u8], PacketError> {
        let end = from.checked_add(len).ok_or(PacketError::Cut)?;
        bytes.get(from..end).ok_or(PacketError::Cut)
    };
    let u16_here = |at: usize| u16_at(bytes, at).ok_or(PacketError::Cut);
    let (packet, body, from) = match code {
        1 => {
            let line = text(at + 2, usize::from(u16_here(at)?))?;
            (Packet::Method(line), line, at + 2)
        }
        2 => {
            let name = text(at + 4, usize::from(u16_here(at + 2)?))?;
            (Packet::Thread(u16_here(at)?, name), name, at + 4)
        }
        3 => {
            let len = u32_at(bytes, at).ok_or(PacketError::Cut)?;
            let summary = text(at + 4, usize::try_from(len).map_err(|_| PacketError::Cut)?)?;
            (Packet::Summary(summary), summary, at + 4)
        }
        other => return Err(PacketError::Code(other)),
    };
    Ok((packet, from + body.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_layout_has_its_fields_at_its_own_offsets() {
        let narrow = FixedRecord::narrow(&[7, 9, 0, 0, 0, 5, 0, 0, 0]);
        assert_eq!(narrow, FixedRecord { thread: 7, word: 9, first: 5, second: 0 });
        let single = FixedRecord::single(&[1, 2, 9, 0, 0, 0, 5, 0, 0, 0]);
        assert_eq!(single, FixedRecord { thread: 0x201, word: 9, first: 5, second: 0 });
        let dual = FixedRecord::dual(&[1, 2, 9, 0, 0, 0, 5, 0, 0, 0, 6, 0, 0, 0]);
        assert_eq!(dual, FixedRecord { thread: 0x201, word: 9, first: 5, second: 6 });
        assert_eq!((dual.method(), dual.action()), (8, Some(Action::Exit)));
        assert_eq!((dual.times(ClockMode::Dual), single.times(ClockMode::Wall)), ([5, 6], [0, 5]));
    }

    #[test]
    fn the_size_of_a_record_decides_its_layout_and_the_version_where_there_is_none() {
        assert_eq!(RecordLayout::choose(3, 10, Some(ClockMode::Dual)), Some(RecordLayout::Single));
        assert_eq!(RecordLayout::choose(1, 0, None), Some(RecordLayout::Narrow));
        assert_eq!(RecordLayout::choose(3, 0, Some(ClockMode::Dual)), Some(RecordLayout::Dual));
        assert_eq!(RecordLayout::choose(3, 11, None), None);
    }

    fn packets(mut bytes: &[u8]) -> (Vec<Packet<'_>>, Option<PacketError>) {
        let mut all = Vec::new();
        while let Some(next) = next_packet(bytes, RecordLayout::Single) {
            match next {
                Ok((packet, len)) => {
                    all.push(packet);
                    bytes = &bytes[len..];
                }
                Err(error) => return (all, Some(error)),
            }
        }
        (all, None)
    }

    #[test]
    fn declarations_stand_between_runs_of_records() {
        let record = [7, 0, 4, 0, 0, 0, 1, 0, 0, 0];
        let method = b"\0\0\x01\x03\0abc";
        let thread = b"\0\0\x02\x07\0\x04\0main";
        let summary = b"\0\0\x03\x02\0\0\0xy";
        let stream = [&record[..], &record, method, thread, &record, summary].concat();
        let expected = [
            Packet::Records(20),
            Packet::Method(b"abc"),
            Packet::Thread(7, b"main"),
            Packet::Records(10),
            Packet::Summary(b"xy"),
        ];
        assert_eq!(packets(&stream), (expected.to_vec(), None));
        for cut in 1..stream.len() {
            let (found, error) = packets(&stream[..cut]);
            let is_end = [10, 20, 28, 39, 49].contains(&cut);
            assert_eq!(error.is_none(), is_end, "cut at {cut}: {found:?}");
        }
        assert_eq!(packets(b"\0\0\x09").1, Some(PacketError::Code(9)));
    }
}
