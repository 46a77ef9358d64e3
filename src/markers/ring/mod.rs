//! The ring: memory of a program into which its threads write markers without a system call, and which a
//! recorder reads. `layout` defines the bytes, `mapping` maps them, `record` reads the records of a block.
//! The program's side is in `ring_writer`, the recorder's in the room `record`; docs/ring.md describes both.

pub(crate) mod layout;
pub(crate) mod mapping;
pub(crate) mod record;

pub(crate) use layout::Stamp;
pub(crate) use mapping::RingMap;
pub use record::{BlockDamage, Record, RecordFault, RingRecords};
