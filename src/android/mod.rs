//! Everything that only Android has: ATRACE tags, the memory of its properties, and its services.

pub(crate) mod property_area;
#[cfg(feature = "device")]
pub(crate) mod system;
mod tag_watch;
pub(crate) mod tags;

pub use tag_watch::TagWatch;
