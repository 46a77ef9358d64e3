//! The header of a version 7 file: options that say where the sections are, which may be compressed.

use std::borrow::Cow;

use super::codec::Codec;
use super::cpu::Stream;
use super::cursor::Cursor;
use super::error::TraceDatError;
use super::file::{Packed, TraceDat};
use super::v6;
use crate::trace_dat::layout::{SECTION_COMPRESSED, SECTION_HEADER, option};

type Result<T> = std::result::Result<T, TraceDatError>;

/// Sections of options that a file may chain; it ends a chain that bites its tail.
const MAX_OPTION_SECTIONS: usize = 1024;
/// The largest section taken, bytes uncompressed. kallsyms, the largest, has some 15 MiB in a large kernel.
const MAX_SECTION: usize = 48 << 20;

/// Reads all that follows the page size.
pub(super) fn read<'a>(dat: &mut TraceDat<'a>, mut c: Cursor<'a>) -> Result<()> {
    c.what = "the compression's name";
    let name = String::from_utf8_lossy(c.text()?).into_owned();
    c.text()?;
    let codec = Codec::named(&name)
        .ok_or_else(|| c.bad(format!("compression `{name}` is not known (none, zlib and zstd are)")))?;
    if codec != Codec::None {
        dat.compression = name;
    }
    c.what = "the options' offset";
    let mut next = c.u64()?;
    let mut buffers = Vec::new();
    let mut first = true;
    for _ in 0..MAX_OPTION_SECTIONS {
        if next == 0 {
            break;
        }
        match read_options(dat, codec, next, &mut buffers) {
            Ok(following) => next = following,
            // Without the first there is nothing; without a later one some of the file is lost.
            Err(error) if first => return Err(error),
            Err(error) => {
                dat.note_damage(error);
                break;
            }
        }
        first = false;
    }
    if buffers.is_empty() {
        return Err(TraceDatError::Cut {
            offset: dat.file.len() as u64,
            what: "the options: no BUFFER is named",
        });
    }
    for data in buffers {
        if let Err(error) = read_buffer(dat, codec, &data) {
            dat.note_damage(error);
        }
    }
    Ok(())
}

/// The section at `offset`, still packed.
fn packed<'a>(dat: &TraceDat<'a>, codec: Codec, offset: u64, what: &'static str) -> Result<Packed<'a>> {
    let mut c = Cursor::at(dat.file, offset, dat.layout.endian, what)?;
    c.u16()?;
    let flags = c.u16()?;
    c.u32()?;
    let size = c.u64()?;
    if flags & SECTION_COMPRESSED == 0 {
        let contents = Cow::Borrowed(c.bytes(size)?);
        return Ok(Packed { codec: Some((Codec::None, contents.len())), data: contents });
    }
    let packed = c.u32()?;
    let unpacked = c.u32()? as usize;
    let data = c.bytes(packed.into())?;
    if unpacked > MAX_SECTION {
        return Err(c.bad(format!("{what} would unpack to {unpacked} bytes")));
    }
    Ok(Packed { data: Cow::Borrowed(data), codec: Some((codec, unpacked)) })
}

/// The contents of the section at `offset`.
fn section<'a>(dat: &TraceDat<'a>, codec: Codec, offset: u64, what: &'static str) -> Result<Cow<'a, [u8]>> {
    let packed = packed(dat, codec, offset, what)?;
    match packed.codec {
        Some((codec, size)) if codec != Codec::None => {
            let mut out = Vec::new();
            codec.unpack(&packed.data, size, &mut out).map_err(|error| TraceDatError::Bad {
                offset: offset + SECTION_HEADER as u64,
                what: format!("{what}: {error}"),
            })?;
            Ok(Cow::Owned(out))
        }
        _ => Ok(packed.data),
    }
}

/// One section of options; hands back the offset of the next.
fn read_options(
    dat: &mut TraceDat<'_>,
    codec: Codec,
    offset: u64,
    buffers: &mut Vec<Vec<u8>>,
) -> Result<u64> {
    let contents = section(dat, codec, offset, "the options")?;
    let mut c = Cursor::new(&contents, offset + SECTION_HEADER as u64, dat.layout.endian, "the options");
    loop {
        let id = c.u16()?;
        let data = c.sized32()?;
        let at = || {
            let mut o = Cursor::new(data, 0, dat.layout.endian, "an option");
            o.u64()
        };
        match id {
            option::DONE => return at(),
            option::BUFFER => buffers.push(data.to_vec()),
            option::BUFFER_TEXT => {
                dat.notes.push("an instance's trace in it is text, and is not read".into());
            }
            option::HEADER_INFO..=option::CMDLINES => {
                if let Err(error) = at().and_then(|offset| read_section(dat, codec, id, offset)) {
                    dat.note_damage(error);
                }
            }
            _ => {
                dat.read_option(id, data);
            }
        }
    }
}

fn read_section(dat: &mut TraceDat<'_>, codec: Codec, id: u16, offset: u64) -> Result<()> {
    // The large one, and its little sister, are unpacked when somebody wants them.
    match id {
        option::KALLSYMS => {
            dat.kallsyms = packed(dat, codec, offset, "kallsyms")?;
            return Ok(());
        }
        option::PRINTK => {
            dat.printk_formats = packed(dat, codec, offset, "the printk formats")?;
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
    let contents = section(dat, codec, offset, what)?;
    let mut c = Cursor::new(&contents, offset, dat.layout.endian, what);
    match id {
        option::HEADER_INFO => dat.read_header_info(&mut c)?,
        option::FTRACE_EVENTS | option::EVENT_FORMATS => read_formats(dat, id, &contents, offset)?,
        _ => dat.cmdlines = Cow::Owned(c.sized64()?.to_vec()),
    }
    Ok(())
}

/// Formats out of a section, which may be a decompressed one and so does not live as long as the file.
fn read_formats(dat: &mut TraceDat<'_>, id: u16, contents: &[u8], offset: u64) -> Result<()> {
    let mut c = Cursor::new(contents, offset, dat.layout.endian, "event formats");
    v6::each_format(&mut c, id == option::FTRACE_EVENTS, &mut |system, text| {
        dat.add_format(system, Cow::Owned(text.to_vec()));
    })
}

/// A BUFFER option: where one instance's CPUs are.
fn read_buffer(dat: &mut TraceDat<'_>, codec: Codec, data: &[u8]) -> Result<()> {
    let mut c = Cursor::new(data, 0, dat.layout.endian, "a BUFFER option");
    let offset = c.u64()?;
    let instance = String::from_utf8_lossy(c.text()?).into_owned();
    let clock = String::from_utf8_lossy(c.text()?).into_owned();
    let page_size = c.u32()?;
    if !(64..=4 << 20).contains(&page_size) {
        return Err(c.bad(format!("a page size of {page_size} bytes cannot be")));
    }
    let mut header = Cursor::at(dat.file, offset, dat.layout.endian, "a BUFFER section")?;
    header.u16()?;
    let codec = if header.u16()? & SECTION_COMPRESSED != 0 { codec } else { Codec::None };
    if instance.is_empty() && dat.options.clock.is_none() {
        dat.set_clock(&clock);
    }
    for _ in 0..c.u32()? {
        let (cpu, offset, size) = (c.u32()?, c.u64()?, c.u64()?);
        dat.streams.push(Stream { cpu, offset, size, page_size, codec });
    }
    Ok(())
}
