//! Readers: one module per file format. A reader pushes [`Event`]s, at times of the file's own clock, to a
//! [`Sink`].
//!
//! Every reader has the same two functions: `detect(&[u8]) -> bool` looks at the first bytes, and
//! `open(&Input)` reads the file's head. [`Recording::read`] then pushes everything to a sink. The table
//! [`FORMATS`] holds one row per format; no format's module uses that of another. The parts that all formats
//! share are the opening of files ([`open_all`], [`input`]), the event model and the sink.

pub mod archive;
pub mod art_method;
mod base64;
mod benchmark_dir;
mod benchmark_metrics;
pub mod chrome_json;
mod contained;
mod event;
pub mod event_catalog;
mod event_registry;
pub mod folded_stacks;
mod format_id;
mod frame;
pub mod ftrace_text;
pub mod gecko_profile;
pub mod input;
mod input_format;
pub(crate) mod json;
mod losses;
pub(crate) mod mapped_file;
mod open;
mod owned_event;
pub mod perf_data;
pub mod perfetto;
mod recording;
mod report;
mod run_order;
pub mod samples;
pub mod screen_video;
pub mod simpleperf_report;
mod sink;
mod spill;
pub mod strace;
pub(crate) mod symbolize;
pub mod symbols;
mod text_lines;
pub mod trace_dat;
pub(crate) mod unpack;
pub mod unpack_budget;
mod unread_files;
mod utf16;
mod video_frames;
pub(crate) mod wire;

pub use crate::ftrace::{EventType, Field, FieldType, Value};
pub use benchmark_dir::{BENCHMARK_METRICS_ENDING, is_benchmark_metrics, with_iterations};
pub use benchmark_metrics::{IterationMetrics, metrics_of};
pub use contained::ContainedTrace;
pub(crate) use event::CLONE_THREAD;
pub use event::{
    CounterValue, Event, EventTypeId, Flow, Payload, TEXT_FIELD, Track, TrackArg, TrackEvent, TrackEventKind,
    TrackId, TrackKind, TrackOwner,
};
pub use format_id::{FormatId, UnreadFile};
pub use frame::{ActualFrame, JankTypes, PredictionType, PresentType, SurfaceFrame, TimelineFrame};
pub use input::{InputSet, Omission, OmissionReason};
#[cfg(test)]
pub(crate) use input_format::IDENTIFICATIONS;
pub use input_format::{FORMATS, InputFormat, has_format, identify, identify_bytes};
pub use losses::{Loss, LossCount, LossKind, LossPlace, LossReporter, Losses};
pub use open::{InputFiles, OpenError, expand, files_of, input_files, open, open_all, open_all_with_copies};
pub(crate) use owned_event::{OwnedEvent, OwnedEvents, OwnedTrackEvent};
pub use recording::{FormatError, OpenedInput, Recording};
pub(crate) use report::ThreadIds;
pub use report::{CpuCount, Damage, ReadReport, TrackEventCounts};
pub use sink::{Head, Order, Package, ProcessInfo, Sink, SinkAdapter, ThreadInfo};
pub use spill::Release;
pub(crate) use unread_files::{REPORT_DIRECTORY_ID, is_report_page};
pub use video_frames::{ScreenVideo, VideoFrame, video_time};
