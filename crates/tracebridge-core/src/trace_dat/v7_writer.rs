//! Writes a trace.dat v7 with compressed sections and pages, made from a v6 head and its pages. Each part of
//! the v6 head becomes a section of the v7 file, byte for byte.

use std::io::{self, Seek, SeekFrom, Write};

use super::file_format::{MAGIC, SECTION_COMPRESSED, option};
use super::head_writer::{CpuData, HeadParts, Slot};
use super::zstd_matcher::{self, Zstd};

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
    writer.write(zstd_matcher::NAME)?;
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
        let chunk = (zstd_matcher::BLOCK / page_size).max(1) * page_size;
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
