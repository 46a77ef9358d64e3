//! The records of a trace: their places in the file (segments of records of fixed size, and blocks of records
//! of variable size), the dense indexes of their threads and methods, and their times in ticks, with the
//! wraps of 32-bit microseconds undone.

use std::ops::Range;

use rustc_hash::FxHashMap;

use crate::art::{BlockEncoding, BlockRecord, BlockState, FixedRecord, RecordLayout, next_record};
use crate::progress;

/// Consecutive records of fixed size, and the thread ids that change their meaning at the first of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// The bytes in the file: a whole number of records.
    pub range: Range<usize>,
    /// Thread ids that mean another thread from this segment on, each with that thread's dense index.
    pub binds: Vec<(u16, u32)>,
}

/// All records of a version 1 to 3 file.
#[derive(Debug, Clone)]
pub struct FixedBody {
    /// The layout of a record.
    pub layout: RecordLayout,
    /// In file order.
    pub segments: Vec<Segment>,
}

impl FixedBody {
    /// Number of records.
    pub fn records(&self) -> u64 {
        self.segments.iter().map(|s| (s.range.len() / self.layout.size()) as u64).sum()
    }

    /// The segments from record `from` to record `to`. The first segment also has all bindings of the
    /// segments before it.
    pub fn slice(&self, from: u64, to: u64) -> Vec<Segment> {
        let size = self.layout.size();
        let mut out: Vec<Segment> = Vec::new();
        let mut earlier = Vec::new();
        let mut first = 0;
        for segment in &self.segments {
            let count = (segment.range.len() / size) as u64;
            let begin = from.clamp(first, first + count);
            let end = to.clamp(first, first + count);
            let at = |record: u64| segment.range.start + (record - first) as usize * size;
            let mut binds = std::mem::take(&mut earlier);
            binds.extend_from_slice(&segment.binds);
            if begin < end {
                out.push(Segment { range: at(begin)..at(end), binds });
            } else {
                earlier = binds;
            }
            first += count;
        }
        out
    }

    /// Makes ids mean other threads from given offsets on, by splitting the segments at the offsets. Each
    /// element of `binds` is an offset in the file, a thread id, and the dense index of its new thread.
    pub fn bind_all(&mut self, mut binds: Vec<(usize, u16, u32)>) {
        binds.sort_unstable();
        let mut binds = binds.into_iter().peekable();
        for mut segment in std::mem::take(&mut self.segments) {
            while let Some((offset, id, index)) = binds.next_if(|(offset, ..)| *offset < segment.range.end) {
                if offset > segment.range.start {
                    let head = segment.range.start..offset;
                    segment.range.start = offset;
                    self.segments.push(Segment { range: head, binds: std::mem::take(&mut segment.binds) });
                }
                segment.binds.push((id, index));
            }
            self.segments.push(segment);
        }
    }
}

/// A block of records of variable size, all of the same thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordBlock {
    /// The bytes in the file.
    pub range: Range<usize>,
    /// Dense index of the thread.
    pub thread: u32,
    /// Whether the differences continue those of the thread's previous block.
    pub continues: bool,
}

/// All records of a file of version 4 or 5, or of the always-on tracer.
#[derive(Debug, Clone)]
pub struct BlockBody {
    /// The encoding of the records.
    pub encoding: BlockEncoding,
    /// The blocks of one thread are in the order of time.
    pub blocks: Vec<RecordBlock>,
}

/// Times of version 4 and 5 records are limited to this, ticks (52 days in ns), so that sums over many calls
/// fit. Opening the trace counts the records beyond it.
pub const MAX_TICKS: u64 = 1 << 52;

/// A position in a [`BlockBody`], from which the records are decoded one after another.
#[derive(Debug, Clone)]
pub struct BlockCursor<'t, 'a> {
    bytes: &'a [u8],
    encoding: BlockEncoding,
    blocks: std::slice::Iter<'t, RecordBlock>,
    entries: &'a [u8],
    thread: u32,
    states: Vec<BlockState>,
    wraps: Option<WrapCorrection>,
    /// The number of bytes at the ends of blocks that are not whole records.
    pub left_over: u64,
}

impl<'t, 'a> BlockCursor<'t, 'a> {
    /// The position of the first record. `threads` is the number of threads; all dense indexes are smaller.
    /// `may_wrap` undoes the wraps of times of 32 bits.
    pub fn new(bytes: &'a [u8], body: &'t BlockBody, threads: usize, may_wrap: bool) -> Self {
        let states = vec![BlockState::default(); threads];
        let wraps = may_wrap.then(|| WrapCorrection::new(threads));
        BlockCursor {
            bytes,
            encoding: body.encoding,
            blocks: body.blocks.iter(),
            entries: &[],
            thread: 0,
            states,
            wraps,
            left_over: 0,
        }
    }
}

impl Iterator for BlockCursor<'_, '_> {
    type Item = (u32, BlockRecord);

    fn next(&mut self) -> Option<(u32, BlockRecord)> {
        loop {
            if let Some(state) = self.states.get_mut(self.thread as usize)
                && let Some(mut record) = next_record(&mut self.entries, self.encoding, state)
            {
                if let Some(wraps) = &mut self.wraps {
                    let mut times = [0; 2];
                    times[CPU] = record.cpu as u32;
                    times[WALL] = record.wall as u32;
                    let full = wraps.full_times(self.thread, times);
                    record.cpu = full[CPU];
                    record.wall = full[WALL];
                }
                return Some((self.thread, record));
            }
            self.left_over += self.entries.len() as u64;
            let block = self.blocks.next()?;
            self.thread = block.thread;
            progress::advance(block.range.len() as u64);
            self.entries = self.bytes.get(block.range.clone()).unwrap_or_default();
            if let Some(state) = self.states.get_mut(block.thread as usize).filter(|_| !block.continues) {
                state.restart();
            }
        }
    }
}

/// The dense thread index of each of the 65,536 ids that version 1 to 3 records can have.
#[derive(Debug, Clone)]
pub struct ThreadTable(Box<[u32; 1 << 16]>);

impl ThreadTable {
    /// A table without threads.
    pub fn empty() -> ThreadTable {
        ThreadTable(vec![NONE; 1 << 16].into_boxed_slice().try_into().expect("its own length"))
    }

    /// The dense index of `id`, or [`NONE`].
    #[inline]
    pub fn get(&self, id: u16) -> u32 {
        self.0[usize::from(id)]
    }

    /// Removes the ids whose index `keep` refuses.
    pub fn retain(&mut self, keep: impl Fn(u32) -> bool) {
        for index in self.0.iter_mut().filter(|index| **index != NONE && !keep(**index)) {
            *index = NONE;
        }
    }

    /// Makes `id` mean the thread with this index.
    pub fn bind(&mut self, id: u16, index: u32) {
        self.0[usize::from(id)] = index;
    }
}

/// Decodes the records in `range`.
pub fn decode<'a>(bytes: &'a [u8], range: &Range<usize>, layout: RecordLayout) -> FixedRecords<'a> {
    let bytes = bytes.get(range.clone()).unwrap_or_default();
    FixedRecords { bytes, layout }
}

/// Receives the records of versions 1 to 3, in file order.
pub trait RecordVisitor {
    /// The error that ends the loop.
    type Error;

    /// A thread id means the thread with this dense index from here on.
    fn bind(&mut self, id: u16, thread: u32);

    /// Receives at most [`PART_RECORDS`] records that follow each other, the first of which begins at
    /// `offset` of the file. The compiler makes one copy for each layout: `decode` is a constant of the copy.
    fn records<const SIZE: usize>(
        &mut self,
        records: &[[u8; SIZE]],
        offset: usize,
        decode: impl Fn(&[u8; SIZE]) -> FixedRecord,
    ) -> Result<(), Self::Error>;
}

/// Passes the records in `segments` of the file `bytes` to `visitor`, until it fails.
#[inline(always)]
pub fn for_each_record<V: RecordVisitor>(
    bytes: &[u8],
    segments: &[Segment],
    layout: RecordLayout,
    visitor: &mut V,
) -> Result<(), V::Error> {
    for segment in segments {
        for (id, thread) in &segment.binds {
            visitor.bind(*id, *thread);
        }
        for part in parts(segment.range.clone(), layout.size()) {
            let offset = part.start;
            let bytes = bytes.get(part).unwrap_or_default();
            match layout {
                RecordLayout::Narrow => visitor.records(bytes.as_chunks().0, offset, FixedRecord::narrow),
                RecordLayout::Single => visitor.records(bytes.as_chunks().0, offset, FixedRecord::single),
                RecordLayout::SingleWithFiller => {
                    visitor.records(bytes.as_chunks().0, offset, FixedRecord::single_with_filler)
                }
                RecordLayout::Dual => visitor.records(bytes.as_chunks().0, offset, FixedRecord::dual),
            }?;
        }
    }
    Ok(())
}

/// Divides the bytes of consecutive records into parts. The progress is reported after each part.
pub fn parts(range: Range<usize>, record_size: usize) -> impl Iterator<Item = Range<usize>> {
    let step = PART_RECORDS * record_size.max(1);
    range.clone().step_by(step).map(move |start| {
        let end = range.end.min(start.saturating_add(step));
        progress::advance((end - start) as u64);
        start..end
    })
}

/// Records in a part of [`parts`].
pub const PART_RECORDS: usize = 1 << 16;

/// The iterator of [`decode`].
#[derive(Debug, Clone)]
pub struct FixedRecords<'a> {
    bytes: &'a [u8],
    layout: RecordLayout,
}

impl Iterator for FixedRecords<'_> {
    type Item = FixedRecord;

    #[inline]
    fn next(&mut self) -> Option<FixedRecord> {
        let (record, rest) = match self.layout {
            RecordLayout::Narrow => {
                self.bytes.split_first_chunk().map(|(r, rest)| (FixedRecord::narrow(r), rest))
            }
            RecordLayout::Single => {
                self.bytes.split_first_chunk().map(|(r, rest)| (FixedRecord::single(r), rest))
            }
            RecordLayout::SingleWithFiller => {
                self.bytes.split_first_chunk().map(|(r, rest)| (FixedRecord::single_with_filler(r), rest))
            }
            RecordLayout::Dual => {
                self.bytes.split_first_chunk().map(|(r, rest)| (FixedRecord::dual(r), rest))
            }
        }?;
        self.bytes = rest;
        Some(record)
    }
}

/// The value that stands for the index of an id without an index.
pub const NONE: u32 = u32::MAX;

/// The smallest size of the table, entries (256 KiB of `u32`); an entry stands for an id without its two
/// action bits.
const MIN_TABLE_ENTRIES: u64 = 1 << 16;

/// A map from method ids to dense indexes: a table for ART's small ids, which costs one load, and a hash map
/// for Dalvik's pointers. The lowest two bits of an id hold the action and do not count.
#[derive(Debug, Clone, Default)]
pub struct IdMap {
    direct: Vec<u32>,
    hashed: FxHashMap<u64, u32>,
}

impl IdMap {
    /// An empty map for about `count` ids. The table for small ids has four entries for each of them.
    pub fn for_count(count: usize) -> IdMap {
        let size = (count as u64).saturating_mul(4).clamp(MIN_TABLE_ENTRIES, 1 << 22);
        IdMap { direct: vec![NONE; size as usize], hashed: FxHashMap::default() }
    }

    /// The index of `id`, or [`NONE`].
    #[inline]
    pub fn get(&self, id: u64) -> u32 {
        match self.direct.get((id >> 2) as usize) {
            Some(index) => *index,
            None => self.hashed.get(&(id >> 2)).copied().unwrap_or(NONE),
        }
    }

    /// Gives `id` the index unless `id` has one already. Returns the index that `id` has.
    pub fn insert(&mut self, id: u64, index: u32) -> u32 {
        let key = id >> 2;
        let slot = match self.direct.get_mut(key as usize) {
            Some(slot) => slot,
            None => self.hashed.entry(key).or_insert(NONE),
        };
        if *slot == NONE {
            *slot = index;
        }
        *slot
    }
}

/// A time in both clocks of a trace, in ticks since the trace's start: µs in versions 1 to 3, ns or µs in
/// versions 4 and 5 ([`super::Header::tick_ns`]). [`CPU`] and [`WALL`] are the indexes. A clock that the
/// trace does not have is 0.
pub type Ticks = [u64; 2];

/// The index of thread-CPU time in [`Ticks`].
pub const CPU: usize = 0;
/// The index of wall time in [`Ticks`].
pub const WALL: usize = 1;

/// A clock that steps back by more than this, µs (10 s), has wrapped its 32 bits. A smaller step back is an
/// irregularity.
const STEP_BACK_MAX_US: u32 = 10_000_000;

/// Undoes the wraps of 32-bit times. A trace of versions 1 to 3 writes µs in 32 bits, which are full after
/// 71.6 minutes.
#[derive(Debug, Clone)]
pub(crate) struct WrapCorrection {
    threads: Vec<ThreadTimes>,
    /// The full wall time of the previous record in the file, whatever its thread, µs.
    previous_wall_us: u64,
}

#[derive(Debug, Clone, Copy, Default)]
struct ThreadTimes {
    seen: bool,
    last: [u32; 2],
    /// The amount to add to a 32-bit time for the wraps so far: a multiple of 2^32 µs for each clock.
    wraps: Ticks,
}

impl WrapCorrection {
    /// A correction for this many threads, none of which has a record yet.
    pub(crate) fn new(threads: usize) -> WrapCorrection {
        WrapCorrection { threads: vec![ThreadTimes::default(); threads], previous_wall_us: 0 }
    }

    /// The full times, µs, of the thread's next record. `times` are their low 32 bits.
    #[inline]
    pub(crate) fn full_times(&mut self, thread: u32, times: [u32; 2]) -> Ticks {
        let Some(state) = self.threads.get_mut(thread as usize) else { return times.map(u64::from) };
        if !state.seen || times[CPU] < state.last[CPU] || times[WALL] < state.last[WALL] {
            state.step_back(times, self.previous_wall_us);
        }
        state.last = times;
        let full = [state.wraps[CPU] + u64::from(times[CPU]), state.wraps[WALL] + u64::from(times[WALL])];
        self.previous_wall_us = full[WALL];
        full
    }
}

impl ThreadTimes {
    /// Handles the thread's first record, and a record with a clock that stepped back, which may be a wrap.
    #[cold]
    fn step_back(&mut self, times: [u32; 2], previous_wall_us: u64) {
        if !std::mem::replace(&mut self.seen, true) {
            self.wraps[WALL] = wraps_nearest(times[WALL], previous_wall_us);
        }
        for clock in [CPU, WALL] {
            if self.last[clock].saturating_sub(times[clock]) > STEP_BACK_MAX_US {
                self.wraps[clock] += 1 << 32;
            }
        }
    }
}

/// The multiple of 2^32 µs that, added to `time_us`, gives the time closest to `near_us`.
fn wraps_nearest(time_us: u32, near_us: u64) -> u64 {
    let ahead = time_us.wrapping_sub(near_us as u32) as i32;
    near_us.checked_add_signed(i64::from(ahead)).map_or(0, |full| full - u64::from(time_us))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_falls_from_the_top_has_wrapped_and_a_small_step_back_has_not() {
        let mut times = WrapCorrection::new(1);
        assert_eq!(times.full_times(0, [5, u32::MAX - 10]), [5, u64::from(u32::MAX) - 10]);
        assert_eq!(times.full_times(0, [6, 20]), [6, (1 << 32) + 20]);
        assert_eq!(times.full_times(0, [4, 15]), [4, (1 << 32) + 15]);
        assert_eq!(times.full_times(0, [7, 30]), [7, (1 << 32) + 30]);
    }

    #[test]
    fn a_threads_first_record_lies_near_the_record_before_it_in_the_file() {
        let mut times = WrapCorrection::new(3);
        times.full_times(0, [0, u32::MAX - 10]);
        times.full_times(0, [0, 20]);
        assert_eq!(times.full_times(1, [0, 25])[WALL], (1 << 32) + 25, "after the wrap");
        assert_eq!(times.full_times(2, [0, u32::MAX])[WALL], u64::from(u32::MAX), "before the wrap");
    }

    #[test]
    fn an_unknown_thread_keeps_its_32_bits() {
        assert_eq!(WrapCorrection::new(0).full_times(7, [1, 2]), [1, 2]);
    }
}
