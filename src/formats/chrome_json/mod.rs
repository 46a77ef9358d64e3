//! Chrome's JSON trace format ("Trace Event Format"), which Chromium, Flutter, React Native, Unity, Bazel,
//! systrace, Perfetto and tracebridge itself write.
//!
//! The format has no specification beside a document of the Chromium project; how Perfetto's importer reads
//! it decides where the document is silent. Each file is read twice: the first pass collects names and the
//! order of the events, the second one pushes the events. No pass holds the file or its events in memory.
//!
//! Samples (`P`, and the stacks of events), snapshots of objects (`N`, `O`, `D`), memory dumps and the text
//! of `systemTraceEvents` are counted, and not read.

mod document;
mod event;

mod order;
mod push;
mod same_time;
mod slices;
mod walk;

pub use self::document::ChromeJsonTrace;
pub use self::event::{Id, IdScope, InstantScope, JsonEvent, JsonProcess, JsonThread, ThreadKey};

use super::input::Input;
use super::json::{Scanner, Value};
use super::{FormatError, OpenedInput, Order, ReadReport, Sink};
use std::io;

/// So many bytes at the start of a file show whether it holds events.
const DETECTION_BYTES: usize = 64 << 10;

/// Members of the file's object that nothing but Chrome's trace format has. The list of events may come
/// behind megabytes of them.
const OWN_MEMBERS: [&[u8]; 6] = [
    b"traceEvents",
    b"systemTraceEvents",
    b"stackFrames",
    b"displayTimeUnit",
    b"controllerTraceDataKey",
    b"powerTraceAsString",
];

/// Whether the bytes are those of a Chrome JSON trace: an array whose first element is an event, or an object
/// with a list of events.
pub(super) fn detect(bytes: &[u8]) -> bool {
    let start = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let mut scanner = Scanner::new(&start[..start.len().min(DETECTION_BYTES)], 0);
    if scanner.skip(b'[') {
        return first_element_is_event(scanner);
    }
    if !scanner.skip(b'{') {
        return false;
    }
    while let Ok(Some(name)) = scanner.member_name() {
        if OWN_MEMBERS.contains(&name.raw()) {
            return true;
        }
        if scanner.value().is_err() {
            // The value is longer than what is looked at.
            let rest = start.get(scanner.at.min(start.len())..).unwrap_or(&[]);
            return memchr::memmem::find(rest, b"\"traceEvents\"").is_some();
        }
    }
    false
}

/// Whether the first element with members is an event. Some writers begin with an empty object, so that each
/// event may have a comma before it.
fn first_element_is_event(mut scanner: Scanner<'_>) -> bool {
    loop {
        if !scanner.skip(b'{') {
            return false;
        }
        if !scanner.skip(b'}') {
            break;
        }
        scanner.skip(b',');
    }
    while let Ok(Some(name)) = scanner.member_name() {
        let value = scanner.value();
        if name.raw() == b"ph" {
            return matches!(value, Ok(Value::Text(text)) if !text.is_empty());
        }
        if value.is_err() {
            return false;
        }
    }
    false
}

/// Opens `input` as a Chrome JSON trace.
pub(super) fn open(input: &Input) -> Result<OpenedInput<'_>, FormatError> {
    Ok(OpenedInput::Recording(Box::new(ChromeJsonTrace::from_input(input)?)))
}

/// Opens a Chrome JSON trace and pushes all of it to `sink`.
///
/// # Errors Those of the sink, and of the temporary file for the order of a large trace. All faults of the
/// trace are in the report's damage.
pub fn read(data: &[u8], order: Order, sink: &mut dyn Sink) -> io::Result<ReadReport> {
    use super::Recording;
    ChromeJsonTrace::open(data)?.read(order, sink)
}

#[cfg(test)]
mod tests;
