//! The bytes of trace-cmd's `trace.dat` that device and host both need: the head of version 6, a whole file
//! of version 7 with zstd, the recorder's own option, the stream that carries a recording through a pipe, and
//! the recorder's summary.

pub mod file_format;
mod head_writer;
mod recorder_info;
pub mod recorder_stream;
pub mod recording_summary;
pub mod v7_writer;

pub use head_writer::{CpuData, DatHead, HeadParts, Metadata, Slot, trace_clock_option};
pub use recorder_info::{
    Affinity, CpuLoss, CpuQuota, CpuRecorded, CpuSpeed, EventCost, MachineFacts, MappedInode, RecorderInfo,
    RingProgram, RingsInfo, Settle, no_event_of,
};
pub use v7_writer::write_v7;
