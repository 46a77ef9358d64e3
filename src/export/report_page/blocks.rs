//! Packs a page's blocks on worker threads, and writes them in their order: each is a raw DEFLATE stream in
//! base64, in a comment of its own.
//!
//! A block is compressed in pieces, on several threads at a time: the pieces of a DEFLATE stream that end at
//! byte boundaries need nothing of each other.

use std::io::{self, Write};

use data_encoding::BASE64;
use flate2::{Compress, Compression, FlushCompress, Status};
use serde::Serialize;

use crate::workers::{Ordered, OrderedSink, worker_count};

/// A block is complete when it has this size, bytes. A track is never divided, so that a block may be larger.
const BLOCK_BYTES: usize = 2 << 20;
/// The size of a piece, which is compressed at a time, bytes.
const PIECE_BYTES: usize = 1 << 20;
/// The number of pieces that are on their way for each thread.
const PIECES_PER_WORKER: usize = 3;
/// The most worker threads. More of them would wait for the thread that collects the columns.
const MAX_WORKERS: usize = 8;

/// A comment: browsers parse comments in half the time that they take for elements with text.
const COMMENT_START: &[u8] = b"<!--tracebridge-block:";
const COMMENT_END: &[u8] = b"-->\n";

/// A piece of a block on its way to a worker thread.
struct BlockPiece {
    bytes: Vec<u8>,
    /// Whether the block ends with this piece.
    is_last: bool,
}

/// The begin of a track's columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BlockPlace {
    pub block: usize,
    pub offset: usize,
}

/// Writes packed pieces as comments.
struct CommentOutput<W: Write> {
    out: W,
    base64: Base64Writer,
    in_comment: bool,
}

impl<W: Write> OrderedSink for CommentOutput<W> {
    type Item = io::Result<BlockPiece>;
    type Error = io::Error;

    fn take(&mut self, piece: io::Result<BlockPiece>) -> io::Result<()> {
        let piece = piece?;
        if !std::mem::replace(&mut self.in_comment, true) {
            self.out.write_all(COMMENT_START)?;
        }
        self.base64.write(&piece.bytes, &mut self.out)?;
        if piece.is_last {
            self.base64.finish(&mut self.out)?;
            self.out.write_all(COMMENT_END)?;
            self.in_comment = false;
        }
        Ok(())
    }
}

/// Writes blocks to `out`.
pub(super) struct BlockWriter<W: Write + Send + 'static> {
    /// The contents of the block that is being filled.
    pub block: Vec<u8>,
    blocks: usize,
    /// `None` after an error.
    pieces: Option<Ordered<BlockPiece, CommentOutput<W>>>,
}

impl<W: Write + Send + 'static> BlockWriter<W> {
    pub fn new(out: W) -> BlockWriter<W> {
        BlockWriter::with_threads(out, worker_count(MAX_WORKERS))
    }

    fn with_threads(out: W, threads: usize) -> BlockWriter<W> {
        let output = CommentOutput { out, base64: Base64Writer::default(), in_comment: false };
        let pieces = Ordered::new(threads, PIECES_PER_WORKER * threads, output, || {
            |piece: BlockPiece| pack(&piece.bytes, piece.is_last).map(|bytes| BlockPiece { bytes, ..piece })
        });
        BlockWriter { block: Vec::new(), blocks: 0, pieces: Some(pieces) }
    }

    /// The place of what is appended next to [`BlockWriter::block`].
    pub fn place(&self) -> BlockPlace {
        BlockPlace { block: self.blocks, offset: self.block.len() }
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

    /// Writes bytes as a block of their own, and returns the block's number.
    pub fn bytes(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !self.block.is_empty() {
            self.end_block()?;
        }
        self.block.extend_from_slice(bytes);
        self.end_block()?;
        Ok(self.blocks - 1)
    }

    fn end_block(&mut self) -> io::Result<()> {
        self.blocks += 1;
        let block = std::mem::take(&mut self.block);
        let count = block.len().div_ceil(PIECE_BYTES).max(1);
        for number in 0..count {
            let end = block.len().min((number + 1) * PIECE_BYTES);
            let bytes = block[number * PIECE_BYTES..end].to_vec();
            let piece = BlockPiece { bytes, is_last: number + 1 == count };
            let is_taken = self.pieces.as_mut().is_some_and(|pieces| pieces.push(piece));
            if !is_taken {
                return self.finish_pieces().map(drop);
            }
        }
        Ok(())
    }

    fn finish_pieces(&mut self) -> io::Result<W> {
        let pieces = self.pieces.take().ok_or(io::ErrorKind::BrokenPipe)?;
        Ok(pieces.finish()?.out)
    }

    /// Writes everything that is not written yet, and returns the output.
    pub fn finish(mut self) -> io::Result<W> {
        if !self.block.is_empty() {
            self.end_block()?;
        }
        self.finish_pieces()
    }
}

/// Writes bytes that come in pieces as base64 (RFC 4648, section 4).
#[derive(Default)]
struct Base64Writer {
    /// Bytes that are not encoded yet: fewer than a group between two calls.
    rest: Vec<u8>,
    text: String,
}

impl Base64Writer {
    /// The bytes that four characters stand for: only the last group of a text is shorter.
    const GROUP_BYTES: usize = 3;

    fn write(&mut self, bytes: &[u8], out: &mut impl Write) -> io::Result<()> {
        self.rest.extend_from_slice(bytes);
        let whole = self.rest.len() / Base64Writer::GROUP_BYTES * Base64Writer::GROUP_BYTES;
        self.encode(whole, out)
    }

    /// Ends the text with the padding that it needs.
    fn finish(&mut self, out: &mut impl Write) -> io::Result<()> {
        self.encode(self.rest.len(), out)
    }

    fn encode(&mut self, len: usize, out: &mut impl Write) -> io::Result<()> {
        self.text.clear();
        BASE64.encode_append(&self.rest[..len], &mut self.text);
        self.rest.drain(..len);
        out.write_all(self.text.as_bytes())
    }
}

#[derive(Debug, thiserror::Error)]
#[error("the compressor makes no progress")]
struct NoProgress;

/// Compresses one piece of a DEFLATE stream. A piece that is not the last one ends at a byte boundary.
fn pack(bytes: &[u8], is_last: bool) -> io::Result<Vec<u8>> {
    let mut packer = Compress::new(Compression::default(), false);
    let mut out = Vec::with_capacity(bytes.len() / 2 + 64);
    let flush = if is_last { FlushCompress::Finish } else { FlushCompress::Sync };
    loop {
        let read = packer.total_in() as usize;
        let written = packer.total_out();
        let status = packer.compress_vec(&bytes[read..], &mut out, flush).map_err(io::Error::other)?;
        let is_done = if is_last {
            status == Status::StreamEnd
        } else {
            // The stream is flushed when there is room left behind the last byte.
            packer.total_in() as usize == bytes.len() && out.len() < out.capacity()
        };
        if is_done {
            return Ok(out);
        }
        if packer.total_out() == written && out.len() < out.capacity() {
            return Err(io::Error::other(NoProgress));
        }
        out.reserve(out.capacity().max(1 << 12));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_of_any_size_give_the_text_that_the_standard_gives() {
        let cases = [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")];
        for (plain, text) in cases {
            for size in 1..=7 {
                let mut writer = Base64Writer::default();
                let mut out = Vec::new();
                for piece in plain.as_bytes().chunks(size) {
                    writer.write(piece, &mut out).unwrap();
                }
                writer.finish(&mut out).unwrap();
                assert_eq!(String::from_utf8(out).unwrap(), text, "in pieces of {size}");
            }
        }
    }

    #[test]
    fn blocks_are_the_same_whatever_the_number_of_threads() {
        let written = [0, 1, 3].map(|threads| {
            let mut blocks = BlockWriter::with_threads(Vec::new(), threads);
            for number in 0..5u8 {
                blocks.block = vec![number; 2 * PIECE_BYTES + 7];
                blocks.end_if_full().unwrap();
            }
            assert_eq!(blocks.json(&"the index").unwrap(), 5);
            blocks.finish().unwrap()
        });
        assert_eq!(written[0].windows(COMMENT_END.len()).filter(|end| *end == COMMENT_END).count(), 6);
        assert!(written[1..].iter().all(|other| *other == written[0]));
    }
}
