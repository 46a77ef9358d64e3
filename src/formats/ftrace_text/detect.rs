//! Detects ftrace's text, and systrace's HTML pages around such a text.

use crate::formats::input::DETECTION_BYTES;

/// The number of lines at the start of a text that are inspected.
const DETECTION_LINES: usize = 400;

/// Whether a file with these bytes is ftrace's text: it has ftrace's header, atrace's `TRACE:`, or a line
/// with ` [000] … 12.345678: name:` among the first lines.
pub(in crate::formats) fn detect(bytes: &[u8]) -> bool {
    let head = start(bytes);
    if head.trim_ascii_start().starts_with(b"# tracer:") {
        return true;
    }
    let mut lines = head.split(|b| *b == b'\n').map(|l| l.trim_ascii()).take(DETECTION_LINES);
    !is_html_page(head)
        && lines.any(|line| {
            line.starts_with(b"# tracer:")
                || line.starts_with(b"TRACE:")
                || line == b"capturing trace... done"
                || line.starts_with(b"/proc/")
                || line.starts_with(b"proc/")
                || is_event_line(line)
        })
}

fn start(bytes: &[u8]) -> &[u8] {
    bytes.get(..DETECTION_BYTES).unwrap_or(bytes)
}

fn is_event_line(line: &[u8]) -> bool {
    let Some(open) = line.iter().position(|b| *b == b'[') else { return false };
    let Some(cpu) = line.get(open + 1..) else { return false };
    let digits = cpu.iter().take_while(|b| b.is_ascii_digit()).count();
    if digits == 0 || cpu.get(digits) != Some(&b']') {
        return false;
    }
    // After the CPU and optional flags follow seconds with a fraction and a colon.
    let mut words = cpu.get(digits + 1..).unwrap_or_default().split(|b| b.is_ascii_whitespace());
    words.by_ref().filter(|w| !w.is_empty()).take(3).any(|word| {
        let Some((b':', number)) = word.split_last() else { return false };
        number.contains(&b'.') && number.iter().all(|b| b.is_ascii_digit() || *b == b'.')
    })
}

/// Whether a file that starts with `head` is an HTML page, with or without a trace in it.
pub(in crate::formats) fn is_html_page(head: &[u8]) -> bool {
    let start = head.trim_ascii_start();
    let is = |tag: &[u8]| start.get(..tag.len()).is_some_and(|s| s.eq_ignore_ascii_case(tag));
    is(b"<!doctype html") || is(b"<html") || is(b"<!--")
}

/// Whether a file with these bytes is systrace's HTML page, in its old or its new form.
pub(in crate::formats) fn detect_html(bytes: &[u8]) -> bool {
    let sections: [&[u8]; 2] = [b"trace-data", b"linuxPerfData"];
    is_html_page(start(bytes)) && sections.iter().any(|name| memchr::memmem::find(bytes, name).is_some())
}
