//! The header of a trace.dat of either version: event formats, names, options, and where each CPU's pages
//! lie.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use super::compression::Compression;
use super::cpu_data::{CpuDataRange, Release};
use super::error::TraceDatError;
use super::header_reader::HeaderReader;
use super::options::DatOptions;
use crate::clock::Clock;
use crate::formats::{Damage, Head};
use crate::ftrace::print_fmt::{Loader, Symbolizer};
use crate::ftrace::{Endian, EventFormat, PageLayout};
use crate::trace_dat::file_format::{HEADER_EVENT, HEADER_PAGE};

/// An opened trace.dat, of which only the header is read.
pub struct TraceDat<'a> {
    pub(super) file: &'a [u8],
    pub(super) release: Option<&'a dyn Release>,
    pub(super) version: u8,
    /// The compression's name in version 7. It is empty for a file that is not compressed.
    pub(super) compression: String,
    pub(super) layout: PageLayout,
    /// Subsystem and text of each event format.
    pub(super) formats: Vec<(String, Cow<'a, [u8]>)>,
    /// By event id: the index into `formats`.
    pub(super) by_id: HashMap<u16, usize>,
    pub(super) kallsyms: StoredText<'a>,
    pub(super) printk_formats: StoredText<'a>,
    pub(super) cmdlines: Cow<'a, [u8]>,
    pub(super) cpu_data: Vec<CpuDataRange>,
    pub(super) options: DatOptions,
    pub(super) damage: Vec<Damage>,
    pub(super) notes: Vec<String>,
}

/// A long text of the file. It is either plain, or in a section that is decompressed when a reader needs the
/// text. Such a section begins with the length of the text as a u32.
#[derive(Debug, Clone, Default)]
pub(super) struct StoredText<'a> {
    pub(super) data: Cow<'a, [u8]>,
    /// The section's compression, and its size after decompression, bytes. `None` for a plain text.
    pub(super) section: Option<(Compression, usize)>,
}

impl StoredText<'_> {
    fn to_owned(&self) -> StoredText<'static> {
        StoredText { data: Cow::Owned(self.data.to_vec()), section: self.section }
    }

    /// Decompresses the text. Where the section is damaged, the text is cut.
    fn load(&self, endian: Endian) -> Vec<u8> {
        let Some((compression, size)) = self.section else { return self.data.to_vec() };
        let mut out = Vec::new();
        let _ = compression.decompress(&self.data, size, &mut out);
        let len = out.get(..4).and_then(|size| endian.uint(size)).unwrap_or(0);
        out.drain(..out.len().min(4));
        out.truncate(usize::try_from(len).unwrap_or(usize::MAX));
        out
    }
}

impl std::fmt::Debug for TraceDat<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TraceDat")
            .field("head", &self.head())
            .field("cpu_data", &self.cpu_data)
            .finish_non_exhaustive()
    }
}

impl<'a> TraceDat<'a> {
    /// Makes every reading call `release` for bytes that it has read, so that a mapped file may be larger
    /// than memory.
    pub fn set_release(&mut self, release: &'a dyn Release) {
        self.release = Some(release);
    }

    /// The recording's format, clock, number of CPUs and machine, as the header states them.
    pub fn head(&self) -> Head {
        let how =
            if self.compression.is_empty() { String::new() } else { format!(" ({})", self.compression) };
        Head {
            format: format!("trace.dat v{}{how}", self.version),
            clock: self.clock(),
            precision: 9,
            snapshots: self.options.recorder_info.snapshots.clone(),
            cpus: self.cpus(),
            machine: self.options.uname.clone(),
            device: self.options.recorder_info.device.clone(),
            android_sdk: None,
            facts: self.options.recorder_info.machine.clone().map(Arc::new),
        }
    }

    /// The number of CPUs, without the entry of the table that stands for none.
    fn cpus(&self) -> Option<u32> {
        let cpus =
            self.options.cpus.or_else(|| self.cpu_data.iter().map(|s| s.cpu.saturating_add(1)).max())?;
        let rings = self.options.recorder_info.rings.as_ref();
        Some(if rings.is_some_and(|rings| rings.cpu.checked_add(1) == Some(cpus)) { cpus - 1 } else { cpus })
    }

    /// Adds an entry of a table of CPUs. The entry for the markers of rings is left out where it has none.
    pub(super) fn add_cpu_data(&mut self, range: CpuDataRange) {
        let rings = self.options.recorder_info.rings.as_ref();
        if range.size > 0 || rings.is_none_or(|rings| rings.cpu != range.cpu) {
            self.cpu_data.push(range);
        }
    }

    fn clock(&self) -> Clock {
        let time = &self.options.time;
        if time.wall {
            return Clock::Realtime;
        }
        if time.counter.is_some() {
            return Clock::Unknown;
        }
        self.options.clock.as_deref().map_or(Clock::Unknown, Clock::from_trace_clock)
    }

    /// The symbols and texts of the recording kernel, with which records are printed as that kernel would.
    pub(super) fn symbolizer(&self) -> Symbolizer {
        let endian = self.layout.endian;
        let loader = |text: &StoredText<'_>| -> Loader {
            let text = text.to_owned();
            Box::new(move || text.load(endian))
        };
        Symbolizer::new(self.layout.commit_size as u8, loader(&self.kallsyms), loader(&self.printk_formats))
    }

    /// Adds an error that made a part of the file unreadable to the report's damage.
    pub(super) fn note_damage(&mut self, error: TraceDatError) {
        let (offset, what) = match error {
            TraceDatError::Cut { offset, what } => (offset, format!("the file ends inside {what}")),
            TraceDatError::Bad { offset, what } => (offset, what),
            other => (0, other.to_string()),
        };
        self.damage.push(Damage { offset, what });
    }

    pub(super) fn add_format(&mut self, system: &str, text: Cow<'a, [u8]>) {
        let id = std::str::from_utf8(&text[..text.len().min(256)]).ok().and_then(EventFormat::id_of);
        match id {
            Some(id) => {
                self.by_id.entry(id).or_insert(self.formats.len());
                self.formats.push((system.to_owned(), text));
            }
            None => {
                self.notes.push(format!("an event format of subsystem `{system}` has no id and is skipped"))
            }
        }
    }

    /// Reads `header_page` and its text behind a u64 length, then the same for `header_event`.
    pub(super) fn read_header_info(&mut self, c: &mut HeaderReader<'_>) -> Result<(), TraceDatError> {
        c.what = "header_page";
        c.expect(HEADER_PAGE)?;
        let text = String::from_utf8_lossy(c.sized64()?);
        // Kernels before 2.6.31 have no header_page. Their pages have the usual layout.
        if !text.is_empty() {
            match PageLayout::parse(&text, self.layout.endian) {
                Ok(layout) => self.layout = layout,
                Err(error) => return Err(c.bad(error.to_string())),
            }
        }
        c.what = "header_event";
        c.expect(HEADER_EVENT)?;
        c.sized64()?;
        Ok(())
    }
}
