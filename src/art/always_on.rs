//! Recognizes the files of the always-on tracer (AOSP art `runtime/trace_profile.cc`), which begin with a
//! packet, and not with a header.

use super::block_packet::{BlockPacket, EntriesPacket, MAX_TID, PacketForm, next_block_packet};
use super::block_record::{BlockEncoding, BlockState, CounterTime, next_record};
use super::{u32_at, u64_at};

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
pub fn form_of(bytes: &[u8]) -> Option<(PacketForm, usize)> {
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
    let (mut rest, mut state, mut records) = (block.entries, BlockState::default(), 0);
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
        let form = |bytes: &[&[u8]]| form_of(&bytes.concat());
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
