//! Reads `FrameTimelineEvent` packets (protos/perfetto/trace/android/frame_timeline_event.proto): joins the
//! begin of each frame with its end.
//!
//! SurfaceFlinger writes the packets of a frame when the frame is over, and their times lie before that. A
//! begin and an end have the same cookie, which is used once.

use std::collections::{HashMap, HashSet};

use super::fields::{
    actual_display_frame_start as actual_display, actual_surface_frame_start as actual_surface,
    expected_display_frame_start as expected_display, expected_surface_frame_start as expected_surface,
    frame_end, frame_timeline_event,
};
use super::track_clocks::number;
use super::track_table::{TrackKey, TrackTable};
use super::wire::read::{WireValue, fields, last_value};
use crate::formats::{
    ActualFrame, JankTypes, PredictionType, PresentType, SurfaceFrame, TimelineFrame, TrackId,
};

/// The most frames that wait for their end at one time. SurfaceFlinger writes the begin and the end of a
/// frame one behind the other.
const MAX_OPEN: usize = 1 << 16;
/// Releases of Android write negative times and times near the largest number into frames that have none.
/// Perfetto's own tools leave out what is nearer than this to the largest number, ns.
const BAD_TIME_NS: u64 = i64::MAX as u64 - 10_000_000_000;

/// A frame at its begin, ns of the recording's clock.
#[derive(Debug, Clone, Copy)]
pub(super) struct PlacedFrame<'a> {
    pub(super) ts: u64,
    pub(super) track: TrackId,
    pub(super) frame: TimelineFrame<'a>,
}

/// The frames of a trace, and what is wrong with those that could not be read whole.
#[derive(Default)]
pub(super) struct Frames<'a> {
    /// In the order of their begins.
    pub(super) list: Vec<PlacedFrame<'a>>,
    /// Ends of frames whose begin the trace does not hold.
    pub(super) ends_alone: u64,
    /// Packets without what a frame needs: its cookie, its tokens, its process.
    pub(super) malformed: u64,
    /// Packets with an impossible time.
    pub(super) bad_times: u64,
}

impl Frames<'_> {
    /// The frames whose end the trace does not hold.
    pub(super) fn unfinished(&self) -> u64 {
        self.list.iter().filter(|placed| placed.frame.end.is_none()).count() as u64
    }
}

/// The packets as they are found.
#[derive(Default)]
pub(super) struct FramePackets<'a> {
    /// Times, ns of the recording's clock, and `FrameTimelineEvent` messages.
    list: Vec<(u64, &'a [u8])>,
    bad_times: u64,
}

/// A frame that has begun.
#[derive(Debug, Clone, Copy)]
enum OpenFrame {
    /// The frame with this number.
    Kept(usize),
    /// What was expected of another layer with the same token, which is the same.
    Repeated,
}

impl<'a> FramePackets<'a> {
    /// Adds a `FrameTimelineEvent` at `ts` ns of the recording's clock.
    pub(super) fn push(&mut self, ts: u64, event: &'a [u8]) {
        if ts >= BAD_TIME_NS {
            self.bad_times += 1;
        } else {
            self.list.push((ts, event));
        }
    }

    /// Joins begins and ends. Each row of frames gets its track in `table`.
    pub(super) fn join(mut self, table: &mut TrackTable<'a>) -> Frames<'a> {
        // Begins stay in front of the ends of their time, as the file has them.
        self.list.sort_by_key(|(ts, _)| *ts);
        let mut out = Frames { bad_times: self.bad_times, ..Frames::default() };
        let mut open: HashMap<u64, OpenFrame> = HashMap::new();
        let mut expected: HashSet<(i32, i64)> = HashSet::new();
        for (ts, event) in self.list {
            let Some((kind, body)) = fields(event).find(|(n, _)| is_event(*n)) else {
                out.malformed += 1;
                continue;
            };
            let body = body.bytes();
            if kind == frame_timeline_event::FRAME_END {
                match number(body, frame_end::COOKIE).map(|cookie| open.remove(&cookie)) {
                    Some(Some(OpenFrame::Kept(at))) => out.list[at].frame.end = Some(ts),
                    Some(Some(OpenFrame::Repeated)) => {}
                    Some(None) => out.ends_alone += 1,
                    None => out.malformed += 1,
                }
                continue;
            }
            let Some((cookie, frame)) = frame(kind, body) else {
                out.malformed += 1;
                continue;
            };
            let repeated = |surface: SurfaceFrame<'_>| !expected.insert((frame.pid, surface.token));
            let is_repeated = frame.actual.is_none() && frame.surface.is_some_and(repeated);
            if open.len() >= MAX_OPEN {
                forget_half(&mut open);
            }
            if is_repeated {
                open.insert(cookie, OpenFrame::Repeated);
                continue;
            }
            open.insert(cookie, OpenFrame::Kept(out.list.len()));
            let track = table.id(TrackKey::Frames(frame.pid, frame.actual.is_some()), false);
            out.list.push(PlacedFrame { ts, track, frame });
        }
        out
    }
}

/// Forgets half of the frames that wait for their end, the older ones. They stay without an end.
fn forget_half(open: &mut HashMap<u64, OpenFrame>) {
    let mut waiting: Vec<usize> = open.values().filter_map(|frame| frame.number()).collect();
    let middle = waiting.len() / 2;
    let oldest_kept = if waiting.is_empty() { 0 } else { *waiting.select_nth_unstable(middle).1 };
    open.retain(|_, frame| frame.number().is_some_and(|number| number >= oldest_kept));
}

impl OpenFrame {
    fn number(self) -> Option<usize> {
        match self {
            OpenFrame::Kept(number) => Some(number),
            OpenFrame::Repeated => None,
        }
    }
}

/// Whether the field of `FrameTimelineEvent` is the begin or the end of a frame.
fn is_event(field: u32) -> bool {
    matches!(
        field,
        frame_timeline_event::EXPECTED_DISPLAY_FRAME_START
            | frame_timeline_event::ACTUAL_DISPLAY_FRAME_START
            | frame_timeline_event::EXPECTED_SURFACE_FRAME_START
            | frame_timeline_event::ACTUAL_SURFACE_FRAME_START
            | frame_timeline_event::FRAME_END
    )
}

/// The cookie and the frame of a begin; `None` where a part of it that every frame has is missing.
fn frame(kind: u32, body: &[u8]) -> Option<(u64, TimelineFrame<'_>)> {
    let is_surface = matches!(
        kind,
        frame_timeline_event::EXPECTED_SURFACE_FRAME_START | frame_timeline_event::ACTUAL_SURFACE_FRAME_START
    );
    // The messages of expected frames are those of actual frames without their last fields.
    let (cookie, token, pid) = match is_surface {
        true => (expected_surface::COOKIE, expected_surface::TOKEN, expected_surface::PID),
        false => (expected_display::COOKIE, expected_display::TOKEN, expected_display::PID),
    };
    let cookie = number(body, cookie)?;
    let token = number(body, token)? as i64;
    let pid = last_value(body, pid)?.int32();
    let surface = is_surface.then(|| {
        let layer = last_value(body, expected_surface::LAYER_NAME).map_or(&[][..], WireValue::bytes);
        SurfaceFrame { token, layer }
    });
    let display_token = match is_surface {
        true => number(body, expected_surface::DISPLAY_FRAME_TOKEN)? as i64,
        false => token,
    };
    let actual = match kind {
        frame_timeline_event::ACTUAL_SURFACE_FRAME_START => Some(actual_frame(
            body,
            [
                actual_surface::JANK_TYPE,
                actual_surface::PRESENT_TYPE,
                actual_surface::ON_TIME_FINISH,
                actual_surface::GPU_COMPOSITION,
                actual_surface::PREDICTION_TYPE,
            ],
        )),
        frame_timeline_event::ACTUAL_DISPLAY_FRAME_START => Some(actual_frame(
            body,
            [
                actual_display::JANK_TYPE,
                actual_display::PRESENT_TYPE,
                actual_display::ON_TIME_FINISH,
                actual_display::GPU_COMPOSITION,
                actual_display::PREDICTION_TYPE,
            ],
        )),
        _ => None,
    };
    Some((cookie, TimelineFrame { end: None, pid, display_token, surface, actual }))
}

/// What became of a frame, of a message that has it in these fields.
fn actual_frame(body: &[u8], [jank, present, on_time, gpu, prediction]: [u32; 5]) -> ActualFrame {
    let number = |field| number(body, field).unwrap_or(0);
    ActualFrame {
        jank: JankTypes(number(jank) as u32),
        present: PresentType::of_number(number(present)),
        on_time_finish: number(on_time) != 0,
        gpu_composition: number(gpu) != 0,
        prediction: PredictionType::of_number(number(prediction)),
    }
}
