//! Method traces of ART and Dalvik as files: what they declare, their records in file order, and what is wrong.
//!
//! Versions 4 and 5 (Android 15 and later, on request) are read as AOSP's sources describe them; no real file of them
//! has been met yet.
//!
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let bytes = std::fs::read("app.trace")?;
//! let trace = tracebridge::formats::art_method::MethodTrace::parse(&bytes)?;
//! for record in trace.records() {
//!     let (thread, method) = (&trace.threads()[record.thread as usize], &trace.methods()[record.method as usize]);
//!     println!("{:?} {:?} {} {}", record.wall, record.action, thread.label(), method.full_name());
//! }
//! # Ok(()) }
//! ```

pub mod body;
mod error;
pub mod ids;
mod open;
mod open_blocks;
mod problems;
mod records;
mod reencoded;
mod reused;
mod scan;

use std::borrow::Cow;

use body::{BlockBody, FixedBody, ThreadTable};
use ids::IdMap;

pub use error::Error;
pub use problems::CallAnomalies;
pub use records::{Record, Records, Unwrap};
pub use scan::workers as cores;

use super::input::Input;
use super::{FormatError, OpenedInput, ReadReport};
use crate::art::{ClockMode, MAGIC};

/// What a method trace says about itself.
#[derive(Debug, Clone)]
pub struct Header<'a> {
    /// The format's version: 1 to 5.
    pub version: u16,
    /// Written while the app ran (0xF1 to 0xF5), not at the end.
    pub streaming: bool,
    /// The clocks that records carry.
    pub clock: ClockMode,
    /// Whether `clock=` was there; without it (a killed app's streaming file) `clock` is deduced from the record size.
    pub clock_declared: bool,
    /// When the trace began, in units of [`Header::start_unit_ns`]. Which clock that is depends on the runtime's age,
    /// and no field tells: CLOCK_REALTIME in Dalvik, CLOCK_MONOTONIC in most ART versions, the CPU counter in some.
    pub start: u64,
    /// ns per unit of `start`: 1,000 in versions 1 to 3.
    pub start_unit_ns: u64,
    /// ns per unit of the records' times: 1,000, or 1 in newer version 4 and 5 files.
    pub tick_ns: u64,
    /// `vm=`: `art` or `dalvik`.
    pub vm: Option<String>,
    /// `pid=`: the traced process.
    pub pid: Option<i32>,
    /// `data-file-overflow=true`: the buffer was full before the trace was stopped.
    pub overflow: bool,
    /// `elapsed-time-usec=` or `elapsed-time-nsec=`, in ns.
    pub elapsed_ns: Option<u64>,
    /// All `key=value` lines, in file order.
    pub keys: Vec<(Cow<'a, str>, Cow<'a, str>)>,
}

impl Header<'_> {
    /// When the trace began, in ns of the clock that [`Header::start`] speaks of.
    pub fn start_ns(&self) -> u64 {
        self.start.saturating_mul(self.start_unit_ns)
    }

    /// The value of a key.
    pub fn key(&self, name: &str) -> Option<&str> {
        self.keys.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_ref())
    }
}

/// A traced thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TracedThread<'a> {
    /// The trace's own id: a 16-bit kernel tid before May 2023, 1, 2, 3… since; a real tid in versions 4 and 5.
    pub id: u32,
    /// Its name; empty where no list has it.
    pub name: Cow<'a, str>,
    /// Whether a list or declaration names it. Records of threads that none names occur.
    pub declared: bool,
    /// Whether an earlier thread of this trace had the same id.
    pub reused_id: bool,
    /// Records of this thread.
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
    /// Whether a list or declaration names it. Records of methods that none names occur, tens per file.
    pub declared: bool,
}

impl Method<'_> {
    /// `package.Class.method`, dots whatever runtime wrote it; the id for an undeclared method.
    pub fn full_name(&self) -> String {
        if !self.declared {
            return format!("(unknown 0x{:x})", self.id);
        }
        format!("{}.{}", self.class_name(), self.name)
    }

    /// The class with dots whatever runtime wrote it.
    pub fn class_name(&self) -> Cow<'_, str> {
        if self.class.contains('/') {
            self.class.replace('/', ".").into()
        } else {
            Cow::Borrowed(&self.class)
        }
    }
}

/// What was counted while opening.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct Counts {
    /// Records, of known actions or not.
    pub records: u64,
    /// Records that enter a method.
    pub enters: u64,
    /// Records that leave one.
    pub exits: u64,
    /// Records that leave one by an exception.
    pub unrolls: u64,
    /// Records whose action no runtime writes; [`MethodTrace::records`] leaves them out.
    pub bad_actions: u64,
    /// Methods that the lists and declarations name.
    pub declared_methods: u64,
    /// Threads that the lists and declarations name.
    pub declared_threads: u64,
    /// Methods in records that nothing names.
    pub undeclared_methods: u64,
    /// Threads in records that nothing names.
    pub undeclared_threads: u64,
    /// Threads that took the id of one that had ended.
    pub reused_threads: u64,
    /// Names of threads and methods beyond ASCII.
    pub non_ascii_names: u64,
}

/// The records, by what encodes them.
#[derive(Debug, Clone)]
pub enum Body {
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
    may_wrap: bool,
    report: ReadReport,
}

/// Whether a file with these bytes may be a method trace: it begins with the line `*version`, or with `SLOW`.
pub fn detect(bytes: &[u8]) -> bool {
    bytes.starts_with(b"*version\n") || bytes.starts_with(b"*version\r\n") || bytes.starts_with(MAGIC)
}

/// Opens `input` as a method trace.
pub(super) fn open(input: &Input) -> Result<OpenedInput<'_>, FormatError> {
    Ok(OpenedInput::MethodTrace(Box::new(MethodTrace::parse(input)?)))
}

impl<'a> MethodTrace<'a> {
    /// Opens a whole file (a key file followed by its data file counts as one).
    ///
    /// A file with a readable beginning opens whatever is wrong behind it; [`MethodTrace::report`] says what is.
    pub fn parse(bytes: &'a [u8]) -> Result<MethodTrace<'a>, Error> {
        open::open(bytes)
    }

    /// What the file says about itself.
    pub fn header(&self) -> &Header<'a> {
        &self.header
    }

    /// All threads, those that only records name included; [`Record::thread`] is an index into this.
    pub fn threads(&self) -> &[TracedThread<'a>] {
        &self.threads
    }

    /// All methods, those that only records name included; [`Record::method`] is an index into this.
    pub fn methods(&self) -> &[Method<'a>] {
        &self.methods
    }

    /// What was counted while opening.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Damage and notes; offsets in bytes of the file as given to [`MethodTrace::parse`].
    pub fn report(&self) -> &ReadReport {
        &self.report
    }

    /// All records in file order, which is the order in time within each thread only.
    pub fn records(&self) -> Records<'_, 'a> {
        Records::new(self)
    }

    /// The format for people: `method trace v3, streaming, dual clock`.
    pub fn format(&self) -> String {
        let streaming = if self.header.streaming { ", streaming" } else { "" };
        format!("method trace v{}{streaming}, {} clock", self.header.version, self.header.clock.name())
    }

    /// The file's bytes.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Where the records lie, for readers that decode them themselves.
    pub fn body(&self) -> &Body {
        &self.body
    }

    /// Dense thread indexes at the file's start; [`body::Segment::binds`] changes them later.
    pub fn thread_table(&self) -> &ThreadTable {
        &self.table
    }

    /// Dense method indexes.
    pub fn ids(&self) -> &IdMap {
        &self.ids
    }

    /// Whether times may have wrapped their 32 bits: false where the header gives a shorter duration.
    pub fn may_wrap(&self) -> bool {
        self.may_wrap
    }
}
