//! One timeline from several inputs: puts recordings and method traces on one clock, finds the kernel thread
//! of each traced thread, and passes everything on to an exporter.

mod alignment;
mod clock_map;
mod content_counter;
mod corrections;
mod counter_unit;
mod data_kind;
mod dedup;
mod deobfuscate;
mod event_buffer;
mod event_role;
mod evidence;
mod identity;
mod kernel_evidence;
mod merge;
mod method_evidence;
mod method_slices;
mod offset_histogram;
mod placement;
mod recording_pass;
mod residuals;
mod sink;
mod summary;
#[cfg(test)]
mod test_data;
mod track_pass;
mod window;

pub use alignment::AlignError;
pub use data_kind::{DataCounts, DataKind};
pub use deobfuscate::Deobfuscator;
pub(crate) use event_role::{CPU_FREQUENCY, EventRole};
pub use merge::{MergeError, merge};
pub use placement::MergeOptions;
pub use sink::{Edge, EdgeKind, MethodId, MethodName, MethodThread, TimelineAdapter, TimelineSink};
pub use summary::{InputSummary, MergeSummary, Verdict, Window};
pub use window::{WindowError, WindowFilter, WindowRequest, extent};
