//! The kernel's ring buffer as bytes: pages, event formats, print formats. All functions here are
//! pure functions over `&[u8]`.
//!
//! The reader of a page (`page`) and its writer (`page_writer`) share the numbers in `page_format`.

mod event_type;
mod format;
mod page;
pub mod page_format;
pub mod page_writer;
pub mod print_fmt;
pub mod softirq;
mod symbols;
pub mod task_state;
pub mod trace_flags;

pub use event_type::{Endian, EventType, Field, FieldType, Value};
pub use format::{CommonFields, EventFormat, EventFormatError, FieldSlot, builtin_formats};
pub use page::{LostEvents, Page, PageFault, PageRecord, PageRecords, RecordCursor, RecordSpan};
pub use page_format::{HeaderPageError, PageLayout};
pub use symbols::{Symbol, Symbols, parse_printk_formats};
