//! Recording on the device: access to tracefs, the kernel's settings with the guard that puts them back, and
//! the loop that moves pages of the ring buffer into a capture.
//!
//! A command line calls one function of [`recorder`], [`record_while`], [`launch`], [`flight_recorder`] or
//! [`saved_settings`] with a request, and prints the summary that comes back.

mod buffer_lock;
mod capture;
mod clocks;
mod cpu_reader;
mod error;
mod event_cost;
pub(crate) mod events;
pub(crate) mod file_access;
pub(crate) mod flight_recorder;
pub(crate) mod interruptible_writer;
pub(crate) mod launch;
mod live_categories;
mod machine_facts;
mod metadata;
mod other_programs;
pub(crate) mod record_while;
pub(crate) mod recorder;
pub(crate) mod request;
mod rings;
pub(crate) mod saved_settings;
mod scheduling;
mod session;
mod signals;
mod stream_output;
mod tracefs;
pub(crate) mod tracefs_config;

pub(crate) use capture::CaptureTarget;
pub(crate) use clocks::snapshot;
pub(crate) use cpu_reader::CpuStats;
pub(crate) use error::RecordError;
pub(crate) use saved_settings::SettingsGuard;
pub use saved_settings::{SettingsText, read_settings_text};
pub(crate) use signals::{AFTER_SIGNAL_TIMEOUT, ReceivedSignal, Signals};
pub(crate) use tracefs::{EventName, Tracefs, is_option_on, parse_choices};
