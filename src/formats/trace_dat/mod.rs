//! trace-cmd's `trace.dat`: what the recorder writes, and what `trace-cmd report` and KernelShark read.

pub mod layout;

#[cfg(feature = "host")]
mod cpu;
#[cfg(feature = "host")]
mod cursor;
#[cfg(feature = "host")]
mod error;
#[cfg(feature = "host")]
mod file;
#[cfg(feature = "host")]
mod kinds;
#[cfg(feature = "host")]
mod read;
#[cfg(feature = "host")]
mod v6;
#[cfg(feature = "host")]
mod v7;

#[cfg(feature = "host")]
pub use error::TraceDatError;
#[cfg(feature = "host")]
pub use file::{TraceDat, detect};
