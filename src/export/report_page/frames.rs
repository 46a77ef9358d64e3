//! The frames of a row of the page: frames that overlap lie on different lanes.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::columns::{Columns, LATE, LaneSlice, NO_END, Spans};
use crate::tracks::Span;

/// One frame.
struct PageFrame {
    span: Span,
    label: u32,
    args: u32,
    is_late: bool,
}

/// Frames as they come: those whose end is not known come last.
#[derive(Default)]
pub(super) struct PageFrames {
    list: Vec<PageFrame>,
    /// What becomes of them at the end.
    spans: Spans,
}

impl PageFrames {
    /// Adds a frame; `label` and `args` are numbers of strings.
    pub fn push(&mut self, span: Span, label: u32, args: u32, is_late: bool) {
        self.list.push(PageFrame { span, label, args, is_late });
    }

    pub fn columns(&self) -> &dyn Columns {
        &self.spans
    }

    /// The earliest time, ns.
    pub fn first(&self) -> Option<u64> {
        self.list.iter().map(|frame| frame.span.start).min()
    }

    /// The latest time, ns.
    pub fn last(&self) -> Option<u64> {
        self.list.iter().map(|frame| frame.span.end).max()
    }

    /// Orders the frames by their begins, and gives each the first lane that is free then.
    pub fn finish(&mut self) {
        let mut list = std::mem::take(&mut self.list);
        list.sort_by_key(|frame| frame.span.start);
        let mut lanes = 0;
        let mut free: BinaryHeap<Reverse<usize>> = BinaryHeap::new();
        let mut busy: BinaryHeap<Reverse<(u64, usize)>> = BinaryHeap::new();
        for PageFrame { span, label, args, is_late } in list {
            while busy.peek().is_some_and(|Reverse((end, _))| *end <= span.start) {
                free.extend(busy.pop().map(|Reverse((_, lane))| Reverse(lane)));
            }
            let lane = free.pop().map_or(lanes, |Reverse(lane)| lane);
            lanes = lanes.max(lane + 1);
            busy.push(Reverse((span.end, lane)));
            let flags = if span.open { NO_END } else { 0 } | if is_late { LATE } else { 0 };
            self.spans.add_slice(&LaneSlice { start: span.start, end: span.end, label, lane, flags });
            self.spans.set_last_args(args);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_that_overlap_lie_on_different_lanes_whatever_their_order() {
        let mut frames = PageFrames::default();
        for (start, end) in [(0, 20), (10, 30), (20, 25), (26, 40), (5, 50)] {
            frames.push(Span { start, end, open: end == 50 }, start as u32, 9, start == 10);
        }
        assert_eq!((frames.first(), frames.last()), (Some(0), Some(50)));
        frames.finish();
        let lanes: Vec<(usize, u32, u64)> = frames.spans.slices().collect();
        assert_eq!(lanes, [(0, 0, 20), (1, 5, 45), (2, 10, 20), (0, 20, 5), (0, 26, 14)]);
        assert_eq!(frames.columns().count(), 5);
    }
}
