//! The frames of a video of the screen, as its reader gives them and a timeline places them.

use crate::clock::Timestamp;

/// A frame of a video.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VideoFrame {
    /// The time at which the screen showed the frame, in the recording's clock.
    pub ts: Timestamp,
    /// The time at which a player shows the frame, ns from the video's begin.
    pub video_ns: u64,
}

/// The frames of a video.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ScreenVideo {
    /// The frames in the order of the video; their numbers are their places here. No frame is earlier than
    /// the one before.
    pub frames: Vec<VideoFrame>,
    /// The number of frames of the video track; `None` where the file has no whole index.
    pub track_frames: Option<u64>,
    /// The duration that a player shows, ns.
    pub length_ns: u64,
    /// The time of the first frame in CLOCK_REALTIME, where the table tells it.
    pub wall_start: Option<Timestamp>,
}

impl ScreenVideo {
    /// The number of the frame that the screen shows at `ts` of the frames' clock: the last one that is
    /// not later. `None` before the first frame.
    pub fn frame_at(&self, ts: Timestamp) -> Option<usize> {
        self.frames.partition_point(|frame| frame.ts <= ts).checked_sub(1)
    }
}

/// A time of a video for people, as players show it: `0.410 s`.
pub fn video_time(ns: u64) -> String {
    let ms = ns / 1_000_000;
    format!("{}.{:03} s", ms / 1000, ms % 1000)
}
