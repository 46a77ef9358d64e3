//! Compresses with zstd in pure Rust, which keeps the phone's binary small and needs no C compiler for its
//! four ABIs.
//!
//! The crate `ruzstd` does the entropy coding. Its search for repetitions suits any data; the search here
//! suits pages of events. In a test with four recordings (2 to 20 MB, chunks of 128 KiB) this search made the
//! files 17 to 33 % smaller in half the CPU time (185 to 400 MB/s on an x86-64 machine). The files are 2 %
//! smaller to 25 % larger than those of the C library at level -1. The test of this module is beside the
//! decoder, in `formats/trace_dat/compression.rs`.

use std::io::Cursor;

use ruzstd::encoding::{CompressionLevel, FrameCompressor, Matcher, Sequence};

/// The most bytes that zstd compresses at a time: the size of its blocks.
pub const BLOCK: usize = 128 << 10;

/// The name of the compression and of the program that compressed, as a trace.dat v7 has them.
pub const NAME: &[u8] = b"zstd\0ruzstd 0.9\0";

/// A compressor for any number of frames.
pub struct Zstd(FrameCompressor<Cursor<Vec<u8>>, Vec<u8>, PageMatcher>);

impl Zstd {
    /// Makes a compressor, which takes about half a MiB of memory, most of it for the block.
    pub fn new() -> Zstd {
        Zstd(FrameCompressor::new_with_matcher(PageMatcher::new(), CompressionLevel::Fastest))
    }

    /// Appends `data` to `out` as one frame. Returns the buffer of `data` for the next frame, and `out`.
    pub fn frame(&mut self, data: Vec<u8>, out: Vec<u8>) -> (Vec<u8>, Vec<u8>) {
        self.0.set_source(Cursor::new(data));
        self.0.set_drain(out);
        self.0.compress();
        let data = self.0.take_source().map(Cursor::into_inner);
        (data.unwrap_or_default(), self.0.take_drain().unwrap_or_default())
    }
}

impl Default for Zstd {
    fn default() -> Zstd {
        Zstd::new()
    }
}

impl std::fmt::Debug for Zstd {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Zstd")
    }
}

/// log2 of the number of places that the matcher remembers. The 16 KiB of this table stay in the first-level
/// cache; a table of four times the size saved 1 %.
const TABLE_BITS: u32 = 12;
/// The shortest repetition that is used, bytes.
const MIN_MATCH_BYTES: usize = 6;
/// The shortest repetition that is used at the same distance as the one before, bytes.
const MIN_REPEAT_MATCH_BYTES: usize = 4;
/// A repetition at the distance of the one before is used without a search for a longer one if it has at
/// least this many bytes.
const GOOD_MATCH_BYTES: usize = 16;
/// After this many bytes without a repetition, the matcher tries only every second place; after twice as
/// many, only every third; and so on.
const BYTES_PER_SKIP: usize = 128;

/// Finds the repetitions within one block.
///
/// At each place the matcher first tries the distance of the repetition before, because events of one type
/// follow each other. Then it tries the last place whose six bytes have the same hash.
struct PageMatcher {
    block: Vec<u8>,
    places: Vec<u32>,
}

impl PageMatcher {
    fn new() -> PageMatcher {
        PageMatcher { block: Vec::new(), places: vec![0; 1 << TABLE_BITS] }
    }
}

/// The eight bytes from `at` on. The block must have them.
fn word(block: &[u8], at: usize) -> u64 {
    block.get(at..at + 8).and_then(|b| b.try_into().ok()).map_or(0, u64::from_le_bytes)
}

fn hash(word: u64) -> usize {
    ((word << 16).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - TABLE_BITS)) as usize
}

/// The number of equal bytes from `a` on and from `b` on. `a` must be before `b`.
fn common(block: &[u8], a: usize, b: usize) -> usize {
    let from = &block[a..];
    let to = &block[b..];
    let words = from.chunks_exact(8).zip(to.chunks_exact(8));
    let mut len = 0;
    for (x, y) in words {
        if x != y {
            break;
        }
        len += 8;
    }
    len + from[len..].iter().zip(&to[len..]).take_while(|(x, y)| x == y).count()
}

impl Matcher for PageMatcher {
    fn get_next_space(&mut self) -> Vec<u8> {
        let mut block = std::mem::take(&mut self.block);
        block.resize(BLOCK, 0);
        block
    }

    fn get_last_space(&mut self) -> &[u8] {
        &self.block
    }

    fn commit_space(&mut self, space: Vec<u8>) {
        self.block = space;
    }

    fn skip_matching(&mut self) {}

    fn start_matching(&mut self, mut found: impl for<'a> FnMut(Sequence<'a>)) {
        let PageMatcher { block, places } = self;
        let block = block.as_slice();
        places.fill(0);
        let end = block.len().saturating_sub(8);
        let mut at = 1;
        let mut told = 0;
        let mut last = 1;
        while at < end {
            let slot = &mut places[hash(word(block, at))];
            let place = std::mem::replace(slot, at as u32) as usize;
            let mut len = 0;
            let mut distance = last;
            if at >= last {
                len = common(block, at - last, at);
            }
            if len < MIN_REPEAT_MATCH_BYTES {
                len = 0;
            }
            if len < GOOD_MATCH_BYTES && place > 0 {
                let other = common(block, place, at);
                if other >= MIN_MATCH_BYTES && other > len + 1 {
                    len = other;
                    distance = at - place;
                }
            }
            if len == 0 {
                at += 1 + (at - told) / BYTES_PER_SKIP;
                continue;
            }
            // The repetition may begin earlier, at a place that the matcher skipped.
            let before = block[told..at].iter().rev().zip(block[..at - distance].iter().rev());
            let before = before.take_while(|(x, y)| x == y).count();
            let start = at - before;
            let literals = &block[told..start];
            found(Sequence::Triple { literals, offset: distance, match_len: before + len });
            at += len;
            told = at;
            last = distance;
            if at < end {
                places[hash(word(block, at - 2))] = (at - 2) as u32;
            }
        }
        if told < block.len() {
            found(Sequence::Literals { literals: &block[told..] });
        }
    }

    fn reset(&mut self, _: CompressionLevel) {}

    fn window_size(&self) -> u64 {
        BLOCK as u64
    }
}
