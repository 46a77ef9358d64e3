//! Perfetto's trace format: a `Trace` message (protos/perfetto/trace/trace.proto) of `TracePacket`s.

mod bundle;
mod kinds;
mod read;
pub mod tables;
mod wire;

pub use read::read;
