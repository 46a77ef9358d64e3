//! Compresses with zstd in pure Rust: small enough for the phone's binary, and no C compiler for its four ABIs.
//!
//! The entropy coding is the crate `ruzstd`'s. Its search for what repeats is made for any data; the one here is made
//! for pages of events. Tried on four recordings (2 to 20 MB, chunks of 128 KiB): files 17 to 33 % smaller in half the
//! CPU time (185 to 400 MB/s on an x86-64 machine), which is 2 % less to 25 % more than the C library makes at its level -1.

use std::io::Cursor;

use ruzstd::encoding::{CompressionLevel, FrameCompressor, Matcher, Sequence};

/// Bytes that zstd compresses at a time, at most (its blocks).
pub const BLOCK: usize = 128 << 10;

/// The format's name and who wrote it, as a trace.dat names its compression.
pub const NAME: &[u8] = b"zstd\0ruzstd 0.9\0";

/// A compressor, which may be used again and again.
pub struct Zstd(FrameCompressor<Cursor<Vec<u8>>, Vec<u8>, Repeats>);

impl Zstd {
    /// Makes one; about half a MiB, most of it the block.
    pub fn new() -> Zstd {
        Zstd(FrameCompressor::new_with_matcher(Repeats::new(), CompressionLevel::Fastest))
    }

    /// Appends `data` to `out` as one frame. `data` comes back, to be filled again.
    pub fn frame(&mut self, data: Vec<u8>, out: Vec<u8>) -> (Vec<u8>, Vec<u8>) {
        self.0.set_source(Cursor::new(data));
        self.0.set_drain(out);
        self.0.compress();
        let data = self.0.take_source().map(Cursor::into_inner);
        (data.unwrap_or_default(), self.0.take_drain().unwrap_or_default())
    }
}

impl std::fmt::Debug for Zstd {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Zstd")
    }
}

/// log2 of the places remembered: 16 KiB of them stay in the nearest cache; four times as many saved 1 %.
const PLACES: u32 = 12;
/// The shortest repetition worth naming, bytes; shorter ones only at the same distance as the last.
const SHORTEST: usize = 6;
const SHORTEST_AGAIN: usize = 4;
/// A repetition at the last distance that is this long is taken without a look at others, bytes.
const LONG: usize = 16;
/// Where nothing repeated for this many bytes, every second place is left out; and so on.
const PATIENCE: usize = 128;

/// What repeats within one block: at each place the last distance is tried, since events of one kind follow each
/// other, then the last place whose six bytes hash to the same.
struct Repeats {
    block: Vec<u8>,
    places: Vec<u32>,
}

impl Repeats {
    fn new() -> Repeats {
        Repeats { block: Vec::new(), places: vec![0; 1 << PLACES] }
    }
}

/// Eight bytes from `at` on, which must be there.
fn word(block: &[u8], at: usize) -> u64 {
    block.get(at..at + 8).and_then(|b| b.try_into().ok()).map_or(0, u64::from_le_bytes)
}

fn hash(word: u64) -> usize {
    ((word << 16).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - PLACES)) as usize
}

/// How many bytes from `a` and from `b` on are the same; `a` is before `b`.
fn common(block: &[u8], a: usize, b: usize) -> usize {
    let (from, to) = (&block[a..], &block[b..]);
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

impl Matcher for Repeats {
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
        let Repeats { block, places } = self;
        let block = block.as_slice();
        places.fill(0);
        let end = block.len().saturating_sub(8);
        let (mut at, mut told, mut last) = (1, 0, 1);
        while at < end {
            let slot = &mut places[hash(word(block, at))];
            let place = std::mem::replace(slot, at as u32) as usize;
            let (mut len, mut distance) = (0, last);
            if at >= last {
                len = common(block, at - last, at);
            }
            if len < SHORTEST_AGAIN {
                len = 0;
            }
            if len < LONG && place > 0 {
                let other = common(block, place, at);
                if other >= SHORTEST && other > len + 1 {
                    (len, distance) = (other, at - place);
                }
            }
            if len == 0 {
                at += 1 + (at - told) / PATIENCE;
                continue;
            }
            // It may have begun earlier, where a place was left out.
            let before = block[told..at].iter().rev().zip(block[..at - distance].iter().rev());
            let before = before.take_while(|(x, y)| x == y).count();
            let start = at - before;
            let literals = &block[told..start];
            found(Sequence::Triple { literals, offset: distance, match_len: before + len });
            at += len;
            (told, last) = (at, distance);
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

#[cfg(all(test, feature = "host"))]
mod tests {
    use super::*;

    /// Pages' sort of data: records of a few kinds, with fields that differ a little from the last one's.
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
    fn every_length_comes_back_from_the_c_library() {
        let mut zstd = Zstd::new();
        let lengths = (0..40).chain([4096, 40_000, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK + 5]);
        for (n, len) in lengths.enumerate() {
            let same = vec![7; len];
            let noise: Vec<u8> = records(len, n as u64).iter().map(|b| b.wrapping_mul(167)).rev().collect();
            for data in [records(len, n as u64), same, noise] {
                let (data, packed) = zstd.frame(data, Vec::new());
                assert!(zstd::bulk::decompress(&packed, 1 << 20).unwrap() == data, "{len} bytes");
            }
        }
    }

    #[test]
    fn records_become_much_shorter() {
        let (data, packed) = Zstd::new().frame(records(BLOCK, 1), Vec::new());
        assert!(packed.len() * 3 < data.len(), "{} of {}", packed.len(), data.len());
    }
}
