//! The header of a trace.dat of either version: event formats, names, options, and where each CPU's pages
//! lie.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use thiserror::Error;

use super::cpu_data::{Compression, CpuDataRange};
use crate::clock::{Clock, Timestamp};
use crate::formats::{Damage, Head, Release};
use crate::ftrace::print_fmt::{Loader, Symbolizer};
use crate::ftrace::{Endian, EventFormat, PageLayout};
use crate::ids::Cpu;
use crate::trace_dat::RecorderInfo;
use crate::trace_dat::{HEADER_EVENT, HEADER_PAGE, option};

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
    /// Version 6: offset of the saved command lines, from which on a recorder changes the head.
    pub(super) tail_at: Option<u64>,
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
    /// The header without the bytes of the file, whose pages come from elsewhere.
    pub(super) fn into_followed(self) -> TraceDat<'static> {
        let owned = |text: Cow<'a, [u8]>| Cow::Owned(text.into_owned());
        TraceDat {
            file: &[],
            release: None,
            version: self.version,
            compression: self.compression,
            layout: self.layout,
            formats: self.formats.into_iter().map(|(system, text)| (system, owned(text))).collect(),
            by_id: self.by_id,
            kallsyms: self.kallsyms.to_owned(),
            printk_formats: self.printk_formats.to_owned(),
            cmdlines: owned(self.cmdlines),
            tail_at: self.tail_at,
            cpu_data: Vec::new(),
            options: self.options,
            damage: self.damage,
            notes: self.notes,
        }
    }

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

    /// The number of CPUs. An entry of the table that stands for no CPU is not counted.
    fn cpus(&self) -> Option<u32> {
        let cpus = self.options.cpus.or_else(|| self.cpu_data.iter().map(|s| s.cpu.count_if_last()).max())?;
        let rings = self.options.recorder_info.rings.as_ref();
        Some(if rings.is_some_and(|rings| rings.cpu.count_if_last() == cpus) { cpus - 1 } else { cpus })
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
                self.notes.push(format!("an event format of subsystem `{system}` has no id and is skipped"));
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

/// The reason why no event of a trace.dat can be read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TraceDatError {
    /// The file has no bytes.
    #[error("the file is empty: the recording was never written, or the copy failed")]
    Empty,
    /// The file does not begin with trace-cmd's magic bytes.
    #[error("not a trace.dat: it does not begin with trace-cmd's magic bytes")]
    NotTraceDat,
    /// The file's version is neither 6 nor 7.
    #[error(
        "trace.dat version {0:?} is not known (6 and 7 are); convert it with `trace-cmd convert --file-version 7`"
    )]
    Version(String),
    /// The file ends inside a part that is needed to read any event.
    #[error(
        "cut at byte {offset}, inside {what}: no events can be read; copy the file again from the device"
    )]
    Cut {
        /// Bytes from the start of the file.
        offset: u64,
        /// The part that ends too early.
        what: &'static str,
    },
    /// The file states an impossible value.
    #[error("at byte {offset}: {what}")]
    Bad {
        /// Bytes from the start of the file.
        offset: u64,
        /// The fault, for people.
        what: String,
    },
    /// The file is a `latency` file, which has text instead of pages.
    #[error("holds tracefs' `trace` as text from byte {offset} on, not pages: cut the text out with `tail -c +{next}` and read that", next = offset + 1)]
    Text {
        /// Offset of the text, bytes from the start of the file.
        offset: u64,
    },
}

/// A position in some bytes of the file, or of a decompressed section.
#[derive(Debug, Clone)]
pub(super) struct HeaderReader<'a> {
    data: &'a [u8],
    /// Offset in `data`.
    at: usize,
    /// Offset of `data` in the file.
    base: u64,
    pub(super) endian: Endian,
    /// The part of the header that is being read, for errors.
    pub(super) what: &'static str,
}

/// The result of reading a part of the header.
pub(super) type HeaderResult<T> = Result<T, TraceDatError>;

impl<'a> HeaderReader<'a> {
    pub(super) fn new(data: &'a [u8], base: u64, endian: Endian, what: &'static str) -> HeaderReader<'a> {
        HeaderReader { data, at: 0, base, endian, what }
    }

    /// A reader of the whole file that starts at `offset`.
    pub(super) fn at(
        file: &'a [u8],
        offset: u64,
        endian: Endian,
        what: &'static str,
    ) -> HeaderResult<HeaderReader<'a>> {
        let start = usize::try_from(offset).ok().filter(|s| *s < file.len());
        let Some(start) = start else { return Err(TraceDatError::Cut { offset: file.len() as u64, what }) };
        Ok(HeaderReader { data: file, at: start, base: 0, endian, what })
    }

    /// Bytes from the start of the file.
    pub(super) fn offset(&self) -> u64 {
        self.base + self.at as u64
    }

    pub(super) fn cut(&self) -> TraceDatError {
        TraceDatError::Cut { offset: self.base + self.data.len() as u64, what: self.what }
    }

    pub(super) fn bad(&self, what: String) -> TraceDatError {
        TraceDatError::Bad { offset: self.offset(), what }
    }

    pub(super) fn bytes(&mut self, len: u64) -> HeaderResult<&'a [u8]> {
        let end = usize::try_from(len).ok().and_then(|len| self.at.checked_add(len));
        let got = end.and_then(|end| self.data.get(self.at..end)).ok_or_else(|| self.cut())?;
        self.at += got.len();
        Ok(got)
    }

    fn uint(&mut self, len: u64) -> HeaderResult<u64> {
        let bytes = self.bytes(len)?;
        Ok(self.endian.uint(bytes).unwrap_or_default())
    }

    pub(super) fn u8(&mut self) -> HeaderResult<u8> {
        Ok(self.uint(1)? as u8)
    }

    pub(super) fn u16(&mut self) -> HeaderResult<u16> {
        Ok(self.uint(2)? as u16)
    }

    pub(super) fn u32(&mut self) -> HeaderResult<u32> {
        Ok(self.uint(4)? as u32)
    }

    pub(super) fn u64(&mut self) -> HeaderResult<u64> {
        self.uint(8)
    }

    /// Reads a text that ends with a NUL, and skips the NUL.
    pub(super) fn text(&mut self) -> HeaderResult<&'a [u8]> {
        let rest = self.data.get(self.at..).unwrap_or_default();
        let len = rest.iter().position(|b| *b == 0).ok_or_else(|| self.cut())?;
        self.at += len + 1;
        Ok(&rest[..len])
    }

    /// Skips `wanted`, or returns an error where other bytes follow.
    pub(super) fn expect(&mut self, wanted: &[u8]) -> HeaderResult<()> {
        let start = self.offset();
        if self.bytes(wanted.len() as u64)? != wanted {
            let what = format!("`{}` expected", wanted.trim_ascii_end().escape_ascii());
            return Err(TraceDatError::Bad { offset: start, what });
        }
        Ok(())
    }

    /// Reads a u32 length and as many bytes.
    pub(super) fn sized32(&mut self) -> HeaderResult<&'a [u8]> {
        let len = self.u32()?;
        self.bytes(len.into())
    }

    /// Reads a u64 length and as many bytes.
    pub(super) fn sized64(&mut self) -> HeaderResult<&'a [u8]> {
        let len = self.u64()?;
        self.bytes(len)
    }

    /// Reads a list of event formats, and calls `each` with the subsystem and the text of each format.
    ///
    /// The list of the subsystem `ftrace` is a u32 count, and then each text behind its u64 length. The list
    /// of all other subsystems is a u32 count of subsystems, and then for each the name and such a list.
    pub(super) fn each_format(
        &mut self,
        ftrace: bool,
        each: &mut dyn FnMut(&str, &'a [u8]),
    ) -> HeaderResult<()> {
        let systems = if ftrace { 1 } else { self.u32()? };
        for _ in 0..systems {
            let system = if ftrace { "ftrace".into() } else { String::from_utf8_lossy(self.text()?) };
            for _ in 0..self.u32()? {
                each(&system, self.sized64()?);
            }
        }
        Ok(())
    }
}

/// The contents of a trace.dat's options.
#[derive(Debug, Default)]
pub(super) struct DatOptions {
    pub(super) clock: Option<String>,
    pub(super) uname: Option<String>,
    pub(super) cpus: Option<u32>,
    pub(super) stats: Vec<RecordedCpuStats>,
    pub(super) recorder_info: RecorderInfo,
    /// Whether tracebridge's recorder has begun this file and not ended it.
    pub(super) is_unfinished: bool,
    pub(super) time: TimeCorrection,
    /// Text of `saved_tgids`: lines of a thread id and its process id.
    pub(super) tgids: Vec<u8>,
}

/// The losses in a `per_cpu/cpuN/stats` file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct RecordedCpuStats {
    pub(super) cpu: Cpu,
    /// Number of events that the CPU's buffer lost.
    pub(super) lost: u64,
}

/// The conversion of a page's time to the time of the event.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct TimeCorrection {
    /// The ns to add after ticks have been converted.
    pub(super) offset: i64,
    /// Whether the offset turns the time into wall-clock time.
    pub(super) wall: bool,
    /// The conversion of ticks to ns: multiplier, shift, and the ns to add.
    pub(super) counter: Option<(u32, u32, u64)>,
}

impl TimeCorrection {
    /// Turns a time of the pages' clock into one of the recording's, ns.
    #[inline]
    pub(super) fn apply(&self, page_time: Timestamp) -> Timestamp {
        let ns = match self.counter {
            None => page_time.0,
            Some((mult, shift, offset)) => {
                // trace-cmd computes with 128 bits too, so that no number of ticks overflows.
                let wide = (u128::from(page_time.0) * u128::from(mult)).checked_shr(shift).unwrap_or(0);
                (wide as u64).wrapping_add(offset)
            }
        };
        Timestamp(ns.wrapping_add_signed(self.offset))
    }
}

impl DatOptions {
    /// Reads one option. Facts that a user should know are added to `notes`. An unknown option is skipped.
    pub(super) fn read(&mut self, id: u16, data: &[u8], endian: Endian, notes: &mut Vec<String>) {
        let text = || String::from_utf8_lossy(data).trim_end_matches('\0').trim().to_owned();
        let mut c = HeaderReader::new(data, 0, endian, "an option");
        match id {
            option::DATE => {
                self.time.offset = self.time.offset.wrapping_add(number(&text()).wrapping_mul(1000));
                self.time.wall = true;
            }
            option::OFFSET => {
                self.time.offset = self.time.offset.wrapping_add(number(&text()));
                notes.push(format!("the file's option OFFSET shifts all times by {} ns", text()));
            }
            option::CPUSTAT => self.stats.extend(parse_stats(&text())),
            option::TRACECLOCK => self.set_clock(&text()),
            option::UNAME => self.uname = Some(text()),
            option::CPUCOUNT if data.len() > 8 => self.tgids = data.to_vec(),
            option::CPUCOUNT => self.cpus = c.u32().ok(),
            option::TSC2NSEC => {
                self.time.counter = c.u32().and_then(|mult| Ok((mult, c.u32()?, c.u64()?))).ok();
                notes.push("times are counter ticks turned into ns by the file's TSC2NSEC option".into());
            }
            option::TIME_SHIFT => {
                notes.push(
                    "recorded in a virtual machine: the correction to the host's time is not applied".into(),
                );
            }
            option::GUEST => {
                let name = c.text().map(String::from_utf8_lossy).unwrap_or_default();
                notes.push(format!(
                    "virtual machine `{name}` was recorded at the same time, into another file"
                ));
            }
            option::SAVED_TGIDS => self.tgids = data.to_vec(),
            option::CLOCK_SNAPSHOTS => match serde_json::from_str::<RecorderInfo>(&text()) {
                Ok(info) => {
                    self.is_unfinished = !info.complete;
                    self.recorder_info = info;
                }
                Err(error) => notes.push(format!("the file's clock snapshots cannot be read: {error}")),
            },
            _ => {}
        }
    }

    /// Sets the clock. `text` is the clock's name, or the content of tracefs' file `trace_clock`, which has
    /// the chosen clock in brackets.
    pub(super) fn set_clock(&mut self, text: &str) {
        let chosen = match text.split_once('[') {
            Some((_, rest)) => rest.split(']').next().unwrap_or_default(),
            None => text,
        };
        if !chosen.is_empty() {
            self.clock = Some(chosen.to_owned());
        }
    }
}

/// Parses a number as C's `strtoll(…, 0)` does, except for octal numbers. A text that is no number gives 0.
fn number(text: &str) -> i64 {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let value = match digits.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16),
        None => digits.parse(),
    };
    let value = value.unwrap_or(0) as i64;
    if negative { value.wrapping_neg() } else { value }
}

/// Parses the text of `per_cpu/cpuN/stats`. `None` where the text does not name its CPU.
fn parse_stats(text: &str) -> Option<RecordedCpuStats> {
    let mut stat = None;
    for line in text.lines() {
        let Some((key, value)) = line.split_once(':') else { continue };
        let value = value.trim().parse::<u64>();
        match (key.trim(), value) {
            ("CPU", Ok(cpu)) => stat = Some(RecordedCpuStats { cpu: Cpu(u32::try_from(cpu).ok()?), lost: 0 }),
            ("overrun" | "commit overrun" | "dropped events", Ok(lost)) => {
                if let Some(stat) = &mut stat {
                    stat.lost = stat.lost.saturating_add(lost);
                }
            }
            _ => {}
        }
    }
    stat
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lost_events_of_a_cpu_are_the_sum_of_its_loss_counters() {
        let text = "CPU: 3\nentries: 5\noverrun: 10\ncommit overrun: 2\nbytes: 9\ndropped events: 1\n";
        assert_eq!(parse_stats(text), Some(RecordedCpuStats { cpu: Cpu(3), lost: 13 }));
        assert_eq!(parse_stats("nonsense"), None);
    }

    #[test]
    fn ticks_become_ns_without_overflow() {
        let fix = TimeCorrection { offset: -5, wall: false, counter: Some((3 << 30, 32, 100)) };
        assert_eq!(fix.apply(Timestamp(1 << 40)), Timestamp((3 << 38) + 95));
        assert_eq!(TimeCorrection::default().apply(Timestamp(7)), Timestamp(7));
        assert_eq!(
            TimeCorrection { counter: Some((1, 200, 0)), ..TimeCorrection::default() }.apply(Timestamp(7)),
            Timestamp(0)
        );
    }
}
