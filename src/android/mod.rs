//! Everything that only Android has: ATRACE tags, and its services.

#[cfg(all(feature = "device", any(target_os = "linux", target_os = "android")))]
pub(crate) mod system;

pub(crate) use tracebridge_core::android::{methods_refused, tags};
