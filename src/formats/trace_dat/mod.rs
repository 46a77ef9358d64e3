//! Reads trace-cmd's `trace.dat`, versions 6 and 7.

mod compression;
mod cpu_data;
mod decompress_pool;
mod error;
mod event_names;
mod event_types;
mod header;
mod header_reader;
mod open;
mod options;
mod read;
mod v6;
mod v7;

pub use cpu_data::Release;
pub use error::TraceDatError;
pub use header::TraceDat;
pub use open::detect;
pub(super) use open::open;
