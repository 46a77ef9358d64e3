//! Whether the last line of a text has been cut.
//!
//! Kernels, atrace and trace-cmd end every line with a line feed. A text with their whole header and without
//! the last line feed has therefore been cut, however whole its last line looks. A text without that header
//! may be an excerpt that a person has made, and editors may leave the last line feed out: there the line
//! itself has to show that it is cut.

use super::event_classifier::{marker_text, split_name};
use super::event_line::{self, OtherLine};
use crate::formats::text_lines::lines;
use crate::formats::{Value, event_catalog};
use crate::markers::Marker;

/// The header is in so many lines at the start of a text.
const HEADER_LINES: usize = 30;

/// Whether a text has the header with which kernels, atrace and trace-cmd begin every text.
fn has_whole_header(text: &[u8]) -> bool {
    lines(text).take(HEADER_LINES).any(|(_, line)| match event_line::parse_other(line) {
        OtherLine::Comment => memchr::memmem::find(line, b"TASK-PID").is_some(),
        OtherLine::Cpus(_) | OtherLine::Entries { .. } => true,
        _ => false,
    })
}

/// The offset of the last line, if the text has been cut in it, whatever the line holds: nobody writes a line
/// of the header without its end.
pub(super) fn cut_in_line(text: &[u8]) -> Option<usize> {
    let start = memchr::memrchr(b'\n', text).map_or(0, |end| end + 1);
    let line = &text[start..];
    (line.starts_with(b"#") || (!line.is_empty() && has_whole_header(&text[..start]))).then_some(start)
}

/// Whether the text of an event, which ends with the file and not with a line feed, is shorter than the event
/// is printed: the beginning of a name, an event of the catalog in none of its forms, or a marker that has
/// less than markers of its letter have.
pub(super) fn is_cut(rest: &[u8]) -> bool {
    if rest.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_') {
        return true;
    }
    let (name, text) = split_name(rest);
    if let b"tracing_mark_write" | b"0" | b"print" = name {
        let marker = marker_text(name, text);
        let begins = matches!(marker, [b'B' | b'C' | b'S' | b'F' | b'I' | b'N' | b'G' | b'H', b'|', ..]);
        return marker.is_empty() || (begins && is_cut_marker(marker));
    }
    let forms = event_catalog::lookup(name);
    let mut values = [Value::Uint(0); event_catalog::MAX_FIELDS];
    !forms.is_empty() && forms.iter().all(|form| form.parse(text, &mut values).is_none())
}

/// Whether a marker lacks fields that markers of its letter have. The name of a slice is one of them.
fn is_cut_marker(marker: &[u8]) -> bool {
    let bars = memchr::memchr_iter(b'|', marker).count();
    Marker::parse(marker).is_none() || (marker[0] == b'B' && (bars < 2 || marker.ends_with(b"|")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_that_is_shorter_than_it_is_printed_is_cut() {
        for (whole, cuts) in [
            ("cpu_idle: state=0 cpu_id=3", &[7, 10, 16, 24][..]),
            ("sched_wakeup: comm=b pid=2 prio=120 target_cpu=000", &[12, 20, 40]),
            ("tracing_mark_write: B|12|name", &[20, 22, 24, 25]),
            ("print: C|12|frames|3", &[9, 12, 19]),
        ] {
            assert!(!is_cut(whole.as_bytes()), "{whole}");
            for at in cuts {
                assert!(is_cut(&whole.as_bytes()[..*at]), "{}", &whole[..*at]);
            }
        }
        for whole in ["tracing_mark_write: E", "tracing_mark_write: free text", "vendor_event: a=1 b"] {
            assert!(!is_cut(whole.as_bytes()), "{whole}");
        }
    }

    #[test]
    fn only_below_a_whole_header_a_line_without_an_end_is_cut_for_sure() {
        let line = " a-1 [000] .... 1.5: cpu_idle: state=0 cpu_id=3";
        let header = "# tracer: nop\n#\n#           TASK-PID   CPU#  TIMESTAMP  FUNCTION\n";
        assert_eq!(cut_in_line(format!("{header}{line}").as_bytes()), Some(header.len()));
        assert_eq!(cut_in_line(format!("cpus=8\n{line}").as_bytes()), Some(7));
        for text in
            [format!("{header}{line}\n"), format!("# tracer: nop\n{line}"), line.to_owned(), header.into()]
        {
            assert_eq!(cut_in_line(text.as_bytes()), None, "{text}");
        }
    }
}
