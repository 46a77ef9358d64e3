//! Reads the header of a version 7 file: options that name the offsets of sections, which may be compressed.

use std::borrow::Cow;
use std::collections::HashSet;

use super::compression::Compression;
use super::cpu_data::CpuDataRange;
use super::error::TraceDatError;
use super::header::{StoredText, TraceDat};
use super::header_reader::HeaderReader;
use crate::formats::unpack_budget::UnpackBudget;
use crate::ftrace::limits::is_sub_buffer_size;
use crate::trace_dat::file_format::{SECTION_COMPRESSED, SECTION_HEADER_BYTES, option};

type Result<T> = std::result::Result<T, TraceDatError>;

/// The most sections of options that are read. The limit ends a chain of sections that leads back to itself.
const MAX_OPTION_SECTIONS: usize = 1024;
/// The largest section that is read, bytes after decompression. The largest in practice is kallsyms, with
/// some 15 MiB in a large kernel.
const MAX_SECTION_BYTES: usize = 48 << 20;

/// Reads the header from the page size on.
pub(super) fn read<'a>(dat: &mut TraceDat<'a>, mut c: HeaderReader<'a>, budget: &UnpackBudget) -> Result<()> {
    c.what = "the compression's name";
    let name = String::from_utf8_lossy(c.text()?).into_owned();
    c.text()?;
    let compression = Compression::from_name(&name)
        .ok_or_else(|| c.bad(format!("compression `{name}` is not known (none, zlib and zstd are)")))?;
    if compression != Compression::None {
        dat.compression = name;
    }
    c.what = "the options' offset";
    let mut next = c.u64()?;
    let mut sections = Sections { compression, budget, read: HashSet::new(), repeated: 0 };
    let mut buffers = Vec::new();
    let mut first = true;
    for _ in 0..MAX_OPTION_SECTIONS {
        if next == 0 {
            break;
        }
        match read_options(dat, &mut sections, next, &mut buffers) {
            Ok(following) => next = following,
            // The file cannot be read without its first options. Without later ones only a part is missing.
            Err(error) if first => return Err(error),
            Err(error) => {
                dat.note_damage(error);
                break;
            }
        }
        first = false;
    }
    if sections.repeated > 0 {
        let what = format!(
            "{} options name a section that is named twice or more often: each section is read once",
            sections.repeated
        );
        dat.note_damage(TraceDatError::Bad { offset: 0, what });
    }
    if buffers.is_empty() {
        return Err(TraceDatError::Cut {
            offset: dat.file.len() as u64,
            what: "the options: no BUFFER is named",
        });
    }
    for data in buffers {
        if let Err(error) = read_buffer(dat, compression, &data) {
            dat.note_damage(error);
        }
    }
    Ok(())
}

/// The contents of the section at `offset`, not decompressed.
fn stored<'a>(
    dat: &TraceDat<'a>,
    compression: Compression,
    offset: u64,
    what: &'static str,
) -> Result<StoredText<'a>> {
    let mut c = HeaderReader::at(dat.file, offset, dat.layout.endian, what)?;
    c.u16()?;
    let flags = c.u16()?;
    c.u32()?;
    let size = c.u64()?;
    if flags & SECTION_COMPRESSED == 0 {
        let contents = Cow::Borrowed(c.bytes(size)?);
        return Ok(StoredText { section: Some((Compression::None, contents.len())), data: contents });
    }
    let packed = c.u32()?;
    let unpacked = c.u32()? as usize;
    let data = c.bytes(packed.into())?;
    if unpacked > MAX_SECTION_BYTES {
        return Err(c.bad(format!("{what} would decompress to {unpacked} bytes")));
    }
    Ok(StoredText { data: Cow::Borrowed(data), section: Some((compression, unpacked)) })
}

/// The sections that have been read.
struct Sections<'b> {
    compression: Compression,
    /// What the sections may still unpack to. The contents of sections that are not compressed count too:
    /// sections may overlap, so that they have more bytes together than the file.
    budget: &'b UnpackBudget,
    /// The offsets of the sections.
    read: HashSet<u64>,
    /// How many options name a section that an option before them has named.
    repeated: u64,
}

/// The contents of the section at `offset`, decompressed. Each section is read once.
fn section<'a>(
    dat: &TraceDat<'a>,
    sections: &mut Sections<'_>,
    offset: u64,
    what: &'static str,
) -> Result<Cow<'a, [u8]>> {
    if !sections.read.insert(offset) {
        return Err(TraceDatError::Bad { offset, what: format!("{what}: this section is named twice") });
    }
    let stored = stored(dat, sections.compression, offset, what)?;
    let size = stored.section.map_or(stored.data.len(), |(_, size)| size);
    let over_limit = |error| TraceDatError::Bad { offset, what: format!("{what}: the file {error}") };
    sections.budget.take(size as u64).map_err(over_limit)?;
    match stored.section {
        Some((compression, size)) if compression != Compression::None => {
            let mut out = Vec::new();
            compression.decompress(&stored.data, size, &mut out).map_err(|error| TraceDatError::Bad {
                offset: offset + SECTION_HEADER_BYTES as u64,
                what: format!("{what}: {error}"),
            })?;
            Ok(Cow::Owned(out))
        }
        _ => Ok(stored.data),
    }
}

/// Reads one section of options. Returns the offset of the next such section, or 0.
fn read_options(
    dat: &mut TraceDat<'_>,
    sections: &mut Sections<'_>,
    offset: u64,
    buffers: &mut Vec<Vec<u8>>,
) -> Result<u64> {
    let contents = section(dat, sections, offset, "the options")?;
    let mut c =
        HeaderReader::new(&contents, offset + SECTION_HEADER_BYTES as u64, dat.layout.endian, "the options");
    loop {
        let id = c.u16()?;
        let data = c.sized32()?;
        let offset_in_payload = || HeaderReader::new(data, 0, dat.layout.endian, "an option").u64();
        match id {
            option::DONE => return offset_in_payload(),
            option::BUFFER => buffers.push(data.to_vec()),
            option::BUFFER_TEXT => {
                dat.notes.push("the file has an ftrace instance's trace as text, which is not read".into());
            }
            option::HEADER_INFO..=option::CMDLINES => {
                let place = offset_in_payload();
                if place.as_ref().is_ok_and(|offset| sections.read.contains(offset)) {
                    sections.repeated += 1;
                    continue;
                }
                let read = place.and_then(|offset| read_section(dat, sections, id, offset));
                if let Err(error) = read {
                    dat.note_damage(error);
                }
            }
            _ => dat.options.read(id, data, dat.layout.endian, &mut dat.notes),
        }
    }
}

fn read_section(dat: &mut TraceDat<'_>, sections: &mut Sections<'_>, id: u16, offset: u64) -> Result<()> {
    // kallsyms is large, and few readers need it or the printk formats. They are decompressed on demand.
    match id {
        option::KALLSYMS => {
            dat.kallsyms = stored(dat, sections.compression, offset, "kallsyms")?;
            return Ok(());
        }
        option::PRINTK => {
            dat.printk_formats = stored(dat, sections.compression, offset, "the printk formats")?;
            return Ok(());
        }
        _ => {}
    }
    let what = match id {
        option::HEADER_INFO => "header_page",
        option::FTRACE_EVENTS => "the ftrace event formats",
        option::EVENT_FORMATS => "the event formats",
        _ => "the saved command lines",
    };
    let contents = section(dat, sections, offset, what)?;
    let mut c = HeaderReader::new(&contents, offset, dat.layout.endian, what);
    match id {
        option::HEADER_INFO => dat.read_header_info(&mut c)?,
        option::FTRACE_EVENTS | option::EVENT_FORMATS => read_formats(dat, id, &contents, offset)?,
        _ => dat.cmdlines = Cow::Owned(c.sized64()?.to_vec()),
    }
    Ok(())
}

/// Reads event formats from a section. The texts are copied, because a decompressed section does not live as
/// long as the file.
fn read_formats(dat: &mut TraceDat<'_>, id: u16, contents: &[u8], offset: u64) -> Result<()> {
    let mut c = HeaderReader::new(contents, offset, dat.layout.endian, "event formats");
    c.each_format(id == option::FTRACE_EVENTS, &mut |system, text| {
        dat.add_format(system, Cow::Owned(text.to_vec()));
    })
}

/// Reads a BUFFER option, which says where the pages of one ftrace instance's CPUs lie.
fn read_buffer(dat: &mut TraceDat<'_>, compression: Compression, data: &[u8]) -> Result<()> {
    let mut c = HeaderReader::new(data, 0, dat.layout.endian, "a BUFFER option");
    let offset = c.u64()?;
    let instance = String::from_utf8_lossy(c.text()?).into_owned();
    let clock = String::from_utf8_lossy(c.text()?).into_owned();
    let page_size = c.u32()?;
    if !is_sub_buffer_size(page_size) {
        return Err(c.bad(format!("a page size of {page_size} bytes cannot be")));
    }
    let mut header = HeaderReader::at(dat.file, offset, dat.layout.endian, "a BUFFER section")?;
    header.u16()?;
    let compression = if header.u16()? & SECTION_COMPRESSED != 0 { compression } else { Compression::None };
    if instance.is_empty() && dat.options.clock.is_none() {
        dat.options.set_clock(&clock);
    }
    for _ in 0..c.u32()? {
        let (cpu, offset, size) = (c.u32()?, c.u64()?, c.u64()?);
        dat.add_cpu_data(CpuDataRange { cpu, offset, size, page_size, compression });
    }
    Ok(())
}
