//! The records of one CPU: a position in the records of a page, and the losses before them.

use std::ops::Range;

use crate::clock::Timestamp;
use crate::ftrace::{LostEvents, Page, PageFault, PageLayout, RecordCursor, RecordSpan};
use crate::ids::Cpu;

/// The records of one CPU, in order.
pub(super) trait CpuRecords {
    /// The CPU.
    fn cpu(&self) -> Cpu;
    /// Moves to the next record. Returns `false` where there is none.
    fn advance(&mut self) -> bool;
    /// The current record's time, in the clock of the pages.
    fn ts(&self) -> Timestamp;
    /// The bytes of the current record.
    fn record(&self) -> &[u8];
    /// Events lost before the current record, once.
    fn take_lost(&mut self) -> Option<LostEvents>;
}

/// A position in the records of a page. It does not borrow the bytes, which each call gets: those of several
/// pages, among which the current page lies.
pub(super) struct PagePosition {
    layout: PageLayout,
    /// Where the current page's records lie in the bytes.
    pub data: Range<usize>,
    cursor: RecordCursor,
    cut: Option<PageFault>,
    /// The current record's time, and its place in `data`.
    pub span: RecordSpan,
    /// Events lost before the current record. The reader takes this value, so that each loss is counted once.
    pub lost: Option<LostEvents>,
}

impl PagePosition {
    /// A position before all pages.
    pub fn new(layout: PageLayout) -> PagePosition {
        PagePosition {
            layout,
            data: 0..0,
            cursor: RecordCursor::new(&Page::empty(layout.endian)),
            cut: None,
            span: RecordSpan { ts: Timestamp::MIN, start: 0, end: 0 },
            lost: None,
        }
    }

    /// Enters the page that lies at `place` in `bytes`.
    pub fn enter(&mut self, bytes: &[u8], place: Range<usize>) {
        let start = place.start;
        let page = self
            .layout
            .page(&bytes[place])
            .unwrap_or_else(|fault| Page::empty(self.layout.endian).broken(fault));
        let data_start = start + self.layout.data_offset as usize;
        self.data = if page.data.is_empty() { 0..0 } else { data_start..data_start + page.data.len() };
        self.cut = page.cut;
        self.cursor = RecordCursor::new(&page);
        // A page with losses but without records leaves its losses to the next page.
        self.lost = match (self.lost, page.lost) {
            (Some(LostEvents::Count(a)), Some(LostEvents::Count(b))) => {
                Some(LostEvents::Count(a.saturating_add(b)))
            }
            (Some(_), Some(_)) => Some(LostEvents::Unknown),
            (a, b) => a.or(b),
        };
    }

    /// Moves to the next record of the page. Returns `false` behind the last one.
    #[inline]
    pub fn advance(&mut self, bytes: &[u8]) -> bool {
        let Some(span) = self.cursor.next(&bytes[self.data.clone()], self.layout.endian) else {
            return false;
        };
        self.span = span;
        true
    }

    /// The bytes of the current record.
    #[inline]
    pub fn record<'b>(&self, bytes: &'b [u8]) -> &'b [u8] {
        let data = &bytes[self.data.clone()];
        data.get(self.span.start as usize..self.span.end as usize).unwrap_or_default()
    }

    /// Behind the last record: why the records ended early, if they did.
    pub fn fault(&self) -> Option<PageFault> {
        self.cursor.fault().or(self.cut)
    }
}
