//! tracebridge records the kernel's trace buffer and atrace markers on an Android device (or any Linux). On
//! the host it puts a recording and the app's ART or Dalvik method trace on one clock, for the viewers people
//! use.
//!
//! A program that uses the crate finds here:
//! - [`markers`]: writing atrace markers (feature `markers`, which needs only the system-call crate);
//! - [`formats`]: readers of recordings and method traces;
//! - [`timeline`]: several inputs on one clock;
//! - [`export`]: writers for viewers;
//! - [`profile`]: method profiles;
//! - [`ftrace`] and [`clock`]: the types that all of these share.
//!
//! The features `device` and `host` add what the `tracebridge` program needs on either side. ARCHITECTURE.md
//! in the repository draws the rooms of the crate and the order of their imports.

// The device's program uses only a part of the rooms that it shares with the host, and a host without a
// tracefs only the other part. The build for a Linux host uses all, and reports dead code.
#![cfg_attr(not(all(feature = "host", target_os = "linux")), allow(dead_code, unused_imports))]

mod android;
mod console;
mod counter;
pub mod markers;
mod statistics;
mod text;
mod varint;
mod workers;

// What the device and the host both need.
#[cfg(feature = "device")]
mod categories;
#[cfg(feature = "device")]
pub mod cli;
#[cfg(feature = "device")]
pub mod clock;
#[cfg(feature = "device")]
pub mod ftrace;
#[cfg(feature = "device")]
mod ignored_signals;
#[cfg(feature = "device")]
mod output_file;
#[cfg(feature = "device")]
mod trace_dat;

// What records. Only Linux has a tracefs.
#[cfg(all(feature = "device", any(target_os = "linux", target_os = "android")))]
mod atrace_command;
#[cfg(all(feature = "device", any(target_os = "linux", target_os = "android")))]
mod doctor;
#[cfg(all(feature = "device", any(target_os = "linux", target_os = "android")))]
mod record;

// What only the host needs.
#[cfg(feature = "host")]
mod adb;
#[cfg(feature = "host")]
mod art;
#[cfg(feature = "host")]
mod dataset;
#[cfg(feature = "host")]
pub mod export;
#[cfg(feature = "host")]
pub mod formats;
#[cfg(feature = "host")]
mod gate;
#[cfg(feature = "host")]
mod inspect;
#[cfg(feature = "host")]
mod measure;
#[cfg(feature = "host")]
pub mod profile;
#[cfg(feature = "host")]
mod progress;
#[cfg(feature = "host")]
mod remote;
#[cfg(feature = "host")]
mod tables;
#[cfg(feature = "host")]
pub mod timeline;
#[cfg(feature = "host")]
mod tracks;

/// Parts that the project's own fuzz targets, tests, tools and benches call. They are no part of the crate's
/// interface.
#[cfg(feature = "host")]
#[doc(hidden)]
pub mod internals {
    pub use crate::android::property_area::PropertyArea;
    pub use crate::art::Mapping;
    #[cfg(any(target_os = "linux", target_os = "android"))]
    pub use crate::atrace_command::options as atrace_options;
    pub use crate::cli::host::{command_line, host_command_line};
    pub use crate::formats::perfetto::scan::count as count_perfetto;
    pub use crate::formats::perfetto::wire::read::{WireValue, fields as message_fields};
    #[cfg(any(target_os = "linux", target_os = "android"))]
    pub use crate::markers::ring::{BlockDamage, Record, RecordFault, RingRecords};
    #[cfg(any(target_os = "linux", target_os = "android"))]
    pub use crate::record::{SettingsText, read_settings_text};
    /// The gate, for the tool that counts its false alarms.
    pub mod gate {
        pub use crate::export::run_times::{Figure, RunTimes};
        pub use crate::gate::{Condition, Outcome, Selection, Side, judge};
    }
    pub use crate::text::glob_matches;
    pub use crate::trace_dat::recorder_stream::decoder::RecorderStream;
    pub use crate::trace_dat::{CpuData, Metadata, file_format, write_v7};
}
