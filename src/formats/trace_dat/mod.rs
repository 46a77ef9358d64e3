//! Reads trace-cmd's `trace.dat`, versions 6 and 7.

mod ahead;
mod codec;
mod cpu;
mod cursor;
mod error;
mod file;
mod kinds;
mod read;
mod v6;
mod v7;

pub use cpu::Release;
pub use error::TraceDatError;
pub use file::{TraceDat, detect};
