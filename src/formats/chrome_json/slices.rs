//! The open slices of threads, the rows of asynchronous slices, and the slices that flows belong to.
//!
//! The tracks of a timeline hold slices that lie inside each other, and their ends have no names. In JSON,
//! whole slices (`X`) may overlap, and an end may name its slice.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rustc_hash::{FxHashMap, FxHashSet};

use super::event::{JsonEvent, ThreadKey};
use crate::clock::Timestamp;
use crate::formats::Flow;

/// An open slice.
#[derive(Debug, Clone, Copy)]
struct OpenJsonSlice {
    /// The hash of its name.
    name: u64,
    /// When it ends; `None` for a slice that ends with an event of its own.
    end: Option<Timestamp>,
    serial: u64,
    /// The CPU time of the thread at its end.
    thread_end: Option<u64>,
}

/// A row of slices that lie inside each other.
pub(super) type JsonSliceRow = (ThreadKey, u32);

/// An end that is to be pushed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SliceEnd {
    pub(super) row: JsonSliceRow,
    pub(super) ts: Timestamp,
    pub(super) thread_ns: Option<u64>,
}

/// The open slices of all threads.
#[derive(Debug, Default)]
pub(super) struct OpenJsonSlices {
    rows: FxHashMap<JsonSliceRow, Vec<OpenJsonSlice>>,
    /// The ends of whole slices: their time, the slice's number, and the row. Of those of one time the slice
    /// that began last comes first, so the number is negated.
    ends: BinaryHeap<Reverse<(Timestamp, u64, JsonSliceRow)>>,
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

impl OpenJsonSlices {
    /// A slice begins that ends with an event of its own. Returns its row.
    pub(super) fn begin(&mut self, thread: ThreadKey, name: u64) -> JsonSliceRow {
        self.open((thread, 0), OpenJsonSlice { name, end: None, serial: 0, thread_end: None })
    }

    /// A whole slice begins. Returns its row.
    pub(super) fn whole(
        &mut self,
        thread: ThreadKey,
        name: u64,
        end: Timestamp,
        thread_end: Option<u64>,
    ) -> JsonSliceRow {
        let fits = |row: &JsonSliceRow| {
            let top = self.rows.get(row).and_then(|stack| stack.last());
            top.is_none_or(|top| top.end.is_none_or(|around| around >= end))
        };
        let row = (0..MAX_ROWS).map(|number| (thread, number)).find(fits).unwrap_or((thread, MAX_ROWS));
        self.overlapping += u64::from(row.1 > 0);
        self.open(row, OpenJsonSlice { name, end: Some(end), serial: 0, thread_end })
    }

    fn open(&mut self, row: JsonSliceRow, slice: OpenJsonSlice) -> JsonSliceRow {
        self.serial += 1;
        let slice = OpenJsonSlice { serial: self.serial, ..slice };
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
        ts: Timestamp,
        thread_ns: Option<u64>,
        out: &mut Vec<SliceEnd>,
    ) {
        let row = (thread, 0);
        let Some(stack) = self.rows.get_mut(&row) else {
            self.unmatched += 1;
            return;
        };
        let is_meant =
            |slice: &OpenJsonSlice| slice.end.is_none() && name.is_none_or(|name| name == slice.name);
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
    pub(super) fn ends_until(&mut self, ts: Timestamp, out: &mut Vec<SliceEnd>) {
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

/// Finds the threads on which a `B` and an `X` have one time.
#[derive(Debug, Default)]
pub(super) struct SharedTimes {
    /// The times of the last `B` and of the last `X` of each thread.
    last: FxHashMap<ThreadKey, [Option<i64>; 2]>,
    pub threads: FxHashSet<ThreadKey>,
}

impl SharedTimes {
    pub fn add(&mut self, thread: ThreadKey, event: &JsonEvent<'_>) {
        let at = match event.phase {
            b'B' => 0,
            b'X' if event.dur.is_some_and(|dur| dur > 0) => 1,
            _ => return,
        };
        let last = self.last.entry(thread).or_default();
        last[at] = event.ts;
        if last[0] == last[1] {
            self.threads.insert(thread);
        }
    }
}

/// How many ids may have open slices at a time.
const MAX_OPEN: usize = 1 << 16;

/// The number of a row.
pub(super) type AsyncRow = u32;

/// The open asynchronous slices. Slices of one name in one process share rows: a slice takes a row that no
/// other slice has at that time, so that a file with an id for each slice needs few rows.
#[derive(Debug, Default)]
pub(super) struct AsyncSlices {
    /// By the hash of the id: the row, and how many slices are open on it.
    open: FxHashMap<u64, (AsyncRow, u32)>,
    /// By the hash of process and name: rows without an open slice.
    free: FxHashMap<u64, Vec<AsyncRow>>,
    rows: u32,
    /// Ends without a slice.
    pub(super) unmatched: u64,
    /// Slices beyond [`MAX_OPEN`].
    pub(super) too_many: u64,
}

impl AsyncSlices {
    /// A slice begins. `group` is the hash of its process and name. Returns its row, and whether it is new.
    pub(super) fn begin(&mut self, id: u64, group: u64) -> Option<(AsyncRow, bool)> {
        if let Some((row, depth)) = self.open.get_mut(&id) {
            *depth += 1;
            return Some((*row, false));
        }
        if self.open.len() >= MAX_OPEN {
            self.too_many += 1;
            return None;
        }
        let (row, is_new) = self.take_row(group);
        self.open.insert(id, (row, 1));
        Some((row, is_new))
    }

    fn take_row(&mut self, group: u64) -> (AsyncRow, bool) {
        match self.free.get_mut(&group).and_then(Vec::pop) {
            Some(row) => (row, false),
            None => {
                self.rows += 1;
                (self.rows - 1, true)
            }
        }
    }

    /// The innermost slice of the id ends. Returns its row.
    pub(super) fn end(&mut self, id: u64, group: u64) -> Option<AsyncRow> {
        let Some((row, depth)) = self.open.get_mut(&id) else {
            self.unmatched += 1;
            return None;
        };
        let row = *row;
        *depth -= 1;
        if *depth == 0 {
            self.open.remove(&id);
            self.free.entry(group).or_default().push(row);
        }
        Some(row)
    }

    /// The row of an instant: that of the open slice of its id, or any free one. Returns whether it is new.
    pub(super) fn instant(&mut self, id: u64, group: u64) -> (AsyncRow, bool) {
        if let Some((row, _)) = self.open.get(&id) {
            return (*row, false);
        }
        let (row, is_new) = self.take_row(group);
        self.free.entry(group).or_default().push(row);
        (row, is_new)
    }
}

/// The flows of events of one time: those that belong to an event of the same time, by its number among them.
///
/// In JSON a flow's event is one of its own, at the time of the slice that it belongs to; on a track, flows
/// are parts of the event that begins the slice.
#[derive(Debug, Default)]
pub(super) struct FlowBinding {
    pub(super) by_event: FxHashMap<usize, Vec<Flow>>,
}

/// The number of the flow that an `s`, `t` or `f` event belongs to: flows with the same id, category and name
/// are one.
pub(super) fn flow_of(event: &JsonEvent<'_>, hash: impl Fn(&[&[u8]]) -> u64) -> Option<Flow> {
    let (_, id) = event.id?;
    let (kind, number, text) = id.parts();
    let cat = event.cat.unwrap_or_default().raw();
    let name = event.name.unwrap_or_default().raw();
    let id = hash(&[b"flow", &[kind], &number.to_le_bytes(), text, cat, name]);
    Some(Flow { id, ends: event.phase == b'f' })
}

/// The flow that a slice itself names (`bind_id`).
fn bound_flow(event: &JsonEvent<'_>, hash: impl Fn(&[&[u8]]) -> u64) -> Option<Flow> {
    let (kind, number, text) = event.bind_id?.parts();
    let id = hash(&[b"bound flow", &[kind], &number.to_le_bytes(), text]);
    (event.flow_in || event.flow_out).then_some(Flow { id, ends: !event.flow_out })
}

impl FlowBinding {
    /// Finds the slices for the flows' events among the events of one time.
    pub(super) fn new(
        group: &[JsonEvent<'_>],
        thread_of: impl Fn(&JsonEvent<'_>) -> ThreadKey,
        hash: impl Fn(&[&[u8]]) -> u64 + Copy,
    ) -> FlowBinding {
        let mut binding = FlowBinding::default();
        for (number, event) in group.iter().enumerate() {
            if let Some(flow) = bound_flow(event, hash) {
                binding.by_event.entry(number).or_default().push(flow);
            }
        }
        let flows = group.iter().filter(|event| matches!(event.phase, b's' | b't' | b'f'));
        for event in flows {
            let Some(flow) = flow_of(event, hash) else { continue };
            let thread = thread_of(event);
            let may_hold = |other: &JsonEvent<'_>| {
                matches!(other.phase, b'B' | b'X' | b'i' | b'I' | b'R') && thread_of(other) == thread
            };
            // The innermost slice is the one that began last.
            if let Some(number) = group.iter().rposition(may_hold) {
                binding.by_event.entry(number).or_default().push(flow);
            }
        }
        binding
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const THREAD: ThreadKey = ThreadKey { pid: 1, tid: 2 };

    fn ends(open: &mut OpenJsonSlices, ts: u64) -> Vec<(u32, u64)> {
        let mut out = Vec::new();
        open.ends_until(Timestamp(ts), &mut out);
        out.iter().map(|end| (end.row.1, end.ts.0)).collect()
    }

    #[test]
    fn slices_inside_each_other_share_a_row_and_overlapping_ones_do_not() {
        let mut open = OpenJsonSlices::default();
        assert_eq!(open.whole(THREAD, 1, Timestamp(10), None), (THREAD, 0));
        assert_eq!(open.whole(THREAD, 2, Timestamp(10), None), (THREAD, 0));
        assert_eq!(open.whole(THREAD, 3, Timestamp(12), None), (THREAD, 1));
        assert_eq!(ends(&mut open, 11), [(0, 10), (0, 10)]);
        assert_eq!(ends(&mut open, u64::MAX), [(1, 12)]);
        assert_eq!((open.overlapping, open.shortened), (1, 0));
    }

    #[test]
    fn an_end_finds_the_slice_of_its_name() {
        let mut open = OpenJsonSlices::default();
        open.begin(THREAD, 1);
        open.begin(THREAD, 2);
        open.whole(THREAD, 3, Timestamp(100), None);
        let mut out = Vec::new();
        open.end(THREAD, Some(9), Timestamp(4), None, &mut out);
        assert_eq!((out.len(), open.unmatched), (0, 1));
        open.end(THREAD, Some(1), Timestamp(5), Some(7), &mut out);
        let told: Vec<_> = out.iter().map(|end| (end.ts.0, end.thread_ns)).collect();
        assert_eq!(told, [(5, None), (5, None), (5, Some(7))]);
        assert_eq!(open.shortened, 2);
        assert_eq!(ends(&mut open, u64::MAX), []);
    }

    #[test]
    fn a_row_is_used_again_when_its_slice_has_ended() {
        let mut slices = AsyncSlices::default();
        assert_eq!(slices.begin(1, 7), Some((0, true)));
        assert_eq!(slices.begin(2, 7), Some((1, true)));
        assert_eq!(slices.begin(1, 7), Some((0, false)), "a slice inside of the first one");
        assert_eq!((slices.end(1, 7), slices.end(1, 7), slices.end(1, 7)), (Some(0), Some(0), None));
        assert_eq!(slices.begin(3, 7), Some((0, false)));
        assert_eq!(slices.begin(4, 8), Some((2, true)), "another name");
        assert_eq!(slices.instant(2, 7), (1, false));
        assert_eq!(slices.unmatched, 1);
    }
}
