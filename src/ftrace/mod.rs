//! The kernel's ring buffer as bytes: page layout, event formats, print formats. Pure functions over `&[u8]`.

mod endian;

pub use endian::Endian;
