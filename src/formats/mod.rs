//! Readers: what each kind of file says, as [`Event`]s in the file's own clock, pushed to a [`Sink`].
//!
//! Every reader follows one shape: `detect(&[u8]) -> bool` looks at the first bytes, `read` pushes events. Two
//! formats never know each other; what they share is here: the event model and the sink.

pub mod art_method;
pub mod detect;
mod event;
#[cfg(feature = "host")]
pub mod event_catalog;
#[cfg(feature = "host")]
pub mod ftrace_text;
#[cfg(feature = "host")]
pub mod input;
#[cfg(feature = "host")]
mod kind_list;
#[cfg(feature = "host")]
pub mod perfetto;
mod report;
mod sink;
pub mod trace_dat;

pub use crate::ftrace::{EventType, Field, FieldType, Value};
pub use event::{Event, EventTypeId, Payload};
pub use report::{CpuCount, Damage, ReadReport};
pub use sink::{Head, Order, ProcessInfo, Sink, ThreadInfo};

/// The one field of an event whose source is a text that nobody knows how to take apart.
pub const TEXT_FIELD: &str = "text";
