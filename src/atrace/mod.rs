//! What atrace defines: tags, categories, and the grammar of markers that writer and reader share.

pub mod categories;
mod encode;
mod glob;
pub mod marker;
pub mod tags;
#[cfg(all(feature = "device", unix))]
mod tracer;

pub use encode::MAX_LEN;
pub use glob::matches as glob_matches;
pub use marker::{ClockSync, Marker};
#[cfg(all(feature = "device", unix))]
pub use tracer::{Section, TRACE_MARKERS, Tracer};
