//! Writes atrace markers: the grammar that writers and readers share, and the [`Tracer`] that writes markers.
//!
//! A marker is one short text such as `B|42|draw` (process 42 begins the slice `draw`) that a program writes
//! to the file `trace_marker` of tracefs. The kernel stores it as a `print` event between its own events, and
//! `tracebridge record` puts both into one file.
//!
//! Android and Linux have a tracefs. On other systems the crate has [`Marker`] and the table of tags alone.
//!
//! Features:
//! - `ring`: a program may have its markers go to memory that `tracebridge record` reads (`use_ring`);
//! - `tracing`: a layer for tracing-subscriber (`tracing_layer`);
//! - `c`: the functions for C and C++ that `include/tracebridge.h` declares.

// Elsewhere only what reads markers is used.
#![cfg_attr(not(any(target_os = "linux", target_os = "android")), allow(dead_code))]

#[cfg(all(feature = "c", any(target_os = "linux", target_os = "android")))]
mod c;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod counter;
mod encode;
mod marker;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod process;
mod property_area;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod ring;
#[cfg(all(not(feature = "ring"), any(target_os = "linux", target_os = "android")))]
#[path = "ring_off.rs"]
mod ring_writer;
#[cfg(all(feature = "ring", any(target_os = "linux", target_os = "android")))]
mod ring_writer;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod system;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod tag_watch;
mod tags;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod tracer;
#[cfg(all(feature = "tracing", any(target_os = "linux", target_os = "android")))]
pub mod tracing_layer;

pub use encode::MAX_LEN;
pub use marker::{ClockSync, Marker};
#[cfg(any(target_os = "linux", target_os = "android"))]
pub use process::{TRACEFS_PLACES, update_tags};
#[cfg(any(target_os = "linux", target_os = "android"))]
pub use ring_writer::{WithoutRecorder, use_ring};
#[cfg(any(target_os = "linux", target_os = "android"))]
pub use tag_watch::TagWatch;
pub use tags::{TAGS, Tag};
#[cfg(any(target_os = "linux", target_os = "android"))]
pub use tracer::{APP, Section, Tracer};

/// Parts that the recorder and the readers of tracebridge share with the writer of markers. They are no part
/// of the crate's interface, and change without notice.
#[doc(hidden)]
pub mod internals {
    pub use crate::encode::two_digits;
    pub use crate::property_area::PropertyArea;
    pub use crate::tags::glob_matches;

    /// The CPU's free-running counter.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    pub mod counter {
        pub use crate::counter::{hz, is_one_clock, ticks};
    }
    /// The ring that markers go to without a system call.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    pub mod ring {
        pub use crate::ring::*;
        pub use crate::system::RingMap;
    }
    /// The tags, and the properties of Android that switch them on.
    pub mod tags {
        pub use crate::tags::*;
    }
}
