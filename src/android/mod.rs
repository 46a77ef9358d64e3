//! Everything that only Android has: ATRACE tags, and its services.

mod methods_refused;
#[cfg(all(feature = "device", any(target_os = "linux", target_os = "android")))]
pub(crate) mod system;

pub(crate) use methods_refused::methods_refused;
pub(crate) use tracebridge_markers::internals::tags;
