//! Everything that only Android has: ATRACE tags, the memory of its properties, and its services.

mod methods_refused;
pub(crate) mod property_area;
#[cfg(all(feature = "device", any(target_os = "linux", target_os = "android")))]
pub(crate) mod system;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod tag_watch;
pub(crate) mod tags;

pub(crate) use methods_refused::methods_refused;
#[cfg(any(target_os = "linux", target_os = "android"))]
pub use tag_watch::TagWatch;
