//! tracebridge records the kernel's trace buffer and atrace markers on an Android device (or any Linux), and on
//! the host puts the recording and the app's ART/Dalvik method trace on one clock for the viewers people use.
//!
//! Imports point one way: [`cli`] → [`record`] | [`doctor`] | [`export`] | [`profile`] | [`report`] → [`timeline`] →
//! [`formats`] → [`ftrace`], [`atrace`], [`art`] → [`clock`]. Nothing lower knows anything higher, and two
//! formats never know each other.

pub mod art;
pub mod atrace;
#[cfg(all(feature = "device", any(target_os = "linux", target_os = "android")))]
pub mod atrace_cmd;
pub mod cli;
pub mod clock;
#[cfg(all(feature = "device", any(target_os = "linux", target_os = "android")))]
pub mod doctor;
#[cfg(feature = "host")]
pub mod export;
pub mod formats;
pub mod ftrace;
#[cfg(feature = "host")]
pub mod profile;
#[cfg(all(feature = "device", any(target_os = "linux", target_os = "android")))]
pub mod record;
#[cfg(feature = "host")]
pub mod report;
mod say;
#[cfg(feature = "host")]
pub mod timeline;
