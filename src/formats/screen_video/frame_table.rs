//! The table of the times of a video's frames, which `screenrecord` writes as the only sample of a track of
//! its own: `#VV1NSC0PET1ME2#` since Android 13, and `#VV1NSC0PET1ME!#`, which stands beside it and is
//! alone before. All numbers are little endian.

use std::ops::Range;

use memchr::memmem::Finder;

use super::error::VideoError;
use crate::clock::Timestamp;
use crate::formats::Damage;
use crate::progress;

/// The begin of both magic words.
const MAGIC: &[u8] = b"#VV1NSC0PET1ME";
/// The end of the magic word of a table with a version.
const VERSIONED: &[u8; 2] = b"2#";
/// The end of the magic word of a table without a version, whose times are µs.
const MICROSECONDS: &[u8; 2] = b"!#";
const MAGIC_BYTES: usize = MAGIC.len() + VERSIONED.len();
/// The most frames that are read: more than two hours at 120 frames a second.
const MAX_FRAMES: usize = 1 << 20;
/// No device is up for longer, ns: 100 years.
const MAX_TIME_NS: u64 = 100 * 366 * 86_400 * 1_000_000_000;
/// The pages of so many bytes of the file are given back at once.
const RELEASE_STEP_BYTES: usize = 8 << 20;

/// The clock of a table's times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TableClock {
    /// CLOCK_BOOTTIME, which Android calls elapsed realtime.
    Boot { is_whole_us: bool },
    /// CLOCK_MONOTONIC, in version 1.
    Monotonic,
}

/// A table as it stands in the file.
#[derive(Debug)]
pub(super) struct FrameTable {
    /// The byte where the table begins.
    pub offset: usize,
    pub clock: TableClock,
    /// CLOCK_REALTIME less the table's clock, ns.
    pub realtime_offset_ns: Option<i64>,
    /// The number of frames that the table says it has.
    pub listed: u64,
    /// The time of each frame, in the table's clock.
    pub times: Vec<Timestamp>,
    /// The faults of the table.
    pub damage: Vec<Damage>,
}

/// Finds the best table in a file: the first one with a version, else the first one of µs.
///
/// # Errors
/// [`VideoError::UnknownVersion`] where there is no other table.
pub(super) fn find_table(
    data: &[u8],
    release: &mut dyn FnMut(Range<usize>),
) -> Result<Option<FrameTable>, VideoError> {
    let mut in_microseconds = None;
    let mut unknown = None;
    for offset in places(data, release) {
        let ending = &data[offset + MAGIC.len()..offset + MAGIC_BYTES];
        let mut bytes = TableBytes { rest: &data[offset + MAGIC_BYTES..] };
        if ending == MICROSECONDS {
            in_microseconds = in_microseconds.or_else(|| {
                let count = bytes.take().map(u32::from_le_bytes)?;
                Some(table(offset, TableClock::Boot { is_whole_us: true }, None, count, bytes.rest))
            });
            continue;
        }
        let version = bytes.take().map(u32::from_le_bytes);
        let clock = match version {
            Some(1) => TableClock::Monotonic,
            Some(2) => TableClock::Boot { is_whole_us: false },
            Some(version) => {
                unknown = unknown.or(Some(VideoError::UnknownVersion { offset, version }));
                continue;
            }
            None => continue,
        };
        let realtime_offset = bytes.take().map(i64::from_le_bytes);
        if let (Some(realtime_offset), Some(count)) = (realtime_offset, bytes.take().map(u32::from_le_bytes))
        {
            return Ok(Some(table(offset, clock, Some(realtime_offset), count, bytes.rest)));
        }
    }
    match (in_microseconds, unknown) {
        (Some(table), _) => Ok(Some(table)),
        (None, Some(error)) => Err(error),
        (None, None) => Ok(None),
    }
}

/// The bytes where tables begin. The search ends at the first table with a version.
fn places(data: &[u8], release: &mut dyn FnMut(Range<usize>)) -> Vec<usize> {
    /// A file may say the word as often as it likes.
    const MAX_PLACES: usize = 64;
    let finder = Finder::new(MAGIC);
    let mut places = Vec::new();
    let mut from = 0;
    while from < data.len() && places.len() < MAX_PLACES {
        let to = data.len().min(from + RELEASE_STEP_BYTES);
        let with_next = data.len().min(to + MAGIC_BYTES - 1);
        for at in finder.find_iter(&data[from..with_next]).map(|at| from + at) {
            let ending = data.get(at + MAGIC.len()..at + MAGIC_BYTES);
            if at < to && ending.is_some_and(|ending| ending == VERSIONED || ending == MICROSECONDS) {
                places.push(at);
            }
        }
        progress::advance((to - from) as u64);
        release(from..to);
        from = to;
    }
    places.truncate(MAX_PLACES);
    places
}

/// Reads the times of a table, as far as they are in the file.
fn table(
    offset: usize,
    clock: TableClock,
    realtime_offset_ns: Option<i64>,
    count: u32,
    bytes: &[u8],
) -> FrameTable {
    let mut damage = Vec::new();
    let mut missing = |what| damage.push(Damage { offset: offset as u64, what });
    let listed = count as usize;
    let (words, _) = bytes.as_chunks::<8>();
    if words.len() < listed {
        let held = words.len();
        missing(format!(
            "the table lists {listed} frames, and the file ends behind the times of {held}: the others have no time"
        ));
    }
    if listed > MAX_FRAMES {
        missing(format!("the table lists {listed} frames: the first {MAX_FRAMES} are read"));
    }
    let unit_ns = if matches!(clock, TableClock::Boot { is_whole_us: true }) { 1000 } else { 1 };
    let mut times = Vec::with_capacity(words.len().min(listed).min(MAX_FRAMES));
    for (number, word) in words.iter().take(listed.min(MAX_FRAMES)).enumerate() {
        let time = u64::from_le_bytes(*word);
        match time.checked_mul(unit_ns).filter(|ns| *ns <= MAX_TIME_NS) {
            Some(ns) => times.push(Timestamp(ns)),
            None => {
                missing(format!(
                    "the time of frame {number}, {time}, is no time since boot: this frame and those behind it are \
                     left out"
                ));
                break;
            }
        }
    }
    FrameTable { offset, clock, realtime_offset_ns, listed: count.into(), times, damage }
}

/// Bytes that are read from their begin on.
struct TableBytes<'a> {
    rest: &'a [u8],
}

impl TableBytes<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.rest.split_first_chunk()?;
        self.rest = rest;
        Some(*taken)
    }
}
