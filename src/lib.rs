//! tracebridge records the kernel's trace buffer and atrace markers on an Android device (or any Linux). On
//! the host it puts a recording and the app's ART or Dalvik method trace on one clock, for the viewers people
//! use.
//!
//! A program that uses the crate finds here:
//! - [`markers`]: the texts of atrace markers; a program that only writes them uses `tracebridge-markers`;
//! - [`formats`]: readers of recordings and method traces;
//! - [`timeline`]: several inputs on one clock;
//! - [`export`]: writers for viewers;
//! - [`profile`]: method profiles;
//! - [`ftrace`], [`clock`] and [`ids`]: the types that all of these share.
//!
//! The program `tracebridge` is built of four crates: this one, `tracebridge-core`, `tracebridge-device` and
//! `tracebridge-markers`. ARCHITECTURE.md in the repository draws the rooms of each and the order of imports.

// Without the command for assistants nobody calls what it alone needs.
#![cfg_attr(not(feature = "mcp"), allow(dead_code))]

mod adb;
mod art;
pub mod cli;
mod dataset;
mod desk;
pub mod export;
mod file_access;
pub mod formats;
mod gate;
mod http;
mod inspect;
mod live;
mod markup;
#[cfg(feature = "mcp")]
mod mcp;
mod measure;
pub mod profile;
mod progress;
mod statistics;
mod tables;
pub mod timeline;
mod tracks;
mod varint;
mod why;
mod workers;

use tracebridge_core::{android, categories, child, console, depth, output_file, text, trace_dat};
pub use tracebridge_core::{clock, ftrace, ids};
pub use tracebridge_markers as markers;

/// Parts that the project's own fuzz targets, tests, tools and benches call. They are no part of the crate's
/// interface.
#[doc(hidden)]
pub mod internals {
    pub use crate::art::Mapping;
    pub use crate::cli::host::{command_line, host_command_line};
    pub use crate::export::explain::explain_everything;
    pub use crate::formats::perfetto::scan::count as count_perfetto;
    pub use crate::formats::perfetto::wire::read::{WireValue, fields as message_fields};
    /// A recording that is followed while it runs.
    pub mod live {
        pub use crate::live::{
            Kept, KeptError, Live, LiveCommand, LiveError, LiveHost, LiveMessage, LiveOptions, LiveServer,
            Occurrence, Trigger, TriggerError, WrittenFile,
        };
    }
    #[cfg(feature = "mcp")]
    pub use crate::mcp::RequestProbe;
    /// The gate, for the tool that counts its false alarms.
    pub mod gate {
        pub use crate::gate::{Condition, GateOutcome, GateSide, Selection, judge};
        pub use crate::measure::{MeasureKind, RunTimes};
    }
    pub use crate::trace_dat::recorder_stream::RecorderStream;
    pub use crate::trace_dat::{CpuData, Metadata, option, write_v7};
    #[cfg(any(target_os = "linux", target_os = "android"))]
    pub use tracebridge_device::internals::{SettingsText, atrace_options, read_settings_text};
    #[cfg(any(target_os = "linux", target_os = "android"))]
    pub use tracebridge_markers::internals::ring::{BlockDamage, Record, RecordFault, RingRecords};
    pub use tracebridge_markers::internals::{PropertyArea, glob_matches};
}
