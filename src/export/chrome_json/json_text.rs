//! Texts and integers of JSON.

use std::io::Write;

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
