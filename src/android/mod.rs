//! Everything that only Android has: ATRACE tags, system properties, the activity manager and SELinux labels.

#[cfg(feature = "device")]
pub mod activity_manager;
#[cfg(feature = "device")]
pub mod atrace_properties;
#[cfg(feature = "device")]
mod properties;
pub mod property_area;
#[cfg(feature = "device")]
pub mod selinux;
mod tag_watch;
pub mod tags;

#[cfg(feature = "device")]
pub use atrace_properties::{NO_PROPERTIES, SavedProperties, UserspaceRequest, UserspaceTags};
#[cfg(feature = "device")]
pub use properties::{Properties, PropertyError, system_bin};
pub use tag_watch::TagWatch;
