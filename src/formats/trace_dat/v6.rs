//! Reads the header of a version 6 file, in which all parts follow each other.

use std::borrow::Cow;

use super::compression::Compression;
use super::cpu_data::CpuDataRange;
use super::error::TraceDatError;
use super::header::TraceDat;
use super::header_reader::HeaderReader;
use crate::ftrace::limits::MAX_CPUS;
use crate::trace_dat::file_format::{V6_FLYRECORD, V6_LATENCY, V6_OPTIONS, option};

type Result<T> = std::result::Result<T, TraceDatError>;

/// Bytes of the section name that precedes the options, the table of CPUs, or a text.
const V6_SECTION_NAME_BYTES: u64 = V6_OPTIONS.len() as u64;

/// Reads the header from the page size on.
pub(super) fn read<'a>(dat: &mut TraceDat<'a>, mut c: HeaderReader<'a>) -> Result<()> {
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
        read_options(dat, &mut c, &mut instances)?;
        section = c.bytes(V6_SECTION_NAME_BYTES)?;
    }
    if section == V6_LATENCY {
        return Err(TraceDatError::Text { offset: c.offset() });
    }
    if section != V6_FLYRECORD {
        return Err(c.bad("neither `flyrecord` nor `latency` where the table of CPUs should be".into()));
    }
    read_cpu_table(dat, &mut c, cpus, "")?;
    for (name, offset) in instances {
        let table = HeaderReader::at(dat.file, offset, dat.layout.endian, "an instance's table of CPUs");
        if let Err(error) = table.and_then(|mut c| {
            c.expect(V6_FLYRECORD)?;
            read_cpu_table(dat, &mut c, cpus, &name)
        }) {
            dat.note_damage(error);
        }
    }
    Ok(())
}

fn read_options(
    dat: &mut TraceDat<'_>,
    c: &mut HeaderReader<'_>,
    instances: &mut Vec<(String, u64)>,
) -> Result<()> {
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
fn read_cpu_table(dat: &mut TraceDat<'_>, c: &mut HeaderReader<'_>, cpus: u32, instance: &str) -> Result<()> {
    c.what = "the table of CPUs";
    let settle = dat.options.recorder_info.settle.as_ref().filter(|_| instance.is_empty());
    let settled = settle.and_then(|settle| settle.offsets_in(dat.file.len() as u64));
    for cpu in 0..cpus {
        let (mut offset, size) = (c.u64()?, c.u64()?);
        // A recorder that was killed while it removed the holes from its file left wrong offsets in the
        // table.
        if let Some(settled) = settled.as_ref().and_then(|offsets| offsets.get(cpu as usize)) {
            offset = *settled;
        }
        let (page_size, compression) = (dat.layout.size, Compression::None);
        dat.add_cpu_data(CpuDataRange { cpu, offset, size, page_size, compression });
    }
    if instance.is_empty() && dat.options.clock.is_none() {
        let clock = c.sized64().ok().filter(|text| text.len() < 4096 && text.contains(&b'['));
        if let Some(clock) = clock {
            dat.options.set_clock(&String::from_utf8_lossy(clock));
        }
    }
    Ok(())
}
