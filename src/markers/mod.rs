//! atrace markers: the grammar that writers and readers share, and the [`Tracer`] that writes markers.
//!
//! A marker is one short text such as `B|42|draw` (process 42 begins the slice `draw`) that a program writes
//! to the file `trace_marker` of tracefs. The kernel stores it as a `print` event between its own events.

#[cfg(all(feature = "markers-c", any(target_os = "linux", target_os = "android")))]
mod c;
mod encode;
mod marker;
mod prefix;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod process;
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) mod ring;
#[cfg(all(not(feature = "ring"), any(target_os = "linux", target_os = "android")))]
#[path = "ring_off.rs"]
mod ring_writer;
#[cfg(all(feature = "ring", any(target_os = "linux", target_os = "android")))]
mod ring_writer;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod tracer;
#[cfg(all(feature = "tracing", any(target_os = "linux", target_os = "android")))]
pub mod tracing_layer;

#[cfg(any(target_os = "linux", target_os = "android"))]
pub use crate::android::TagWatch;
pub use crate::android::tags::{TAGS, Tag};
pub use encode::MAX_LEN;
pub use marker::{ClockSync, Marker};
#[cfg(any(target_os = "linux", target_os = "android"))]
pub use process::{TRACEFS_PLACES, update_tags};
#[cfg(any(target_os = "linux", target_os = "android"))]
pub use ring_writer::{WithoutRecorder, use_ring};
#[cfg(any(target_os = "linux", target_os = "android"))]
pub use tracer::{APP, Section, Tracer};
