//! A record of a ring: its words, encoded and decoded. The decoder takes every number for a claim.
//!
//! | word | holds |
//! | --- | --- |
//! | 0 | bits 0–15 length in words, 16–23 kind, 24–31 check, 32–47 bytes of the track, 48–63 of the name |
//! | 1 | the time in the clock that the recorder asked for |
//! | 2 | the number, in kinds that have one |
//! | then | the track and the name, each filled up to a whole word |

use std::fmt;

use super::MAX_NAME_BYTES;
use crate::Marker;

/// The kind of the record with which a thread begins to use a block. Its number is the thread id, and in the
/// upper half the block's count of dropped markers. Its name is the thread's.
pub const THREAD: u8 = b'T';

/// The longest record, in words.
pub const MAX_RECORD_WORDS: usize = 3 + 2 * MAX_NAME_BYTES.div_ceil(8);

/// Whether records of this kind have a number.
#[inline(always)]
pub const fn has_number(kind: u8) -> bool {
    matches!(kind, b'S' | b'F' | b'C' | b'G' | b'H' | THREAD)
}

/// The words of a record without its names.
#[inline(always)]
pub const fn fixed_words(kind: u8) -> usize {
    2 + has_number(kind) as usize
}

/// Word 0 of a record.
#[inline(always)]
pub const fn first_word(kind: u8, words: usize, track: usize, name: usize) -> u64 {
    words as u64
        | (kind as u64) << 16
        | (check(kind, words) as u64) << 24
        | (track as u64) << 32
        | (name as u64) << 48
}

/// The check byte. Words that are no record, zeroes among them, hardly ever have the right one.
#[inline(always)]
const fn check(kind: u8, words: usize) -> u8 {
    kind.rotate_left(3) ^ words as u8 ^ 0xa5
}

/// A record of a ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record<'a> {
    /// The first letter of the marker's text, or `T` where a thread begins to use the block.
    pub kind: u8,
    /// The time, in the clock that the recorder has asked for.
    pub time: u64,
    /// The cookie, the value of a counter, or 0.
    pub number: i64,
    /// The name of the track; empty in kinds without one.
    pub track: &'a [u8],
    /// The name; empty at the end of a slice.
    pub name: &'a [u8],
}

impl<'a> Record<'a> {
    /// The record as a marker of the process `pid`; `None` for a record that is none.
    pub fn marker(&self, pid: i32) -> Option<Marker<'a>> {
        let Record { kind, number, track, name, .. } = *self;
        Some(match kind {
            b'B' => Marker::Begin { pid, name },
            b'E' => Marker::End { pid: Some(pid) },
            b'I' => Marker::Instant { pid, name },
            b'S' => Marker::AsyncBegin { pid, name, cookie: number },
            b'F' => Marker::AsyncEnd { pid, name, cookie: number },
            b'C' => Marker::Counter { pid, name, value: number, category: None },
            b'G' => Marker::TrackBegin { pid, track, name, cookie: number },
            b'H' => Marker::TrackEnd { pid, track: name, name: None, cookie: number },
            b'N' => Marker::TrackInstant { pid, track, name },
            _ => return None,
        })
    }

    /// The bytes of the record, as [`RingRecords`] takes them.
    pub fn encode(&self) -> Vec<u8> {
        let Record { kind, time, number, track, name } = *self;
        let words = fixed_words(kind) + track.len().div_ceil(8) + name.len().div_ceil(8);
        let mut out = first_word(kind, words, track.len(), name.len()).to_le_bytes().to_vec();
        out.extend(time.to_le_bytes());
        if has_number(kind) {
            out.extend(number.to_le_bytes());
        }
        for text in [track, name] {
            out.extend(text);
            out.resize(out.len().next_multiple_of(8), 0);
        }
        out
    }

    /// For the record with which a thread begins: its id, and how many markers the block had dropped.
    pub fn thread(&self) -> Option<(i32, u32)> {
        let tid = (self.number as u32).cast_signed();
        (self.kind == THREAD && tid > 0).then_some((tid, (self.number >> 32) as u32))
    }
}

/// A fault of a record.
// Written out, as the others here: the library for programs that write markers goes without the crate
// thiserror.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordFault {
    /// The bytes end inside of the record.
    Cut,
    /// The word is not the first one of a record.
    NoRecord(u64),
    /// The lengths of the names do not fit the record's own.
    Lengths {
        /// The length of the record, words.
        words: usize,
        /// The length of the track's name, bytes.
        track: usize,
        /// The length of the name, bytes.
        name: usize,
    },
    /// There is no such kind of record.
    UnknownKind(u8),
}

impl fmt::Display for RecordFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            RecordFault::Cut => f.write_str("a record is cut"),
            RecordFault::NoRecord(word) => write!(f, "{word:#018x} begins no record"),
            RecordFault::Lengths { words, track, name } => {
                write!(f, "a record of {words} words says that its names have {track} and {name} bytes")
            }
            RecordFault::UnknownKind(kind) => write!(f, "a record of the unknown kind {kind:#04x}"),
        }
    }
}

impl std::error::Error for RecordFault {}

/// The place and the fault of the first bad record of a block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockDamage {
    /// Bytes from the first record that was read.
    pub offset: usize,
    /// The fault.
    pub fault: RecordFault,
}

impl fmt::Display for BlockDamage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at byte {} of its unread records: {}", self.offset, self.fault)
    }
}

impl std::error::Error for BlockDamage {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.fault)
    }
}

/// Steps through the records in a copy of a block's words. After an error there is nothing more.
#[derive(Debug)]
pub struct RingRecords<'a> {
    /// The words as bytes, each in little-endian order.
    bytes: &'a [u8],
    /// Offset of the next record, bytes.
    at: usize,
}

impl<'a> RingRecords<'a> {
    /// Begins with the first record of `bytes`: words of a ring, each in little-endian order.
    pub fn new(bytes: &'a [u8]) -> RingRecords<'a> {
        RingRecords { bytes, at: 0 }
    }

    fn parse(&self) -> Result<(Record<'a>, usize), RecordFault> {
        let rest = &self.bytes[self.at..];
        let word = |n: usize| {
            let bytes = rest.get(8 * n..8 * n + 8).and_then(|bytes| bytes.try_into().ok());
            bytes.map(u64::from_le_bytes).ok_or(RecordFault::Cut)
        };
        let first = word(0)?;
        let words = usize::from(first as u16);
        let kind = (first >> 16) as u8;
        if (first >> 24) as u8 != check(kind, words) {
            return Err(RecordFault::NoRecord(first));
        }
        let track_len = usize::from((first >> 32) as u16);
        let name_len = usize::from((first >> 48) as u16);
        let number_words = fixed_words(kind);
        let track_at = number_words;
        let name_at = track_at + track_len.div_ceil(8);
        let fits = name_at + name_len.div_ceil(8) == words && words <= MAX_RECORD_WORDS;
        if !fits || track_len.max(name_len) > MAX_NAME_BYTES {
            return Err(RecordFault::Lengths { words, track: track_len, name: name_len });
        }
        let bytes = |at: usize, len: usize| rest.get(8 * at..8 * at + len).ok_or(RecordFault::Cut);
        // The last word of a name may be cut while the name itself is whole.
        bytes(0, 8 * words)?;
        let number = if has_number(kind) { word(2)?.cast_signed() } else { 0 };
        let track = bytes(track_at, track_len)?;
        let name = bytes(name_at, name_len)?;
        let record = Record { kind, time: word(1)?, number, track, name };
        if record.marker(0).is_none() && record.thread().is_none() {
            return Err(RecordFault::UnknownKind(kind));
        }
        Ok((record, 8 * words))
    }
}

impl<'a> Iterator for RingRecords<'a> {
    type Item = Result<Record<'a>, BlockDamage>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.at >= self.bytes.len() {
            return None;
        }
        match self.parse() {
            Ok((record, len)) => {
                self.at += len;
                Some(Ok(record))
            }
            Err(fault) => {
                let offset = std::mem::replace(&mut self.at, usize::MAX);
                Some(Err(BlockDamage { offset, fault }))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(kind: u8, number: i64, track: &'static [u8], name: &'static [u8]) -> Record<'static> {
        Record { kind, time: 7, number, track, name }
    }

    fn all_kinds() -> [Record<'static>; 10] {
        [
            record(b'B', 0, b"", b"onDraw"),
            record(b'E', 0, b"", b""),
            record(b'I', 0, b"", b"exactly8"),
            record(b'S', i64::MIN, b"", b"a"),
            record(b'F', -1, b"", b""),
            record(b'C', i64::MAX, b"", b"bytes in flight"),
            record(b'G', 1, b"a track of 17 byt", b"n"),
            record(b'H', 1, b"", b"track"),
            record(b'N', 0, b"t", b"nine byte"),
            record(THREAD, 9 << 32 | 1234, b"", b"RenderThread"),
        ]
    }

    #[test]
    fn what_is_encoded_is_decoded() {
        let bytes: Vec<u8> = all_kinds().iter().flat_map(Record::encode).collect();
        let decoded: Result<Vec<_>, _> = RingRecords::new(&bytes).collect();
        assert_eq!(decoded.unwrap(), all_kinds());
        assert_eq!(all_kinds()[9].thread(), Some((1234, 9)));
        assert_eq!(
            all_kinds()[7].marker(5),
            Some(Marker::TrackEnd { pid: 5, track: b"track", name: None, cookie: 1 })
        );
    }

    #[test]
    fn records_that_are_cut_or_changed_end_with_one_error_and_what_was_before_it() {
        let bytes: Vec<u8> = all_kinds().iter().flat_map(Record::encode).collect();
        for cut in 0..bytes.len() {
            let mut whole = 0;
            let errors = RingRecords::new(&bytes[..cut]).filter(|r| r.is_ok().then(|| whole += 1).is_none());
            let errors = errors.count();
            let is_between =
                (0..=10).any(|n| all_kinds()[..n].iter().flat_map(Record::encode).count() == cut);
            assert_eq!((errors, errors == 0), (usize::from(!is_between), is_between), "{cut}: {whole} whole");
        }
        for (at, bit) in (0..bytes.len()).flat_map(|at| (0..8).map(move |bit| (at, bit))) {
            let mut changed = bytes.clone();
            changed[at] ^= 1 << bit;
            let results: Vec<_> = RingRecords::new(&changed).collect();
            assert!(results.iter().filter(|r| r.is_err()).count() <= 1, "bit {bit} of byte {at}");
            assert!(results.len() <= all_kinds().len(), "bit {bit} of byte {at}");
        }
    }

    #[test]
    fn zeroes_and_lengths_that_do_not_fit_are_refused() {
        let error = |bytes: &[u8]| RingRecords::new(bytes).next().unwrap().unwrap_err();
        assert_eq!(
            error(&[0; 64]).to_string(),
            "at byte 0 of its unread records: 0x0000000000000000 begins no record"
        );
        for (words, track, name) in [(2, 0, 1), (3, 9, 0), (0, 0, 0), (1, 0, 0), (300, 0, 2384), (400, 0, 0)]
        {
            let mut bytes = first_word(b'B', words, track, name).to_le_bytes().to_vec();
            bytes.resize(8 * 512, 0);
            assert!(
                error(&bytes).fault.to_string().contains("says that its names"),
                "{words} {track} {name}"
            );
        }
        let mut unknown = first_word(b'x', 2, 0, 0).to_le_bytes().to_vec();
        unknown.resize(16, 0);
        assert_eq!(error(&unknown).fault.to_string(), "a record of the unknown kind 0x78");
    }
}
