//! Takes away what is around the text: `TRACE:` and zlib (`atrace -z`), JavaScript escapes, HTML, line ends of Windows
//! and of old `adb shell`.

use std::io::Read;

use flate2::read::ZlibDecoder;

use super::{Text, html, tasks};
use crate::formats::{Damage, ReadReport};

/// The most that a compressed text may become, bytes: a phone's buffers hold far less.
const MAX_INFLATED: u64 = 2 << 30;

/// What a file holds.
pub(super) struct Parts<'a> {
    pub format: &'static str,
    /// ftrace text
    pub texts: Vec<Text<'a>>,
    /// lists of processes and threads
    pub tasks: Vec<Text<'a>>,
}

pub(super) fn unwrap<'a>(data: &'a [u8], report: &mut ReadReport) -> Parts<'a> {
    if html::detect(data) {
        return html::parts(data, report);
    }
    let mut parts = Parts { format: "ftrace text", texts: Vec::new(), tasks: Vec::new() };
    let body = match trace_start(data) {
        Some(at) => {
            parts.format = "atrace text";
            &data[at..]
        }
        None => data,
    };
    if is_zlib(body) {
        parts.format = "atrace text (zlib)";
        let offset = (data.len() - body.len()) as u64;
        parts.texts.push(Text::Owned(inflate(body, offset, report)));
    } else {
        add_text(unescape_if_needed(body), &mut parts);
    }
    parts
}

/// Puts a text where it belongs; a list of threads behind a trace is cut off it.
pub(super) fn add_text<'a>(text: Text<'a>, parts: &mut Parts<'a>) {
    let at = tasks::find(&text);
    match (at, text) {
        (Some(0), text) => parts.tasks.push(text),
        (Some(at), Text::Borrowed(text)) => {
            parts.texts.push(Text::Borrowed(&text[..at]));
            parts.tasks.push(Text::Borrowed(&text[at..]));
        }
        (Some(at), Text::Owned(mut text)) => {
            parts.tasks.push(Text::Owned(text.split_off(at)));
            parts.texts.push(Text::Owned(text));
        }
        (None, text) => parts.texts.push(text),
    }
}

/// Where the trace starts behind a line `TRACE:`, which other lines may precede.
pub(super) fn trace_start(data: &[u8]) -> Option<usize> {
    let head = &data[..data.len().min(64 << 10)];
    let at = memchr::memmem::find(head, b"TRACE:")?;
    if at > 0 && head[at - 1] != b'\n' {
        return None;
    }
    let ends = head[at + 6..].iter().take_while(|b| **b == b'\r' || **b == b'\n');
    let mut len = 0;
    // Line ends only: a zlib stream starts with neither, a text's empty first line does no harm.
    for end in ends {
        len += 1;
        if *end == b'\n' {
            break;
        }
    }
    (len > 0).then_some(at + 6 + len)
}

/// CMF and FLG of RFC 1950: deflate, and a checksum that fits.
pub(super) fn is_zlib(data: &[u8]) -> bool {
    matches!(data, [cmf, flg, ..] if cmf & 0x0f == 8 && (u32::from(*cmf) << 8 | u32::from(*flg)) % 31 == 0)
}

/// What the zlib stream at the start of `data` holds, as far as it is sound.
pub(super) fn inflate(data: &[u8], offset: u64, report: &mut ReadReport) -> Vec<u8> {
    let mut out = Vec::new();
    let mut decoder = ZlibDecoder::new(data);
    let result = decoder.by_ref().take(MAX_INFLATED).read_to_end(&mut out);
    let used = decoder.total_in();
    let mut damage = |what: String| report.damage.push(Damage { offset: offset + used, what });
    match result {
        Err(error) => damage(format!("the compressed text ends here ({error}); what came before it is used")),
        Ok(_) if out.len() as u64 == MAX_INFLATED => {
            damage(format!("the compressed text is over {MAX_INFLATED} bytes; the rest is left out"));
        }
        Ok(_) => {
            let behind = data.len() as u64 - used;
            if behind > 0 {
                report.notes.push(format!("{behind} bytes behind the compressed text are no part of it"));
            }
        }
    }
    out
}

/// A line without its end: `\r` of Windows, `\r\r` of an old `adb shell`.
pub(super) fn trim_line(line: &[u8]) -> &[u8] {
    let ends = line.iter().rev().take_while(|b| **b == b'\r').count();
    &line[..line.len() - ends]
}

/// Text out of a JavaScript string, as old systrace pages hold it: every line ends with `\n\`.
pub(super) fn unescape_if_needed(text: &[u8]) -> Text<'_> {
    let head = &text[..text.len().min(4 << 10)];
    match memchr::memmem::find(head, b"\\n\\\n").or_else(|| memchr::memmem::find(head, b"\\n\\\r\n")) {
        Some(_) => Text::Owned(unescape(text)),
        None => Text::Borrowed(text),
    }
}

/// Takes JavaScript's escapes away.
pub(super) fn unescape(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = memchr::memchr(b'\\', rest) {
        out.extend_from_slice(&rest[..at]);
        let len = match &rest[at + 1..] {
            [b'\r', b'\n', ..] => 2,
            [b'\n', ..] | [] => 1,
            [b'n', ..] => {
                out.push(b'\n');
                1
            }
            [b't', ..] => {
                out.push(b'\t');
                1
            }
            [b'r', ..] => {
                out.push(b'\r');
                1
            }
            [other, ..] => {
                out.push(*other);
                1
            }
        };
        rest = rest.get(at + 1 + len..).unwrap_or(&[]);
    }
    out.extend_from_slice(rest);
    out
}
