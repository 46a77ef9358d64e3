//! Writes frames of FrameTimeline as `FrameTimelineEvent` packets, as SurfaceFlinger does.

use super::packet::{packet, timestamp};
use crate::formats::TimelineFrame;
use crate::formats::perfetto::fields::{
    actual_display_frame_start as actual_display, actual_surface_frame_start as actual_surface, frame_end,
    frame_timeline_event, trace_packet,
};
use crate::formats::perfetto::wire::write::{message, string, uint};

/// The frames that are written so far.
#[derive(Default)]
pub(super) struct FrameWriter {
    /// The cookie of the last frame. Each frame has its own, which joins its begin and its end.
    cookie: u64,
}

impl FrameWriter {
    /// Appends a frame that begins at `ts`: two packets, or one if its end is not known. `clock` is the clock
    /// of its times, a value of the enum `BuiltinClock`.
    pub(super) fn frame(
        &mut self,
        out: &mut Vec<u8>,
        sequence: u64,
        ts: u64,
        frame: &TimelineFrame<'_>,
        clock: u64,
    ) {
        self.cookie += 1;
        let cookie = self.cookie;
        packet(out, sequence, |out| {
            timestamp(out, ts, clock);
            message(out, trace_packet::FRAME_TIMELINE_EVENT, |out| begin(out, cookie, frame));
        });
        let Some(end) = frame.end else { return };
        packet(out, sequence, |out| {
            timestamp(out, end, clock);
            message(out, trace_packet::FRAME_TIMELINE_EVENT, |out| {
                message(out, frame_timeline_event::FRAME_END, |out| uint(out, frame_end::COOKIE, cookie));
            });
        });
    }
}

/// Appends the begin of a frame. The messages of expected frames are those of actual frames without their
/// last fields.
fn begin(out: &mut Vec<u8>, cookie: u64, frame: &TimelineFrame<'_>) {
    let event = match (frame.surface.is_some(), frame.actual.is_some()) {
        (true, true) => frame_timeline_event::ACTUAL_SURFACE_FRAME_START,
        (true, false) => frame_timeline_event::EXPECTED_SURFACE_FRAME_START,
        (false, true) => frame_timeline_event::ACTUAL_DISPLAY_FRAME_START,
        (false, false) => frame_timeline_event::EXPECTED_DISPLAY_FRAME_START,
    };
    message(out, event, |out| match &frame.surface {
        Some(surface) => {
            uint(out, actual_surface::COOKIE, cookie);
            uint(out, actual_surface::TOKEN, surface.token as u64);
            uint(out, actual_surface::DISPLAY_FRAME_TOKEN, frame.display_token as u64);
            uint(out, actual_surface::PID, frame.pid as u64);
            string(out, actual_surface::LAYER_NAME, surface.layer);
            if let Some(actual) = &frame.actual {
                uint(out, actual_surface::PRESENT_TYPE, actual.present.number());
                uint(out, actual_surface::ON_TIME_FINISH, actual.on_time_finish.into());
                uint(out, actual_surface::GPU_COMPOSITION, actual.gpu_composition.into());
                uint(out, actual_surface::JANK_TYPE, actual.jank.0.into());
                uint(out, actual_surface::PREDICTION_TYPE, actual.prediction.number());
            }
        }
        None => {
            uint(out, actual_display::COOKIE, cookie);
            uint(out, actual_display::TOKEN, frame.display_token as u64);
            uint(out, actual_display::PID, frame.pid as u64);
            if let Some(actual) = &frame.actual {
                uint(out, actual_display::PRESENT_TYPE, actual.present.number());
                uint(out, actual_display::ON_TIME_FINISH, actual.on_time_finish.into());
                uint(out, actual_display::GPU_COMPOSITION, actual.gpu_composition.into());
                uint(out, actual_display::JANK_TYPE, actual.jank.0.into());
                uint(out, actual_display::PREDICTION_TYPE, actual.prediction.number());
            }
        }
    });
}
