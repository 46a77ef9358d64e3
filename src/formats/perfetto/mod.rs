//! Perfetto's trace format: a `Trace` message (protos/perfetto/trace/trace.proto) of `TracePacket`s.

pub mod tables;
