//! The places of a trace's records in the file: segments of records of fixed size, and blocks of records of
//! variable size.

use std::ops::Range;

use super::ids::NONE;
use super::record_times::{CPU, WALL, WrapCorrection};
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
            let (begin, end) = (from.clamp(first, first + count), to.clamp(first, first + count));
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
    /// Those of a thread in the order of time.
    pub blocks: Vec<RecordBlock>,
}

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
        let (encoding, blocks) = (body.encoding, body.blocks.iter());
        BlockCursor { bytes, encoding, blocks, entries: &[], thread: 0, states, wraps, left_over: 0 }
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
                    (times[CPU], times[WALL]) = (record.cpu as u32, record.wall as u32);
                    let full = wraps.full_times(self.thread, times);
                    (record.cpu, record.wall) = (full[CPU], full[WALL]);
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
                RecordLayout::Dual => visitor.records(bytes.as_chunks().0, offset, FixedRecord::dual),
            }?;
        }
    }
    Ok(())
}

/// The bytes of consecutive records in parts after each of which the progress is told.
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
            RecordLayout::Dual => {
                self.bytes.split_first_chunk().map(|(r, rest)| (FixedRecord::dual(r), rest))
            }
        }?;
        self.bytes = rest;
        Some(record)
    }
}
