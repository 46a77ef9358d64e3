//! What atrace defines: tags, categories, and the grammar of markers that writer and reader share.

pub mod categories;
mod encode;
mod glob;
pub mod marker;
#[cfg(all(feature = "device", unix))]
mod properties;
pub mod property_area;
#[cfg(all(feature = "device", unix))]
mod tag_watch;
pub mod tags;
#[cfg(all(feature = "device", unix))]
mod tracer;
#[cfg(all(feature = "device", unix))]
pub mod userspace;

pub use encode::MAX_LEN;
pub use glob::matches as glob_matches;
pub use marker::{ClockSync, Marker};
#[cfg(all(feature = "device", unix))]
pub use properties::{Properties, PropertyError, system_bin};
#[cfg(all(feature = "device", unix))]
pub use tag_watch::TagWatch;
#[cfg(all(feature = "device", unix))]
pub use tracer::{Section, TRACEFS_PLACES, Tracer};
#[cfg(all(feature = "device", unix))]
pub use userspace::{NO_PROPERTIES, SavedProperties, UserspaceRequest, UserspaceTags};
