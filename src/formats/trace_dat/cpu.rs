//! One CPU's pages: as they lie in the file, or unpacked a chunk at a time.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::ops::Range;

use super::ahead::{Ahead, Unpacking};
use super::codec::Codec;
use crate::formats::Damage;
use crate::ftrace::{Missed, Page, PageFault, PageLayout, Place, Walk};

/// The largest chunk taken, bytes uncompressed. trace-cmd writes chunks of 10 pages.
const MAX_CHUNK: usize = 4 << 20;
/// How many times its packed size a chunk may come to (and 64 KiB): pages with no more than a header each stay below
/// it; a file made to cost hours does not.
const MAX_RATIO: usize = 8192;
/// Chunks of one CPU that are unpacked before they are wanted; and the bytes that they may come to.
const CHUNKS_AHEAD: usize = 3;
const BYTES_AHEAD: usize = 1 << 20;
/// Damaged places told one by one, per CPU; the rest are counted.
const MAX_DAMAGE: usize = 16;

/// Where one CPU's pages of one instance are.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stream {
    pub(super) cpu: u32,
    /// Bytes from the start of the file.
    pub(super) offset: u64,
    /// Bytes in the file.
    pub(super) size: u64,
    /// Bytes of a sub-buffer.
    pub(super) page_size: u32,
    pub(super) codec: Codec,
}

/// What holds a file's bytes, and is told of those that are not needed for now.
pub trait Release: Sync {
    /// A reading has done with `range`; another may ask for it again.
    fn release(&self, range: Range<usize>);
}

/// Bytes of one CPU between two calls of [`Release`].
const RELEASE_STEP: usize = 8 << 20;

/// A walk over all records of one [`Stream`], page by page, chunk by chunk.
pub(super) struct Lane<'a> {
    pub(super) cpu: u32,
    /// The file, and how far it is told that its bytes are no longer needed.
    file: &'a [u8],
    release: Option<&'a dyn Release>,
    released: usize,
    /// The stream's bytes in the file that are not yet looked at; and where they are in the file.
    rest: &'a [u8],
    offset: u64,
    layout: PageLayout,
    codec: Codec,
    chunks_left: u32,
    /// Who unpacks chunks, and those that are under way, in order, with their places in the file.
    ahead: Ahead<'a>,
    coming: VecDeque<(u64, Result<Unpacking, String>)>,
    /// Bytes that those come to.
    coming_bytes: usize,
    /// Some pages: all of the stream, or one unpacked chunk of it.
    chunk: Cow<'a, [u8]>,
    chunk_offset: u64,
    /// Where the next page begins in `chunk`.
    next_page: usize,
    /// The current page's records in `chunk`.
    data: Range<usize>,
    walk: Walk,
    cut: Option<PageFault>,
    /// Where the record is that [`Lane::advance`] came to, in `data`; and its time.
    pub(super) place: Place,
    /// Losses before that record, once.
    pub(super) missed: Option<Missed>,
    pub(super) damage: Vec<Damage>,
    damaged: usize,
}

impl<'a> Lane<'a> {
    pub(super) fn new(
        file: &'a [u8],
        layout: PageLayout,
        stream: &Stream,
        release: Option<&'a dyn Release>,
        ahead: Ahead<'a>,
    ) -> Lane<'a> {
        let start = usize::try_from(stream.offset).unwrap_or(usize::MAX).min(file.len());
        let there = usize::try_from(stream.size).unwrap_or(usize::MAX).min(file.len() - start);
        let layout = PageLayout { size: stream.page_size, ..layout };
        let mut lane = Lane {
            cpu: stream.cpu,
            file,
            release,
            released: start,
            rest: &file[start..start + there],
            offset: start as u64,
            layout,
            codec: stream.codec,
            chunks_left: 1,
            ahead,
            coming: VecDeque::new(),
            coming_bytes: 0,
            chunk: Cow::Borrowed(&[]),
            chunk_offset: start as u64,
            next_page: 0,
            data: 0..0,
            walk: Walk::new(&Page::empty(layout.endian)),
            cut: None,
            place: Place { ts: 0, start: 0, end: 0 },
            missed: None,
            damage: Vec::new(),
            damaged: 0,
        };
        let missing = stream.size - there as u64;
        if missing > 0 {
            let what =
                format!("the file ends inside its pages: {missing} of {} bytes are missing", stream.size);
            lane.damaged(file.len() as u64, what);
        }
        if lane.codec != Codec::None && there > 0 {
            // trace-cmd 3.1 leaves the count of chunks (4 bytes) out of the size.
            lane.rest = &file[start..(start + there + 4).min(file.len())];
            lane.chunks_left = lane.word().unwrap_or(0);
        }
        lane
    }

    fn damaged(&mut self, offset: u64, what: String) {
        self.damaged += 1;
        if self.damage.len() < MAX_DAMAGE {
            self.damage.push(Damage { offset, what: format!("CPU {}: {what}", self.cpu) });
        }
    }

    /// Places damaged beyond those told one by one.
    pub(super) fn damage_untold(&self) -> usize {
        self.damaged - self.damage.len()
    }

    fn take(&mut self, len: usize) -> &'a [u8] {
        let (head, tail) = self.rest.split_at(len.min(self.rest.len()));
        self.rest = tail;
        self.offset += head.len() as u64;
        head
    }

    fn word(&mut self) -> Option<u32> {
        let endian = self.layout.endian;
        Some(endian.uint(self.take(4))? as u32)
    }

    /// The bytes of the record that [`Lane::advance`] came to.
    #[inline]
    pub(super) fn record(&self) -> &[u8] {
        let data = &self.chunk[self.data.clone()];
        data.get(self.place.start as usize..self.place.end as usize).unwrap_or_default()
    }

    /// Goes to the next record. `false` after the last.
    #[inline]
    pub(super) fn advance(&mut self) -> bool {
        loop {
            let data = &self.chunk[self.data.clone()];
            if let Some(place) = self.walk.next(data, self.layout.endian) {
                self.place = place;
                return true;
            }
            if !self.enter_next_page() {
                return false;
            }
        }
    }

    /// Lets go of the file up to byte `to`, now and then.
    fn release(&mut self, to: usize) {
        if to.saturating_sub(self.released) >= RELEASE_STEP
            && let Some(release) = self.release
        {
            release.release(self.released..to.min(self.file.len()));
            self.released = to;
        }
    }

    fn enter_next_page(&mut self) -> bool {
        if let Some(fault) = self.walk.fault().or(self.cut) {
            // In a packed chunk the page is named by its chunk: the file has no other place for it.
            let inside = if self.codec == Codec::None { self.data.start as u64 } else { 0 };
            self.damaged(self.chunk_offset + inside, fault.to_string());
        }
        while self.next_page >= self.chunk.len() {
            if !self.enter_next_chunk() {
                return false;
            }
        }
        let start = self.next_page;
        let in_file = if self.codec == Codec::None { start } else { 0 };
        self.release(self.chunk_offset as usize + in_file);
        let end = (start + self.layout.size as usize).min(self.chunk.len());
        self.next_page = end;
        let page = self
            .layout
            .page(&self.chunk[start..end])
            .unwrap_or_else(|fault| Page::empty(self.layout.endian).broken(fault));
        let data_start = start + self.layout.data_offset as usize;
        self.data = if page.data.is_empty() { 0..0 } else { data_start..data_start + page.data.len() };
        self.cut = page.cut;
        self.walk = Walk::new(&page);
        self.missed = match (self.missed, page.missed) {
            (Some(Missed::Count(a)), Some(Missed::Count(b))) => Some(Missed::Count(a.saturating_add(b))),
            (Some(_), Some(_)) => Some(Missed::Unknown),
            (a, b) => a.or(b),
        };
        true
    }

    fn enter_next_chunk(&mut self) -> bool {
        self.next_page = 0;
        self.data = 0..0;
        self.chunk_offset = self.offset;
        if self.codec == Codec::None {
            let left = std::mem::take(&mut self.chunks_left) > 0 && !self.rest.is_empty();
            self.chunk = Cow::Borrowed(self.take(self.rest.len()));
            return left;
        }
        let mut buffer = std::mem::take(&mut self.chunk).into_owned();
        while self.coming.len() < CHUNKS_AHEAD && (self.coming_bytes < BYTES_AHEAD || self.coming.is_empty())
        {
            let offset = self.offset;
            let Some(chunk) = self.unpack_next_chunk(std::mem::take(&mut buffer)) else { break };
            self.coming_bytes += chunk.as_ref().map_or(0, |c| c.unpacked);
            self.coming.push_back((offset, chunk));
        }
        let Some((offset, chunk)) = self.coming.pop_front() else { return false };
        self.chunk_offset = offset;
        match chunk {
            Ok(chunk) => {
                self.coming_bytes -= chunk.unpacked;
                let (pages, result) = chunk.wait();
                if let Err(error) = result {
                    self.damaged(offset, format!("a chunk {error}"));
                }
                self.chunk = Cow::Owned(pages);
            }
            Err(error) => self.damaged(offset, error),
        }
        true
    }

    /// Has the next chunk of the file unpacked into `buffer`. `None` after the last.
    fn unpack_next_chunk(&mut self, buffer: Vec<u8>) -> Option<Result<Unpacking, String>> {
        if self.chunks_left == 0 || self.rest.is_empty() {
            return None;
        }
        self.chunks_left -= 1;
        let (packed, unpacked) = (self.word()? as usize, self.word()? as usize);
        let most = MAX_CHUNK.min((64 << 10) + packed.saturating_mul(MAX_RATIO));
        if unpacked > most {
            self.chunks_left = 0;
            return Some(Err(format!(
                "a chunk of {packed} bytes that unpack to {unpacked} is none that any writer makes"
            )));
        }
        let data = self.take(packed);
        Some(Ok(self.ahead.unpack(self.codec, data, unpacked, buffer)))
    }
}
