//! Where a trace's records lie: stretches of records of fixed size, and which thread an id means in each.

use std::ops::Range;

use super::ids::NONE;
use crate::art::{BlockRecord, BlockState, Encoding, Fixed, RecordLayout, next_record};

/// A stretch of records of fixed size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// Bytes of the file; a whole number of records.
    pub range: Range<usize>,
    /// Thread ids that mean another dense index from here on.
    pub binds: Vec<(u16, u32)>,
}

/// All records of a version 1 to 3 file.
#[derive(Debug, Clone)]
pub struct FixedBody {
    /// What one record is.
    pub layout: RecordLayout,
    /// The stretches in file order.
    pub segments: Vec<Segment>,
}

impl FixedBody {
    /// Number of records.
    pub fn records(&self) -> u64 {
        self.segments.iter().map(|s| (s.range.len() / self.layout.size()) as u64).sum()
    }

    /// The stretches from record `from` to record `to`; the first of them binds what all earlier ones had bound.
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

    /// From each offset on its id means another index: cuts the stretches there.
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

/// A block of version 4 or 5 records, all of one thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// Bytes of the file.
    pub range: Range<usize>,
    /// Dense thread index.
    pub thread: u32,
    /// Whether its differences go on from the thread's block before.
    pub continues: bool,
}

/// All records of a version 4 or 5 file.
#[derive(Debug, Clone)]
pub struct BlockBody {
    /// How records are encoded.
    pub encoding: Encoding,
    /// The blocks in file order.
    pub blocks: Vec<Block>,
}

/// Where reading a [`BlockBody`] is.
#[derive(Debug, Clone)]
pub struct BlockCursor<'t, 'a> {
    bytes: &'a [u8],
    encoding: Encoding,
    blocks: std::slice::Iter<'t, Block>,
    entries: &'a [u8],
    thread: u32,
    states: Vec<BlockState>,
    /// Bytes of records that are cut off at their block's end.
    pub left_over: u64,
}

impl<'t, 'a> BlockCursor<'t, 'a> {
    /// At the first record; dense thread indexes lie below `threads`.
    pub fn new(bytes: &'a [u8], body: &'t BlockBody, threads: usize) -> Self {
        let states = vec![BlockState::default(); threads];
        let (encoding, blocks) = (body.encoding, body.blocks.iter());
        BlockCursor { bytes, encoding, blocks, entries: &[], thread: 0, states, left_over: 0 }
    }
}

impl Iterator for BlockCursor<'_, '_> {
    type Item = (u32, BlockRecord);

    fn next(&mut self) -> Option<(u32, BlockRecord)> {
        loop {
            if let Some(state) = self.states.get_mut(self.thread as usize)
                && let Some(record) = next_record(&mut self.entries, self.encoding, state)
            {
                return Some((self.thread, record));
            }
            self.left_over += self.entries.len() as u64;
            let block = self.blocks.next()?;
            self.thread = block.thread;
            self.entries = self.bytes.get(block.range.clone()).unwrap_or_default();
            if let Some(state) = self.states.get_mut(block.thread as usize).filter(|_| !block.continues) {
                state.restart();
            }
        }
    }
}

/// Thread ids of version 1 to 3 records to dense indexes: a table of all 65,536.
#[derive(Debug, Clone)]
pub struct ThreadTable(Box<[u32; 1 << 16]>);

impl ThreadTable {
    /// No thread known.
    pub fn empty() -> ThreadTable {
        ThreadTable(vec![NONE; 1 << 16].into_boxed_slice().try_into().expect("its own length"))
    }

    /// The dense index of `id`, or [`NONE`].
    #[inline]
    pub fn get(&self, id: u16) -> u32 {
        self.0[usize::from(id)]
    }

    /// Forgets the ids whose index does not pass.
    pub fn retain(&mut self, keep: impl Fn(u32) -> bool) {
        for index in self.0.iter_mut().filter(|index| **index != NONE && !keep(**index)) {
            *index = NONE;
        }
    }

    /// From now on `id` means `index`.
    pub fn bind(&mut self, id: u16, index: u32) {
        self.0[usize::from(id)] = index;
    }
}

/// The records of a stretch, decoded, each with its offset in the file.
pub fn decode<'a>(bytes: &'a [u8], range: &Range<usize>, layout: RecordLayout) -> FixedRecords<'a> {
    let bytes = bytes.get(range.clone()).unwrap_or_default();
    FixedRecords { bytes, layout }
}

/// See [`decode`].
#[derive(Debug, Clone)]
pub struct FixedRecords<'a> {
    bytes: &'a [u8],
    layout: RecordLayout,
}

impl Iterator for FixedRecords<'_> {
    type Item = Fixed;

    #[inline]
    fn next(&mut self) -> Option<Fixed> {
        let (record, rest) = match self.layout {
            RecordLayout::Narrow => self.bytes.split_first_chunk().map(|(r, rest)| (Fixed::narrow(r), rest)),
            RecordLayout::Single => self.bytes.split_first_chunk().map(|(r, rest)| (Fixed::single(r), rest)),
            RecordLayout::Dual => self.bytes.split_first_chunk().map(|(r, rest)| (Fixed::dual(r), rest)),
        }?;
        self.bytes = rest;
        Some(record)
    }
}
