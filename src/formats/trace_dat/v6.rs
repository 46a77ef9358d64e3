//! The header of a version 6 file: everything in one sequence, then the pages.

use std::borrow::Cow;

use super::codec::Codec;
use super::cpu::Stream;
use super::cursor::Cursor;
use super::error::TraceDatError;
use super::file::TraceDat;
use crate::trace_dat::layout::{V6_FLYRECORD, V6_LATENCY, V6_OPTIONS, option};

type Result<T> = std::result::Result<T, TraceDatError>;

/// More CPUs than Linux supports.
const MAX_CPUS: u32 = 8192;

/// Reads all that follows the page size.
pub(super) fn read<'a>(dat: &mut TraceDat<'a>, mut c: Cursor<'a>) -> Result<()> {
    dat.read_header_info(&mut c)?;
    c.what = "the event formats";
    for ftrace in [true, false] {
        each_format(&mut c, ftrace, &mut |system, text| dat.add_format(system, Cow::Borrowed(text)))?;
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
    let mut kind = c.bytes(10)?;
    if kind == V6_OPTIONS {
        c.what = "the options";
        read_options(dat, &mut c, &mut instances)?;
        kind = c.bytes(10)?;
    }
    if kind == V6_LATENCY {
        return Err(TraceDatError::Text { offset: c.offset() });
    }
    if kind != V6_FLYRECORD {
        return Err(c.bad("neither `flyrecord` nor `latency` where the table of CPUs should be".into()));
    }
    read_cpu_table(dat, &mut c, cpus, "")?;
    for (name, offset) in instances {
        let table = Cursor::at(dat.file, offset, dat.layout.endian, "an instance's table of CPUs");
        if let Err(error) = table.and_then(|mut c| {
            c.expect(V6_FLYRECORD)?;
            read_cpu_table(dat, &mut c, cpus, &name)
        }) {
            dat.note_damage(error);
        }
    }
    Ok(())
}

/// Event formats as they stand in both versions. Of the system `ftrace`: u32 count, each a u64 size and a text. Of
/// the others: u32 systems, each its name and such a list.
pub(super) fn each_format<'a>(
    c: &mut Cursor<'a>,
    ftrace: bool,
    each: &mut dyn FnMut(&str, &'a [u8]),
) -> Result<()> {
    let systems = if ftrace { 1 } else { c.u32()? };
    for _ in 0..systems {
        let system = if ftrace { "ftrace".into() } else { String::from_utf8_lossy(c.text()?) };
        for _ in 0..c.u32()? {
            each(&system, c.sized64()?);
        }
    }
    Ok(())
}

fn read_options(
    dat: &mut TraceDat<'_>,
    c: &mut Cursor<'_>,
    instances: &mut Vec<(String, u64)>,
) -> Result<()> {
    loop {
        let id = c.u16()?;
        if id == option::DONE {
            return Ok(());
        }
        let data = c.sized32()?;
        if id == option::BUFFER {
            let mut o = Cursor::new(data, c.offset() - data.len() as u64, c.endian, "a BUFFER option");
            let offset = o.u64()?;
            instances.push((String::from_utf8_lossy(o.text().unwrap_or_default()).into_owned(), offset));
        } else {
            dat.read_option(id, data);
        }
    }
}

/// For each CPU u64 offset and u64 size; then, of files that have a TRACECLOCK option, u64 size and the clock.
fn read_cpu_table(dat: &mut TraceDat<'_>, c: &mut Cursor<'_>, cpus: u32, instance: &str) -> Result<()> {
    c.what = "the table of CPUs";
    for cpu in 0..cpus {
        let (mut offset, size) = (c.u64()?, c.u64()?);
        // A recorder killed while it took the holes out of its file left offsets that no longer fit.
        if let (Some(settle), true) = (&dat.options.extra.settle, instance.is_empty()) {
            offset = settle.offset(cpu as usize, dat.file.len() as u64).unwrap_or(offset);
        }
        dat.streams.push(Stream { cpu, offset, size, page_size: dat.layout.size, codec: Codec::None });
    }
    if instance.is_empty() && dat.options.clock.is_none() {
        let clock = c.sized64().ok().filter(|text| text.len() < 4096 && text.contains(&b'['));
        if let Some(clock) = clock {
            dat.set_clock(&String::from_utf8_lossy(clock));
        }
    }
    Ok(())
}
