//! The recorder that runs on a device, with atrace's drop-in, the commands that write markers, and `doctor`.
//!
//! The crate is part of the program `tracebridge`, and its interface changes with every version. The host's
//! program on Linux has the same commands; elsewhere there is no tracefs, and the crate is empty.
#![cfg(any(target_os = "linux", target_os = "android"))]

mod android;
mod atrace_command;
mod cli;
mod doctor;
mod record;
mod step_log;
mod system;

use tracebridge_core::{
    categories, child, clock, console, ftrace, ids, ignored_signals, output_file, text, trace_dat,
};
use tracebridge_markers as markers;
use tracebridge_markers::internals::counter;

pub use cli::{DeviceCommand, ProgramFlags, dispatch, main};

/// Parts that the project's own fuzz targets call. They are no part of the crate's interface.
#[doc(hidden)]
pub mod internals {
    pub use crate::atrace_command::options as atrace_options;
    #[cfg(feature = "schema")]
    pub use crate::cli::{JsonDocument, json_documents};
    pub use crate::record::{SettingsText, read_settings_text};
}
