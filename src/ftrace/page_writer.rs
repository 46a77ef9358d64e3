//! One page of the kernel's ring buffer, written: include/linux/ring_buffer.h and kernel/trace/ring_buffer.c.
//!
//! Little-endian, a `long` of 8 bytes: u64 time, u64 commit (bytes of data; bit 31: events before this page are
//! missing, bit 30: how many stands behind the data), then events with 27 bits of time since the one before.

/// Bytes of a page.
pub(crate) const PAGE: usize = 4096;
const HEADER: usize = 16;
const MISSED: u64 = 1 << 31;
const MISSED_STORED: u64 = 1 << 30;
/// The longest record whose length fits into the 5 bits of `type_len`, as words of 4 bytes.
const MAX_SHORT: usize = 28 * 4;
const TIME_EXTEND: u32 = 30;
const DELTA_BITS: u32 = 27;
/// The longest record that a page can hold beside its headers: bytes. The kernel's own limit is of this size too.
pub(crate) const MAX_RECORD: usize = PAGE - HEADER - 8 - 8 - 8;

/// The text of `events/header_page` for such a page.
pub(crate) const HEADER_PAGE: &str = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
     \tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\
     \tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\
     \tfield: char data;\toffset:16;\tsize:4080;\tsigned:1;\n";

/// The text of `events/header_event`.
pub(crate) const HEADER_EVENT: &str = "# compressed entry header\n\
     \ttype_len    :    5 bits\n\ttime_delta  :   27 bits\n\tarray       :   32 bits\n\n\
     \tpadding     : type == 29\n\ttime_extend : type == 30\n\ttime_stamp : type == 31\n\
     \tdata max type_len  == 28\n";

/// The page that a CPU is at.
#[derive(Default)]
pub(crate) struct Page {
    bytes: Vec<u8>,
    last: u64,
    /// Events missing before this page, and how many where known.
    missed: Option<Option<u64>>,
}

impl Page {
    /// Says that events are missing before the next one; hands over the page that is thereby full.
    pub fn lost(&mut self, count: Option<u64>) -> Option<[u8; PAGE]> {
        let full = self.take();
        let before = self.missed.flatten();
        self.missed = Some(match (before, count) {
            (Some(a), Some(b)) => Some(a.saturating_add(b)),
            (a, b) => a.or(b),
        });
        full
    }

    /// Adds a record; hands over the page before it where it did not fit there any more.
    pub fn push(&mut self, ts: u64, record: &[u8]) -> Option<[u8; PAGE]> {
        let words = record.len().div_ceil(4) * 4;
        let head = if words > MAX_SHORT || words == 0 { 8 } else { 4 };
        // An event before its predecessor (clocks of two CPUs, a text out of order) starts a page of its own.
        let full = (!self.bytes.is_empty()
            && (self.bytes.len() + 8 + head + words > PAGE - 8 || ts < self.last))
            .then(|| self.take())
            .flatten();
        if self.bytes.is_empty() {
            self.bytes.extend_from_slice(&ts.to_le_bytes());
            self.bytes.extend_from_slice(&[0; 8]);
            self.last = ts;
        }
        let mut delta = ts - self.last;
        if delta >> DELTA_BITS != 0 {
            let low = (delta as u32) & ((1 << DELTA_BITS) - 1);
            self.word(TIME_EXTEND | low << 5);
            self.word((delta >> DELTA_BITS) as u32);
            delta = 0;
        }
        let delta = (delta as u32) << 5;
        if head == 8 {
            self.word(delta);
            self.word(words as u32 + 4);
        } else {
            self.word(delta | (words / 4) as u32);
        }
        self.bytes.extend_from_slice(record);
        self.bytes.resize(self.bytes.len() + words - record.len(), 0);
        self.last = ts;
        full
    }

    /// The page as far as it came; `None` where nothing is in it.
    pub fn take(&mut self) -> Option<[u8; PAGE]> {
        if self.bytes.is_empty() {
            return None;
        }
        let mut commit = (self.bytes.len() - HEADER) as u64;
        if let Some(count) = self.missed.take() {
            commit |= MISSED;
            if let Some(count) = count {
                commit |= MISSED_STORED;
                self.bytes.extend_from_slice(&count.to_le_bytes());
            }
        }
        let mut page = [0; PAGE];
        page[..self.bytes.len()].copy_from_slice(&self.bytes);
        page[8..16].copy_from_slice(&commit.to_le_bytes());
        self.bytes.clear();
        Some(page)
    }

    fn word(&mut self, word: u32) {
        self.bytes.extend_from_slice(&word.to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ftrace::{Endian, PageLayout};

    /// (time, first byte of the record) of each record.
    fn read(page: &[u8; PAGE]) -> Vec<(u64, u8)> {
        let layout = PageLayout::parse(HEADER_PAGE, Endian::Little).unwrap();
        layout.page(page).unwrap().records().map(|r| (r.ts, r.data[0])).collect()
    }

    #[test]
    fn what_is_written_is_read_again() {
        let mut page = Page::default();
        let far = 50_000_000_000;
        let records = [(100, vec![1; 12]), (101, vec![2; 300]), (far, vec![3; 5]), (far + 7, vec![4; 112])];
        for (ts, record) in &records {
            assert!(page.push(*ts, record).is_none());
        }
        assert_eq!(read(&page.take().unwrap()), [(100, 1), (101, 2), (far, 3), (far + 7, 4)]);
        assert!(page.take().is_none());
    }

    #[test]
    fn a_full_page_and_a_step_back_in_time_start_the_next_one() {
        let mut page = Page::default();
        let mut full = None;
        let mut pushed = 0;
        while full.is_none() {
            full = page.push(pushed, &[7; 100]);
            pushed += 1;
        }
        assert_eq!(read(&full.unwrap()).len() as u64, pushed - 1);
        assert!(page.push(3, &[8; 8]).is_some());
        assert_eq!(read(&page.take().unwrap()), [(3, 8)]);
        assert!(page.push(9, &[9; MAX_RECORD]).is_none());
        assert_eq!(read(&page.take().unwrap()), [(9, 9)]);
    }

    #[test]
    fn losses_are_in_the_page_behind_them() {
        let mut page = Page::default();
        page.push(1, &[1; 8]);
        assert!(page.lost(Some(5)).is_some());
        assert!(page.lost(Some(2)).is_none());
        page.push(9, &[2; 8]);
        let written = page.take().unwrap();
        let commit = u64::from_le_bytes(written[8..16].try_into().unwrap());
        assert_eq!(commit & (MISSED | MISSED_STORED), MISSED | MISSED_STORED);
        let end = HEADER + (commit & 0xff_ffff) as usize;
        assert_eq!(written[end..end + 8], 7u64.to_le_bytes());
    }
}
