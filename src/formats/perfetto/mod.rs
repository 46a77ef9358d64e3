//! Perfetto's trace format: a `Trace` message (protos/perfetto/trace/trace.proto) of `TracePacket`s.
//!
//! The reader is here. The parts that the exporter needs too are the field numbers, the table of event
//! messages and the wire format.

mod bundle;
mod callstacks;
mod clock_snapshots;
mod counter_packets;
mod deobfuscation;
mod event_decoder;
pub(crate) mod event_table;
pub(crate) mod fields;
mod frame_timeline;
pub(crate) mod packet_types;
pub(crate) mod packets;
#[cfg(test)]
mod perf_sample_tests;
mod perf_samples;
mod read;
mod recorder_losses;
pub(crate) mod sample_events;
pub(crate) mod scan;
mod sequence_packet;
mod stack_samples;
pub mod trace_config;
pub(crate) mod trace_packets;
pub(crate) mod trace_streams;
mod track_clocks;
mod track_event_order;
#[cfg(test)]
mod track_event_tests;
mod track_events;
pub(crate) mod track_table;
mod waiting_events;
pub(crate) use super::wire;

pub(super) use read::open;
pub use read::{PerfettoRecording, read};
pub(crate) use recorder_losses::LOSSES_ATTRIBUTE;
pub(super) use trace_packets::detect;
