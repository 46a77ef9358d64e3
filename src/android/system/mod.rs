//! Android's own services as the recorder uses them: system properties, the activity manager, SELinux labels.

pub(crate) mod activity_manager;
pub(crate) mod atrace_properties;
mod properties;
pub(crate) mod selinux;

pub(crate) use atrace_properties::{NO_PROPERTIES, SavedProperties, UserspaceRequest, UserspaceTags};
pub(crate) use properties::{Properties, PropertyError, system_bin};
