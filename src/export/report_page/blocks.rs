//! Packs a page's blocks on worker threads, and writes them in their order: each is a raw DEFLATE stream in
//! base64, in a comment of its own.
//!
//! A block is compressed in pieces, on several threads at a time: the pieces of a DEFLATE stream that end at
//! byte boundaries need nothing of each other.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::thread::JoinHandle;

use crossbeam_channel::{Receiver, Sender, bounded, unbounded};
use flate2::{Compress, Compression, FlushCompress, Status};
use serde::Serialize;

use super::base64::Base64Writer;
use crate::workers::worker_count;

/// A block is complete when it has this size, bytes. A track is never divided, so that a block may be larger.
const BLOCK_BYTES: usize = 2 << 20;
/// How much is compressed at a time, bytes.
const PIECE_BYTES: usize = 1 << 20;
/// More threads than this would wait for the one that collects the columns.
const MAX_WORKERS: usize = 8;

/// A comment: browsers parse comments in half the time that they take for elements with text.
const COMMENT_START: &[u8] = b"<!--tracebridge-block:";
const COMMENT_END: &[u8] = b"-->\n";

/// A piece of a block on its way to a worker thread.
struct Piece {
    number: usize,
    bytes: Vec<u8>,
    /// Whether the block ends with this piece.
    is_last: bool,
}

/// Where a track's columns begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub block: usize,
    pub offset: usize,
}

/// Writes blocks to `out`.
pub(super) struct BlockWriter<W: Write> {
    out: W,
    /// The contents of the block that is being filled.
    pub block: Vec<u8>,
    blocks: usize,
    to_pack: Option<Sender<Piece>>,
    packed: Receiver<io::Result<Piece>>,
    workers: Vec<JoinHandle<()>>,
    sent: usize,
    written: usize,
    /// Packed pieces that wait for earlier ones.
    waiting: BTreeMap<usize, Piece>,
    base64: Base64Writer,
    in_comment: bool,
}

impl<W: Write> BlockWriter<W> {
    pub fn new(out: W) -> io::Result<BlockWriter<W>> {
        let count = worker_count(MAX_WORKERS);
        let (to_pack, pieces) = bounded::<Piece>(2 * count);
        let (done, packed) = unbounded();
        let mut workers = Vec::new();
        for _ in 0..count {
            let (pieces, done) = (pieces.clone(), done.clone());
            workers.push(std::thread::Builder::new().spawn(move || {
                for piece in pieces {
                    let bytes = pack(&piece.bytes, piece.is_last);
                    if done.send(bytes.map(|bytes| Piece { bytes, ..piece })).is_err() {
                        break;
                    }
                }
            })?);
        }
        Ok(BlockWriter {
            out,
            block: Vec::new(),
            blocks: 0,
            to_pack: Some(to_pack),
            packed,
            workers,
            sent: 0,
            written: 0,
            waiting: BTreeMap::new(),
            base64: Base64Writer::default(),
            in_comment: false,
        })
    }

    /// The place of what is appended next to [`BlockWriter::block`].
    pub fn place(&self) -> Place {
        Place { block: self.blocks, offset: self.block.len() }
    }

    /// Ends the block if it is large enough.
    pub fn end_if_full(&mut self) -> io::Result<()> {
        if self.block.len() < BLOCK_BYTES { Ok(()) } else { self.end_block() }
    }

    /// Writes a value as a block of its own, and returns the block's number.
    pub fn json(&mut self, value: &impl Serialize) -> io::Result<usize> {
        if !self.block.is_empty() {
            self.end_block()?;
        }
        serde_json::to_writer(&mut self.block, value)?;
        self.end_block()?;
        Ok(self.blocks - 1)
    }

    fn end_block(&mut self) -> io::Result<()> {
        self.blocks += 1;
        let block = std::mem::take(&mut self.block);
        let pieces = block.len().div_ceil(PIECE_BYTES).max(1);
        for number in 0..pieces {
            let end = block.len().min((number + 1) * PIECE_BYTES);
            let bytes = block[number * PIECE_BYTES..end].to_vec();
            let piece = Piece { number: self.sent, bytes, is_last: number + 1 == pieces };
            self.sent += 1;
            let Some(to_pack) = &self.to_pack else { continue };
            to_pack.send(piece).map_err(|_| io::Error::other("no thread that compresses is left"))?;
            while let Ok(piece) = self.packed.try_recv() {
                self.take(piece?)?;
            }
        }
        Ok(())
    }

    /// Writes a packed piece, and those that waited for it.
    fn take(&mut self, piece: Piece) -> io::Result<()> {
        self.waiting.insert(piece.number, piece);
        while let Some(piece) = self.waiting.remove(&self.written) {
            self.written += 1;
            if !std::mem::replace(&mut self.in_comment, true) {
                self.out.write_all(COMMENT_START)?;
            }
            self.base64.write(&piece.bytes, &mut self.out)?;
            if piece.is_last {
                self.base64.finish(&mut self.out)?;
                self.out.write_all(COMMENT_END)?;
                self.in_comment = false;
            }
        }
        Ok(())
    }

    /// Writes everything that is not written yet, and returns the output.
    pub fn finish(mut self) -> io::Result<W> {
        if !self.block.is_empty() {
            self.end_block()?;
        }
        self.to_pack = None;
        while self.written < self.sent {
            let piece = self.packed.recv().map_err(|_| io::Error::other("a thread that compresses ended"))?;
            self.take(piece?)?;
        }
        for worker in self.workers.drain(..) {
            let _ = worker.join();
        }
        Ok(self.out)
    }
}

/// Compresses one piece of a DEFLATE stream. A piece that is not the last one ends at a byte boundary.
fn pack(bytes: &[u8], is_last: bool) -> io::Result<Vec<u8>> {
    let mut packer = Compress::new(Compression::default(), false);
    let mut out = Vec::with_capacity(bytes.len() / 2 + 64);
    let flush = if is_last { FlushCompress::Finish } else { FlushCompress::Sync };
    loop {
        let (read, written) = (packer.total_in() as usize, packer.total_out());
        let status = packer.compress_vec(&bytes[read..], &mut out, flush).map_err(io::Error::other)?;
        let is_done = match is_last {
            true => status == Status::StreamEnd,
            // The stream is flushed when there is room left behind the last byte.
            false => packer.total_in() as usize == bytes.len() && out.len() < out.capacity(),
        };
        if is_done {
            return Ok(out);
        }
        if packer.total_out() == written && out.len() < out.capacity() {
            return Err(io::Error::other("the compressor makes no progress"));
        }
        out.reserve(out.capacity().max(1 << 12));
    }
}
