//! One sub-buffer ("page") of the ring buffer: its header, and its records one after the other.
//!
//! Defined by the kernel's include/linux/ring_buffer.h and kernel/trace/ring_buffer.c. A record starts with a
//! 32-bit word: 5 bits of type or length, 27 bits of time since the record before.

use thiserror::Error;

use super::{Endian, PageLayout};

/// Bytes of events, in the commit counter.
const COMMIT_MASK: u64 = (1 << 27) - 1;
/// Commit counter: events were lost before this page.
const MISSED_EVENTS: u64 = 1 << 31;
/// Commit counter: how many is stored behind the events.
const MISSED_STORED: u64 = 1 << 30;

const TYPE_PADDING: u32 = 29;
const TYPE_TIME_EXTEND: u32 = 30;
const TYPE_TIME_STAMP: u32 = 31;
const DELTA_BITS: u32 = 27;
/// An absolute timestamp has 59 bits; the rest is the last one's.
const ABSOLUTE_BITS: u32 = 59;

/// Events that the kernel threw away before a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missed {
    /// This many.
    Count(u64),
    /// The kernel did not say how many.
    Unknown,
}

/// Why a page's records end before the page says so. Everything before that place is good.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum PageFault {
    /// Fewer bytes than the page's header.
    #[error("the page's header is cut")]
    HeaderCut,
    /// The page says more bytes of events than there are.
    #[error("the page is cut: its header says {says} bytes of events, {has} are there")]
    Cut {
        /// Bytes by its header.
        says: u32,
        /// Bytes there.
        has: u32,
    },
    /// Zeroes to the end: some kernels count more bytes as written than they wrote.
    #[error("zeroes instead of events from byte {at} of the page's data on")]
    ZeroTail {
        /// Bytes from the start of the data.
        at: u32,
    },
    /// A length word that no kernel writes.
    #[error("a record with length {length} at byte {at} of the page's data")]
    BadLength {
        /// Bytes from the start of the data.
        at: u32,
        /// What its length word says.
        length: u32,
    },
    /// A record longer than what is left of the page.
    #[error("the record at byte {at} of the page's data runs past its end")]
    RunsPast {
        /// Bytes from the start of the data.
        at: u32,
    },
}

/// One sub-buffer, its header read.
#[derive(Debug, Clone, Copy)]
pub struct Page<'a> {
    /// The time that its first record's delta counts from, ns (ticks under `x86-tsc`).
    pub ts: u64,
    /// The bytes of its records.
    pub data: &'a [u8],
    /// Whether events were lost before it.
    pub missed: Option<Missed>,
    /// Set if bytes of events are missing at its end.
    pub cut: Option<PageFault>,
    endian: Endian,
}

/// One record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record<'a> {
    /// When, ns (ticks under `x86-tsc`).
    pub ts: u64,
    /// The event, from its `common_type` on. May end with up to 3 bytes of padding.
    pub data: &'a [u8],
}

/// The place of a record inside [`Page::data`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// When, ns (ticks under `x86-tsc`).
    pub ts: u64,
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

/// A walk over the records of a page that does not hold on to its bytes.
#[derive(Debug, Clone)]
pub struct Walk {
    at: usize,
    ts: u64,
    fault: Option<PageFault>,
}

/// A page's records in order; after the last, [`Records::fault`] tells whether all was well.
#[derive(Debug, Clone)]
pub struct Records<'a> {
    walk: Walk,
    page: Page<'a>,
}

impl PageLayout {
    /// Reads a page's header. `bytes` is the whole sub-buffer, or the part of it that there is.
    pub fn page<'a>(&self, bytes: &'a [u8]) -> Result<Page<'a>, PageFault> {
        let word = |offset: u32, size: u32| {
            let offset = offset as usize;
            self.endian.uint(bytes.get(offset..offset + size as usize)?)
        };
        let ts = word(0, 8).ok_or(PageFault::HeaderCut)?;
        let commit = word(self.commit_offset, self.commit_size).ok_or(PageFault::HeaderCut)?;
        let says = (commit & COMMIT_MASK) as u32;
        let rest = bytes.get(self.data_offset as usize..).ok_or(PageFault::HeaderCut)?;
        let has = rest.len().min(says as usize);
        let cut = (has < says as usize).then_some(PageFault::Cut { says, has: has as u32 });
        let missed = (commit & MISSED_EVENTS != 0).then(|| {
            let stored = (commit & MISSED_STORED != 0)
                .then(|| word(self.data_offset.checked_add(says)?, self.commit_size))
                .flatten();
            stored.map_or(Missed::Unknown, Missed::Count)
        });
        Ok(Page { ts, data: &rest[..has], missed, cut, endian: self.endian })
    }
}

impl<'a> Page<'a> {
    /// A page without records.
    pub fn empty(endian: Endian) -> Page<'a> {
        Page { ts: 0, data: &[], missed: None, cut: None, endian }
    }

    /// The same page, known to be incomplete.
    pub fn broken(self, fault: PageFault) -> Page<'a> {
        Page { cut: Some(fault), ..self }
    }

    /// Its records.
    pub fn records(&self) -> Records<'a> {
        Records { walk: Walk::new(self), page: *self }
    }
}

impl Records<'_> {
    /// After the last record: why there are no more, if not because the page ended.
    pub fn fault(&self) -> Option<PageFault> {
        self.walk.fault().or(self.page.cut)
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Record<'a>;

    #[inline]
    fn next(&mut self) -> Option<Record<'a>> {
        let place = self.walk.next(self.page.data, self.page.endian)?;
        let data = self.page.data.get(place.start as usize..place.end as usize)?;
        Some(Record { ts: place.ts, data })
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

impl Walk {
    /// Before the first record of `page`.
    pub fn new(page: &Page<'_>) -> Walk {
        Walk { at: 0, ts: page.ts, fault: None }
    }

    /// After the last record: why there are no more, if not because the page ended.
    pub fn fault(&self) -> Option<PageFault> {
        self.fault
    }

    /// The next record of `data`, the [`Page::data`] that this walk began with.
    #[inline]
    pub fn next(&mut self, data: &[u8], endian: Endian) -> Option<Place> {
        loop {
            let at = self.at;
            let Some(head) = word_at(data, at, endian) else {
                return self.stop(data, (at < data.len()).then_some(PageFault::RunsPast { at: at as u32 }));
            };
            // The two halves are C bit fields, which change sides with the byte order.
            let (kind, delta) = match endian {
                Endian::Little => (head & 31, head >> 5),
                Endian::Big => (head >> DELTA_BITS, head & ((1 << DELTA_BITS) - 1)),
            };
            let (start, end, next) = if (1..=28).contains(&kind) {
                let end = at + 4 + 4 * kind as usize;
                (at + 4, end, end)
            } else if kind == TYPE_PADDING && delta == 0 {
                // The rest of the page is unused.
                return self.stop(data, None);
            } else {
                let Some(extra) = word_at(data, at + 4, endian) else {
                    return self.stop(data, Some(self.tail_fault(data)));
                };
                match kind {
                    TYPE_TIME_EXTEND => {
                        let ahead = (u64::from(extra) << DELTA_BITS) + u64::from(delta);
                        self.ts = self.ts.wrapping_add(ahead);
                        self.at = at + 8;
                        continue;
                    }
                    TYPE_TIME_STAMP => {
                        self.ts = absolute(self.ts, (u64::from(extra) << DELTA_BITS) | u64::from(delta));
                        self.at = at + 8;
                        continue;
                    }
                    TYPE_PADDING => {
                        // A discarded event: its length word counts itself and the bytes behind it.
                        self.ts = self.ts.wrapping_add(u64::from(delta));
                        self.at = at.saturating_add(4).saturating_add(extra as usize);
                        if extra < 4 {
                            let at = at as u32;
                            return self.stop(data, Some(PageFault::BadLength { at, length: extra }));
                        }
                        continue;
                    }
                    // A long event: its length word counts itself too.
                    _ if extra > 4 => {
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
            return Some(Place { ts: self.ts, start: start as u32, end: end as u32 });
        }
    }

    #[cold]
    fn stop(&mut self, data: &[u8], fault: Option<PageFault>) -> Option<Place> {
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

/// Completes an absolute timestamp of 59 bits from the time before it, as the kernel's rb_fix_abs_ts does.
fn absolute(before: u64, stamp: u64) -> u64 {
    let stamp = stamp & ((1 << ABSOLUTE_BITS) - 1);
    let high = before >> ABSOLUTE_BITS << ABSOLUTE_BITS;
    if high == 0 {
        return stamp;
    }
    let full = high | stamp;
    if full < before { full.wrapping_add(1 << ABSOLUTE_BITS) } else { full }
}

#[cfg(test)]
mod tests {
    use super::*;

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
            m.head(TYPE_TIME_EXTEND, 5).word(2);
            m.head(0, 1).word(4 + 6).word(1).word(2);
            m.head(TYPE_PADDING, 3).word(8).word(0);
            m.head(TYPE_TIME_STAMP, 7).word(1000);
            m.head(2, 0).word(3).word(4);
            m.head(TYPE_PADDING, 0).word(0xffff_ffff);
            let bytes = m.page(long, 100, 0, &[]);
            let page = PageLayout::usual(endian, long, 4096).page(&bytes).unwrap();
            let mut records = page.records();
            let got: Vec<_> = records.by_ref().map(|r| (r.ts, r.data.len())).collect();
            let extended = 110 + 5 + (2 << 27) + 1;
            assert_eq!(got, [(110, 4), (extended, 6), (7 + (1000 << 27), 8)], "{endian:?} {long}");
            assert_eq!(records.fault(), None);
        }
    }

    #[test]
    fn lost_events_are_counted_where_the_kernel_did() {
        for (endian, long) in BOTH {
            let mut m = Maker { endian, data: Vec::new() };
            m.head(1, 10).word(0xaaaa);
            let layout = PageLayout::usual(endian, long, 4096);
            let count = Maker { endian, data: Vec::new() }.page(long, 0, 1234, &[])[8..].to_vec();
            let missed = |flags, tail: &[u8]| layout.page(&m.page(long, 1, flags, tail)).unwrap().missed;
            assert_eq!(missed(0, &[]), None);
            assert_eq!(missed(MISSED_EVENTS, &[]), Some(Missed::Unknown));
            assert_eq!(missed(MISSED_EVENTS | MISSED_STORED, &count), Some(Missed::Count(1234)));
            assert_eq!(missed(MISSED_EVENTS | MISSED_STORED, &[]), Some(Missed::Unknown));
        }
    }

    #[test]
    fn damage_ends_the_page_and_is_named() {
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
                m.head(TYPE_PADDING, 1).word(0);
            }),
            Some(PageFault::BadLength { at: 8, length: 0 })
        );
        assert_eq!(layout.page(&[0; 15]).unwrap_err(), PageFault::HeaderCut);
    }

    #[test]
    fn absolute_times_keep_the_bits_they_cannot_hold() {
        let high = 3 << ABSOLUTE_BITS;
        assert_eq!(absolute(5, 9), 9);
        assert_eq!(absolute(high | 5, 9), high | 9);
        assert_eq!(absolute(high | 9, 5), (4 << ABSOLUTE_BITS) | 5);
    }
}
