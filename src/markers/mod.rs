//! atrace markers: the grammar that writers and readers share, and the [`Tracer`] that writes them.

mod encode;
pub mod marker;
mod tracer;

pub use encode::MAX_LEN;
pub use marker::{ClockSync, Marker};
pub use tracer::{Section, TRACEFS_PLACES, Tracer};
