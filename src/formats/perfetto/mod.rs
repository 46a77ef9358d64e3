//! Perfetto's trace format: a `Trace` message (protos/perfetto/trace/trace.proto) of `TracePacket`s.

mod bundle;
mod detect;
mod kinds;
mod read;
pub mod tables;
mod wire;

pub(super) use detect::detect;
pub(super) use read::open;
pub use read::{PerfettoRecording, read};
