//! The ring: memory of a program into which its threads write markers without a system call, and which a
//! recorder reads. `layout` defines the bytes, `record` reads the records of a block, and
//! [`RingMap`](crate::system::RingMap) maps the memory. The program's side is in `ring_writer`, the
//! recorder's in `tracebridge-device`; docs/ring.md describes both.

pub mod layout;
pub mod record;

pub use layout::Stamp;
pub use record::{BlockDamage, Record, RecordFault, RingRecords};
