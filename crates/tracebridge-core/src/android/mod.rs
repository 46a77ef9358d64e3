//! What device and host both know of Android: ATRACE tags, and the message of a refusal.

mod methods_refused;

pub use methods_refused::methods_refused;
pub use tracebridge_markers::internals::tags;
