//! Texts and integers of JSON, and the members of events of frames, which other asynchronous slices do not
//! have.

use std::io::Write;

use crate::formats::TimelineFrame;

/// All integers up to this one are exact in a double.
const MAX_EXACT_IN_DOUBLE: i64 = 1 << 53;

/// Appends `text` as a JSON string. Bytes that are not UTF-8 are replaced by U+FFFD.
pub(super) fn json_string(out: &mut Vec<u8>, text: &[u8]) {
    out.push(b'"');
    for chunk in text.utf8_chunks() {
        for c in chunk.valid().bytes() {
            match c {
                b'"' | b'\\' => out.extend([b'\\', c]),
                b'\n' => out.extend(b"\\n"),
                b'\r' => out.extend(b"\\r"),
                b'\t' => out.extend(b"\\t"),
                0..0x20 => {
                    let _ = write!(out, "\\u{c:04x}");
                }
                // The JSON text may be placed inside a script element of an HTML page.
                b'<' => out.extend(b"\\u003c"),
                c => out.push(c),
            }
        }
        if !chunk.invalid().is_empty() {
            out.extend("\u{fffd}".as_bytes());
        }
    }
    out.push(b'"');
}

/// Appends an integer, as a string if a double would round it.
pub(super) fn json_int(out: &mut Vec<u8>, value: i64) {
    let _ = if (-MAX_EXACT_IN_DOUBLE..=MAX_EXACT_IN_DOUBLE).contains(&value) {
        write!(out, "{value}")
    } else {
        write!(out, "\"{value}\"")
    };
}

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
        let _ = write!(
            out,
            ",\"present_type\":\"{}\",\"on_time_finish\":{},\"gpu_composition\":{}",
            actual.present.text(),
            actual.on_time_finish,
            actual.gpu_composition
        );
        let _ = write!(out, ",\"prediction_type\":\"{}\"", actual.prediction.text());
    }
    if open {
        out.extend(b",\"open\":1");
    }
    out.push(b'}');
}
