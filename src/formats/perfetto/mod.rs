//! Perfetto's trace format: a `Trace` message (protos/perfetto/trace/trace.proto) of `TracePacket`s.
//!
//! The reader is here. The parts that the exporter needs too are the field numbers, the table of event
//! messages and the wire format.

mod bundle;
mod detect;
mod event_decoder;
pub(crate) mod event_table;
pub(crate) mod fields;
mod packets;
mod read;
pub(crate) mod wire;

pub(super) use detect::detect;
pub(super) use read::open;
pub use read::{PerfettoRecording, read};
