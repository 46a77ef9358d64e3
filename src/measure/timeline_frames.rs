//! What SurfaceFlinger's FrameTimeline says of the frames of apps, as Perfetto joins it with them
//! (`stdlib/android/frames/timeline.sql`, `per_frame_metrics.sql`).

use std::collections::HashMap;

use super::frame::{Deadline, Frame};
use crate::formats::TimelineFrame;
use crate::tracks::Span;

/// The most frames of each kind that are kept, as for the frames themselves.
const MAX_FRAMES: usize = 1 << 21;

/// Expected and actual frames, by process and token, which is the number of the app's frame.
#[derive(Debug, Default)]
pub(super) struct TimelineFrames {
    expected: HashMap<(i32, i64), Span>,
    actual: HashMap<(i32, i64), Actual>,
    /// Frames that were left out because there are too many.
    pub left_out: u64,
}

/// What became of a frame, which has a row for each of its layers.
#[derive(Debug)]
struct Actual {
    /// The end of the row that began first.
    first_end: u64,
    /// The begin of the first layer, and the longest time of one; `None` while only a display frame has this
    /// token.
    surface: Option<Surface>,
}

#[derive(Debug)]
struct Surface {
    begin: u64,
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
        if self.actual.len() >= MAX_FRAMES && !self.actual.contains_key(&key) {
            self.left_out += 1;
            return;
        }
        let known = self.actual.entry(key).or_insert(Actual { first_end: span.end, surface: None });
        if frame.surface.is_none() {
            return;
        }
        let duration = span.end.saturating_sub(span.start);
        let surface = known.surface.get_or_insert_with(|| Surface {
            begin: span.start,
            longest: 0,
            layer: String::new(),
            jank: String::new(),
        });
        // Of several layers, the one that took longest is the frame's.
        if surface.layer.is_empty() || duration > surface.longest {
            surface.longest = duration;
            surface.layer = String::from_utf8_lossy(frame.layer()).into_owned();
            surface.jank = actual.jank.text();
        }
    }

    /// Adds to a frame what is known of it.
    pub fn complete(&self, frame: &mut Frame) {
        let Some(number) = frame.id else { return };
        let key = (frame.pid, number);
        let Some(actual) = self.actual.get(&key) else { return };
        if let Some(surface) = &actual.surface {
            frame.begin = surface.begin;
            frame.end = surface.begin.saturating_add(surface.longest);
            frame.layer = Some(surface.layer.clone());
            frame.jank_type = Some(surface.jank.clone());
        }
        let Some(expected) = self.expected.get(&key) else { return };
        frame.deadline = Some(Deadline::FrameTimeline);
        frame.expected_end = Some(expected.end);
        frame.timeline_end = Some(actual.first_end);
        // The time by which the frame began late belongs to it, too.
        let begin = actual.surface.as_ref().map_or(expected.start, |surface| surface.begin);
        frame.cpu_ns = frame.cpu_ns.saturating_add(begin.saturating_sub(expected.start));
    }
}
