//! Encodes the head of a trace.dat v6: everything before the pages of the CPUs.

use super::{HEADER_EVENT, HEADER_PAGE, MAGIC, V6_FLYRECORD, V6_OPTIONS, option};
use crate::ftrace::EventFormat;

/// The contents of the head of a trace.dat.
#[derive(Debug, Clone, Default)]
pub struct Metadata {
    /// Bytes of the recording kernel's `long`.
    pub long_size: u8,
    /// Bytes of one page of the ring buffer (the kernel's sub-buffer).
    pub page_size: u32,
    /// Text of `events/header_page`.
    pub header_page: Vec<u8>,
    /// Text of `events/header_event`.
    pub header_event: Vec<u8>,
    /// Texts of `events/ftrace/*/format`.
    pub ftrace_formats: Vec<Vec<u8>>,
    /// The name of each subsystem, and the `format` texts of its events.
    pub event_formats: Vec<(String, Vec<Vec<u8>>)>,
    /// Text of `/proc/kallsyms`; may be empty.
    pub kallsyms: Vec<u8>,
    /// Text of `printk_formats`; may be empty.
    pub printk_formats: Vec<u8>,
    /// `tid name` lines, as in `saved_cmdlines`.
    pub comms: Vec<u8>,
    /// Options as (id, payload), in the order in which they are written.
    pub options: Vec<(u16, Vec<u8>)>,
    /// Text of `trace_clock`: `local [boot] mono`.
    pub clock: Vec<u8>,
    /// Payload of [`option::CLOCK_SNAPSHOTS`], which is the last option. Where this is empty, the option is
    /// left out.
    pub extra: Vec<u8>,
}

/// Where one CPU's pages lie in the file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CpuData {
    /// Bytes from the start of the file.
    pub offset: u64,
    /// Length, bytes.
    pub size: u64,
}

impl CpuData {
    /// The entry in the table of CPUs.
    pub fn entry(self) -> [u8; CpuData::ENTRY_LEN] {
        let mut out = [0; CpuData::ENTRY_LEN];
        out[..8].copy_from_slice(&self.offset.to_ne_bytes());
        out[8..].copy_from_slice(&self.size.to_ne_bytes());
        out
    }

    /// Bytes of an entry in the table of CPUs.
    pub const ENTRY_LEN: usize = 16;
}

/// A part of the head that may be overwritten with as many bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Slot {
    /// Bytes from the start of the file.
    pub at: u64,
    /// Length, bytes.
    pub len: usize,
}

impl Slot {
    /// Makes `text` as long as the slot: the whole lines that fit, then `padding`. The second value is
    /// true if all of `text` fits.
    pub fn fit(self, text: &[u8], padding: u8) -> (Vec<u8>, bool) {
        let fits = text.len() <= self.len;
        let head = &text[..text.len().min(self.len)];
        let whole =
            if fits { head.len() } else { head.iter().rposition(|b| *b == b'\n').map_or(0, |n| n + 1) };
        let mut out = head[..whole].to_vec();
        out.resize(self.len, padding);
        (out, fits)
    }
}

/// An encoded head, and its parts that change while a recording goes on.
#[derive(Debug, Clone)]
pub struct DatHead {
    /// The bytes from the start of the file up to the pages.
    pub bytes: Vec<u8>,
    /// Where [`Metadata::comms`] lies.
    pub comms: Slot,
    /// Where the payload of each of [`Metadata::options`] lies.
    pub options: Vec<Slot>,
    /// Where [`Metadata::extra`] lies.
    pub extra: Slot,
    /// Where the number of CPUs lies: a u32.
    pub cpus: Slot,
    /// Offset of the first [`CpuData::entry`] in [`DatHead::bytes`].
    pub table_at: u64,
    /// The parts that a version 7 file takes over.
    pub parts: HeadParts,
}

/// Where a version 6 head has the contents of version 7's sections, and the properties of the pages.
#[derive(Debug, Clone, Default)]
pub struct HeadParts {
    /// The contents of each section, by the section's id.
    pub sections: Vec<(u16, Slot)>,
    /// All options, without the end mark.
    pub options: Slot,
    /// The clock's name in ftrace.
    pub clock: String,
    /// Bytes of a page.
    pub page_size: u32,
}

impl Metadata {
    /// The ids of all events that the formats describe.
    pub fn event_ids(&self) -> Vec<u16> {
        let events = self.event_formats.iter().flat_map(|(_, texts)| texts);
        let all = self.ftrace_formats.iter().chain(events);
        all.filter_map(|text| EventFormat::id_of(&String::from_utf8_lossy(text))).collect()
    }

    /// The id of an event, if the formats describe it.
    pub fn event_id(&self, group: &str, name: &str) -> Option<u16> {
        let (_, texts) = self.event_formats.iter().find(|(of, _)| of == group)?;
        let first_line = format!("name: {name}\n");
        let text = texts.iter().find(|text| text.starts_with(first_line.as_bytes()))?;
        EventFormat::id_of(&String::from_utf8_lossy(text))
    }

    /// An upper bound for the bytes of the head, to allocate them at once.
    fn capacity(&self, cpus: usize) -> usize {
        let formats = |texts: &[Vec<u8>]| texts.iter().map(|t| t.len() + 8).sum::<usize>();
        let groups =
            self.event_formats.iter().map(|(name, texts)| name.len() + 8 + formats(texts)).sum::<usize>();
        let texts = [&self.header_page, &self.header_event, &self.kallsyms, &self.printk_formats];
        let texts = texts.into_iter().chain([&self.comms, &self.extra, &self.clock]);
        let options = self.options.iter().map(|(_, payload)| payload.len() + 8).sum::<usize>();
        let texts = texts.map(|t| t.len() + 16).sum::<usize>();
        groups + formats(&self.ftrace_formats) + texts + options + cpus * CpuData::ENTRY_LEN + 256
    }

    /// Encodes the head of version 6 in this machine's byte order.
    ///
    /// The head's length depends only on the lengths of the contents. A slot that is padded to a fixed length
    /// can therefore be filled in later.
    pub fn v6(&self, cpus: &[CpuData]) -> DatHead {
        let mut out = HeadBytes(Vec::with_capacity(self.capacity(cpus.len())));
        out.raw(MAGIC);
        out.raw(b"6\0");
        out.raw(&[u8::from(cfg!(target_endian = "big")), self.long_size]);
        out.u32(self.page_size as usize);
        let mut sections = Vec::new();
        let mut section = |out: &mut HeadBytes, id, write: &dyn Fn(&mut HeadBytes)| {
            let at = out.0.len();
            write(out);
            sections.push((id, out.since(at)));
        };
        section(&mut out, option::HEADER_INFO, &|out| {
            out.raw(HEADER_PAGE);
            out.sized(&self.header_page);
            out.raw(HEADER_EVENT);
            out.sized(&self.header_event);
        });
        section(&mut out, option::FTRACE_EVENTS, &|out| out.formats(&self.ftrace_formats));
        section(&mut out, option::EVENT_FORMATS, &|out| {
            out.u32(self.event_formats.len());
            for (system, formats) in &self.event_formats {
                out.raw(system.as_bytes());
                out.raw(b"\0");
                out.formats(formats);
            }
        });
        for (id, text) in [(option::KALLSYMS, &self.kallsyms), (option::PRINTK, &self.printk_formats)] {
            section(&mut out, id, &|out| {
                out.u32(text.len());
                out.raw(text);
            });
        }
        section(&mut out, option::CMDLINES, &|out| out.sized(&self.comms));
        let comms = out.slot(&self.comms);
        out.u32(cpus.len());
        let cpu_count = out.slot(&[0; 4]);
        out.raw(V6_OPTIONS);
        let options_at = out.0.len();
        let options = self.options.iter().map(|(id, payload)| out.option(*id, payload)).collect();
        let extra = if self.extra.is_empty() {
            Slot::default()
        } else {
            out.option(option::CLOCK_SNAPSHOTS, &self.extra)
        };
        let all_options = out.since(options_at);
        out.raw(&option::DONE.to_ne_bytes());
        out.raw(V6_FLYRECORD);
        let table_at = out.0.len() as u64;
        cpus.iter().for_each(|c| out.raw(&c.entry()));
        out.sized(&self.clock);
        let clock = String::from_utf8_lossy(&self.clock);
        let clock = clock.split_once('[').and_then(|(_, rest)| rest.split(']').next()).unwrap_or_default();
        let parts =
            HeadParts { sections, options: all_options, clock: clock.to_owned(), page_size: self.page_size };
        DatHead { bytes: out.0, comms, options, extra, cpus: cpu_count, table_at, parts }
    }
}

/// The TRACECLOCK option for the text of tracefs' file `trace_clock`; `None` where the file must not have it.
///
/// `trace-cmd report` prints seconds if the file has no such option or if it knows the option's clock as one
/// that counts ns. It does not know `boot` (libtraceevent 1.7, trace-cmd 3.1), and would print a bare number
/// of ns. The clock's name stands in the file without this option too.
pub fn trace_clock_option(text: &str) -> Option<(u16, Vec<u8>)> {
    (!text.contains("[boot]")).then(|| (option::TRACECLOCK, [text.as_bytes(), b"\0"].concat()))
}

/// The head's bytes so far.
struct HeadBytes(Vec<u8>);

impl HeadBytes {
    fn raw(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    fn u32(&mut self, n: usize) {
        self.raw(&u32::try_from(n).unwrap_or(u32::MAX).to_ne_bytes());
    }

    fn option(&mut self, id: u16, payload: &[u8]) -> Slot {
        self.raw(&id.to_ne_bytes());
        self.u32(payload.len());
        self.raw(payload);
        self.slot(payload)
    }

    /// Writes the number of texts as a u32, and each text behind its length.
    fn formats(&mut self, texts: &[Vec<u8>]) {
        self.u32(texts.len());
        texts.iter().for_each(|text| self.sized(text));
    }

    /// The slot of all bytes from `at` on.
    fn since(&self, at: usize) -> Slot {
        Slot { at: at as u64, len: self.0.len() - at }
    }

    /// The slot of `written`, which are the last bytes.
    fn slot(&self, written: &[u8]) -> Slot {
        Slot { at: (self.0.len() - written.len()) as u64, len: written.len() }
    }

    /// Writes the length as a u64, and the bytes.
    fn sized(&mut self, bytes: &[u8]) {
        self.raw(&(bytes.len() as u64).to_ne_bytes());
        self.raw(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_clock_that_trace_cmd_does_not_know_goes_without_an_option() {
        let option_of = |text| trace_clock_option(text).map(|(_, payload)| payload);
        assert_eq!(option_of("local global uptime perf mono mono_raw [boot] x86-tsc\n"), None);
        for text in ["[local] boot", "local [mono] boot", "[x86-tsc]"] {
            assert_eq!(option_of(text), Some([text.as_bytes(), b"\0"].concat()));
        }
    }
}
