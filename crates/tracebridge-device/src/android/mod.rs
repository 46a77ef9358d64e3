//! Android's own services as the recorder uses them: system properties, the activity manager, and the
//! user that the process runs as.

pub(crate) mod activity_manager;
pub(crate) mod atrace_properties;
mod properties;
mod user;

pub(crate) use atrace_properties::{NO_PROPERTIES, SavedProperties, UserspaceRequest, UserspaceTags};
pub(crate) use properties::{Properties, PropertyError, system_bin, use_android_root};
pub(crate) use tracebridge_core::android::{methods_refused, tags};
pub(crate) use user::{FIRST_APP_UID, UserIdentity, UserKind};
