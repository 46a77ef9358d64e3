//! trace-cmd's `trace.dat`: what the recorder writes, and what `trace-cmd report` and KernelShark read.

mod compress;
mod extra;
pub mod layout;
mod packed;
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
pub use packed::{ReadPages, write_packed};
pub use writer::{CpuData, Header, Metadata, Parts, Slot};

#[cfg(feature = "host")]
pub use cpu::Release;
#[cfg(feature = "host")]
pub use error::TraceDatError;
#[cfg(feature = "host")]
pub use file::{TraceDat, detect};
