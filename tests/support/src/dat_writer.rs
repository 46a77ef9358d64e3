//! Writes trace.dat version 6 as trace-cmd's manual page trace-cmd.dat.v6(5) describes it, and pages as the
//! kernel's include/linux/ring_buffer.h and kernel/trace/ring_buffer.c describe them. Nothing here comes from
//! the product's reader or writer, so that a mistake which the product makes in both directions does not
//! hide. trace-cmd itself reads what this module writes: see tests/golden.

use crate::kernel_pages::KernelPages;

/// An event no longer than this has its length in the 5 bits of `type_len`, in words of 4 bytes.
const RB_MAX_SMALL_DATA: usize = 4 * 28;
const RINGBUF_TYPE_TIME_EXTEND: u32 = 30;
const RINGBUF_TYPE_TIME_STAMP: u32 = 31;
/// Bits of `time_delta`; the upper bits of a longer time go into `array[0]` of a record of its own.
const TS_SHIFT: u32 = 27;
/// `RB_MISSED_EVENTS` is an `int`: added to a 64-bit `commit`, the sign bit fills the upper half.
const RB_MISSED_EVENTS: i64 = i32::MIN as i64;
const RB_MISSED_STORED: i64 = 1 << 30;
/// Timestamp and `commit` of a 64-bit kernel's page.
const BUF_PAGE_HDR_SIZE: usize = 16;

/// The texts and pages of a trace.dat file, each as tracefs gives it.
#[derive(Debug, Clone, Default)]
pub struct DatFile {
    /// Bytes of a sub-buffer.
    pub page_size: u32,
    pub header_page: String,
    pub header_event: String,
    /// The `format` files of `events/ftrace`.
    pub ftrace_formats: Vec<String>,
    /// The `format` files of each other subsystem.
    pub event_formats: Vec<(String, Vec<String>)>,
    pub kallsyms: String,
    /// `TID COMM` lines.
    pub saved_cmdlines: String,
    /// Option numbers and their bytes.
    pub options: Vec<(u16, Vec<u8>)>,
    /// With brackets around the clock in use.
    pub trace_clock: String,
    /// The pages of each CPU.
    pub cpus: Vec<Vec<u8>>,
}

/// The number of the option that says that the clock's name follows the table of CPUs.
const OPTION_TRACECLOCK: u16 = 4;

impl DatFile {
    /// Takes the texts of a kernel, and none of its pages.
    pub fn with_texts_of(kernel: &KernelPages) -> DatFile {
        let mut ftrace_formats = Vec::new();
        let mut event_formats: Vec<(String, Vec<String>)> = Vec::new();
        for (system, _, format) in kernel.formats() {
            if system == "ftrace" {
                ftrace_formats.push(format.to_owned());
                continue;
            }
            if event_formats.last().is_none_or(|(last, _)| last != system) {
                event_formats.push((system.to_owned(), Vec::new()));
            }
            let (_, formats) = event_formats.last_mut().expect("a subsystem");
            formats.push(format.to_owned());
        }
        DatFile {
            page_size: 4096,
            header_page: kernel.text("events/header_page").to_owned(),
            header_event: kernel.text("events/header_event").to_owned(),
            ftrace_formats,
            event_formats,
            kallsyms: kernel.text("kallsyms").to_owned(),
            saved_cmdlines: kernel.text("saved_cmdlines").to_owned(),
            options: Vec::new(),
            trace_clock: kernel.text("trace_clock").to_owned(),
            cpus: Vec::new(),
        }
    }

    /// The number of an event, which its `format` file gives.
    pub fn event_id(&self, name: &str) -> u16 {
        let head = format!("name: {name}\nID: ");
        let formats = self.event_formats.iter().flat_map(|(_, formats)| formats).chain(&self.ftrace_formats);
        let rest = formats.into_iter().find_map(|format| format.strip_prefix(&head)).expect(name);
        rest.lines().next().unwrap().parse().unwrap()
    }

    /// The file, of a little-endian machine with longs of 8 bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Bytes(b"\x17\x08\x44tracing6\0".to_vec());
        out.raw(&[0, 8]).u32(self.page_size as usize);
        out.raw(b"header_page\0").u64(self.header_page.len()).raw(self.header_page.as_bytes());
        out.raw(b"header_event\0").u64(self.header_event.len()).raw(self.header_event.as_bytes());
        out.formats(&self.ftrace_formats);
        out.u32(self.event_formats.len());
        for (system, formats) in &self.event_formats {
            out.raw(system.as_bytes()).raw(b"\0").formats(formats);
        }
        out.u32(self.kallsyms.len()).raw(self.kallsyms.as_bytes());
        out.u32(0); // printk_formats
        out.u64(self.saved_cmdlines.len()).raw(self.saved_cmdlines.as_bytes());
        out.u32(self.cpus.len()).raw(b"options  \0");
        for (number, bytes) in &self.options {
            out.u16(*number).u32(bytes.len()).raw(bytes);
        }
        out.u16(OPTION_TRACECLOCK).u32(0).u16(0).raw(b"flyrecord\0");
        let clock_len = 8 + self.trace_clock.len();
        let mut offset =
            (out.0.len() + 16 * self.cpus.len() + clock_len).next_multiple_of(self.page_size as usize);
        let first = offset;
        for pages in &self.cpus {
            out.u64(offset).u64(pages.len());
            offset += pages.len().next_multiple_of(self.page_size as usize);
        }
        out.u64(self.trace_clock.len()).raw(self.trace_clock.as_bytes());
        out.0.resize(first, 0);
        for pages in &self.cpus {
            out.raw(pages);
            let end = out.0.len().next_multiple_of(self.page_size as usize);
            out.0.resize(end, 0);
        }
        out.0
    }
}

/// Little-endian bytes.
#[derive(Default)]
pub struct Bytes(pub Vec<u8>);

impl Bytes {
    pub fn raw(&mut self, bytes: &[u8]) -> &mut Bytes {
        self.0.extend_from_slice(bytes);
        self
    }
    pub fn u16(&mut self, n: u16) -> &mut Bytes {
        self.raw(&n.to_le_bytes())
    }
    pub fn i32(&mut self, n: i32) -> &mut Bytes {
        self.raw(&n.to_le_bytes())
    }
    pub fn u32(&mut self, n: usize) -> &mut Bytes {
        self.raw(&u32::try_from(n).unwrap().to_le_bytes())
    }
    pub fn u64(&mut self, n: usize) -> &mut Bytes {
        self.raw(&(n as u64).to_le_bytes())
    }
    /// A text in an array of `size` bytes, the last of which is zero.
    pub fn char_array(&mut self, text: &str, size: usize) -> &mut Bytes {
        let end = self.0.len() + size;
        self.raw(&text.as_bytes()[..text.len().min(size - 1)]);
        self.0.resize(end, 0);
        self
    }
    fn formats(&mut self, formats: &[String]) -> &mut Bytes {
        self.u32(formats.len());
        for format in formats {
            self.u64(format.len()).raw(format.as_bytes());
        }
        self
    }
}

/// The fields that every event begins with: its number, no flags, and the thread that was running.
pub fn common(event_type: u16, tid: i32) -> Bytes {
    let mut out = Bytes::default();
    out.u16(event_type).raw(&[0, 0]).i32(tid);
    out
}

/// One CPU's ring buffer, of pages of 4096 bytes.
#[derive(Default)]
pub struct RingBuffer {
    full: Vec<u8>,
    page_ts_ns: u64,
    last_ts_ns: u64,
    /// The events of the page that is being written.
    events: Bytes,
    /// Events were lost before that page; how many, where that is known.
    missed: Option<Option<u64>>,
}

impl RingBuffer {
    const PAGE_SIZE: usize = 4096;

    /// Writes an event with the time since the event before it.
    pub fn event(&mut self, ts_ns: u64, fields: &[u8]) {
        self.make_room(ts_ns, fields.len());
        let delta = ts_ns - self.last_ts_ns;
        if delta < 1 << TS_SHIFT {
            return self.write(ts_ns, delta as u32, fields);
        }
        self.time_record(RINGBUF_TYPE_TIME_EXTEND, delta);
        self.write(ts_ns, 0, fields);
    }

    /// Writes an event with its whole time, as the kernel does while a histogram uses `common_timestamp`.
    pub fn event_with_absolute_time(&mut self, ts_ns: u64, fields: &[u8]) {
        self.make_room(ts_ns, fields.len());
        self.time_record(RINGBUF_TYPE_TIME_STAMP, ts_ns);
        self.write(ts_ns, 0, fields);
    }

    /// Marks that events were lost before the next one, which begins a page.
    pub fn lost(&mut self, count: Option<u64>) {
        self.finish_page();
        self.missed = Some(count);
    }

    /// All pages.
    pub fn into_pages(mut self) -> Vec<u8> {
        self.finish_page();
        self.full
    }

    fn make_room(&mut self, ts_ns: u64, fields: usize) {
        // At most: a time record, two words of header, the fields, and the number of lost events.
        let longest = 8 + 8 + fields.next_multiple_of(4) + 8;
        if self.events.0.len() + longest > Self::PAGE_SIZE - BUF_PAGE_HDR_SIZE {
            self.finish_page();
        }
        if self.events.0.is_empty() {
            self.page_ts_ns = ts_ns;
            self.last_ts_ns = ts_ns;
        }
    }

    fn time_record(&mut self, type_len: u32, time: u64) {
        let low = (time & ((1 << TS_SHIFT) - 1)) as u32;
        self.events.raw(&(type_len | low << 5).to_le_bytes()).u32((time >> TS_SHIFT) as usize);
    }

    fn write(&mut self, ts_ns: u64, delta: u32, fields: &[u8]) {
        let size = fields.len().next_multiple_of(4);
        if size <= RB_MAX_SMALL_DATA {
            let type_len = (size / 4) as u32;
            self.events.raw(&(type_len | delta << 5).to_le_bytes());
        } else {
            self.events.raw(&(delta << 5).to_le_bytes()).u32(size + 4);
        }
        self.events.raw(fields);
        let end = self.events.0.len() + size - fields.len();
        self.events.0.resize(end, 0);
        self.last_ts_ns = ts_ns;
    }

    fn finish_page(&mut self) {
        if self.events.0.is_empty() {
            return;
        }
        let events = std::mem::take(&mut self.events.0);
        let mut commit = events.len() as i64;
        let mut page = Bytes::default();
        let missed = self.missed.take();
        if let Some(count) = missed {
            commit += RB_MISSED_EVENTS + if count.is_some() { RB_MISSED_STORED } else { 0 };
        }
        page.u64(self.page_ts_ns as usize).raw(&commit.to_le_bytes()).raw(&events);
        if let Some(Some(count)) = missed {
            page.u64(count as usize);
        }
        page.0.resize(Self::PAGE_SIZE, 0);
        self.full.append(&mut page.0);
    }
}
