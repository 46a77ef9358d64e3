//! Writes pages of the ring buffer: the opposite of the reader in `page`.
//!
//! Both take the numbers of the format from `page_format`.

use super::page_format::{
    COMMIT_EVENTS_LOST, COMMIT_LOST_COUNT_STORED, DELTA_BITS, DELTA_MASK, MAX_SHORT_WORDS,
    RECORD_HEADER_BYTES, TIMESTAMP_BYTES, TYPE_LEN_BITS, TYPE_LONG_DATA, TYPE_PADDING, TYPE_TIME_EXTEND,
    TYPE_TIME_STAMP,
};
use super::{Endian, PageLayout};
use crate::clock::Timestamp;

/// Bytes of a `long` of the machine whose pages an output file has.
pub const LONG_BYTES: u8 = 8;
/// Bytes of a page of an output file.
pub const PAGE_BYTES: usize = 4096;
/// Bytes of a page's header in an output file: the timestamp and the commit counter.
const HEADER_BYTES: usize = TIMESTAMP_BYTES as usize + LONG_BYTES as usize;
/// Bytes that a page of an output file keeps free behind its records for the count of lost events.
const LOST_COUNT_BYTES: usize = LONG_BYTES as usize;
/// Bytes of a time extension: a header word and the upper bits of the time delta.
const TIME_EXTEND_BYTES: usize = 2 * RECORD_HEADER_BYTES;
/// Bits of the longest time delta: those of a record's header, and the word of a time extension.
const MAX_DELTA_BITS: u32 = DELTA_BITS + 32;
/// Bytes before the data of a record whose length does not fit into `type_len`.
const LONG_RECORD_HEADER_BYTES: usize = 2 * RECORD_HEADER_BYTES;
/// The longest record whose length fits into `type_len`, bytes.
const MAX_SHORT_BYTES: usize = 4 * MAX_SHORT_WORDS as usize;
/// The longest record that a page of an output file can hold beside its headers, bytes. The kernel's own
/// limit is similar.
pub const MAX_RECORD_BYTES: usize =
    PAGE_BYTES - HEADER_BYTES - LOST_COUNT_BYTES - TIME_EXTEND_BYTES - LONG_RECORD_HEADER_BYTES;

/// The layout of the pages of an output file: those of a little-endian 64-bit kernel.
pub fn page_layout() -> PageLayout {
    PageLayout::usual(Endian::Little, LONG_BYTES, PAGE_BYTES as u32)
}

/// The text of `events/header_event` for the pages that [`PageWriter`] writes.
pub fn header_event() -> String {
    format!(
        "# compressed entry header\n\
         \ttype_len    : {TYPE_LEN_BITS:4} bits\n\ttime_delta  : {DELTA_BITS:4} bits\n\tarray       :   32 bits\n\n\
         \tpadding     : type == {TYPE_PADDING}\n\ttime_extend : type == {TYPE_TIME_EXTEND}\n\
         \ttime_stamp : type == {TYPE_TIME_STAMP}\n\tdata max type_len  == {MAX_SHORT_WORDS}\n"
    )
}

/// Gathers the records of one CPU into pages.
pub struct PageWriter {
    layout: PageLayout,
    /// The page so far, its header included; empty before the page's first record.
    bytes: Vec<u8>,
    /// Time of the last record.
    last_ts: Timestamp,
    /// Whether events were lost before the page, and the number of lost events where it is known.
    lost: Option<Option<u64>>,
}

impl Default for PageWriter {
    /// A writer of pages of an output file.
    fn default() -> PageWriter {
        PageWriter::new(page_layout())
    }
}

impl PageWriter {
    /// Makes a writer of pages of this layout.
    pub fn new(layout: PageLayout) -> PageWriter {
        PageWriter { layout, bytes: Vec::new(), last_ts: Timestamp::MIN, lost: None }
    }

    /// Notes that events were lost before the next record. Ends the page so far and returns it.
    pub fn lost(&mut self, count: Option<u64>) -> Option<Box<[u8]>> {
        let full = self.take();
        let before = self.lost.flatten();
        self.lost = Some(match (before, count) {
            (Some(a), Some(b)) => Some(a.saturating_add(b)),
            (a, b) => a.or(b),
        });
        full
    }

    /// Adds a record of at most [`MAX_RECORD_BYTES`]; a page of another layout than an output file's may hold
    /// less. Returns the page before it where the record starts a new page. All times are in the clock of the
    /// pages.
    pub fn push(&mut self, ts: Timestamp, record: &[u8]) -> Option<Box<[u8]>> {
        let words = record.len().div_ceil(4);
        let padded = 4 * words;
        let is_long = padded > MAX_SHORT_BYTES || padded == 0;
        let header = if is_long { LONG_RECORD_HEADER_BYTES } else { RECORD_HEADER_BYTES };
        let end = self.bytes.len() + TIME_EXTEND_BYTES + header + padded;
        let room = self.layout.size.saturating_sub(self.layout.commit_size) as usize;
        // A page's time deltas are not negative. A record that is older than the one before it (clocks of two
        // CPUs, a text out of order) therefore starts a new page. So does one that comes 18 years later.
        let has_delta = ts.checked_since(self.last_ts).is_some_and(|delta| delta >> MAX_DELTA_BITS == 0);
        let starts_page = end > room || !has_delta;
        let full = (!self.bytes.is_empty() && starts_page).then(|| self.take()).flatten();
        if self.bytes.is_empty() {
            self.bytes.resize(self.layout.data_offset as usize, 0);
            self.number(0, ts.0, TIMESTAMP_BYTES);
            self.last_ts = ts;
        }
        let mut delta = ts - self.last_ts;
        if delta >> DELTA_BITS != 0 {
            self.record_header(TYPE_TIME_EXTEND, delta as u32 & DELTA_MASK);
            self.word((delta >> DELTA_BITS) as u32);
            delta = 0;
        }
        if is_long {
            self.record_header(TYPE_LONG_DATA, delta as u32);
            // The length word counts itself.
            self.word((padded + RECORD_HEADER_BYTES) as u32);
        } else {
            self.record_header(words as u32, delta as u32);
        }
        self.bytes.extend_from_slice(record);
        self.bytes.resize(self.bytes.len() + padded - record.len(), 0);
        self.last_ts = ts;
        full
    }

    /// Ends the page and returns it; `None` where the page has no records.
    pub fn take(&mut self) -> Option<Box<[u8]>> {
        if self.bytes.is_empty() {
            return None;
        }
        let PageLayout { commit_offset, commit_size, data_offset, size, .. } = self.layout;
        let end = self.bytes.len();
        let mut commit = (end - data_offset as usize) as u64;
        self.bytes.resize((size as usize).max(end), 0);
        if let Some(count) = self.lost.take() {
            commit |= COMMIT_EVENTS_LOST;
            if let Some(count) = count {
                commit |= COMMIT_LOST_COUNT_STORED;
                let most = if commit_size == 4 { u64::from(u32::MAX) } else { u64::MAX };
                self.number(end, count.min(most), commit_size);
            }
        }
        self.number(commit_offset as usize, commit, commit_size);
        Some(std::mem::take(&mut self.bytes).into_boxed_slice())
    }

    /// Stores a number of 4 or 8 bytes.
    fn number(&mut self, at: usize, number: u64, size: u32) {
        let little = number.to_le_bytes();
        let mut bytes = little[..size as usize].to_vec();
        if self.layout.endian == Endian::Big {
            bytes.reverse();
        }
        if let Some(place) = self.bytes.get_mut(at..at + bytes.len()) {
            place.copy_from_slice(&bytes);
        }
    }

    fn record_header(&mut self, type_len: u32, delta: u32) {
        // The compiler of the kernel puts the bit field's first member into the lowest bits of a
        // little-endian word, and into the highest of a big-endian one.
        self.word(match self.layout.endian {
            Endian::Little => type_len | delta << TYPE_LEN_BITS,
            Endian::Big => type_len << DELTA_BITS | delta,
        });
    }

    fn word(&mut self, word: u32) {
        self.bytes.extend_from_slice(&match self.layout.endian {
            Endian::Little => word.to_le_bytes(),
            Endian::Big => word.to_be_bytes(),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ftrace::LostEvents;

    /// (time, first byte of the record) of each record.
    fn read(page: &[u8]) -> Vec<(u64, u8)> {
        page_layout().page(page).unwrap().records().map(|r| (r.ts.0, r.data[0])).collect()
    }

    /// A generator of pseudo-random numbers that are the same in each run.
    struct Numbers(u64);

    impl Numbers {
        fn below(&mut self, limit: u64) -> u64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 33) % limit
        }
    }

    #[derive(Debug, Clone, PartialEq)]
    enum Item {
        Record(u64, Vec<u8>),
        Lost(LostEvents),
    }

    fn decode(layout: &PageLayout, pages: &[Box<[u8]>]) -> Vec<Item> {
        let mut items = Vec::new();
        for bytes in pages {
            assert_eq!(bytes.len(), layout.size as usize);
            let page = layout.page(bytes).unwrap();
            items.extend(page.lost.map(Item::Lost));
            let mut records = page.records();
            items.extend(records.by_ref().map(|r| Item::Record(r.ts.0, r.data.to_vec())));
            assert_eq!(records.fault(), None);
        }
        items
    }

    #[test]
    fn a_record_that_comes_later_than_a_delta_can_tell_starts_a_page() {
        for (later, pages) in [((1 << 59) - 1, 1), (1 << 59, 2), (u64::MAX - 7, 2)] {
            let mut writer = PageWriter::default();
            assert_eq!(writer.push(Timestamp(7), &[1]), None);
            let full = writer.push(Timestamp(7 + later), &[2]);
            let written: Vec<_> = full.into_iter().chain(writer.take()).collect();
            assert_eq!(written.len(), pages);
            let records: Vec<_> = written.iter().flat_map(|page| read(page)).collect();
            assert_eq!(records, [(7, 1), (7 + later, 2)]);
        }
    }

    #[test]
    fn generated_records_and_losses_decode_to_what_was_encoded() {
        for seed in 0..60 {
            let mut numbers = Numbers(seed);
            let mut items = Vec::new();
            let mut ts = numbers.below(1 << 40);
            for _ in 0..numbers.below(300) {
                // Two losses without a record between them become one, so each loss is followed by a record.
                match numbers.below(30) {
                    0 => items.push(Item::Lost(LostEvents::Unknown)),
                    1 => items.push(Item::Lost(LostEvents::Count(numbers.below(1 << 31)))),
                    _ => {}
                }
                ts = match numbers.below(20) {
                    0 => ts.saturating_sub(numbers.below(1 << 20)),
                    1 => ts + (numbers.below(1 << 31) << numbers.below(20)),
                    2 => ts,
                    _ => ts + numbers.below(1 << 16),
                };
                let longest = if numbers.below(10) == 0 { MAX_RECORD_BYTES as u64 / 4 } else { 40 };
                let len = 4 * (1 + numbers.below(longest));
                items.push(Item::Record(ts, (0..len).map(|_| numbers.below(256) as u8).collect()));
            }
            let (long_size, size) = [(8, 4096), (4, 4096), (8, 16384)][seed as usize % 3];
            let endian = [Endian::Little, Endian::Big][seed as usize / 3 % 2];
            let layout = PageLayout::usual(endian, long_size, size);
            let mut page = PageWriter::new(layout);
            let mut pages = Vec::new();
            for item in &items {
                pages.extend(match item {
                    Item::Record(ts, data) => page.push(Timestamp(*ts), data),
                    Item::Lost(LostEvents::Count(count)) => page.lost(Some(*count)),
                    Item::Lost(LostEvents::Unknown) => page.lost(None),
                });
            }
            pages.extend(page.take());
            assert!(decode(&layout, &pages) == items, "seed {seed}");
        }
    }

    #[test]
    fn the_header_texts_are_those_of_the_kernel() {
        let header_page = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
             \tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\
             \tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\
             \tfield: char data;\toffset:16;\tsize:4080;\tsigned:1;\n";
        let header_event = "# compressed entry header\n\
             \ttype_len    :    5 bits\n\ttime_delta  :   27 bits\n\tarray       :   32 bits\n\n\
             \tpadding     : type == 29\n\ttime_extend : type == 30\n\ttime_stamp : type == 31\n\
             \tdata max type_len  == 28\n";
        assert_eq!(page_layout().header_page(), header_page);
        assert_eq!(super::header_event(), header_event);
    }

    #[test]
    fn a_full_page_and_a_step_back_in_time_start_the_next_page() {
        let mut page = PageWriter::default();
        let mut full = None;
        let mut pushed = 0;
        while full.is_none() {
            full = page.push(Timestamp(pushed), &[7; 100]);
            pushed += 1;
        }
        assert_eq!(read(&full.unwrap()).len() as u64, pushed - 1);
        assert!(page.push(Timestamp(3), &[8; 8]).is_some());
        assert_eq!(read(&page.take().unwrap()), [(3, 8)]);
        assert!(page.push(Timestamp(9), &[9; MAX_RECORD_BYTES]).is_none());
        assert_eq!(read(&page.take().unwrap()), [(9, 9)]);
        assert!(page.take().is_none());
    }

    #[test]
    fn a_loss_is_stored_in_the_page_that_follows_it() {
        let mut page = PageWriter::default();
        page.push(Timestamp(1), &[1; 8]);
        assert!(page.lost(Some(5)).is_some());
        assert!(page.lost(Some(2)).is_none());
        page.push(Timestamp(9), &[2; 8]);
        let written = page.take().unwrap();
        // The kernel's own numbers, written out: the length of the records, and bits 31 and 30.
        let commit = u64::from_le_bytes(written[8..16].try_into().unwrap());
        assert_eq!(commit, 12 | 1 << 31 | 1 << 30);
        assert_eq!(written[16 + 12..16 + 20], 7u64.to_le_bytes());
    }
}
