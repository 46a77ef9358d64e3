//! The bytes of trace-cmd's `trace.dat` that the recorder writes: the head of version 6, version 7 with zstd, the
//! recorder's own option, and the stream that carries a recording through a pipe.

mod head_writer;
pub mod layout;
mod recorder_info;
pub mod recorder_stream;
mod v7_writer;
pub(crate) mod zstd_matcher;

pub use head_writer::{CpuData, Header, Metadata, Parts, Slot};
pub use recorder_info::{CpuLoss, RecorderInfo, Settle};
pub use v7_writer::{ReadPages, write_packed};
