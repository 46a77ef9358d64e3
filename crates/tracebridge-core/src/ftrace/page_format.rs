//! The numbers that define a ring-buffer page: the commit counter of its header, and the header word of a
//! record.
//!
//! The kernel defines them in include/linux/ring_buffer.h and kernel/trace/ring_buffer.c. The page reader
//! (`page`) and the page writer (`page_writer`) both take them from here.

/// Bytes of the timestamp at the start of a page.
pub(crate) const TIMESTAMP_BYTES: u32 = 8;

/// Commit counter: these bits hold how many bytes of records the page has.
pub(super) const COMMIT_LENGTH_MASK: u64 = (1 << 27) - 1;
/// Commit counter: this bit says that events were lost before the page (RB_MISSED_EVENTS).
pub(super) const COMMIT_EVENTS_LOST: u64 = 1 << 31;
/// Commit counter: this bit says that the number of lost events is stored behind the records
/// (RB_MISSED_STORED).
pub(super) const COMMIT_LOST_COUNT_STORED: u64 = 1 << 30;

/// Bytes of a record's header word: `type_len` in 5 bits and the time since the record before in 27 bits.
pub(super) const RECORD_HEADER_BYTES: usize = 4;
/// Bits of the time delta in a record's header word.
pub(super) const DELTA_BITS: u32 = 27;
/// The bits of the time delta in a little-endian machine's header word, shifted down.
pub(super) const DELTA_MASK: u32 = (1 << DELTA_BITS) - 1;
/// Bits of `type_len` in a record's header word.
pub(super) const TYPE_LEN_BITS: u32 = 32 - DELTA_BITS;

/// `type_len`: the record is longer than [`MAX_SHORT_WORDS`], so its length is in the word behind the header
/// word.
pub(super) const TYPE_LONG_DATA: u32 = 0;
/// `type_len` from 1 to this number is the length of a record in words of 4 bytes.
pub(super) const MAX_SHORT_WORDS: u32 = 28;
/// `type_len`: the record was discarded, or (with a time delta of 0) the rest of the page is unused.
pub(super) const TYPE_PADDING: u32 = 29;
/// `type_len`: the word behind the header word holds the upper bits of a time delta.
pub(super) const TYPE_TIME_EXTEND: u32 = 30;
/// `type_len`: the word behind the header word holds the upper bits of an absolute time.
pub(super) const TYPE_TIME_STAMP: u32 = 31;

/// Bits of an absolute time. The bits above are those of the time before it.
pub(super) const ABSOLUTE_TIME_BITS: u32 = 59;
