//! Writes a trace.dat v7 with compressed sections and pages, made from a v6 head and its pages. Each part of
//! the v6 head becomes a section of the v7 file, byte for byte.
//!
//! The compression is zstd in pure Rust, which keeps the phone's binary small and needs no C compiler for its
//! four ABIs. The crate `ruzstd` does the entropy coding. Its search for repetitions suits any data; the
//! search here suits pages of events. In a test with four recordings (2 to 20 MB, chunks of 128 KiB) this
//! search made the files 17 to 33 % smaller in half the CPU time (185 to 400 MB/s on an x86-64 machine). The
//! files are 2 % smaller to 25 % larger than those of the C library at level -1. The test of the search is
//! beside the decoder, in `formats/trace_dat/cpu_data.rs` of the host.

use std::io::{self, Cursor, Seek, SeekFrom, Write};

use ruzstd::encoding::{CompressionLevel, FrameCompressor, Matcher, Sequence};

use super::head_writer::{CpuData, HeadParts, Slot};
use super::{MAGIC, SECTION_COMPRESSED, option};

/// The bytes of a v6 head that hold the byte order, the size of a `long` and the page size.
const MACHINE_RANGE: std::ops::Range<usize> = MAGIC.len() + 2..MAGIC.len() + 8;

/// A trace.dat v7 that is being written.
struct V7Writer<W> {
    out: W,
    /// Bytes written so far.
    at: u64,
    zstd: Zstd,
}

/// Reads pages of one CPU. The arguments are the CPU's index in the table of CPUs, the offset of the first
/// byte to read in that CPU's pages, and the buffer to fill.
pub type ReadPages<'a> = dyn FnMut(usize, u64, &mut [u8]) -> io::Result<()> + 'a;

/// Writes the v7 file to `out` and returns the file's length, bytes. `out` must be at its start.
///
/// `head` is the v6 head, `parts` has the offsets of its parts, and `sizes` has the size of each CPU's pages,
/// bytes.
///
/// # Errors
/// Returns the errors of `out` and of `read`, and [`io::ErrorKind::UnexpectedEof`] where a part lies outside
/// of `head`.
pub fn write_v7<W: Write + Seek>(
    out: W,
    head: &[u8],
    parts: &HeadParts,
    sizes: &[u64],
    read: &mut ReadPages<'_>,
) -> io::Result<u64> {
    let part = |slot: &Slot| {
        let end = (slot.at as usize).saturating_add(slot.len);
        head.get(slot.at as usize..end).ok_or(io::Error::from(io::ErrorKind::UnexpectedEof))
    };
    let mut writer = V7Writer { out, at: 0, zstd: Zstd::new() };
    writer.write(MAGIC)?;
    writer.write(b"7\0")?;
    writer.write(head.get(MACHINE_RANGE).unwrap_or_default())?;
    writer.write(NAME)?;
    let options_at = writer.at;
    writer.write(&0u64.to_ne_bytes())?;
    let mut options = part(&parts.options)?.to_vec();
    for (id, slot) in &parts.sections {
        let at = writer.section(*id, part(slot)?.to_vec())?;
        put_option(&mut options, *id, &at.to_ne_bytes());
    }
    let buffer = writer.buffer(parts, sizes, read)?;
    put_option(&mut options, option::BUFFER, &buffer);
    // The offset of the next section of options: this section is the last.
    put_option(&mut options, option::DONE, &0u64.to_ne_bytes());
    let at = writer.section(option::DONE, options)?;
    let len = writer.at;
    writer.write_again(options_at, &at.to_ne_bytes())?;
    writer.out.flush()?;
    Ok(len)
}

fn put_option(options: &mut Vec<u8>, id: u16, data: &[u8]) {
    options.extend(id.to_ne_bytes());
    options.extend((data.len() as u32).to_ne_bytes());
    options.extend(data);
}

impl<W: Write + Seek> V7Writer<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.at += bytes.len() as u64;
        self.out.write_all(bytes)
    }

    fn write_again(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.out.seek(SeekFrom::Start(at))?;
        self.out.write_all(bytes)?;
        self.out.seek(SeekFrom::Start(self.at)).map(drop)
    }

    /// Writes a section's header with a length of 0. Returns the offset of that length.
    fn section_header(&mut self, id: u16) -> io::Result<u64> {
        self.write(&id.to_ne_bytes())?;
        self.write(&SECTION_COMPRESSED.to_ne_bytes())?;
        // The file has no section of strings, so the section has no description.
        self.write(&0u32.to_ne_bytes())?;
        let size_at = self.at;
        self.write(&0u64.to_ne_bytes())?;
        Ok(size_at)
    }

    fn end_section(&mut self, size_at: u64) -> io::Result<()> {
        let size = self.at - size_at - 8;
        self.write_again(size_at, &size.to_ne_bytes())
    }

    /// Writes the compressed length, the uncompressed length and a zstd frame, as sections and chunks of
    /// pages have them. Returns the buffer of `data`.
    fn frame(&mut self, data: Vec<u8>) -> io::Result<Vec<u8>> {
        let (data, packed) = self.zstd.frame(data, Vec::new());
        self.write(&(packed.len() as u32).to_ne_bytes())?;
        self.write(&(data.len() as u32).to_ne_bytes())?;
        self.write(&packed)?;
        Ok(data)
    }

    /// Writes a section and returns its offset.
    fn section(&mut self, id: u16, contents: Vec<u8>) -> io::Result<u64> {
        let at = self.at;
        let size_at = self.section_header(id)?;
        self.frame(contents)?;
        self.end_section(size_at)?;
        Ok(at)
    }

    /// Writes the pages of all CPUs. Returns the payload of the BUFFER option that names their places.
    fn buffer(&mut self, parts: &HeadParts, sizes: &[u64], read: &mut ReadPages<'_>) -> io::Result<Vec<u8>> {
        let page_size = parts.page_size as usize;
        let chunk = (BLOCK / page_size).max(1) * page_size;
        // The name of the top instance is empty.
        let mut payload = [&self.at.to_ne_bytes(), &b"\0"[..], parts.clock.as_bytes(), b"\0"].concat();
        payload.extend(parts.page_size.to_ne_bytes());
        payload.extend((sizes.len() as u32).to_ne_bytes());
        let size_at = self.section_header(option::BUFFER)?;
        let mut pages = Vec::new();
        for (cpu, size) in sizes.iter().enumerate() {
            let offset = self.at;
            let chunks = size.div_ceil(chunk as u64) as u32;
            self.write(&chunks.to_ne_bytes())?;
            for n in 0..u64::from(chunks) {
                let from = n * chunk as u64;
                pages.resize((size - from).min(chunk as u64) as usize, 0);
                read(cpu, from, &mut pages)?;
                pages = self.frame(pages)?;
            }
            payload.extend((cpu as u32).to_ne_bytes());
            // trace-cmd leaves the count of chunks out of the size.
            payload.extend(CpuData { offset, size: self.at - offset - 4 }.entry());
        }
        self.end_section(size_at)?;
        Ok(payload)
    }
}

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
