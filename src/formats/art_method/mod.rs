//! Reads method traces of ART and Dalvik: their declarations, their records in file order, and their damage.
//!
//! Versions 4 and 5 (Android 15 and later, on request) and the streams of the always-on tracer are read as
//! AOSP's sources describe them. No real file of these was available.
//!
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let bytes = std::fs::read("app.trace")?;
//! let trace = tracebridge::formats::art_method::MethodTrace::parse(&bytes)?;
//! for record in trace.records() {
//!     let thread = &trace.threads()[record.thread as usize];
//!     let method = &trace.methods()[record.method as usize];
//!     println!("{:?} {:?} {} {}", record.wall, record.action, thread.label(), method.full_name());
//! }
//! # Ok(()) }
//! ```

mod body;
pub(crate) mod call_stack;
mod declarations;
mod open;
mod open_blocks;
mod open_stream;
mod prescan;
pub(crate) mod records;

use std::borrow::Cow;

use body::{BlockBody, FixedBody, IdMap, ThreadTable};

pub use crate::art::{Action, ClockMode};
pub(crate) use body::NONE;
pub use body::{CPU, Ticks, WALL};
pub use call_stack::CallAnomalies;
pub use records::{Record, Records};

use super::ReadReport;
use crate::art::DataHeaderError;
use crate::art::{ALWAYS_ON_MAGIC, BlockEncoding, CounterTime, KeySection, MAGIC, always_on_form};
use crate::clock::Clock;
use crate::ids::Pid;
use crate::text::utc_time;

/// The largest number of threads that read the records of one trace. More threads would only wait for memory.
pub(crate) const MAX_WORKERS: usize = 8;

/// The part of the runtime that wrote a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tracer {
    /// The method tracer (`Debug.startMethodTracing`, `am profile start`), or Dalvik's.
    Regular,
    /// The always-on tracer: methods that ran long (`am profile lowoverhead --longrunning`, the dump of an
    /// ANR).
    LongRunning,
    /// The always-on tracer: the last calls of all methods (`am profile lowoverhead`).
    AllMethods,
}

/// The general facts that a method trace states about itself.
#[derive(Debug, Clone)]
pub struct Header<'a> {
    /// The format's version: 1 to 6; 0 in files of the always-on tracer, which have no header.
    pub version: u16,
    /// Whether the file was written while the app ran (versions 0xF1 to 0xF6, `is_streaming=true`), not at
    /// the end.
    pub streaming: bool,
    /// The clocks that records carry.
    pub clock: ClockMode,
    /// Whether the file has a `clock=` key. The streaming file of a killed app has no such key; the record
    /// size then decides.
    pub clock_declared: bool,
    /// The part of the runtime that wrote the trace.
    pub tracer: Tracer,
    /// Whether every enter has its exit; false for `is_precise_trace=false`, the tracer's low-overhead mode.
    pub is_precise: bool,
    /// The start of the trace, in units of [`Header::start_unit_ns`]. The clock depends on the age of the
    /// runtime, and no field names it: CLOCK_REALTIME in Dalvik, CLOCK_MONOTONIC in most versions of ART, the
    /// CPU counter in some.
    pub start: u64,
    /// ns per unit of `start`: 1,000 in versions 1 to 3.
    pub start_unit_ns: u64,
    /// The clock of `start`, where the format decides it: in traces of the always-on tracer.
    pub start_clock: Option<Clock>,
    /// ns per unit of the records' times: 1,000, or 1 in newer version 4 and 5 files.
    pub tick_ns: u64,
    /// `vm=`: `art` or `dalvik`.
    pub vm: Option<String>,
    /// `pid=`: the traced process.
    pub pid: Option<Pid>,
    /// `data-file-overflow=true`: the buffer was full before the trace was stopped.
    pub overflow: bool,
    /// `elapsed-time-usec=` or `elapsed-time-nsec=`, in ns.
    pub elapsed_ns: Option<u64>,
    /// All `key=value` lines, in file order.
    pub keys: Vec<(Cow<'a, str>, Cow<'a, str>)>,
}

/// No clock takes longer to read, ns. Phones of 2014 took 3 µs.
const MAX_CLOCK_READ_NS: u64 = 100_000;

/// The latest start that is taken for a time, ns: the year 2116 of a clock that counts from 1970.
const MAX_START_NS: u64 = (i64::MAX / 2) as u64;

impl Header<'_> {
    /// The start of the trace in ns of the clock that [`Header::start`] uses; 0 where the header has a number
    /// there that is no time of any clock.
    pub fn start_ns(&self) -> u64 {
        if self.has_start_time() { self.start * self.start_unit_ns } else { 0 }
    }

    fn has_start_time(&self) -> bool {
        self.start.checked_mul(self.start_unit_ns).is_some_and(|ns| ns <= MAX_START_NS)
    }

    /// Whether records have times; otherwise they have an order alone.
    pub fn has_times(&self) -> bool {
        self.clock != ClockMode::NoTimes
    }

    /// The header for people: its keys and values, and the time of day of the start where that is
    /// what the start is.
    pub(crate) fn described(&self) -> Vec<(String, String)> {
        let mut all = vec![("version".to_owned(), self.version.to_string())];
        if !self.clock_declared {
            all.push(("clock".to_owned(), self.clock.name().to_owned()));
        }
        all.extend(self.keys.iter().map(|(key, value)| (key.to_string(), value.to_string())));
        if let Some(start) = time_of_day(self.start_ns()) {
            all.push(("start".to_owned(), start));
        }
        all
    }

    /// The time that the runtime took to read its clock, ns, as it measured when the trace began
    /// (`clock-call-overhead-nsec=`); 0 where the trace does not tell it. Each record needs a reading.
    pub fn clock_read_ns(&self) -> u64 {
        let told = self.key("clock-call-overhead-nsec").and_then(|value| value.parse().ok()).unwrap_or(0);
        if told <= MAX_CLOCK_READ_NS { told } else { 0 }
    }

    /// The value of a key.
    pub fn key(&self, name: &str) -> Option<&str> {
        self.keys.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_ref())
    }
}

/// The year 2001, ns since 1970. A larger start time is in CLOCK_REALTIME: no machine has been up for 31
/// years.
pub(crate) const YEAR_2001_NS: u64 = 1_000_000_000_000_000_000;

/// A reading of CLOCK_REALTIME, ns, as `2014-03-30 13:58:15` in UTC; `None` for a reading of another clock.
fn time_of_day(ns: u64) -> Option<String> {
    (ns > YEAR_2001_NS).then(|| utc_time(ns / 1_000_000_000))
}

/// A traced thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TracedThread<'a> {
    /// The thread's id in the trace: a kernel tid cut to 16 bits before May 2023, and 1, 2, 3… since then;
    /// the whole kernel tid in versions 4 and 5.
    pub id: u32,
    /// The thread's name; empty where no list has it.
    pub name: Cow<'a, str>,
    /// Whether the file declares the thread. Some files have records of threads that they do not declare.
    pub declared: bool,
    /// Whether an earlier thread of this trace had the same id.
    pub reused_id: bool,
    /// The number of the thread's records.
    pub records: u64,
}

impl TracedThread<'_> {
    /// The name, or `thread ID` where there is none.
    pub fn label(&self) -> Cow<'_, str> {
        if self.name.is_empty() { format!("thread {}", self.id).into() } else { Cow::Borrowed(&self.name) }
    }
}

/// A traced method.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Method<'a> {
    /// The id in records, without action bits.
    pub id: u64,
    /// Class as written: `a/b/C` by Dalvik, `a.b.C` by ART; empty for an undeclared method.
    pub class: Cow<'a, str>,
    /// Method name; empty for an undeclared method.
    pub name: Cow<'a, str>,
    /// JNI signature; may be empty.
    pub signature: Cow<'a, str>,
    /// Source file; may be empty.
    pub file: Cow<'a, str>,
    /// Source line where known.
    pub line: Option<i32>,
    /// Whether the file declares the method. Files have some tens of records of methods that they do not
    /// declare.
    pub declared: bool,
}

impl Method<'_> {
    /// `package.Class.method`, with dots for every runtime; the id for an undeclared method.
    pub fn full_name(&self) -> String {
        if !self.declared {
            return format!("(unknown 0x{:x})", self.id);
        }
        if self.class.is_empty() {
            return self.name.to_string();
        }
        format!("{}.{}", self.class_name(), self.name)
    }

    /// The class with its package, with dots for every runtime.
    pub fn class_name(&self) -> Cow<'_, str> {
        if self.class.contains('/') {
            self.class.replace('/', ".").into()
        } else {
            Cow::Borrowed(&self.class)
        }
    }
}

/// Counts from opening a trace.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, schemars::JsonSchema)]
pub struct Counts {
    /// All records, also those with unknown actions.
    pub records: u64,
    /// Records that enter a method.
    pub enters: u64,
    /// Records that leave a method by a return.
    pub exits: u64,
    /// Records that leave a method by an exception.
    pub unrolls: u64,
    /// Records whose action no runtime writes; [`MethodTrace::records`] leaves them out.
    pub bad_actions: u64,
    /// Methods that the lists and declarations name.
    pub declared_methods: u64,
    /// Threads that the lists and declarations name.
    pub declared_threads: u64,
    /// Methods of records that the file does not declare.
    pub undeclared_methods: u64,
    /// Threads of records that the file does not declare.
    pub undeclared_threads: u64,
    /// Threads that took the id of a thread that had ended.
    pub reused_threads: u64,
    /// Names of threads and methods with characters beyond ASCII.
    pub non_ascii_names: u64,
}

/// The records, by their encoding.
#[derive(Debug, Clone)]
enum Body {
    /// Versions 1 to 3.
    Fixed(FixedBody),
    /// Versions 4 and 5.
    Blocks(BlockBody),
}

/// An opened method trace.
#[derive(Debug, Clone)]
pub struct MethodTrace<'a> {
    bytes: &'a [u8],
    header: Header<'a>,
    threads: Vec<TracedThread<'a>>,
    methods: Vec<Method<'a>>,
    counts: Counts,
    body: Body,
    table: ThreadTable,
    ids: IdMap,
    has_32_bit_times: bool,
    may_wrap: bool,
    report: ReadReport,
}

/// Whether a file with these bytes may be a method trace: it begins with the line `*version`, with `SLOW`, or
/// with records of the always-on tracer.
pub fn detect(bytes: &[u8]) -> bool {
    bytes.starts_with(b"*version\n")
        || bytes.starts_with(b"*version\r\n")
        || bytes.starts_with(MAGIC)
        || always_on_form(bytes).is_some()
}

/// Whether these bytes are the text section of a trace and nothing else, as in a key file.
pub(super) fn is_text_section(bytes: &[u8]) -> bool {
    KeySection::parse(bytes).is_some_and(|text| text.len == bytes.len())
}

/// Whether a file with these bytes is of the always-on tracer.
pub fn is_always_on(bytes: &[u8]) -> bool {
    always_on_form(bytes).is_some() || bytes.starts_with(ALWAYS_ON_MAGIC)
}

impl<'a> MethodTrace<'a> {
    /// Opens a trace from the bytes of a whole file, or of a key file followed by its data file.
    ///
    /// A file with a readable beginning opens even if the rest is damaged; [`MethodTrace::report`] lists the
    /// damage.
    pub fn parse(bytes: &'a [u8]) -> Result<MethodTrace<'a>, Error> {
        let mut trace = open::open(bytes)?;
        if !trace.header.has_start_time() {
            let what = "the start in the header is no time of any clock: times count from 0";
            trace.report.irregular.push(what.to_owned());
        }
        Ok(trace)
    }

    /// The facts that the file states about itself.
    pub fn header(&self) -> &Header<'a> {
        &self.header
    }

    /// All threads, including those that occur only in records. [`Record::thread`] is an index into this
    /// list.
    pub fn threads(&self) -> &[TracedThread<'a>] {
        &self.threads
    }

    /// All methods, including those that occur only in records. [`Record::method`] is an index into this
    /// list.
    pub fn methods(&self) -> &[Method<'a>] {
        &self.methods
    }

    /// Counts from opening a trace.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Damage, irregularities and notes. Offsets count bytes of the slice that [`MethodTrace::parse`] was
    /// given.
    pub fn report(&self) -> &ReadReport {
        &self.report
    }

    /// A description of the format for people: `method trace v3, streaming, dual clock`.
    pub fn format(&self) -> String {
        match self.header.tracer {
            Tracer::LongRunning => return "always-on method trace, long-running methods".to_owned(),
            Tracer::AllMethods => return "always-on method trace, all methods, no times".to_owned(),
            Tracer::Regular => {}
        }
        let streaming = if self.header.streaming { ", streaming" } else { "" };
        format!("method trace v{}{streaming}, {} clock", self.header.version, self.header.clock.name())
    }

    /// The start, ns of the CPU's counter, if the times are ticks of the counter, of which there are `hz` in
    /// a second. `None` where the file says what its times are.
    pub(crate) fn start_of_ticks(&self, hz: u64) -> Option<u64> {
        let Body::Blocks(BlockBody { encoding: BlockEncoding::LongRunning { in_ticks: false, .. }, .. }) =
            &self.body
        else {
            return None;
        };
        let ticks = self.header.start.checked_mul(2)?;
        let time = CounterTime { start: 0, ns: 1_000_000_000, ticks: hz };
        (hz > 0 && self.header.start_clock == Some(Clock::Counter)).then(|| time.since_start(ticks))
    }

    /// Takes the times for ticks of the counter; see [`MethodTrace::start_of_ticks`].
    pub(crate) fn take_times_for_ticks(&mut self, hz: u64) {
        let Some(start_ns) = self.start_of_ticks(hz) else { return };
        let start = self.header.start * 2;
        if let Body::Blocks(body) = &mut self.body {
            let time = CounterTime { start, ns: 1_000_000_000, ticks: hz };
            body.encoding = BlockEncoding::LongRunning { time, in_ticks: true };
        }
        self.header.start = start_ns;
        let what = format!(
            "its times are ticks of the CPU's counter, {hz} in a second: only so it lies near the recording"
        );
        self.report.notes.push(what);
    }

    /// Bytes of all records.
    pub(crate) fn record_bytes(&self) -> u64 {
        match &self.body {
            Body::Fixed(body) => body.records() * body.layout.size() as u64,
            Body::Blocks(body) => body.blocks.iter().map(|block| block.range.len() as u64).sum(),
        }
    }

    /// Whether the file writes times with 32 bits of µs.
    pub(crate) fn has_32_bit_times(&self) -> bool {
        self.has_32_bit_times
    }

    /// Whether all records have the size of versions 1 to 3, and times of 32 bits as they are in the file.
    pub(crate) fn has_fixed_records(&self) -> bool {
        matches!(self.body, Body::Fixed(_))
    }

    /// Whether times may have wrapped their 32 bits: false if they have 64 bits, and if the file states a
    /// duration of up to 71.6 minutes.
    pub(crate) fn may_wrap(&self) -> bool {
        self.may_wrap
    }
}

/// The reason why a method trace cannot be opened at all. Offsets count bytes from the start of the
/// decompressed file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The file is empty.
    #[error("offset 0: the file is empty; pull it again after the app has finished writing it")]
    Empty,
    /// The file begins neither with `*version` nor with `SLOW`.
    #[error(
        "offset 0: no method trace: it begins neither with *version nor with SLOW; \
         a gzip file must be complete, and heap dumps (.hprof) or simpleperf files are other formats"
    )]
    NotATrace,
    /// A tool has treated the file as text and re-encoded it.
    #[error(
        "offset {offset}: the binary part was re-encoded as UTF-8 text: each byte above 0x7F became {became}. {hint}"
    )]
    Reencoded {
        /// The first changed byte.
        offset: u64,
        /// The bytes that the original bytes became.
        became: &'static str,
        /// A way to get an intact file.
        hint: &'static str,
    },
    /// The binary header is unusable and there is no text section to show instead.
    #[error("offset {offset}: {reason}")]
    Header {
        /// The start of the binary header.
        offset: u64,
        /// The reason why the header is unusable.
        reason: DataHeaderError,
    },
}
