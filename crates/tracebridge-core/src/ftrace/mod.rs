//! The kernel's ring buffer as bytes: pages, event formats, print formats. All functions here are
//! pure functions over `&[u8]`.
//!
//! The reader of a page (`page`) and its writer (`page_writer`) share the numbers in `page_format`.

mod builtin_formats;
mod endian;
mod event_type;
mod format;
mod header_page;
pub mod limits;
mod page;
mod page_format;
pub mod page_writer;
pub mod print_fmt;
pub mod softirq;
mod symbols;
pub mod task_state;
pub mod trace_flags;

pub use builtin_formats::builtin_formats;
pub use endian::Endian;
pub use event_type::{EventType, Field, FieldType, Value};
pub use format::{CommonFields, EventFormat, EventFormatError, FieldSlot};
pub use header_page::{HeaderPageError, PageLayout};
pub use page::{LostEvents, Page, PageFault, PageRecord, PageRecords, RecordCursor, RecordSpan};
pub use symbols::{Symbol, Symbols, parse_printk_formats};
