//! What the events of frames have beside those of other asynchronous slices.

use std::io::Write;

use super::json_text::{json_int, json_string};
use crate::formats::TimelineFrame;

/// The category of frames.
pub(super) const FRAME_CATEGORY: &str = "frame_timeline";
/// The member that colours late frames red where a viewer has the colours of chrome://tracing.
pub(super) const LATE_COLOR: &[u8] = b",\"cname\":\"terrible\"";

/// Appends the arguments of a frame. `open` says that its end is not known.
pub(super) fn frame_args(out: &mut Vec<u8>, frame: &TimelineFrame<'_>, open: bool) {
    out.extend(b",\"args\":{\"display_frame_token\":");
    json_int(out, frame.display_token);
    if let Some(surface) = &frame.surface {
        out.extend(b",\"surface_frame_token\":");
        json_int(out, surface.token);
        if !surface.layer.is_empty() {
            out.extend(b",\"layer\":");
            json_string(out, surface.layer);
        }
    }
    if let Some(actual) = &frame.actual {
        out.extend(b",\"jank_type\":");
        json_string(out, actual.jank.text().as_bytes());
        let (present, prediction) = (actual.present.text(), actual.prediction.text());
        let _ = write!(
            out,
            ",\"present_type\":\"{present}\",\"on_time_finish\":{},\"gpu_composition\":{}",
            actual.on_time_finish, actual.gpu_composition
        );
        let _ = write!(out, ",\"prediction_type\":\"{prediction}\"");
    }
    if open {
        out.extend(b",\"open\":1");
    }
    out.push(b'}');
}
