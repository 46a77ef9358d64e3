//! The parts of a systrace page: `<script class="trace-data">` sections of the modern form, `var linuxPerfData` of the
//! old one. The viewer's own code, which the page holds too, mentions both; a section is only what is not inside
//! another script.

use super::wrapping::{self, Parts, add_text, inflate, is_zlib, unescape};
use crate::formats::ReadReport;

/// Whether this is an HTML page (of any kind: a page without a trace is said when read).
pub(super) fn detect(data: &[u8]) -> bool {
    let head = data[..data.len().min(1 << 10)].trim_ascii_start();
    let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
    let starts = |what: &[u8]| head.get(..what.len()).is_some_and(|h| h.eq_ignore_ascii_case(what));
    starts(b"<!doctype html") || starts(b"<html")
}

pub(super) fn parts<'a>(page: &'a [u8], report: &mut ReadReport) -> Parts<'a> {
    let mut parts = Parts { format: "systrace HTML", texts: Vec::new(), tasks: Vec::new() };
    let mut code: Vec<&[u8]> = Vec::new();
    for (tag, body) in scripts(page) {
        if memchr::memmem::find(tag, b"trace-data").is_none() {
            code.push(body);
            continue;
        }
        let trimmed = body.trim_ascii_start();
        if trimmed.starts_with(b"{") || trimmed.starts_with(b"[") {
            report.notes.push("a section of the page is JSON (the host's own trace), not read".into());
        } else if let Some(zlib) = base64_zlib(trimmed) {
            add_text(inflate(&zlib, 0, report).into(), &mut parts);
        } else {
            add_text(wrapping::unescape_if_needed(trimmed), &mut parts);
        }
    }
    if parts.texts.is_empty() && parts.tasks.is_empty() {
        parts.format = "systrace HTML (old form)";
        parts.texts.extend(code.into_iter().filter_map(linux_perf_data).map(|text| unescape(text).into()));
    }
    if parts.texts.is_empty() {
        report.damage.push(crate::formats::Damage {
            offset: 0,
            what: "an HTML page without a trace: neither trace-data sections nor linuxPerfData".into(),
        });
    }
    parts
}

/// Each script's opening tag and body. A script ends at the first `</script`, as for a browser: the viewer's code
/// escapes its own mentions of it.
fn scripts(page: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    let mut rest = page;
    std::iter::from_fn(move || {
        let open = memchr::memmem::find(rest, b"<script")?;
        rest = &rest[open..];
        let close = memchr::memchr(b'>', rest)?;
        let tag = &rest[..close];
        rest = &rest[close + 1..];
        let end = memchr::memmem::find(rest, b"</script").unwrap_or(rest.len());
        let body = &rest[..end];
        rest = &rest[end..];
        Some((tag, body))
    })
}

/// The string of `var linuxPerfData = "…"`.
fn linux_perf_data(code: &[u8]) -> Option<&[u8]> {
    let at = memchr::memmem::find(code, b"var linuxPerfData = \"")?;
    let text = &code[at + b"var linuxPerfData = \"".len()..];
    // Up to the quote that is not escaped.
    let mut end = 0;
    while let Some(found) = memchr::memchr2(b'"', b'\\', text.get(end..)?) {
        end += found;
        if text[end] == b'"' {
            return Some(&text[..end]);
        }
        end += 2;
    }
    Some(text)
}

/// A section that holds zlib in base64, as `systrace --compress` wrote once.
fn base64_zlib(text: &[u8]) -> Option<Vec<u8>> {
    if !text.starts_with(b"eJ") && !text.starts_with(b"eA") {
        return None;
    }
    let mut out = Vec::with_capacity(text.len() / 4 * 3);
    let (mut bits, mut n) = (0u32, 0);
    for c in text.iter().filter(|c| !c.is_ascii_whitespace() && **c != b'=') {
        let six = match c {
            b'A'..=b'Z' => c - b'A',
            b'a'..=b'z' => c - b'a' + 26,
            b'0'..=b'9' => c - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(six);
        n += 6;
        if n >= 8 {
            n -= 8;
            out.push((bits >> n) as u8);
        }
    }
    is_zlib(&out).then_some(out)
}
