//! Texts, integers and times of JSON, and the members of events of frames, which other asynchronous slices do
//! not have.

use std::collections::HashMap;
use std::fmt::{self, Display};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write;

use crate::clock::Timestamp;
use crate::formats::TimelineFrame;
use crate::tracks::Span;

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

// Times as Chrome's JSON and the viewers of it have them: µs with three decimals, which viewers read as
// doubles.

/// A time in ns, printed as µs with three decimals.
pub(super) struct Micros(pub(super) u64);

impl Display for Micros {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:03}", self.0 / 1000, self.0 % 1000)
    }
}

/// The double that a viewer reads for a time in ns, printed as [`Micros`].
///
/// The division rounds once, and `ns` itself is exact below 2^53 ns (104 days); so the quotient is the double
/// nearest to the printed decimal, which is what a parser returns.
pub(super) fn as_double(ns: u64) -> f64 {
    ns as f64 / 1000.0
}

/// The process id and the thread id of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct JsonPlace {
    pub(super) pid: i64,
    pub(super) tid: i64,
}

/// A track whose slices are written as `B` and `E` events.
#[derive(Default)]
pub(super) struct SliceTrack {
    /// The time of the latest event that was written.
    last: Timestamp,
    /// Whether a slice has begun at the time `last`.
    has_begun: bool,
    /// By the hash of a slice's name, the time at which such a slice has last ended.
    ended: HashMap<u64, Timestamp>,
    /// For each open slice the place with which its begin was written. The process of a thread may become
    /// known while a slice is open.
    open: Vec<JsonPlace>,
}

impl SliceTrack {
    /// Opens a slice, and returns the time to write for its begin.
    pub(super) fn begin(&mut self, ts: Timestamp, place: JsonPlace, name: &[u8]) -> Timestamp {
        self.open.push(place);
        self.advance(ts);
        if self.ended.get(&hash(name)) == Some(&self.last) {
            self.step();
        }
        self.has_begun = true;
        self.last
    }

    /// Ends the innermost slice, and returns the time to write, and the place with which the begin was
    /// written.
    pub(super) fn end(&mut self, ts: Timestamp, name: &[u8]) -> Option<(Timestamp, JsonPlace)> {
        let place = self.open.pop()?;
        self.advance(ts);
        if self.has_begun {
            self.step();
        }
        self.ended.insert(hash(name), self.last);
        Some((self.last, place))
    }

    /// Goes on to `ts`, unless the track is there already or is ahead.
    fn advance(&mut self, ts: Timestamp) {
        if as_double(ts.0) > as_double(self.last.0) {
            self.last = ts;
            self.has_begun = false;
        }
    }

    /// Goes on to the next time that viewers can distinguish from the last one, because they read times as
    /// doubles.
    fn step(&mut self) {
        let next = Timestamp((as_double(self.last.0).next_up() * 1000.0).ceil() as u64);
        self.advance(next.max(self.last + 1));
    }
}

fn hash(name: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    hasher.finish()
}

/// The duration of an event whose successor on the same track may begin at the event's end.
///
/// The duration is printed with three decimals if it is then not greater than the difference of the doubles
/// of end and start. Otherwise this difference is printed: added to `ts` it gives the double of the end, also
/// where a viewer has first subtracted the time of the first event from `ts`. The printed duration is then
/// too short by less than the distance of two doubles near the end (0.015 ns after one day).
pub(super) enum Duration {
    Exact(Micros),
    Fitted(f64),
}

impl Duration {
    pub(super) fn new(span: Span) -> Duration {
        let ns = span.end.since(span.start);
        let start = as_double(span.start.0);
        let end = as_double(span.end.0);
        let mut difference = end - start;
        while start + difference > end {
            difference = difference.next_down();
        }
        if as_double(ns) <= difference || difference <= 0.0 {
            Duration::Exact(Micros(ns))
        } else {
            Duration::Fitted(difference)
        }
    }
}

impl Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Duration::Exact(micros) => micros.fmt(f),
            // Rust prints the shortest decimal that a parser reads as the same double.
            Duration::Fitted(micros) => write!(f, "{micros}"),
        }
    }
}
