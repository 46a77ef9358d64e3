//! Opens a trace.dat: recognizes the file, and reads the header of its version.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io;

use super::error::TraceDatError;
use super::header::{StoredText, TraceDat};
use super::header_reader::HeaderReader;
use super::options::DatOptions;
use super::{v6, v7};
use crate::formats::input::Input;
use crate::formats::unpack_budget::{UnpackBudget, UnpackLimit};
use crate::formats::{Damage, FormatError, Head, OpenedInput, Order, ReadReport, Recording, Sink};
use crate::ftrace::limits::is_sub_buffer_size;
use crate::ftrace::{Endian, PageLayout};
use crate::trace_dat::file_format::MAGIC;

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
            cpu_data: Vec::new(),
            options: DatOptions::default(),
            damage: Vec::new(),
            notes: Vec::new(),
        };
        match dat.version {
            7 => v7::read(&mut dat, c, budget)?,
            _ => v6::read(&mut dat, c)?,
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
    let (mut left, before) = (len, dat.cpu_data.len());
    dat.cpu_data.retain(|range| {
        let there = range.size.min(len.saturating_sub(range.offset));
        let fits = there <= left;
        left -= if fits { there } else { 0 };
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
