//! Reads trace-cmd's `trace.dat`, versions 6 and 7.
//!
//! This file recognizes a trace.dat, and reads the header of its version into a [`TraceDat`]. `read.rs` reads
//! the events, with the records of each CPU from `cpu_data.rs` and the names of threads from
//! `event_names.rs`.

mod cpu_data;
mod dat_tail;
mod event_names;
mod follow;
mod growing;
mod header;
mod page_position;
mod read;

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::io;

use self::cpu_data::{Compression, CpuDataRange};
use self::header::{DatOptions, HeaderReader, HeaderResult, StoredText};
use crate::formats::input::Input;
use crate::formats::unpack_budget::{UnpackBudget, UnpackLimit};
use crate::formats::{Damage, FormatError, Head, OpenedInput, Order, ReadReport, Recording, Sink};
use crate::ftrace::page_format::{MAX_CPUS, is_sub_buffer_size};
use crate::ftrace::{Endian, PageLayout};
use crate::ids::Cpu;
use crate::trace_dat::{
    MAGIC, SECTION_COMPRESSED, SECTION_HEADER_BYTES, V6_FLYRECORD, V6_LATENCY, V6_OPTIONS, option,
};

pub(crate) use follow::{FollowedDat, FollowedPage};
pub(crate) use growing::{GrowingDat, GrowingStep};
pub use header::{TraceDat, TraceDatError};

/// Whether a file that starts with these bytes is a trace.dat.
pub fn detect(start: &[u8]) -> bool {
    start.starts_with(MAGIC)
}

impl<'a> TraceDat<'a> {
    /// Reads the header of a trace.dat, version 6 or 7. A file that ends early still opens if it has its
    /// table of CPUs. The report's damage then says what is missing.
    ///
    /// # Errors
    /// Returns [`TraceDatError`] where no event of the file can be read.
    pub fn open(file: &'a [u8]) -> Result<TraceDat<'a>, TraceDatError> {
        TraceDat::open_within(file, &UnpackLimit::default().budget(file.len() as u64))
    }

    /// The same as [`TraceDat::open`], with a limit on what the header's sections may unpack to.
    pub fn open_within(file: &'a [u8], budget: &UnpackBudget) -> Result<TraceDat<'a>, TraceDatError> {
        if file.is_empty() {
            return Err(TraceDatError::Empty);
        }
        let mut c = HeaderReader::new(file, 0, Endian::Little, "the first header");
        if !detect(file) && !MAGIC.starts_with(file) {
            return Err(TraceDatError::NotTraceDat);
        }
        c.expect(MAGIC)?;
        let version = c.text()?;
        if !matches!(version, b"6" | b"7") {
            return Err(TraceDatError::Version(String::from_utf8_lossy(version).into_owned()));
        }
        c.endian = if c.u8()? == 0 { Endian::Little } else { Endian::Big };
        let long_size = c.u8()?;
        let page_size = c.u32()?;
        if !is_sub_buffer_size(page_size) {
            return Err(c.bad(format!("a page size of {page_size} bytes cannot be")));
        }
        let mut dat = TraceDat {
            file,
            release: None,
            version: if version == b"7" { 7 } else { 6 },
            compression: String::new(),
            layout: PageLayout::usual(c.endian, long_size, page_size),
            formats: Vec::new(),
            by_id: HashMap::new(),
            kallsyms: StoredText::default(),
            printk_formats: StoredText::default(),
            cmdlines: Cow::Borrowed(&[]),
            tail_at: None,
            cpu_data: Vec::new(),
            options: DatOptions::default(),
            damage: Vec::new(),
            notes: Vec::new(),
        };
        match dat.version {
            7 => read_v7(&mut dat, c, budget)?,
            _ => read_v6(&mut dat, c)?,
        }
        drop_overlapping_data(&mut dat);
        Ok(dat)
    }
}

/// Drops each CPU whose data, added to that of the CPUs that were kept before it, is larger than the file:
/// the table then names the same bytes more than once. No writer makes such a table. Reading the same bytes
/// for thousands of CPUs would take hours.
fn drop_overlapping_data(dat: &mut TraceDat<'_>) {
    let len = dat.file.len() as u64;
    let before = dat.cpu_data.len();
    let mut left = len;
    dat.cpu_data.retain(|range| {
        let present = range.size.min(len.saturating_sub(range.offset));
        let fits = present <= left;
        left -= if fits { present } else { 0 };
        fits
    });
    let dropped = before - dat.cpu_data.len();
    if dropped > 0 {
        let what =
            format!("the table of CPUs names the same bytes more than once: {dropped} CPUs are left out");
        dat.damage.push(Damage { offset: 0, what });
    }
}

struct DatRecording<'a> {
    dat: TraceDat<'a>,
    head: Head,
}

/// Opens `input` as a trace.dat. Parts of the file that have been read are released from memory.
pub(in crate::formats) fn open(input: &Input) -> Result<OpenedInput<'_>, FormatError> {
    let mut dat = TraceDat::open_within(input, &input.unpack_budget)?;
    dat.set_release(input);
    let head = dat.head();
    Ok(OpenedInput::Recording(Box::new(DatRecording { dat, head })))
}

impl Recording for DatRecording<'_> {
    fn head(&self) -> &Head {
        &self.head
    }

    fn read(&self, order: Order, sink: &mut dyn Sink) -> io::Result<ReadReport> {
        self.dat.read(order, sink)
    }
}

/// Bytes of the section name that precedes the options, the table of CPUs, or a text.
const V6_SECTION_NAME_BYTES: u64 = V6_OPTIONS.len() as u64;

/// Reads the header of a version 6 file from the page size on. All parts follow each other.
fn read_v6<'a>(dat: &mut TraceDat<'a>, mut c: HeaderReader<'a>) -> HeaderResult<()> {
    dat.read_header_info(&mut c)?;
    c.what = "the event formats";
    for ftrace in [true, false] {
        c.each_format(ftrace, &mut |system, text| dat.add_format(system, Cow::Borrowed(text)))?;
    }
    c.what = "kallsyms";
    dat.kallsyms.data = Cow::Borrowed(c.sized32()?);
    c.what = "the printk formats";
    dat.printk_formats.data = Cow::Borrowed(c.sized32()?);
    c.what = "the saved command lines";
    dat.tail_at = Some(c.offset());
    dat.cmdlines = Cow::Borrowed(c.sized64()?);
    c.what = "the table of CPUs";
    let cpus = c.u32()?;
    if cpus > MAX_CPUS {
        return Err(c.bad(format!("{cpus} CPUs cannot be")));
    }
    let mut instances = Vec::new();
    let mut section = c.bytes(V6_SECTION_NAME_BYTES)?;
    if section == V6_OPTIONS {
        c.what = "the options";
        read_v6_options(dat, &mut c, &mut instances)?;
        section = c.bytes(V6_SECTION_NAME_BYTES)?;
    }
    if section == V6_LATENCY {
        return Err(TraceDatError::Text { offset: c.offset() });
    }
    if section != V6_FLYRECORD {
        return Err(c.bad("neither `flyrecord` nor `latency` where the table of CPUs should be".into()));
    }
    read_v6_cpu_table(dat, &mut c, cpus, "")?;
    for (name, offset) in instances {
        let table = HeaderReader::at(dat.file, offset, dat.layout.endian, "an instance's table of CPUs");
        if let Err(error) = table.and_then(|mut c| {
            c.expect(V6_FLYRECORD)?;
            read_v6_cpu_table(dat, &mut c, cpus, &name)
        }) {
            dat.note_damage(error);
        }
    }
    Ok(())
}

fn read_v6_options(
    dat: &mut TraceDat<'_>,
    c: &mut HeaderReader<'_>,
    instances: &mut Vec<(String, u64)>,
) -> HeaderResult<()> {
    loop {
        let id = c.u16()?;
        if id == option::DONE {
            return Ok(());
        }
        let data = c.sized32()?;
        if id == option::BUFFER {
            let mut payload =
                HeaderReader::new(data, c.offset() - data.len() as u64, c.endian, "a BUFFER option");
            let offset = payload.u64()?;
            instances
                .push((String::from_utf8_lossy(payload.text().unwrap_or_default()).into_owned(), offset));
        } else {
            dat.options.read(id, data, dat.layout.endian, &mut dat.notes);
        }
    }
}

/// Reads the table of CPUs: a u64 offset and a u64 size for each. In a file that has a TRACECLOCK option, the
/// text of `trace_clock` follows behind its u64 length.
fn read_v6_cpu_table(
    dat: &mut TraceDat<'_>,
    c: &mut HeaderReader<'_>,
    cpus: u32,
    instance: &str,
) -> HeaderResult<()> {
    c.what = "the table of CPUs";
    let settle = dat.options.recorder_info.settle.as_ref().filter(|_| instance.is_empty());
    let settled = settle.and_then(|settle| settle.offsets_in(dat.file.len() as u64));
    for cpu in (0..cpus).map(Cpu) {
        let mut offset = c.u64()?;
        let size = c.u64()?;
        // A recorder that was killed while it removed the holes from its file left wrong offsets in the
        // table.
        if let Some(settled) = settled.as_ref().and_then(|offsets| offsets.get(cpu.index())) {
            offset = *settled;
        }
        let page_size = dat.layout.size;
        dat.add_cpu_data(CpuDataRange { cpu, offset, size, page_size, compression: Compression::None });
    }
    if instance.is_empty() && dat.options.clock.is_none() {
        let clock = c.sized64().ok().filter(|text| text.len() < 4096 && text.contains(&b'['));
        if let Some(clock) = clock {
            dat.options.set_clock(&String::from_utf8_lossy(clock));
        }
    }
    Ok(())
}

/// The most sections of options that are read: a recorder writes a few.
const MAX_OPTION_SECTIONS: usize = 1024;
/// The largest section that is read, bytes after decompression. The largest in practice is kallsyms, with
/// some 15 MiB in a large kernel.
const MAX_SECTION_BYTES: usize = 48 << 20;

/// Reads the header of a version 7 file from the page size on: options that name the offsets of sections,
/// which may be compressed.
fn read_v7<'a>(dat: &mut TraceDat<'a>, mut c: HeaderReader<'a>, budget: &UnpackBudget) -> HeaderResult<()> {
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
    let mut count = 0;
    while next != 0 {
        if count == MAX_OPTION_SECTIONS {
            let what =
                format!("more than {MAX_OPTION_SECTIONS} sections of options: the others are not read");
            dat.note_damage(TraceDatError::Bad { offset: next, what });
            break;
        }
        match read_v7_options(dat, &mut sections, next, &mut buffers) {
            Ok(following) => next = following,
            // The file cannot be read without its first options. Without later ones only a part is missing.
            Err(error) if count == 0 => return Err(error),
            Err(error) => {
                dat.note_damage(error);
                break;
            }
        }
        count += 1;
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
) -> HeaderResult<StoredText<'a>> {
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
    /// The bytes that the sections may still unpack to. The contents of sections that are not compressed
    /// count too: sections may overlap, so that they have more bytes together than the file.
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
) -> HeaderResult<Cow<'a, [u8]>> {
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
fn read_v7_options(
    dat: &mut TraceDat<'_>,
    sections: &mut Sections<'_>,
    offset: u64,
    buffers: &mut Vec<Vec<u8>>,
) -> HeaderResult<u64> {
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
                let section_offset = offset_in_payload();
                if section_offset.as_ref().is_ok_and(|offset| sections.read.contains(offset)) {
                    sections.repeated += 1;
                    continue;
                }
                let read = section_offset.and_then(|offset| read_v7_section(dat, sections, id, offset));
                if let Err(error) = read {
                    dat.note_damage(error);
                }
            }
            _ => dat.options.read(id, data, dat.layout.endian, &mut dat.notes),
        }
    }
}

fn read_v7_section(
    dat: &mut TraceDat<'_>,
    sections: &mut Sections<'_>,
    id: u16,
    offset: u64,
) -> HeaderResult<()> {
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
fn read_formats(dat: &mut TraceDat<'_>, id: u16, contents: &[u8], offset: u64) -> HeaderResult<()> {
    let mut c = HeaderReader::new(contents, offset, dat.layout.endian, "event formats");
    c.each_format(id == option::FTRACE_EVENTS, &mut |system, text| {
        dat.add_format(system, Cow::Owned(text.to_vec()));
    })
}

/// Reads a BUFFER option, which says where the pages of one ftrace instance's CPUs lie.
fn read_buffer(dat: &mut TraceDat<'_>, compression: Compression, data: &[u8]) -> HeaderResult<()> {
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
        let cpu = Cpu(c.u32()?);
        let offset = c.u64()?;
        let size = c.u64()?;
        dat.add_cpu_data(CpuDataRange { cpu, offset, size, page_size, compression });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_foreign_and_short_files_give_different_errors() {
        assert_eq!(TraceDat::open(b"").unwrap_err(), TraceDatError::Empty);
        assert_eq!(TraceDat::open(b"hello").unwrap_err(), TraceDatError::NotTraceDat);
        assert_eq!(
            TraceDat::open(&MAGIC[..5]).unwrap_err(),
            TraceDatError::Cut { offset: 5, what: "the first header" }
        );
        assert_eq!(
            TraceDat::open(b"\x17\x08\x44tracing8\0").unwrap_err(),
            TraceDatError::Version("8".into())
        );
    }
}
