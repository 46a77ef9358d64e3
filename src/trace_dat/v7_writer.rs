//! Writes a trace.dat v7 with everything in it compressed, out of a v6 one: what the head of the one holds are the
//! sections of the other, byte for byte.

use std::io::{self, Seek, SeekFrom, Write};

use super::head_writer::{CpuData, Parts};
use super::layout::{MAGIC, SECTION_COMPRESSED, option};
use super::zstd_matcher::{self, Zstd};

/// Bytes of the v6 head before byte order, long size and page size, and of those three.
const MACHINE: std::ops::Range<usize> = MAGIC.len() + 2..MAGIC.len() + 8;

/// One trace.dat being written.
struct Packer<W> {
    out: W,
    at: u64,
    zstd: Zstd,
}

/// Where the CPUs' pages come from: fills the buffer with those of CPU number `.0` from byte `.1` of its data on.
pub type ReadPages<'a> = dyn FnMut(usize, u64, &mut [u8]) -> io::Result<()> + 'a;

/// Writes the v7 file to `out`, whose start is here. `head` is the v6 file's, `parts` says what is where in it; `sizes` are the bytes
/// of each CPU's pages. Returns the file's length.
pub fn write_packed<W: Write + Seek>(
    out: W,
    head: &[u8],
    parts: &Parts,
    sizes: &[u64],
    read: &mut ReadPages<'_>,
) -> io::Result<u64> {
    let part = |slot: &super::Slot| {
        let end = (slot.at as usize).saturating_add(slot.len);
        head.get(slot.at as usize..end).ok_or(io::Error::from(io::ErrorKind::UnexpectedEof))
    };
    let mut packer = Packer { out, at: 0, zstd: Zstd::new() };
    packer.write(MAGIC)?;
    packer.write(b"7\0")?;
    packer.write(head.get(MACHINE).unwrap_or_default())?;
    packer.write(zstd_matcher::NAME)?;
    let options_at = packer.at;
    packer.write(&0u64.to_ne_bytes())?;
    let mut options = part(&parts.options)?.to_vec();
    for (id, slot) in &parts.sections {
        let at = packer.section(*id, part(slot)?.to_vec())?;
        put_option(&mut options, *id, &at.to_ne_bytes());
    }
    let buffer = packer.buffer(parts, sizes, read)?;
    put_option(&mut options, option::BUFFER, &buffer);
    // Where the next options are: nowhere.
    put_option(&mut options, option::DONE, &0u64.to_ne_bytes());
    let at = packer.section(option::DONE, options)?;
    let len = packer.at;
    packer.write_again(options_at, &at.to_ne_bytes())?;
    packer.out.flush()?;
    Ok(len)
}

fn put_option(options: &mut Vec<u8>, id: u16, data: &[u8]) {
    options.extend(id.to_ne_bytes());
    options.extend((data.len() as u32).to_ne_bytes());
    options.extend(data);
}

impl<W: Write + Seek> Packer<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.at += bytes.len() as u64;
        self.out.write_all(bytes)
    }

    fn write_again(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.out.seek(SeekFrom::Start(at))?;
        self.out.write_all(bytes)?;
        self.out.seek(SeekFrom::Start(self.at)).map(drop)
    }

    /// A section's header, without its length. Where that is to be written.
    fn section_header(&mut self, id: u16) -> io::Result<u64> {
        self.write(&id.to_ne_bytes())?;
        self.write(&SECTION_COMPRESSED.to_ne_bytes())?;
        // No description: there is no section of strings.
        self.write(&0u32.to_ne_bytes())?;
        let size_at = self.at;
        self.write(&0u64.to_ne_bytes())?;
        Ok(size_at)
    }

    fn end_section(&mut self, size_at: u64) -> io::Result<()> {
        let size = self.at - size_at - 8;
        self.write_again(size_at, &size.to_ne_bytes())
    }

    /// Both lengths and a frame, as sections and chunks of pages have them. Hands back the buffer.
    fn frame(&mut self, data: Vec<u8>) -> io::Result<Vec<u8>> {
        let (data, packed) = self.zstd.frame(data, Vec::new());
        self.write(&(packed.len() as u32).to_ne_bytes())?;
        self.write(&(data.len() as u32).to_ne_bytes())?;
        self.write(&packed)?;
        Ok(data)
    }

    /// Writes a section; where it begins.
    fn section(&mut self, id: u16, contents: Vec<u8>) -> io::Result<u64> {
        let at = self.at;
        let size_at = self.section_header(id)?;
        self.frame(contents)?;
        self.end_section(size_at)?;
        Ok(at)
    }

    /// Writes all pages; hands back the option that tells where they are.
    fn buffer(&mut self, parts: &Parts, sizes: &[u64], read: &mut ReadPages<'_>) -> io::Result<Vec<u8>> {
        let page_size = parts.page_size as usize;
        let chunk = (zstd_matcher::BLOCK / page_size).max(1) * page_size;
        // Of the top instance, whose name is empty.
        let mut about = [&self.at.to_ne_bytes(), &b"\0"[..], parts.clock.as_bytes(), b"\0"].concat();
        about.extend(parts.page_size.to_ne_bytes());
        about.extend((sizes.len() as u32).to_ne_bytes());
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
            about.extend((cpu as u32).to_ne_bytes());
            // trace-cmd leaves the count of chunks out of the size.
            about.extend(CpuData { offset, size: self.at - offset - 4 }.entry());
        }
        self.end_section(size_at)?;
        Ok(about)
    }
}
