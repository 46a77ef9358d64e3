//! Readers: one module per file format. A reader pushes [`Event`]s, at times of the file's own clock, to a
//! [`Sink`].
//!
//! Every reader has the same two functions: `detect(&[u8]) -> bool` looks at the first bytes, and
//! `open(&Input)` reads the file's head. [`Recording::read`] then pushes everything to a sink. The table
//! [`FORMATS`] holds one row per format; no format's module uses that of another. The parts that all formats
//! share are the opening of a file ([`input`]), the event model and the sink.

pub mod art_method;
mod base64;
pub mod contained;
mod contained_trace;
mod event;
pub mod event_catalog;
mod event_registry;
pub mod ftrace_text;
pub mod input;
mod input_format;
pub(crate) mod mapped_file;
pub mod perfetto;
pub mod perfetto_archive;
mod recording;
mod report;
mod sink;
mod thread_ids;
pub mod trace_dat;
mod track;
pub mod unpack_budget;

pub use crate::ftrace::{EventType, Field, FieldType, Value};
pub use contained_trace::ContainedTrace;
pub use event::{Event, EventTypeId, Payload};
pub use input_format::{FORMATS, InputFormat, OpenError, UnreadFile, identify, is_zip, open};
pub(crate) use input_format::{REPORT_DIRECTORY_ID, is_report_page};
pub use recording::{FormatError, OpenedInput, Recording};
pub use report::{CpuCount, Damage, ReadReport, TrackEventCounts};
pub use sink::{Head, Order, ProcessInfo, Sink, SinkAdapter, ThreadInfo};
pub(crate) use thread_ids::ThreadIds;
pub use track::{CounterValue, Flow, Track, TrackEvent, TrackEventKind, TrackId, TrackKind, TrackOwner};

/// The name of the only field of an event type whose text cannot be split into fields. The field holds the
/// whole text.
pub const TEXT_FIELD: &str = "text";
