//! The frames of a video of the screen at the begin and at the end of a span.

use std::fmt;

use serde::Serialize;

use crate::clock::Timestamp;
use crate::formats::{ScreenVideo, video_time};

/// The frames that the screen showed from the begin to the end of a span.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub(crate) struct ShownFrames {
    /// The name of the video's file.
    pub file: String,
    /// The frame at the begin, counted from 0; the video's first one where the span begins before the video.
    pub first_frame: usize,
    /// The frame at the end.
    pub last_frame: usize,
    /// The time of the first one in the video, ns.
    pub first_ns: u64,
    /// The time of the last one in the video, ns.
    pub last_ns: u64,
    /// Whether the span begins behind the last frame of the video: the screen did not change since, or was
    /// not recorded any more.
    pub is_behind_video: bool,
}

impl ShownFrames {
    /// The frames of a video at `begin` and `end` of the video's clock; `None` where the video begins
    /// behind the span.
    pub fn of_span(file: &str, video: &ScreenVideo, begin: Timestamp, end: Timestamp) -> Option<ShownFrames> {
        let last_frame = video.frame_at(end)?;
        let first_frame = video.frame_at(begin).unwrap_or(0);
        Some(ShownFrames {
            file: file.to_owned(),
            first_frame,
            last_frame,
            first_ns: video.frames[first_frame].video_ns,
            last_ns: video.frames[last_frame].video_ns,
            is_behind_video: video.frames.last().is_some_and(|last| last.ts < begin),
        })
    }
}

/// As `screen.mp4: frames 12 to 31, 0.410 s to 1.030 s`.
impl fmt::Display for ShownFrames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ShownFrames { file, first_frame, last_frame, .. } = self;
        let first = video_time(self.first_ns);
        let last = video_time(self.last_ns);
        if self.is_behind_video {
            write!(f, "{file}: no frame since its last one, frame {last_frame}, {last}")
        } else if first_frame == last_frame {
            write!(f, "{file}: frame {first_frame}, {first}")
        } else {
            write!(f, "{file}: frames {first_frame} to {last_frame}, {first} to {last}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::VideoFrame;

    #[test]
    fn the_frames_at_the_begin_and_the_end_are_named() {
        let frame = |n: u64| VideoFrame { ts: Timestamp(1_000 + 100 * n), video_ns: 100_000_000 * n };
        let video = ScreenVideo { frames: (0..5).map(frame).collect(), ..ScreenVideo::default() };
        let said =
            |begin, end| ShownFrames::of_span("a.mp4", &video, begin, end).map(|shown| shown.to_string());
        assert_eq!(
            said(Timestamp(1_150), Timestamp(1_320)).as_deref(),
            Some("a.mp4: frames 1 to 3, 0.100 s to 0.300 s")
        );
        assert_eq!(said(Timestamp(1_150), Timestamp(1_160)).as_deref(), Some("a.mp4: frame 1, 0.100 s"));
        assert_eq!(
            said(Timestamp(10), Timestamp(1_100)).as_deref(),
            Some("a.mp4: frames 0 to 1, 0.000 s to 0.100 s")
        );
        assert_eq!(said(Timestamp(10), Timestamp(999)), None);
        assert_eq!(
            said(Timestamp(1_350), Timestamp(9_999)).as_deref(),
            Some("a.mp4: frames 3 to 4, 0.300 s to 0.400 s")
        );
        let behind = said(Timestamp(2_000), Timestamp(3_000));
        assert_eq!(behind.as_deref(), Some("a.mp4: no frame since its last one, frame 4, 0.400 s"));
    }
}
