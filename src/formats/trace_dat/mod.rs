//! trace-cmd's `trace.dat`: what the recorder writes, and what `trace-cmd report` and KernelShark read.

mod extra;
pub mod layout;
mod writer;

#[cfg(feature = "host")]
mod ahead;
#[cfg(feature = "host")]
mod codec;
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

pub use extra::{CpuLoss, Extra, Settle};
pub use writer::{CpuData, Header, Metadata, Slot};

#[cfg(feature = "host")]
pub use cpu::Release;
#[cfg(feature = "host")]
pub use error::TraceDatError;
#[cfg(feature = "host")]
pub use file::{TraceDat, detect};
