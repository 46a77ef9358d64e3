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
mod symbols;
pub mod task_state;
pub mod trace_flags;

pub use event_type::{Endian, EventType, Field, FieldType, Value};
pub use format::{CommonFields, EventFormat, EventFormatError, FieldSlot, builtin_formats};
pub use page::{LostEvents, Page, PageFault, PageRecord, PageRecords, RecordCursor, RecordSpan};
pub use page_format::{HeaderPageError, PageLayout};
pub use symbols::{Symbol, Symbols, parse_printk_formats};

// The kernel's soft interrupts by their number: `vec` of `softirq_entry`, `softirq_exit` and `softirq_raise`
// (include/linux/interrupt.h; the names are those of include/trace/events/irq.h).

/// The names of the soft interrupts; the index is the number.
pub const SOFTIRQ_NAMES: [&str; 10] =
    ["HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU"];

/// The name of the soft interrupt with this number.
pub fn softirq_name(number: i64) -> Option<&'static str> {
    SOFTIRQ_NAMES.get(usize::try_from(number).ok()?).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_outside_the_list_has_no_name() {
        assert_eq!((softirq_name(0), softirq_name(9)), (Some("HI"), Some("RCU")));
        assert_eq!((softirq_name(-1), softirq_name(10)), (None, None));
    }
}
