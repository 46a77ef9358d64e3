//! The frames of a row of the page: frames that overlap lie on different lanes.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::columns::{Base, ColumnName, Columns, LATE, LaneSlice, NO_END, Spans, encoding};
use crate::tracks::Span;
use crate::varint;

/// What was measured of a frame, ns: its time by androidx's `frameDurationCpuMs`, and by how much it ended
/// after its deadline.
#[derive(Debug, Clone, Copy)]
pub(super) struct FrameTimes {
    pub cpu: u64,
    pub overrun: i64,
}

/// One frame.
struct PageFrame {
    start: u64,
    end: u64,
    label: u32,
    args: Option<u32>,
    flags: u8,
    times: Option<FrameTimes>,
}

/// Frames as they come: those whose end is not known come last.
#[derive(Default)]
pub(super) struct PageFrames {
    list: Vec<PageFrame>,
    /// What becomes of them at the end.
    spans: Spans,
    /// What was measured of each; empty for a row of frames that were not.
    times: Vec<FrameTimes>,
}

impl PageFrames {
    /// Adds a frame of FrameTimeline; `label` and `args` are numbers of strings.
    pub fn push(&mut self, span: Span, label: u32, args: u32, is_late: bool) {
        let flags = if span.open { NO_END } else { 0 } | if is_late { LATE } else { 0 };
        let Span { start, end, .. } = span;
        self.list.push(PageFrame { start, end, label, args: Some(args), flags, times: None });
    }

    /// Adds a frame from `extent.0` to `extent.1`, ns, that was measured.
    pub fn push_measured(&mut self, extent: (u64, u64), label: u32, flags: u8, times: FrameTimes) {
        let (start, end) = extent;
        self.list.push(PageFrame { start, end, label, args: None, flags, times: Some(times) });
    }

    /// The earliest time, ns.
    pub fn first(&self) -> Option<u64> {
        self.list.iter().map(|frame| frame.start).min()
    }

    /// The latest time, ns.
    pub fn last(&self) -> Option<u64> {
        self.list.iter().map(|frame| frame.end).max()
    }

    /// Orders the frames by their begins, and gives each the first lane that is free then.
    pub fn finish(&mut self) {
        let mut list = std::mem::take(&mut self.list);
        list.sort_by_key(|frame| frame.start);
        let mut lanes = 0;
        let mut free: BinaryHeap<Reverse<usize>> = BinaryHeap::new();
        let mut busy: BinaryHeap<Reverse<(u64, usize)>> = BinaryHeap::new();
        for PageFrame { start, end, label, args, flags, times } in list {
            while busy.peek().is_some_and(|Reverse((end, _))| *end <= start) {
                free.extend(busy.pop().map(|Reverse((_, lane))| Reverse(lane)));
            }
            let lane = free.pop().map_or(lanes, |Reverse(lane)| lane);
            lanes = lanes.max(lane + 1);
            busy.push(Reverse((end, lane)));
            self.spans.add_slice(&LaneSlice { start, end, label, lane, flags });
            if let Some(args) = args {
                self.spans.set_last_args(args);
            }
            self.times.extend(times);
        }
    }
}

impl Columns for PageFrames {
    fn count(&self) -> usize {
        self.spans.count()
    }

    fn range(&self) -> Option<(u64, u64)> {
        self.spans.range()
    }

    fn depth(&self) -> usize {
        self.spans.depth()
    }

    fn names(&self) -> Vec<ColumnName> {
        let mut names = self.spans.names();
        if !self.times.is_empty() {
            names.push(ColumnName::new("cpu", encoding::VARINT));
            names.push(ColumnName::new("overrun", encoding::ZIGZAG));
        }
        names
    }

    fn encode(&self, base: &Base<'_>, out: &mut Vec<u8>) {
        self.spans.encode(base, out);
        self.times.iter().for_each(|times| varint::push(out, times.cpu));
        self.times.iter().for_each(|times| varint::push(out, varint::zigzag(times.overrun)));
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
        assert_eq!((frames.count(), frames.names().len()), (5, 6));
    }

    #[test]
    fn what_was_measured_of_frames_stays_with_them_when_they_are_ordered() {
        let mut frames = PageFrames::default();
        for (start, cpu, overrun) in [(20, 7, -3), (10, 5, 4)] {
            frames.push_measured((start, start + 5), 0, LATE, FrameTimes { cpu, overrun });
        }
        frames.finish();
        let mut out = Vec::new();
        frames.encode(&Base { start: 10, thread: &|_| None }, &mut out);
        // Starts, durations, depths, names, flags, CPU times, overruns.
        assert_eq!(out, [0, 10, 5, 5, 0, 0, 0, 0, LATE, LATE, 5, 7, 8, 5]);
    }
}
