//! tracebridge records the kernel's trace buffer and atrace markers on an Android device (or any Linux), and
//! on the host puts the recording and the app's ART/Dalvik method trace on one clock for the viewers people
//! use.
//!
//! Imports point one way: [`cli`] → `record`, `doctor`, `atrace_command` | [`export`], [`inspect`] → [`profile`] →
//! [`timeline`] → [`formats`] → `trace_dat`, [`markers`], `categories` → `android`, [`ftrace`], [`art`] →
//! `text`, [`clock`]. No lower room knows a higher one, and no format knows another format.

pub mod android;
pub mod markers;
pub mod text;

// What the phone and the desk both need.
#[cfg(feature = "device")]
pub mod cli;
#[cfg(feature = "device")]
pub mod clock;
#[cfg(feature = "device")]
mod console;
#[cfg(feature = "device")]
pub mod ftrace;
#[cfg(feature = "device")]
pub mod trace_dat;

// What records: only Linux has a tracefs.
#[cfg(all(feature = "device", any(target_os = "linux", target_os = "android")))]
pub mod atrace_command;
#[cfg(all(feature = "device", any(target_os = "linux", target_os = "android")))]
pub mod categories;
#[cfg(all(feature = "device", any(target_os = "linux", target_os = "android")))]
pub mod doctor;
#[cfg(all(feature = "device", any(target_os = "linux", target_os = "android")))]
pub mod record;

// What only a desk needs.
#[cfg(feature = "host")]
pub mod art;
#[cfg(feature = "host")]
pub mod export;
#[cfg(feature = "host")]
pub mod formats;
#[cfg(feature = "host")]
pub mod inspect;
#[cfg(feature = "host")]
pub mod profile;
#[cfg(feature = "host")]
pub mod timeline;
#[cfg(feature = "host")]
mod workers;
