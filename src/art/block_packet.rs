//! The packets of versions 4 and 5, and of the always-on tracer: declarations, blocks of records, and what
//! the writer states at the end.
//!
//! AOSP's `runtime/trace.cc` has had three writers under the same version numbers, and
//! `runtime/trace_profile.cc` writes packets of its own: [`PacketForm`] names them. **No real file of any was
//! available**: this module follows the sources.

use thiserror::Error;

use super::block_record::{BlockEncoding, BlockState, CounterTime, next_record};
use super::{u16_at, u32_at, u64_at};
use crate::varint;

/// The forms in which runtimes write packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PacketForm {
    /// The first writer, of 2024: method ids of 32 bits, and the first record of a block in the block's
    /// header, with this number of clocks (1 or 2).
    First {
        /// The number of clocks that records carry.
        clocks: usize,
    },
    /// The later writers of versions 4 and 5: blocks state their size.
    Sized,
    /// The always-on tracer's long-running methods: as [`PacketForm::Sized`], with a calibration of 16 bytes
    /// in place of a summary.
    LongRunning,
    /// The always-on tracer's file of all methods: blocks have no size, but `padding` bytes behind the number
    /// of records, which are not initialised.
    AllMethods {
        /// The number of these bytes: 4, or 0 in files that begin with `TMOL`.
        padding: usize,
    },
}

/// One packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockPacket<'a> {
    /// A thread's id and name.
    Thread(u32, &'a [u8]),
    /// A method: its id as records have it, then class, name, signature and file, separated by tabs.
    Method(u64, &'a [u8]),
    /// Records of a thread.
    Entries(EntriesPacket<'a>),
    /// The text section.
    Summary(&'a [u8]),
    /// Readings of the counter and of CLOCK_MONOTONIC, one right after the other, both in ns.
    Calibration {
        /// The counter, converted to ns.
        counter_ns: u64,
        /// CLOCK_MONOTONIC, ns.
        monotonic_ns: u64,
    },
}

/// Records of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntriesPacket<'a> {
    /// The thread's kernel id.
    pub thread: u32,
    /// The number of records as the runtime states it: in [`PacketForm::Sized`] modulo 65,536 and summed over
    /// the blocks of one flush, in [`PacketForm::First`] modulo 65,536 and without the record in the header.
    pub stated_records: u32,
    /// The bytes of the records, as far as they are there. In [`PacketForm::First`] they begin with the first
    /// record, the number of records and their size, from the header.
    pub entries: &'a [u8],
    /// Whether the end of the file cuts off the block.
    pub is_cut: bool,
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
pub fn next_block_packet(
    bytes: &[u8],
    form: PacketForm,
) -> Option<Result<(BlockPacket<'_>, usize), BlockError>> {
    let kind = *bytes.first()?;
    Some(match (kind, form) {
        (0..=3, _) => read_packet(kind, bytes, form).ok_or(BlockError::Cut),
        _ => Err(BlockError::Kind(kind)),
    })
}

/// The offset up to which `bytes` are whole packets of this form.
pub fn end_of_whole_packets(bytes: &[u8], form: PacketForm) -> usize {
    let mut at = 0;
    while let Some(Ok((packet, len))) = bytes.get(at..).and_then(|rest| next_block_packet(rest, form)) {
        if matches!(packet, BlockPacket::Entries(EntriesPacket { is_cut: true, .. })) {
            break;
        }
        at += len;
    }
    at
}

fn read_packet(kind: u8, bytes: &[u8], form: PacketForm) -> Option<(BlockPacket<'_>, usize)> {
    let text = |from: usize, len: u16| {
        let end = from + usize::from(len);
        bytes.get(from..end).map(|text| (text, end))
    };
    match (kind, form) {
        (0, _) => {
            let (name, end) = text(7, u16_at(bytes, 5)?)?;
            Some((BlockPacket::Thread(u32_at(bytes, 1)?, name), end))
        }
        (1, PacketForm::First { .. }) => {
            let (line, end) = text(7, u16_at(bytes, 5)?)?;
            Some((BlockPacket::Method(u64::from(u32_at(bytes, 1)?) << 2, line), end))
        }
        (1, _) => {
            let (line, end) = text(11, u16_at(bytes, 9)?)?;
            Some((BlockPacket::Method(u64_at(bytes, 1)?, line), end))
        }
        (2, PacketForm::First { clocks }) => first_form_block(bytes, clocks),
        (2, PacketForm::Sized | PacketForm::LongRunning) => {
            let size = u32_at(bytes, 8)? as usize;
            let rest = bytes.get(12..)?;
            let entries = &rest[..size.min(rest.len())];
            Some(block(bytes, 12 + entries.len(), entries, size > rest.len()))
        }
        (2, PacketForm::AllMethods { padding }) => {
            let stated_records = u24_at(bytes, 5)?;
            let rest = bytes.get(8 + padding..)?;
            let ends = rest.iter().enumerate().filter(|(_, byte)| varint::is_last(**byte));
            let end = match stated_records.checked_sub(1) {
                None => Some(0),
                Some(last) => ends.map(|(n, _)| n + 1).nth(last as usize),
            };
            let entries = &rest[..end.unwrap_or(rest.len())];
            Some(block(bytes, 8 + padding + entries.len(), entries, end.is_none()))
        }
        (_, PacketForm::LongRunning | PacketForm::AllMethods { .. }) => {
            let counter_ns = u64_at(bytes, 1)?;
            let monotonic_ns = u64_at(bytes, 9)?;
            Some((BlockPacket::Calibration { counter_ns, monotonic_ns }, 17))
        }
        _ => {
            let (summary, end) = text(3, u16_at(bytes, 1)?)?;
            Some((BlockPacket::Summary(summary), end))
        }
    }
}

/// The packet of a block that takes `len` of `bytes`.
fn block<'a>(bytes: &'a [u8], len: usize, entries: &'a [u8], is_cut: bool) -> (BlockPacket<'a>, usize) {
    let thread = u32_at(bytes, 1).unwrap_or_default();
    let stated_records = u24_at(bytes, 5).unwrap_or_default();
    (BlockPacket::Entries(EntriesPacket { thread, stated_records, entries, is_cut }), len)
}

fn u24_at(bytes: &[u8], at: usize) -> Option<u32> {
    let [a, b, c] = *bytes.get(at..)?.first_chunk()?;
    Some(u32::from_le_bytes([a, b, c, 0]))
}

/// A block of [`PacketForm::First`]. Its header has 16 bits for the number of the records and for their size,
/// and a full buffer of the runtime has more of both: the block ends where both agree modulo 65,536.
fn first_form_block(bytes: &[u8], clocks: usize) -> Option<(BlockPacket<'_>, usize)> {
    let header = 13 + 4 * clocks;
    let thread = u32_at(bytes, 1)?;
    let count = u16_at(bytes, header - 4)?;
    let size = u16_at(bytes, header - 2)?;
    let rest = bytes.get(header..)?;
    let agrees =
        |numbers: usize| numbers.is_multiple_of(1 + clocks) && (numbers / (1 + clocks)) as u16 == count;
    let mut numbers = 0;
    let mut counted = 0;
    let mut found = None;
    for end in (usize::from(size)..=rest.len()).step_by(1 << 16) {
        numbers += varint::count(&rest[counted..end]) as usize;
        counted = end;
        let is_whole = end == 0 || varint::is_last(rest[end - 1]);
        if is_whole && agrees(numbers) && may_be_packet(&rest[end..]) {
            found = Some(end);
            break;
        }
    }
    let end = header + found.unwrap_or(rest.len());
    let stated_records = u32::from(count);
    let is_cut = found.is_none();
    let packet = EntriesPacket { thread, stated_records, entries: &bytes[5..end], is_cut };
    Some((BlockPacket::Entries(packet), end))
}

/// The largest thread id that a kernel gives (`PID_MAX_LIMIT`).
pub const MAX_TID: u32 = 1 << 22;

/// Whether the end of the file, or what may be a packet of [`PacketForm::First`], cut off or not, is at the
/// start of `bytes`.
fn may_be_packet(bytes: &[u8]) -> bool {
    let is_tid = || u32_at(bytes, 1).is_none_or(|tid| (1..=MAX_TID).contains(&tid));
    let text = |at: usize| bytes.get(at..at + usize::from(u16_at(bytes, at - 2)?));
    match bytes.first() {
        None => true,
        Some(0 | 2) => is_tid(),
        Some(1) => text(7).is_none_or(|line| line.ends_with(b"\n")),
        Some(3) => text(3).is_none_or(|text| text.starts_with(b"*version")),
        Some(_) => false,
    }
}

/// The first bytes of the first version's files of all methods, before a version of two bytes.
const FIRST_VERSION_MAGIC: &[u8] = b"TMOL";

/// The most records of one block: the tracer's buffer has so many words.
const MAX_RECORDS: u32 = 2_048;

/// The longest LEB128 number of 64 bits, bytes.
const MAX_NUMBER_LEN: u32 = 10;

/// No method lies below this address.
const MIN_METHOD: u64 = 0x1000;

/// The length of a calibration packet, bytes.
const CALIBRATION_LEN: usize = 17;

/// The form of the packets of a file that the always-on tracer wrote, and the offset of the first packet;
/// `None` for other files.
pub fn always_on_form(bytes: &[u8]) -> Option<(PacketForm, usize)> {
    if bytes.starts_with(FIRST_VERSION_MAGIC) {
        return Some((
            PacketForm::AllMethods { padding: 0 },
            (FIRST_VERSION_MAGIC.len() + 2).min(bytes.len()),
        ));
    }
    let long_running = (PacketForm::LongRunning, 0);
    let packets = match bytes.first()? {
        2 => bytes,
        3 => {
            let is_time = |at| u64_at(bytes, at).is_some_and(|ns| ns < 1 << 62);
            let rest = bytes.get(CALIBRATION_LEN..).filter(|_| is_time(1) && is_time(9))?;
            let is_method =
                |(packet, _)| matches!(packet, BlockPacket::Method(_, line) if is_method_line(line));
            let next = next_block_packet(rest, PacketForm::LongRunning).and_then(Result::ok);
            if rest.is_empty() || next.is_some_and(is_method) {
                return Some(long_running);
            }
            rest
        }
        _ => return None,
    };
    let forms = [long_running, (PacketForm::AllMethods { padding: 4 }, 0)];
    forms.into_iter().find(|(form, _)| begins_with_records(packets, *form))
}

fn is_method_line(line: &[u8]) -> bool {
    line.ends_with(b"\n") && line.iter().filter(|byte| **byte == b'\t').count() == 3
}

/// Whether blocks are at the start of `bytes` of which the first that is not empty holds records.
fn begins_with_records(bytes: &[u8], form: PacketForm) -> bool {
    let mut at = 0;
    while let Some(Ok((BlockPacket::Entries(block), len))) =
        bytes.get(at..).and_then(|rest| next_block_packet(rest, form))
    {
        if !(1..=MAX_TID).contains(&block.thread) || block.stated_records > MAX_RECORDS {
            return false;
        }
        if block.stated_records > 0 {
            let size = u32_at(bytes, at + 8).filter(|_| form == PacketForm::LongRunning);
            return holds_records(&block, size, form);
        }
        if !block.entries.is_empty() {
            return false;
        }
        at += len;
    }
    false
}

/// Whether a block has as many records as it states, or is cut off and agrees so far. `size` is the size that
/// it states, bytes.
fn holds_records(block: &EntriesPacket<'_>, size: Option<u32>, form: PacketForm) -> bool {
    let time = CounterTime { start: 0, ns: 1, ticks: 1 };
    let encoding = match form {
        PacketForm::LongRunning => BlockEncoding::LongRunning { time, in_ticks: false },
        _ => BlockEncoding::AllMethods,
    };
    let bytes_of_all = block.stated_records..=2 * MAX_NUMBER_LEN * block.stated_records;
    if size.is_some_and(|size| !bytes_of_all.contains(&size)) {
        return false;
    }
    let mut rest = block.entries;
    let mut state = BlockState::default();
    let mut records = 0;
    while records < block.stated_records
        && let Some(record) = next_record(&mut rest, encoding, &mut state)
    {
        // The method of an exit is not known where its call is not open.
        if record.word & 3 == 0 && record.word < MIN_METHOD {
            return false;
        }
        records += 1;
    }
    let is_whole = records == block.stated_records && rest.is_empty();
    is_whole || block.is_cut && (records > 0 || size.is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_without_a_header_are_recognized_by_their_first_block() {
        let long_running = [
            2, 0x34, 0x12, 0, 0, 2, 0, 0, 16, 0, 0, 0, 0x80, 0xb1, 0xd0, 0xba, 7, 0x80, 0xa0, 0x80, 0x80,
            0x80, 14, 0x81, 0x90, 0xbc, 0xfd, 2,
        ];
        let empty = [2, 0x33, 0x12, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        let calibration = [&[3][..], &[7; 7], &[0], &[9; 7], &[0]].concat();
        let all_methods =
            [2, 0x34, 0x12, 0, 0, 2, 0, 0, 0xaa, 0xbb, 0xcc, 0xdd, 0x80, 0xa0, 0x80, 0x80, 0x80, 14, 1];
        let method = b"\x01\x00\x10\0\0\x70\0\0\0\x0f\0a.B\tc\t()V\tF.kt\n";
        let form = |bytes: &[&[u8]]| always_on_form(&bytes.concat());
        let found = Some((PacketForm::LongRunning, 0));
        assert_eq!(form(&[&long_running]), found);
        assert_eq!(form(&[&empty, &calibration[..0], &long_running, &calibration]), found);
        assert_eq!(form(&[&calibration, &long_running]), found);
        assert_eq!(form(&[&calibration]), found, "no method took long");
        assert_eq!(form(&[&calibration, method]), found);
        assert_eq!(form(&[&long_running[..20]]), found, "cut");
        assert_eq!(form(&[&all_methods]), Some((PacketForm::AllMethods { padding: 4 }, 0)));
        assert_eq!(form(&[b"TMOL\x01\0"]), Some((PacketForm::AllMethods { padding: 0 }, 6)));
        for other in [&b"\x02hello, hello, hello, hello"[..], b"\x03\x02\x01", &empty, b"", b"\x02", &[2; 99]]
        {
            assert_eq!(form(&[other]), None, "{other:?}");
        }
    }
}
