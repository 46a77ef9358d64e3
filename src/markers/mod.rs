//! atrace markers: the grammar that writers and readers share, and the [`Tracer`] that writes markers.
//!
//! A marker is one short text such as `B|42|draw` (process 42 begins the slice `draw`) that a program writes
//! to the file `trace_marker` of tracefs. The kernel stores it as a `print` event between its own events.

mod encode;
mod marker;
mod tracer;

pub use crate::android::TagWatch;
pub use crate::android::tags::{TAGS, Tag};
pub use encode::MAX_LEN;
pub use marker::{ClockSync, Marker};
pub use tracer::{Section, TRACEFS_PLACES, Tracer};
