//! Steps through the records of one CPU: page by page in the file, or chunk by chunk where the pages are
//! compressed.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::io::{self, Read};
use std::thread::{Builder, Scope};

use crossbeam_channel::{Receiver, Sender, bounded, unbounded};

use super::page_position::{CpuRecords, PagePosition};
use crate::clock::Timestamp;
use crate::formats::{Damage, Release};
use crate::ftrace::{LostEvents, PageLayout};
use crate::ids::Cpu;
use crate::progress;
use crate::workers::{started, worker_count};

/// The largest chunk that is read, bytes after decompression. trace-cmd writes chunks of 10 pages.
const MAX_CHUNK_BYTES: usize = 4 << 20;
/// A chunk may decompress to this many times its compressed size, plus [`FREE_CHUNK_BYTES`]. Even pages that
/// hold nothing but their headers stay below that. The limit rejects a file that was crafted to take hours.
const MAX_CHUNK_RATIO: usize = 8192;
/// The size to which a chunk of any compressed size may decompress, bytes.
const FREE_CHUNK_BYTES: usize = 64 << 10;
/// The most chunks of one CPU that are decompressed before the reader needs them.
const CHUNKS_AHEAD: usize = 8;
/// Further chunks are handed to the pool when no more than this many are ahead. Several at a time wake a
/// sleeping thread once, and not once each.
const REFILL_AT: usize = CHUNKS_AHEAD / 2;
/// No further chunk is decompressed ahead once the chunks ahead have this many bytes.
const BYTES_AHEAD: usize = 1 << 20;
/// The number of damaged places that are reported one by one for a CPU. Further places are only counted.
const MAX_DAMAGE_LINES: usize = 16;

/// Where the pages of one CPU of one ftrace instance lie in the file.
#[derive(Debug, Clone, Copy)]
pub(super) struct CpuDataRange {
    pub(super) cpu: Cpu,
    /// Bytes from the start of the file.
    pub(super) offset: u64,
    /// Bytes in the file.
    pub(super) size: u64,
    /// Bytes of a sub-buffer.
    pub(super) page_size: u32,
    pub(super) compression: Compression,
}

/// Bytes of one CPU between two calls of [`Release::release`].
const RELEASE_STEP_BYTES: usize = 8 << 20;

/// A position in the records of one [`CpuDataRange`].
pub(super) struct CpuRecordCursor<'a> {
    pub(super) cpu: Cpu,
    file: &'a [u8],
    release: Option<&'a dyn Release>,
    /// Offset in the file up to which the bytes are released.
    released: usize,
    /// The part of the CPU's data that is not read yet.
    rest: &'a [u8],
    /// Offset of `rest` in the file.
    offset: u64,
    layout: PageLayout,
    compression: Compression,
    chunks_left: u32,
    pool: DecompressPool<'a>,
    /// The chunks that are being decompressed, in order, each with its offset in the file.
    pending: VecDeque<(u64, Result<PendingChunk, DecompressError>)>,
    /// Bytes of the pending chunks after decompression.
    pending_bytes: usize,
    /// Buffers of chunks that are read.
    spare: Vec<Vec<u8>>,
    /// All pages of the CPU, or those of one decompressed chunk.
    chunk: Cow<'a, [u8]>,
    /// Offset in the file of the stored chunk, before decompression.
    chunk_offset: u64,
    /// Offset of the next page in `chunk`.
    next_page: usize,
    /// The position in the current page of `chunk`.
    page: PagePosition,
    pub(super) damage: Vec<Damage>,
    /// The number of damaged places, including places that `damage` does not list.
    damaged: usize,
}

impl<'a> CpuRecordCursor<'a> {
    pub(super) fn new(
        file: &'a [u8],
        layout: PageLayout,
        range: &CpuDataRange,
        release: Option<&'a dyn Release>,
        pool: DecompressPool<'a>,
    ) -> CpuRecordCursor<'a> {
        let start = usize::try_from(range.offset).unwrap_or(usize::MAX).min(file.len());
        let present = usize::try_from(range.size).unwrap_or(usize::MAX).min(file.len() - start);
        let layout = PageLayout { size: range.page_size, ..layout };
        let mut cursor = CpuRecordCursor {
            cpu: range.cpu,
            file,
            release,
            released: start,
            rest: &file[start..start + present],
            offset: start as u64,
            layout,
            compression: range.compression,
            chunks_left: 1,
            pool,
            pending: VecDeque::new(),
            pending_bytes: 0,
            spare: Vec::new(),
            chunk: Cow::Borrowed(&[]),
            chunk_offset: start as u64,
            next_page: 0,
            page: PagePosition::new(layout),
            damage: Vec::new(),
            damaged: 0,
        };
        let missing = range.size - present as u64;
        if missing > 0 {
            let what =
                format!("the file ends inside its pages: {missing} of {} bytes are missing", range.size);
            cursor.damaged(file.len() as u64, what);
        }
        if cursor.compression != Compression::None && present > 0 {
            // trace-cmd 3.1 does not count the number of chunks (4 bytes) in the size.
            cursor.rest = &file[start..(start + present + 4).min(file.len())];
            cursor.chunks_left = cursor.word().unwrap_or(0);
        }
        cursor
    }

    fn damaged(&mut self, offset: u64, what: String) {
        self.damaged += 1;
        if self.damage.len() < MAX_DAMAGE_LINES {
            self.damage.push(Damage { offset, what: format!("CPU {}: {what}", self.cpu) });
        }
    }

    /// Number of damaged places that [`CpuRecordCursor::damage`] does not list.
    pub(super) fn unlisted_damage(&self) -> usize {
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

    /// Releases the file's bytes up to offset `to` once enough of them are read.
    fn release(&mut self, to: usize) {
        if to.saturating_sub(self.released) >= RELEASE_STEP_BYTES
            && let Some(release) = self.release
        {
            release.release(self.released..to.min(self.file.len()));
            self.released = to;
        }
    }

    fn enter_next_page(&mut self) -> bool {
        if let Some(fault) = self.page.fault() {
            // A page in a compressed chunk has no offset in the file, so the chunk's offset is reported.
            let inside = if self.compression == Compression::None { self.page.data.start as u64 } else { 0 };
            self.damaged(self.chunk_offset + inside, fault.to_string());
        }
        while self.next_page >= self.chunk.len() {
            if !self.enter_next_chunk() {
                return false;
            }
        }
        let start = self.next_page;
        let in_file = if self.compression == Compression::None { start } else { 0 };
        self.release(self.chunk_offset as usize + in_file);
        let end = (start + self.layout.size as usize).min(self.chunk.len());
        self.next_page = end;
        if self.compression == Compression::None {
            progress::advance((end - start) as u64);
        }
        self.page.enter(&self.chunk, start..end);
        true
    }

    fn enter_next_chunk(&mut self) -> bool {
        self.next_page = 0;
        self.page.data = 0..0;
        self.chunk_offset = self.offset;
        if self.compression == Compression::None {
            let left = std::mem::take(&mut self.chunks_left) > 0 && !self.rest.is_empty();
            self.chunk = Cow::Borrowed(self.take(self.rest.len()));
            return left;
        }
        self.spare.push(std::mem::take(&mut self.chunk).into_owned());
        if self.pending.len() <= REFILL_AT {
            while self.pending.len() < CHUNKS_AHEAD
                && (self.pending_bytes < BYTES_AHEAD || self.pending.is_empty())
            {
                let offset = self.offset;
                let Some(chunk) = self.start_next_chunk() else { break };
                self.pending_bytes += chunk.as_ref().map_or(0, |c| c.unpacked);
                self.pending.push_back((offset, chunk));
            }
        }
        let Some((offset, chunk)) = self.pending.pop_front() else { return false };
        self.chunk_offset = offset;
        match chunk {
            Ok(chunk) => {
                self.pending_bytes -= chunk.unpacked;
                let (pages, result) = chunk.wait();
                if let Err(error) = result {
                    self.damaged(offset, format!("a chunk {error}"));
                }
                self.chunk = Cow::Owned(pages);
            }
            Err(error) => self.damaged(offset, format!("a chunk {error}")),
        }
        true
    }

    /// Starts to decompress the file's next chunk. `None` after the last chunk; an error for a chunk that
    /// states a size beyond the limits.
    fn start_next_chunk(&mut self) -> Option<Result<PendingChunk, DecompressError>> {
        if self.chunks_left == 0 || self.rest.is_empty() {
            return None;
        }
        self.chunks_left -= 1;
        let packed = self.word()? as usize;
        let unpacked = self.word()? as usize;
        let most = MAX_CHUNK_BYTES.min(FREE_CHUNK_BYTES + packed.saturating_mul(MAX_CHUNK_RATIO));
        if unpacked > most {
            self.chunks_left = 0;
            return Some(Err(DecompressError::TooLarge { packed, unpacked }));
        }
        let data = self.take(packed);
        progress::advance(packed as u64);
        let buffer = self.spare.pop().unwrap_or_default();
        Some(Ok(self.pool.decompress(self.compression, data, unpacked, buffer)))
    }
}

impl CpuRecords for CpuRecordCursor<'_> {
    #[inline]
    fn cpu(&self) -> Cpu {
        self.cpu
    }

    #[inline]
    fn advance(&mut self) -> bool {
        loop {
            if self.page.advance(&self.chunk) {
                return true;
            }
            if !self.enter_next_page() {
                return false;
            }
        }
    }

    #[inline]
    fn ts(&self) -> Timestamp {
        self.page.span.ts
    }

    #[inline]
    fn record(&self) -> &[u8] {
        self.page.record(&self.chunk)
    }

    #[inline]
    fn take_lost(&mut self) -> Option<LostEvents> {
        self.page.lost.take()
    }
}

/// Why a chunk or a section is not decompressed, or not as a whole. The subject of the text is missing.
#[derive(Debug, thiserror::Error)]
pub(super) enum DecompressError {
    #[error("unpacks to {len} bytes, not to the {promised} it promises")]
    Length { len: usize, promised: usize },
    #[error("cannot be unpacked: {0}")]
    Decoder(io::Error),
    #[error("of {packed} bytes says that it decompresses to {unpacked} bytes; no writer makes such a chunk")]
    TooLarge { packed: usize, unpacked: usize },
    #[error("was not decompressed")]
    NotDone,
}

/// The compression of a version 7 file's data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Compression {
    None,
    Zlib,
    Zstd,
}

impl Compression {
    /// The compression with this name in a file's header. `None` for a name that is not known.
    pub(super) fn from_name(name: &str) -> Option<Compression> {
        Some(match name {
            "none" | "" => Compression::None,
            "zlib" => Compression::Zlib,
            "zstd" => Compression::Zstd,
            _ => return None,
        })
    }

    /// Decompresses `data` into `out`, which is cleared first. The result must have exactly `unpacked` bytes;
    /// otherwise the error tells the difference. On an error `out` holds as many bytes as could be
    /// decompressed.
    pub(super) fn decompress(
        self,
        data: &[u8],
        unpacked: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), DecompressError> {
        thread_local! {
            // A decompressor costs more to make than a chunk of 10 pages costs to decompress.
            static ZSTD: RefCell<Option<zstd::bulk::Decompressor<'static>>> = const { RefCell::new(None) };
        }
        out.clear();
        let got = match self {
            Compression::None => {
                out.extend_from_slice(data);
                Ok(data.len())
            }
            Compression::Zlib => {
                flate2::read::ZlibDecoder::new(data).take(unpacked as u64 + 1).read_to_end(out)
            }
            Compression::Zstd => {
                // A zstd frame cannot grow by more than this factor. Without the limit, one damaged number in
                // the file would allocate a large buffer.
                out.reserve(unpacked.min((data.len() + 4).saturating_mul(1 << 15)));
                ZSTD.with_borrow_mut(|decompressor| {
                    if decompressor.is_none() {
                        *decompressor = Some(zstd::bulk::Decompressor::new()?);
                    }
                    decompressor.as_mut().map_or(Ok(0), |d| d.decompress_to_buffer(data, out))
                })
            }
        };
        match got {
            Ok(len) if len == unpacked => Ok(()),
            Ok(len) => Err(DecompressError::Length { len, promised: unpacked }),
            Err(error) => Err(DecompressError::Decoder(error)),
        }
    }
}

/// The largest number of threads. More threads would decompress faster than a reader can read the chunks.
const MAX_THREADS: usize = 4;

/// The threads that decompress chunks. They end when the last clone of the pool is dropped. The default pool
/// has no threads and decompresses each chunk at once.
#[derive(Clone, Default)]
pub(super) struct DecompressPool<'a> {
    jobs: Option<Sender<DecompressJob<'a>>>,
}

struct DecompressJob<'a> {
    compression: Compression,
    data: &'a [u8],
    unpacked: usize,
    buffer: Vec<u8>,
    done: Sender<Decompressed>,
}

/// The pages of a chunk, and the fault of a damaged chunk. A damaged chunk has the pages that could be
/// decompressed.
type Decompressed = (Vec<u8>, Result<(), DecompressError>);

/// A chunk that is being decompressed.
pub(super) struct PendingChunk {
    done: Receiver<Decompressed>,
    /// Size of the decompressed chunk as the file states it, bytes.
    pub(super) unpacked: usize,
}

impl DecompressJob<'_> {
    fn run(mut self) {
        let result = self.compression.decompress(self.data, self.unpacked, &mut self.buffer);
        // The reader may have ended early. Then no one receives the chunk.
        let _ = self.done.send((self.buffer, result));
    }
}

impl<'a> DecompressPool<'a> {
    /// A pool with as many threads as the machine can use, and at most [`MAX_THREADS`].
    pub(super) fn new<'scope>(scope: &'scope Scope<'scope, '_>) -> DecompressPool<'a>
    where
        'a: 'scope,
    {
        let (jobs, queue) = unbounded::<DecompressJob<'a>>();
        let threads = started(worker_count(MAX_THREADS), || {
            let queue = queue.clone();
            Builder::new().spawn_scoped(scope, move || queue.iter().for_each(DecompressJob::run))
        });
        // Without threads the reader decompresses by itself.
        DecompressPool { jobs: (!threads.is_empty()).then_some(jobs) }
    }

    /// Begins to decompress `data`, which becomes `unpacked` bytes, into `buffer`.
    pub(super) fn decompress(
        &self,
        compression: Compression,
        data: &'a [u8],
        unpacked: usize,
        buffer: Vec<u8>,
    ) -> PendingChunk {
        let (done, waiting) = bounded(1);
        let job = DecompressJob { compression, data, unpacked, buffer, done };
        match &self.jobs {
            Some(jobs) => {
                if let Err(refused) = jobs.send(job) {
                    refused.0.run();
                }
            }
            None => job.run(),
        }
        PendingChunk { done: waiting, unpacked }
    }
}

impl PendingChunk {
    /// Waits until the chunk is decompressed.
    pub(super) fn wait(self) -> Decompressed {
        self.done.recv().unwrap_or_else(|_| (Vec::new(), Err(DecompressError::NotDone)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace_dat::v7_writer::{BLOCK, Zstd};

    /// Data like that of pages: records of a few types, whose fields differ a little from those of the record
    /// before.
    fn records(len: usize, mut seed: u64) -> Vec<u8> {
        let mut random = |most: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % most
        };
        let mut out = Vec::new();
        while out.len() < len {
            let kind = random(5);
            out.extend((random(1 << 20) << 5 | kind).to_le_bytes());
            out.extend((0..kind * 6).map(|n| (n * n) as u8));
            out.resize(out.len() + random(40) as usize, 0);
        }
        out.truncate(len);
        out
    }

    #[test]
    fn the_recorders_zstd_frames_of_every_length_are_decompressed_by_the_c_library() {
        let mut zstd = Zstd::new();
        let mut unpacked = Vec::new();
        let lengths = (0..40).chain([4096, 40_000, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK + 5]);
        for (n, len) in lengths.enumerate() {
            let same = vec![7; len];
            let noise: Vec<u8> = records(len, n as u64).iter().map(|b| b.wrapping_mul(167)).rev().collect();
            for data in [records(len, n as u64), same, noise] {
                let (data, packed) = zstd.frame(data, Vec::new());
                let result = Compression::Zstd.decompress(&packed, len, &mut unpacked);
                assert!(result.is_ok(), "{len} bytes: {result:?}");
                assert!(unpacked == data, "{len} bytes");
            }
        }
    }

    #[test]
    fn records_compress_to_less_than_a_third() {
        let (data, packed) = Zstd::new().frame(records(BLOCK, 1), Vec::new());
        assert!(packed.len() * 3 < data.len(), "{} of {}", packed.len(), data.len());
    }

    #[test]
    fn a_length_that_does_not_fit_the_data_is_an_error() {
        let (_, packed) = Zstd::new().frame(vec![1; 100], Vec::new());
        let mut out = Vec::new();
        assert!(Compression::Zstd.decompress(&packed, 101, &mut out).is_err());
        assert!(Compression::None.decompress(&[1, 2], 3, &mut out).is_err());
        assert!(Compression::Zlib.decompress(b"no zlib data", 3, &mut out).is_err());
    }
}
