//! The kernel's ring buffer as bytes: page layout, event formats, print formats. Pure functions over `&[u8]`.

mod endian;
mod event_type;
mod format;
mod layout;
mod page;
#[cfg(feature = "host")]
pub(crate) mod page_writer;
pub mod print_fmt;
mod symbols;

pub use endian::Endian;
pub use event_type::{EventType, Field, FieldType, Value, until_nul};
pub use format::{CommonFields, EventFormat, FormatError, Slot};
pub use layout::{LayoutError, PageLayout};
pub use page::{Missed, Page, PageFault, Place, Record, Records, Walk};
pub use symbols::{Symbol, Symbols, parse_printk_formats};
