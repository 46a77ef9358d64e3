//! The deadlines of frames: by SurfaceFlinger's FrameTimeline, as Perfetto joins it with the frames of apps
//! (`stdlib/android/frames/timeline.sql`, `per_frame_metrics.sql`), else by the period of the display, as the
//! counter `VSYNC-app` shows it.

use std::collections::HashMap;

use super::frame::{Deadline, Frame};
use crate::formats::TimelineFrame;
use crate::tracks::Span;

/// The most frames of each kind that are kept, as for the frames themselves.
const MAX_FRAMES: usize = 1 << 21;
/// SurfaceFlinger changes the value of this counter at each VSYNC that it tells apps of.
pub(super) const VSYNC_COUNTER: &str = "VSYNC-app";

/// Periods outside of these bounds, ns, are none: VSYNC is told only while somebody asks for it, and displays
/// have 10 to 500 Hz.
const PERIODS_NS: std::ops::RangeInclusive<u64> = 2_000_000..=100_000_000;
/// The least of so many intervals is the period: an interval in which nobody asked for a VSYNC is a multiple
/// of it.
const INTERVALS: usize = 3;

/// Expected and actual frames, by process and token, which is the number of the app's frame.
#[derive(Debug, Default)]
pub(super) struct TimelineFrames {
    expected: HashMap<(i32, i64), Span>,
    actual: HashMap<(i32, i64), ActualTimes>,
    /// The end of the first display frame of each token: Perfetto takes it for the frame of an app with this
    /// number that has no actual frame of its own.
    display_ends: HashMap<i64, u64>,
    /// Frames that were left out because there are too many.
    pub left_out: u64,
}

/// An actual frame of an app, which has a row for each of its layers.
#[derive(Debug)]
struct ActualTimes {
    /// The begin and the end of the row that began first.
    begin: u64,
    first_end: u64,
    /// The longest time of a row, and that row's layer and jank type.
    longest: u64,
    layer: String,
    jank: String,
}

impl TimelineFrames {
    /// Takes a frame. They come in the order of their begins.
    pub fn take(&mut self, span: Span, frame: &TimelineFrame<'_>) {
        let key = (frame.pid, frame.token());
        let Some(actual) = &frame.actual else {
            if frame.surface.is_some() {
                if self.expected.len() < MAX_FRAMES {
                    self.expected.entry(key).or_insert(span);
                } else {
                    self.left_out += 1;
                }
            }
            return;
        };
        // A frame without an end says nothing of how long it took.
        if span.open {
            return;
        }
        if self.actual.len() + self.display_ends.len() >= MAX_FRAMES && !self.actual.contains_key(&key) {
            self.left_out += 1;
            return;
        }
        if frame.surface.is_none() {
            self.display_ends.entry(frame.token()).or_insert(span.end);
            return;
        }
        let known = self.actual.entry(key).or_insert_with(|| ActualTimes {
            begin: span.start,
            first_end: span.end,
            longest: 0,
            layer: String::new(),
            jank: String::new(),
        });
        // Of several layers, the one that took longest is the frame's.
        let duration = span.end.saturating_sub(span.start);
        if known.layer.is_empty() || duration > known.longest {
            known.longest = duration;
            known.layer = String::from_utf8_lossy(frame.layer()).into_owned();
            known.jank = actual.jank.text();
        }
    }

    /// Adds to a frame what is known of it.
    pub fn complete(&self, frame: &mut Frame) {
        let Some(number) = frame.id else { return };
        let key = (frame.pid, number);
        let actual = self.actual.get(&key);
        if let Some(actual) = actual {
            frame.begin = actual.begin;
            frame.end = actual.begin.saturating_add(actual.longest);
            frame.layer = Some(actual.layer.clone());
            frame.jank_type = Some(actual.jank.clone());
        }
        let Some(expected) = self.expected.get(&key) else { return };
        let end = match actual {
            Some(actual) => {
                // The time by which the frame began late belongs to it, too.
                let late = actual.begin.saturating_sub(expected.start);
                frame.cpu_ns = frame.cpu_ns.saturating_add(late);
                actual.first_end
            }
            None => {
                let Some(end) = self.display_ends.get(&number) else { return };
                frame.is_lateness_unknown = true;
                *end
            }
        };
        frame.deadline = Some(Deadline::FrameTimeline);
        frame.expected_end = Some(expected.end);
        frame.timeline_end = Some(end);
    }
}

/// The latest VSYNCs.
#[derive(Debug, Default)]
pub(super) struct Vsync {
    last: Option<u64>,
    /// The latest intervals, ns; 0 where there were fewer.
    intervals: [u64; INTERVALS],
    count: usize,
}

impl Vsync {
    /// Takes the time of a VSYNC, ns.
    pub fn tick(&mut self, ts: u64) {
        let interval = self.last.map_or(0, |last| ts.saturating_sub(last));
        self.last = Some(ts);
        if PERIODS_NS.contains(&interval) {
            self.intervals[self.count % INTERVALS] = interval;
            self.count += 1;
        }
    }

    /// When a frame that begins at `ts` is to be done: one period after the VSYNC at which it began. `None`
    /// while the period is not known.
    pub fn deadline(&self, ts: u64) -> Option<u64> {
        let period = self.intervals.iter().copied().filter(|interval| *interval > 0).min()?;
        let vsync = self.last.filter(|last| ts.checked_sub(*last).is_some_and(|after| after < period));
        vsync.unwrap_or(ts).checked_add(period)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_follows_the_display_from_120_to_60_hz() {
        let mut vsync = Vsync::default();
        assert_eq!(vsync.deadline(0), None);
        [0, 8_333_333, 16_666_666, 25_000_000].into_iter().for_each(|ts| vsync.tick(ts));
        assert_eq!(vsync.deadline(25_100_000), Some(33_333_333));
        // Nobody asked for a VSYNC for a while.
        vsync.tick(100_000_000);
        assert_eq!(vsync.deadline(100_000_001), Some(108_333_333));
        [116_666_667, 133_333_334, 150_000_001].into_iter().for_each(|ts| vsync.tick(ts));
        assert_eq!(vsync.deadline(150_000_002), Some(166_666_668));
        // A frame that began long after the last VSYNC.
        assert_eq!(vsync.deadline(400_000_000), Some(416_666_667));
    }
}
