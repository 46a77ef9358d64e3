//! One timeline from several inputs: puts recordings, method traces and samples on one clock, finds the
//! kernel thread of each traced thread, and passes everything on to an exporter.

mod align;
mod content_counter;
mod dedup;
mod deobfuscate;
mod event_buffer;
mod event_role;
mod merge;
mod merge_error;
mod method_slices;
mod missing_switches;
mod recording_pass;
mod recording_place;
mod sample_pass;
mod sink;
mod summary;
#[cfg(test)]
mod test_data;
mod track_pass;
mod window;

pub use align::AlignError;
pub use align::placement::{IdentityDoubt, MergeOptions};
pub use align::reason::{
    ComparedAmount, NoPlace, NoSamplePlace, PlaceBasis, PlaceFit, PlaceReason, SamplesInside, Trial,
};
pub use deobfuscate::Deobfuscator;
pub(crate) use event_role::{CPU_FREQUENCY, EventRole};
pub use merge::merge;
pub use merge_error::MergeError;
pub(crate) use missing_switches::MissingSwitches;
pub use sink::{Edge, EdgeKind, MethodId, MethodName, MethodThread, TimelineAdapter, TimelineSink};
pub use summary::{DataCounts, DataKind, InputSummary, MergeSummary, Verdict, Window};
pub use window::{WindowError, WindowFilter, WindowRequest, extent};
