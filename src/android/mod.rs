//! Everything that only Android has: ATRACE tags, the memory of its properties, and its services.

pub(crate) mod property_area;
#[cfg(all(feature = "device", any(target_os = "linux", target_os = "android")))]
pub(crate) mod system;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod tag_watch;
pub(crate) mod tags;

#[cfg(any(target_os = "linux", target_os = "android"))]
pub use tag_watch::TagWatch;
