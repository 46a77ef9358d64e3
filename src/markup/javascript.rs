//! Text inside a JavaScript string, as systrace's pages of before 2013 hold a trace.

/// The text that a string literal's inside stands for. A backslash at a line's end continues the string on
/// the next line.
pub(crate) fn unescape_javascript(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = memchr::memchr(b'\\', rest) {
        out.extend_from_slice(&rest[..at]);
        let (byte, len) = match &rest[at + 1..] {
            [b'\r', b'\n', ..] => (None, 2),
            [b'\n', ..] | [] => (None, 1),
            [b'n', ..] => (Some(b'\n'), 1),
            [b't', ..] => (Some(b'\t'), 1),
            [b'r', ..] => (Some(b'\r'), 1),
            [other, ..] => (Some(*other), 1),
        };
        out.extend(byte);
        rest = rest.get(at + 1 + len..).unwrap_or(&[]);
    }
    out.extend_from_slice(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::unescape_javascript;

    /// As systrace wrote a trace into its page.
    fn encode(text: &str) -> String {
        text.replace('\\', "\\\\").replace('"', "\\\"").replace('\r', "\\r").replace('\n', "\\n\\\n")
    }

    #[test]
    fn what_is_decoded_is_what_was_encoded() {
        for text in ["", "a\nb\n", "say \"x\" \\ \r\n", "\\n", "tab\t"] {
            assert_eq!(unescape_javascript(encode(text).as_bytes()), text.as_bytes());
        }
    }

    #[test]
    fn line_ends_of_windows_and_a_cut_escape_are_left_out() {
        assert_eq!(unescape_javascript(b"a\\n\\\r\nb\\t\\"), b"a\nb\t");
    }
}
