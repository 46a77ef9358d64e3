//! Text inside HTML pages, as the content of an element and inside a `<script>` section, and inside
//! JavaScript strings: each encoder beside its decoder. Systrace's pages hold a trace in both ways.

use std::borrow::Cow;
use std::io::{self, Write};

use memchr::memmem;

/// Text as the content of an element: what a browser would take for markup is written as an entity.
pub(crate) fn escape_html(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Text as the value of an attribute in double quotes.
pub(crate) fn escape_attribute(text: &str) -> String {
    escape_html(text).replace('"', "&quot;")
}

/// Writes `text` for the inside of a `<script>`. What would end the script, `</script`, gets a backslash
/// behind the `<`, and so does `<!--`, behind which a browser takes `<script` for the start of another
/// script. A text that has backslashes there already gets one more, so that [`unescape_script`] finds the
/// text again.
pub(crate) fn write_script_text(text: &[u8], out: &mut impl Write) -> io::Result<()> {
    let mut written = 0;
    for place in script_syntax(text) {
        out.write_all(&text[written..place])?;
        out.write_all(b"\\")?;
        written = place;
    }
    out.write_all(&text[written..])
}

/// The text that [`write_script_text`] wrote into a script.
pub(crate) fn unescape_script(text: &[u8]) -> Cow<'_, [u8]> {
    let mut out = Vec::new();
    let mut copied = 0;
    for place in script_syntax(text) {
        let before = &text[copied..place];
        out.extend_from_slice(before.strip_suffix(b"\\").unwrap_or(before));
        copied = place;
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    out.extend_from_slice(&text[copied..]);
    Cow::Owned(out)
}

/// The places of the `/` of each `</script` and of the `!` of each `<!--`; between the `<` and the place
/// there may be backslashes.
fn script_syntax(text: &[u8]) -> impl Iterator<Item = usize> {
    // `<` with one of these characters behind it almost never occurs in traces.
    let occurs = [&b"</"[..], b"<\\", b"<!"].iter().any(|start| memmem::find(text, start).is_some());
    let searched = if occurs { text } else { &[] };
    memchr::memchr_iter(b'<', searched).filter_map(|less| {
        let behind = &text[less + 1..];
        let backslashes = behind.iter().take_while(|b| **b == b'\\').count();
        let is_syntax = match &behind[backslashes..] {
            [b'/', name @ ..] => name.get(..6).is_some_and(|name| name.eq_ignore_ascii_case(b"script")),
            name => name.starts_with(b"!--"),
        };
        is_syntax.then_some(less + 1 + backslashes)
    })
}

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
    use super::{unescape_javascript, *};

    fn in_script(text: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        write_script_text(text, &mut out).unwrap();
        out
    }

    #[test]
    fn what_is_decoded_is_what_was_encoded() {
        for text in [
            &b""[..],
            b"plain </b> / \\/ <",
            b"x</script><b>",
            b"</SCRIPT></script></scrip",
            b"<\\/script and <\\\\/Script",
            b"/script<",
            b"<!--<script>",
            b"<\\!-- and <\\\\!--",
            b"</",
        ] {
            let written = in_script(text);
            assert!(!written.to_ascii_lowercase().windows(8).any(|w| w == b"</script"));
            assert_eq!(unescape_script(&written), text);
        }
        assert_eq!(in_script(b"x</script>"), b"x<\\/script>");
    }

    #[test]
    fn markup_in_an_element_is_shown_as_text() {
        let text = "List<String> a && b &lt;";
        let written = escape_html(text);
        assert_eq!(written, "List&lt;String&gt; a &amp;&amp; b &amp;lt;");
        assert_eq!(written.replace("&gt;", ">").replace("&lt;", "<").replace("&amp;", "&"), text);
    }

    /// As systrace wrote a trace into its page.
    fn encode(text: &str) -> String {
        text.replace('\\', "\\\\").replace('"', "\\\"").replace('\r', "\\r").replace('\n', "\\n\\\n")
    }

    #[test]
    fn a_decoded_javascript_string_is_what_was_encoded() {
        for text in ["", "a\nb\n", "say \"x\" \\ \r\n", "\\n", "tab\t"] {
            assert_eq!(unescape_javascript(encode(text).as_bytes()), text.as_bytes());
        }
    }

    #[test]
    fn line_ends_of_windows_and_a_cut_escape_are_left_out() {
        assert_eq!(unescape_javascript(b"a\\n\\\r\nb\\t\\"), b"a\nb\t");
    }
}
