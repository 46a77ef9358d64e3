//! The open slices of threads. The tracks of a timeline hold slices that lie inside each other, and their
//! ends have no names. In JSON, whole slices (`X`) may overlap, and an end may name its slice.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use super::names::ThreadKey;

/// An open slice.
#[derive(Debug, Clone, Copy)]
struct OpenSlice {
    /// The hash of its name.
    name: u64,
    /// When it ends; `None` for a slice that ends with an event of its own.
    end: Option<u64>,
    serial: u64,
    /// The CPU time of the thread at its end.
    thread_end: Option<u64>,
}

/// A row of slices that lie inside each other.
pub(super) type Row = (ThreadKey, u32);

/// An end that is to be pushed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SliceEnd {
    pub(super) row: Row,
    pub(super) ts: u64,
    pub(super) thread_ns: Option<u64>,
}

/// The open slices of all threads.
#[derive(Debug, Default)]
pub(super) struct OpenSlices {
    rows: HashMap<Row, Vec<OpenSlice>>,
    /// The ends of whole slices: their time, the slice's number, and the row. Of those of one time the slice
    /// that began last comes first, so the number is negated.
    ends: BinaryHeap<Reverse<(u64, u64, Row)>>,
    serial: u64,
    /// Ends without a slice.
    pub(super) unmatched: u64,
    /// Slices that end earlier than they say, because the slice around them ends.
    pub(super) shortened: u64,
    /// Whole slices that overlap others of their thread.
    pub(super) overlapping: u64,
}

/// A thread has so many rows at most.
const MAX_ROWS: u32 = 64;

impl OpenSlices {
    /// A slice begins that ends with an event of its own. Returns its row.
    pub(super) fn begin(&mut self, thread: ThreadKey, name: u64) -> Row {
        self.open((thread, 0), OpenSlice { name, end: None, serial: 0, thread_end: None })
    }

    /// A whole slice begins. Returns its row.
    pub(super) fn whole(&mut self, thread: ThreadKey, name: u64, end: u64, thread_end: Option<u64>) -> Row {
        let fits = |row: &Row| {
            let top = self.rows.get(row).and_then(|stack| stack.last());
            top.is_none_or(|top| top.end.is_none_or(|around| around >= end))
        };
        let row = (0..MAX_ROWS).map(|number| (thread, number)).find(fits).unwrap_or((thread, MAX_ROWS));
        self.overlapping += u64::from(row.1 > 0);
        self.open(row, OpenSlice { name, end: Some(end), serial: 0, thread_end })
    }

    fn open(&mut self, row: Row, slice: OpenSlice) -> Row {
        self.serial += 1;
        let slice = OpenSlice { serial: self.serial, ..slice };
        if let Some(end) = slice.end {
            self.ends.push(Reverse((end, !slice.serial, row)));
        }
        self.rows.entry(row).or_default().push(slice);
        row
    }

    /// An end comes: of the innermost slice of this name, or of any name where the end has none. Slices
    /// inside of it end with it.
    pub(super) fn end(
        &mut self,
        thread: ThreadKey,
        name: Option<u64>,
        ts: u64,
        thread_ns: Option<u64>,
        out: &mut Vec<SliceEnd>,
    ) {
        let row = (thread, 0);
        let Some(stack) = self.rows.get_mut(&row) else {
            self.unmatched += 1;
            return;
        };
        let is_meant = |slice: &OpenSlice| slice.end.is_none() && name.is_none_or(|name| name == slice.name);
        let Some(at) = stack.iter().rposition(is_meant) else {
            self.unmatched += 1;
            return;
        };
        for number in (at..stack.len()).rev() {
            let is_inner = number > at;
            self.shortened += u64::from(is_inner);
            out.push(SliceEnd { row, ts, thread_ns: thread_ns.filter(|_| !is_inner) });
        }
        stack.truncate(at);
    }

    /// The ends of the whole slices that end at `ts` or earlier, in order of time.
    pub(super) fn ends_until(&mut self, ts: u64, out: &mut Vec<SliceEnd>) {
        while let Some(Reverse((end, number, row))) = self.ends.peek().copied().filter(|e| e.0.0 <= ts) {
            self.ends.pop();
            let serial = !number;
            let Some(stack) = self.rows.get_mut(&row) else { continue };
            // It may have ended with the slice around it.
            let Some(at) = stack.iter().rposition(|slice| slice.serial == serial) else { continue };
            for number in (at..stack.len()).rev() {
                let is_inner = number > at;
                let thread_ns = stack[number].thread_end.filter(|_| !is_inner);
                self.shortened += u64::from(is_inner);
                out.push(SliceEnd { row, ts: end, thread_ns });
            }
            stack.truncate(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const THREAD: ThreadKey = ThreadKey { pid: 1, tid: 2 };

    fn ends(open: &mut OpenSlices, ts: u64) -> Vec<(u32, u64)> {
        let mut out = Vec::new();
        open.ends_until(ts, &mut out);
        out.iter().map(|end| (end.row.1, end.ts)).collect()
    }

    #[test]
    fn slices_inside_each_other_share_a_row_and_overlapping_ones_do_not() {
        let mut open = OpenSlices::default();
        assert_eq!(open.whole(THREAD, 1, 10, None), (THREAD, 0));
        assert_eq!(open.whole(THREAD, 2, 10, None), (THREAD, 0));
        assert_eq!(open.whole(THREAD, 3, 12, None), (THREAD, 1));
        assert_eq!(ends(&mut open, 11), [(0, 10), (0, 10)]);
        assert_eq!(ends(&mut open, u64::MAX), [(1, 12)]);
        assert_eq!((open.overlapping, open.shortened), (1, 0));
    }

    #[test]
    fn an_end_finds_the_slice_of_its_name() {
        let mut open = OpenSlices::default();
        open.begin(THREAD, 1);
        open.begin(THREAD, 2);
        open.whole(THREAD, 3, 100, None);
        let mut out = Vec::new();
        open.end(THREAD, Some(9), 4, None, &mut out);
        assert_eq!((out.len(), open.unmatched), (0, 1));
        open.end(THREAD, Some(1), 5, Some(7), &mut out);
        let told: Vec<_> = out.iter().map(|end| (end.ts, end.thread_ns)).collect();
        assert_eq!(told, [(5, None), (5, None), (5, Some(7))]);
        assert_eq!(open.shortened, 2);
        assert_eq!(ends(&mut open, u64::MAX), []);
    }
}
