//! A trace.dat's header, whatever its version: what was recorded, how, and where each CPU's pages are.

use std::borrow::Cow;
use std::collections::HashMap;

use super::codec::Codec;
use super::cpu::{Release, Stream};
use super::cursor::Cursor;
use super::error::TraceDatError;
use super::{v6, v7};
use crate::clock::Clock;
use crate::formats::{Damage, Head};
use crate::ftrace::print_fmt::{Loader, Symbolizer};
use crate::ftrace::{Endian, EventFormat, PageLayout};
use crate::trace_dat::RecorderInfo;
use crate::trace_dat::layout::{MAGIC, option};

/// Whether these are the first bytes of a trace.dat.
pub fn detect(start: &[u8]) -> bool {
    start.starts_with(MAGIC)
}

/// An opened trace.dat: its header is read, its events are not yet.
pub struct TraceDat<'a> {
    pub(super) file: &'a [u8],
    pub(super) release: Option<&'a dyn Release>,
    pub(super) version: u8,
    /// The compression's name in version 7, empty for none.
    pub(super) compression: String,
    pub(super) layout: PageLayout,
    /// System and text of each event format.
    pub(super) formats: Vec<(String, Cow<'a, [u8]>)>,
    /// Event id to index into `formats`.
    pub(super) by_id: HashMap<u16, usize>,
    pub(super) kallsyms: Packed<'a>,
    pub(super) printk_formats: Packed<'a>,
    pub(super) cmdlines: Cow<'a, [u8]>,
    pub(super) tgids: Vec<u8>,
    pub(super) streams: Vec<Stream>,
    pub(super) options: Options,
    pub(super) damage: Vec<Damage>,
    pub(super) notes: Vec<String>,
}

/// A text that stands in the file as it is, or in a section that is unpacked when it is wanted: there behind its
/// size as a u32.
#[derive(Debug, Clone, Default)]
pub(super) struct Packed<'a> {
    pub(super) data: Cow<'a, [u8]>,
    /// The section's compression, and its size unpacked.
    pub(super) codec: Option<(Codec, usize)>,
}

impl Packed<'_> {
    fn to_owned(&self) -> Packed<'static> {
        Packed { data: Cow::Owned(self.data.to_vec()), codec: self.codec }
    }

    /// The text; as much of it as there is where the section is damaged.
    fn unpack(&self, endian: Endian) -> Vec<u8> {
        let Some((codec, size)) = self.codec else { return self.data.to_vec() };
        let mut out = Vec::new();
        let _ = codec.unpack(&self.data, size, &mut out);
        let len = out.get(..4).and_then(|size| endian.uint(size)).unwrap_or(0);
        out.drain(..out.len().min(4));
        out.truncate(usize::try_from(len).unwrap_or(usize::MAX));
        out
    }
}

/// What the options say.
#[derive(Debug, Default)]
pub(super) struct Options {
    pub(super) clock: Option<String>,
    pub(super) uname: Option<String>,
    pub(super) recorder: Option<String>,
    pub(super) cpus: Option<u32>,
    pub(super) stats: Vec<CpuStat>,
    pub(super) extra: RecorderInfo,
    pub(super) time: TimeFix,
}

/// What a `per_cpu/cpuN/stats` file says was lost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct CpuStat {
    pub(super) cpu: u32,
    pub(super) lost: u64,
}

/// From a page's time to the file's time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct TimeFix {
    /// ns added.
    pub(super) offset: i64,
    /// Whether the offset makes it the wall clock.
    pub(super) wall: bool,
    /// Ticks to ns: multiplier, shift, ns added.
    pub(super) counter: Option<(u32, u32, u64)>,
}

impl TimeFix {
    #[inline]
    pub(super) fn apply(&self, ts: u64) -> u64 {
        let ns = match self.counter {
            None => ts,
            Some((mult, shift, offset)) => {
                // As trace-cmd does it: 128 bits between, so that no tick overflows.
                let wide = (u128::from(ts) * u128::from(mult)).checked_shr(shift).unwrap_or(0);
                (wide as u64).wrapping_add(offset)
            }
        };
        ns.wrapping_add_signed(self.offset)
    }
}

impl std::fmt::Debug for TraceDat<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TraceDat")
            .field("head", &self.head())
            .field("streams", &self.streams)
            .finish_non_exhaustive()
    }
}

impl<'a> TraceDat<'a> {
    /// Reads the header of a trace.dat, version 6 or 7. A file that ends early still opens if its table of CPUs
    /// is there; what is missing is then in the report's damage.
    pub fn open(file: &'a [u8]) -> Result<TraceDat<'a>, TraceDatError> {
        if file.is_empty() {
            return Err(TraceDatError::Empty);
        }
        let mut c = Cursor::new(file, 0, Endian::Little, "the first header");
        if !detect(file) && !MAGIC.starts_with(file) {
            return Err(TraceDatError::NotTraceDat);
        }
        c.expect(MAGIC)?;
        let version = c.text()?;
        let reader = match version {
            b"6" => v6::read,
            b"7" => v7::read,
            other => return Err(TraceDatError::Version(String::from_utf8_lossy(other).into_owned())),
        };
        c.endian = if c.u8()? == 0 { Endian::Little } else { Endian::Big };
        let long_size = c.u8()?;
        let page_size = c.u32()?;
        if !(64..=4 << 20).contains(&page_size) {
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
            kallsyms: Packed::default(),
            printk_formats: Packed::default(),
            cmdlines: Cow::Borrowed(&[]),
            tgids: Vec::new(),
            streams: Vec::new(),
            options: Options::default(),
            damage: Vec::new(),
            notes: Vec::new(),
        };
        reader(&mut dat, c)?;
        dat.drop_overlapping_streams();
        Ok(dat)
    }

    /// No honest table of CPUs names more bytes than the file has; one that names the same bytes for thousands of CPUs
    /// would cost hours.
    fn drop_overlapping_streams(&mut self) {
        let len = self.file.len() as u64;
        let (mut left, before) = (len, self.streams.len());
        self.streams.retain(|stream| {
            let there = stream.size.min(len.saturating_sub(stream.offset));
            let fits = there <= left;
            left -= if fits { there } else { 0 };
            fits
        });
        let dropped = before - self.streams.len();
        if dropped > 0 {
            let what =
                format!("the table of CPUs names the same bytes more than once: {dropped} CPUs are left out");
            self.damage.push(Damage { offset: 0, what });
        }
    }

    /// From now on, tells `release` what a reading has done with: so that a mapped file larger than memory need not
    /// stay in it.
    pub fn set_release(&mut self, release: &'a dyn Release) {
        self.release = Some(release);
    }

    /// What the file says of itself.
    pub fn head(&self) -> Head {
        let how =
            if self.compression.is_empty() { String::new() } else { format!(" ({})", self.compression) };
        Head {
            format: format!("trace.dat v{}{how}", self.version),
            clock: self.clock(),
            precision: 9,
            snapshots: self.options.extra.snapshots.clone(),
            cpus: self.options.cpus.or_else(|| self.streams.iter().map(|s| s.cpu.saturating_add(1)).max()),
            machine: self.options.uname.clone(),
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

    /// The program and version that recorded, where the file says it.
    pub fn recorder(&self) -> Option<&str> {
        self.options.recorder.as_deref()
    }

    /// The text of the recording machine's `/proc/kallsyms`; empty if it was not recorded.
    pub fn kallsyms(&self) -> Vec<u8> {
        self.kallsyms.unpack(self.layout.endian)
    }

    /// The text of tracefs' `printk_formats`; empty if it was not recorded.
    pub fn printk_formats(&self) -> Vec<u8> {
        self.printk_formats.unpack(self.layout.endian)
    }

    /// What prints records as the recording kernel would.
    pub fn context(&self) -> Symbolizer {
        let endian = self.layout.endian;
        let loader = |packed: &Packed<'_>| -> Loader {
            let packed = packed.to_owned();
            Box::new(move || packed.unpack(endian))
        };
        Symbolizer::new(self.layout.commit_size as u8, loader(&self.kallsyms), loader(&self.printk_formats))
    }

    /// The CPUs that have events in this file, in growing order.
    pub fn cpus(&self) -> Vec<u32> {
        let mut cpus: Vec<u32> = self.streams.iter().filter(|s| s.size > 0).map(|s| s.cpu).collect();
        cpus.sort_unstable();
        cpus.dedup();
        cpus
    }

    /// Bytes of each CPU's pages as the file holds them.
    pub fn bytes_of(&self, cpu: u32) -> u64 {
        self.streams.iter().filter(|s| s.cpu == cpu).map(|s| s.size).sum()
    }

    /// The formats of the events that may be in it, unparsed: system, text.
    pub fn event_formats(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.formats.iter().map(|(system, text)| (system.as_str(), text.as_ref()))
    }

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
                self.notes.push(format!("an event format of system `{system}` has no id and was passed over"))
            }
        }
    }

    /// `header_page`, a u64 size and its text; then the same for `header_event`.
    pub(super) fn read_header_info(&mut self, c: &mut Cursor<'_>) -> Result<(), TraceDatError> {
        use crate::trace_dat::layout::{HEADER_EVENT, HEADER_PAGE};
        c.what = "header_page";
        c.expect(HEADER_PAGE)?;
        let text = String::from_utf8_lossy(c.sized64()?);
        // Empty from kernels before 2.6.31: they had the usual layout.
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

    /// One option that both versions have. `false` if it is not one of those.
    pub(super) fn read_option(&mut self, id: u16, data: &[u8]) -> bool {
        let text = || String::from_utf8_lossy(data).trim_end_matches('\0').trim().to_owned();
        let mut c = Cursor::new(data, 0, self.layout.endian, "an option");
        match id {
            option::DATE => {
                self.options.time.offset =
                    self.options.time.offset.wrapping_add(number(&text()).wrapping_mul(1000));
                self.options.time.wall = true;
            }
            option::OFFSET => {
                self.options.time.offset = self.options.time.offset.wrapping_add(number(&text()));
                self.notes.push(format!("its option OFFSET shifts all times by {} ns", text()));
            }
            option::CPUSTAT => self.options.stats.extend(parse_stats(&text())),
            option::TRACECLOCK => self.set_clock(&text()),
            option::UNAME => self.options.uname = Some(text()),
            option::VERSION => self.options.recorder = Some(text()),
            option::CPUCOUNT if data.len() > 8 => self.tgids = data.to_vec(),
            option::CPUCOUNT => self.options.cpus = c.u32().ok(),
            option::TSC2NSEC => {
                self.options.time.counter = c.u32().and_then(|mult| Ok((mult, c.u32()?, c.u64()?))).ok();
                self.notes
                    .push("times are counter ticks turned into ns by the file's TSC2NSEC option".into());
            }
            option::TIME_SHIFT => {
                self.notes
                    .push("recorded in a guest: its correction to the host's time is not applied".into());
            }
            option::GUEST => {
                let name = c.text().map(String::from_utf8_lossy).unwrap_or_default();
                self.notes.push(format!("guest `{name}` was recorded along, into a file of its own"));
            }
            option::SAVED_TGIDS => self.tgids = data.to_vec(),
            option::CLOCK_SNAPSHOTS => match serde_json::from_str(&text()) {
                Ok(extra) => self.options.extra = extra,
                Err(error) => self.notes.push(format!("its clock snapshots cannot be read: {error}")),
            },
            _ => return false,
        }
        true
    }

    /// Takes the text of tracefs' `trace_clock`, in which the chosen clock is bracketed, or just its name.
    pub(super) fn set_clock(&mut self, text: &str) {
        let chosen = match text.split_once('[') {
            Some((_, rest)) => rest.split(']').next().unwrap_or_default(),
            None => text,
        };
        if !chosen.is_empty() {
            self.options.clock = Some(chosen.to_owned());
        }
    }
}

/// A number as C's `strtoll(…, 0)` takes it.
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

fn parse_stats(text: &str) -> Option<CpuStat> {
    let mut stat = None;
    for line in text.lines() {
        let Some((key, value)) = line.split_once(':') else { continue };
        let value = value.trim().parse::<u64>();
        match (key.trim(), value) {
            ("CPU", Ok(cpu)) => stat = Some(CpuStat { cpu: u32::try_from(cpu).ok()?, lost: 0 }),
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
    fn what_a_cpu_lost_is_the_sum_of_its_stats() {
        let text = "CPU: 3\nentries: 5\noverrun: 10\ncommit overrun: 2\nbytes: 9\ndropped events: 1\n";
        assert_eq!(parse_stats(text), Some(CpuStat { cpu: 3, lost: 13 }));
        assert_eq!(parse_stats("nonsense"), None);
    }

    #[test]
    fn ticks_become_ns_without_overflow() {
        let fix = TimeFix { offset: -5, wall: false, counter: Some((3 << 30, 32, 100)) };
        assert_eq!(fix.apply(1 << 40), (3 << 38) + 95);
        assert_eq!(TimeFix::default().apply(7), 7);
        assert_eq!(TimeFix { counter: Some((1, 200, 0)), ..TimeFix::default() }.apply(7), 0);
    }

    #[test]
    fn empty_foreign_and_short_files_are_told_apart() {
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
