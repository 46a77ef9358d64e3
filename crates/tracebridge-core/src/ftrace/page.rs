//! Reads one sub-buffer ("page") of the ring buffer: its header, then its records in order.
//!
//! The kernel's include/linux/ring_buffer.h and kernel/trace/ring_buffer.c define the format; its numbers are
//! in `page_format`.

use thiserror::Error;

use super::page_format::{
    ABSOLUTE_TIME_BITS, COMMIT_EVENTS_LOST, COMMIT_LENGTH_MASK, COMMIT_LOST_COUNT_STORED, DELTA_BITS,
    DELTA_MASK, MAX_SHORT_WORDS, RECORD_HEADER_BYTES, TIMESTAMP_BYTES, TYPE_LEN_BITS, TYPE_LONG_DATA,
    TYPE_PADDING, TYPE_TIME_EXTEND, TYPE_TIME_STAMP,
};
use super::{Endian, PageLayout};
use crate::clock::Timestamp;

/// Events that the kernel threw away before a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LostEvents {
    /// The kernel lost this many events.
    Count(u64),
    /// The kernel lost events and did not store their number.
    Unknown,
}

/// Why the records of a page end before the page does. All records before the fault are valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum PageFault {
    /// The page has fewer bytes than its header needs.
    #[error("the page's header is cut")]
    HeaderCut,
    /// The page's header counts more bytes of records than the page has.
    #[error("the page is cut: its header says {says} bytes of events, {has} are there")]
    Cut {
        /// Bytes of records according to the page's header.
        says: u32,
        /// Bytes of records in the page.
        has: u32,
    },
    /// The page ends in zeroes: some kernels count more bytes as written than they wrote.
    #[error("zeroes instead of events from byte {at} of the page's data on")]
    ZeroTail {
        /// Bytes from the start of the page's records.
        at: u32,
    },
    /// A record has a length word that no kernel writes.
    #[error("a record with length {length} at byte {at} of the page's data")]
    BadLength {
        /// Bytes from the start of the page's records.
        at: u32,
        /// The number in the length word, bytes.
        length: u32,
    },
    /// A record is longer than the rest of the page.
    #[error("the record at byte {at} of the page's data runs past its end")]
    RunsPast {
        /// Bytes from the start of the page's records.
        at: u32,
    },
}

/// One sub-buffer whose header has been read.
#[derive(Debug, Clone, Copy)]
pub struct Page<'a> {
    /// The time from which the first record's time delta counts, in the clock of the kernel's buffer: ns, but
    /// ticks under `x86-tsc`.
    pub ts: Timestamp,
    /// The bytes of the page's records.
    pub data: &'a [u8],
    /// Events that were lost before this page.
    pub lost: Option<LostEvents>,
    /// The fault, if bytes of records are missing at the end of the page.
    pub cut: Option<PageFault>,
    endian: Endian,
}

/// One record of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageRecord<'a> {
    /// Time of the event in the clock of the kernel's buffer: ns, but ticks under `x86-tsc`.
    pub ts: Timestamp,
    /// The event, from its `common_type` on. Up to 3 bytes of padding may follow the event's own bytes.
    pub data: &'a [u8],
}

/// Where a record lies inside [`Page::data`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordSpan {
    /// Time of the event in the clock of the kernel's buffer: ns, but ticks under `x86-tsc`.
    pub ts: Timestamp,
    /// Offset of the first byte.
    pub start: u32,
    /// Offset of the byte behind the last one.
    pub end: u32,
}

/// A position in the records of a page. The cursor does not borrow the page's bytes.
#[derive(Debug, Clone)]
pub struct RecordCursor {
    at: usize,
    ts: Timestamp,
    fault: Option<PageFault>,
}

/// Iterates over a page's records in order. After the last record, [`PageRecords::fault`] says whether the
/// page was sound.
#[derive(Debug, Clone)]
pub struct PageRecords<'a> {
    cursor: RecordCursor,
    page: Page<'a>,
}

impl PageLayout {
    /// Reads a page's header. `bytes` is the whole sub-buffer, or as much of it as the file still has.
    ///
    /// # Errors
    /// Returns [`PageFault::HeaderCut`] where `bytes` ends inside the header. Later damage is in
    /// [`Page::cut`].
    pub fn page<'a>(&self, bytes: &'a [u8]) -> Result<Page<'a>, PageFault> {
        let word = |offset: u32, size: u32| {
            let offset = offset as usize;
            self.endian.uint(bytes.get(offset..offset + size as usize)?)
        };
        let ts = word(0, TIMESTAMP_BYTES).ok_or(PageFault::HeaderCut)?;
        let commit = word(self.commit_offset, self.commit_size).ok_or(PageFault::HeaderCut)?;
        let says = (commit & COMMIT_LENGTH_MASK) as u32;
        let rest = bytes.get(self.data_offset as usize..).ok_or(PageFault::HeaderCut)?;
        let has = rest.len().min(says as usize);
        let cut = (has < says as usize).then_some(PageFault::Cut { says, has: has as u32 });
        let lost = (commit & COMMIT_EVENTS_LOST != 0).then(|| {
            let stored = (commit & COMMIT_LOST_COUNT_STORED != 0)
                .then(|| word(self.data_offset.checked_add(says)?, self.commit_size))
                .flatten();
            stored.map_or(LostEvents::Unknown, LostEvents::Count)
        });
        Ok(Page { ts: Timestamp(ts), data: &rest[..has], lost, cut, endian: self.endian })
    }
}

impl<'a> Page<'a> {
    /// A page without records.
    pub fn empty(endian: Endian) -> Page<'a> {
        Page { ts: Timestamp::MIN, data: &[], lost: None, cut: None, endian }
    }

    /// This page with `fault` as the reason why its records end early.
    pub fn broken(self, fault: PageFault) -> Page<'a> {
        Page { cut: Some(fault), ..self }
    }

    /// Iterates over the page's records.
    pub fn records(&self) -> PageRecords<'a> {
        PageRecords { cursor: RecordCursor::new(self), page: *self }
    }
}

impl PageRecords<'_> {
    /// After the last record: why the records ended early, if they did.
    pub fn fault(&self) -> Option<PageFault> {
        self.cursor.fault().or(self.page.cut)
    }
}

impl<'a> Iterator for PageRecords<'a> {
    type Item = PageRecord<'a>;

    #[inline]
    fn next(&mut self) -> Option<PageRecord<'a>> {
        let span = self.cursor.next(self.page.data, self.page.endian)?;
        let data = self.page.data.get(span.start as usize..span.end as usize)?;
        Some(PageRecord { ts: span.ts, data })
    }
}

#[inline]
fn word_at(data: &[u8], at: usize, endian: Endian) -> Option<u32> {
    let bytes: [u8; 4] = data.get(at..)?.first_chunk().copied()?;
    Some(match endian {
        Endian::Little => u32::from_le_bytes(bytes),
        Endian::Big => u32::from_be_bytes(bytes),
    })
}

impl RecordCursor {
    /// A cursor before the first record of `page`.
    pub fn new(page: &Page<'_>) -> RecordCursor {
        RecordCursor { at: 0, ts: page.ts, fault: None }
    }

    /// After the last record: why the records ended early, if they did.
    pub fn fault(&self) -> Option<PageFault> {
        self.fault
    }

    /// Moves to the next record. `data` must be the [`Page::data`] of the page that the cursor was made for.
    #[inline]
    pub fn next(&mut self, data: &[u8], endian: Endian) -> Option<RecordSpan> {
        loop {
            let at = self.at;
            let Some(head) = word_at(data, at, endian) else {
                return self.stop(data, (at < data.len()).then_some(PageFault::RunsPast { at: at as u32 }));
            };
            // The two halves are C bit fields, which change sides with the byte order.
            let (type_len, delta) = match endian {
                Endian::Little => (head & ((1 << TYPE_LEN_BITS) - 1), head >> TYPE_LEN_BITS),
                Endian::Big => (head >> DELTA_BITS, head & DELTA_MASK),
            };
            let (start, end, next) = if (1..=MAX_SHORT_WORDS).contains(&type_len) {
                let end = at + RECORD_HEADER_BYTES + 4 * type_len as usize;
                (at + RECORD_HEADER_BYTES, end, end)
            } else if type_len == TYPE_PADDING && delta == 0 {
                // The rest of the page is unused.
                return self.stop(data, None);
            } else {
                let Some(extra) = word_at(data, at + 4, endian) else {
                    return self.stop(data, Some(self.tail_fault(data)));
                };
                match type_len {
                    TYPE_TIME_EXTEND => {
                        let ahead = (u64::from(extra) << DELTA_BITS) + u64::from(delta);
                        self.ts = self.ts.wrapping_add(ahead);
                        self.at = at + 8;
                        continue;
                    }
                    TYPE_TIME_STAMP => {
                        let stamp = (u64::from(extra) << DELTA_BITS) | u64::from(delta);
                        self.ts = absolute(self.ts, stamp);
                        self.at = at + 8;
                        continue;
                    }
                    TYPE_PADDING => {
                        // A discarded event. The length word counts itself and the bytes behind it.
                        self.ts = self.ts.wrapping_add(u64::from(delta));
                        self.at = at.saturating_add(4).saturating_add(extra as usize);
                        if extra < 4 {
                            let at = at as u32;
                            return self.stop(data, Some(PageFault::BadLength { at, length: extra }));
                        }
                        continue;
                    }
                    // A long event. The length word counts itself too.
                    TYPE_LONG_DATA if extra > 4 => {
                        let end = (at + 4).saturating_add(extra as usize);
                        (at + 8, end, end.saturating_add(3) & !3)
                    }
                    _ => return self.stop(data, Some(self.tail_fault(data))),
                }
            };
            if end > data.len() {
                return self.stop(data, Some(PageFault::RunsPast { at: at as u32 }));
            }
            self.ts = self.ts.wrapping_add(u64::from(delta));
            self.at = next;
            return Some(RecordSpan { ts: self.ts, start: start as u32, end: end as u32 });
        }
    }

    #[cold]
    fn stop(&mut self, data: &[u8], fault: Option<PageFault>) -> Option<RecordSpan> {
        self.at = data.len();
        self.fault = self.fault.or(fault);
        None
    }

    #[cold]
    fn tail_fault(&self, data: &[u8]) -> PageFault {
        let at = self.at as u32;
        let rest = data.get(self.at..).unwrap_or_default();
        if rest.iter().all(|b| *b == 0) {
            return PageFault::ZeroTail { at };
        }
        match rest.get(4..8) {
            Some(word) => PageFault::BadLength { at, length: word_at(word, 0, Endian::Little).unwrap_or(0) },
            None => PageFault::RunsPast { at },
        }
    }
}

/// Completes an absolute timestamp of 59 bits with the upper bits of the time before it, as the kernel's
/// rb_fix_abs_ts does.
fn absolute(before: Timestamp, stamp: u64) -> Timestamp {
    let stamp = stamp & ((1 << ABSOLUTE_TIME_BITS) - 1);
    let high = before.0 >> ABSOLUTE_TIME_BITS << ABSOLUTE_TIME_BITS;
    if high == 0 {
        return Timestamp(stamp);
    }
    let full = Timestamp(high | stamp);
    if full < before { full.wrapping_add(1 << ABSOLUTE_TIME_BITS) } else { full }
}

#[cfg(test)]
mod tests {
    use super::*;

    // The kernel's numbers are written out here: a mistake in `page_format` must not pass.
    const EVENTS_LOST: u64 = 1 << 31;
    const COUNT_STORED: u64 = 1 << 30;

    /// Builds a page as a kernel of this byte order and word size would.
    struct Maker {
        endian: Endian,
        data: Vec<u8>,
    }

    impl Maker {
        fn word(&mut self, w: u32) -> &mut Self {
            self.data.extend(if self.endian == Endian::Little { w.to_le_bytes() } else { w.to_be_bytes() });
            self
        }
        fn head(&mut self, kind: u32, delta: u32) -> &mut Self {
            match self.endian {
                Endian::Little => self.word(kind | delta << 5),
                Endian::Big => self.word(kind << 27 | delta),
            }
        }
        fn page(&self, long: u8, ts: u64, flags: u64, tail: &[u8]) -> Vec<u8> {
            let commit = self.data.len() as u64 | flags;
            let mut out = Vec::new();
            let mut put = |v: u64, n: usize| match self.endian {
                Endian::Little => out.extend(&v.to_le_bytes()[..n]),
                Endian::Big => out.extend(&v.to_be_bytes()[8 - n..]),
            };
            put(ts, 8);
            put(commit, long.into());
            out.extend(&self.data);
            out.extend(tail);
            out
        }
    }

    const BOTH: [(Endian, u8); 4] =
        [(Endian::Little, 8), (Endian::Little, 4), (Endian::Big, 8), (Endian::Big, 4)];

    #[test]
    fn all_record_types_in_both_byte_orders_and_word_sizes() {
        for (endian, long) in BOTH {
            let mut m = Maker { endian, data: Vec::new() };
            m.head(1, 10).word(0xaaaa);
            m.head(30, 5).word(2);
            m.head(0, 1).word(4 + 6).word(1).word(2);
            m.head(29, 3).word(8).word(0);
            m.head(31, 7).word(1000);
            m.head(2, 0).word(3).word(4);
            m.head(29, 0).word(0xffff_ffff);
            let bytes = m.page(long, 100, 0, &[]);
            let page = PageLayout::usual(endian, long, 4096).page(&bytes).unwrap();
            let mut records = page.records();
            let got: Vec<_> = records.by_ref().map(|r| (r.ts.0, r.data.len())).collect();
            let extended = 110 + 5 + (2 << 27) + 1;
            assert_eq!(got, [(110, 4), (extended, 6), (7 + (1000 << 27), 8)], "{endian:?} {long}");
            assert_eq!(records.fault(), None);
        }
    }

    #[test]
    fn the_number_of_lost_events_is_read_where_the_kernel_stored_it() {
        for (endian, long) in BOTH {
            let mut m = Maker { endian, data: Vec::new() };
            m.head(1, 10).word(0xaaaa);
            let layout = PageLayout::usual(endian, long, 4096);
            let count = Maker { endian, data: Vec::new() }.page(long, 0, 1234, &[])[8..].to_vec();
            let lost = |flags, tail: &[u8]| layout.page(&m.page(long, 1, flags, tail)).unwrap().lost;
            assert_eq!(lost(0, &[]), None);
            assert_eq!(lost(EVENTS_LOST, &[]), Some(LostEvents::Unknown));
            assert_eq!(lost(EVENTS_LOST | COUNT_STORED, &count), Some(LostEvents::Count(1234)));
            assert_eq!(lost(EVENTS_LOST | COUNT_STORED, &[]), Some(LostEvents::Unknown));
        }
    }

    #[test]
    fn damage_ends_the_page_and_its_kind_is_reported() {
        let endian = Endian::Little;
        let layout = PageLayout::usual(endian, 8, 4096);
        let fault = |build: &dyn Fn(&mut Maker)| {
            let mut m = Maker { endian, data: Vec::new() };
            m.head(1, 10).word(0xaaaa);
            build(&mut m);
            let bytes = m.page(8, 100, 0, &[]);
            let mut records = layout.page(&bytes).unwrap().records();
            assert_eq!(records.by_ref().count(), 1);
            records.fault()
        };
        assert_eq!(
            fault(&|m| {
                m.word(0).word(0).word(0);
            }),
            Some(PageFault::ZeroTail { at: 8 })
        );
        assert_eq!(
            fault(&|m| {
                m.word(0);
            }),
            Some(PageFault::ZeroTail { at: 8 })
        );
        assert_eq!(
            fault(&|m| {
                m.head(28, 1);
            }),
            Some(PageFault::RunsPast { at: 8 })
        );
        assert_eq!(
            fault(&|m| {
                m.head(0, 1).word(u32::MAX);
            }),
            Some(PageFault::RunsPast { at: 8 })
        );
        assert_eq!(
            fault(&|m| {
                m.head(0, 1).word(3);
            }),
            Some(PageFault::BadLength { at: 8, length: 3 })
        );
        assert_eq!(
            fault(&|m| {
                m.head(29, 1).word(0);
            }),
            Some(PageFault::BadLength { at: 8, length: 0 })
        );
        assert_eq!(layout.page(&[0; 15]).unwrap_err(), PageFault::HeaderCut);
    }

    #[test]
    fn an_absolute_time_takes_its_upper_bits_from_the_time_before_it() {
        let high = 3 << ABSOLUTE_TIME_BITS;
        let after = |before, stamp| absolute(Timestamp(before), stamp).0;
        assert_eq!(after(5, 9), 9);
        assert_eq!(after(high | 5, 9), high | 9);
        assert_eq!(after(high | 9, 5), (4 << ABSOLUTE_TIME_BITS) | 5);
    }
}
