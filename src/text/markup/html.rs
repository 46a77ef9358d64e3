//! Text inside an HTML page: as content of an element, and inside a `<script>` section, as systrace's pages
//! hold a trace.

use std::borrow::Cow;
use std::io::{self, Write};

use memchr::memmem;

/// Text as the content of an element: what a browser would take for markup is written as an entity.
pub(crate) fn escape_html(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Writes `text` for the inside of a `<script>`. What would end the script, `</script`, gets a backslash
/// before the slash; a text that has backslashes there already gets one more, so that [`unescape_script`]
/// finds the text again.
pub(crate) fn write_script_text(text: &[u8], out: &mut impl Write) -> io::Result<()> {
    let mut rest = text;
    while let Some(slash) = end_tag(rest) {
        out.write_all(&rest[..slash])?;
        out.write_all(b"\\/")?;
        rest = &rest[slash + 1..];
    }
    out.write_all(rest)
}

/// The text that [`write_script_text`] wrote into a script.
pub(crate) fn unescape_script(text: &[u8]) -> Cow<'_, [u8]> {
    let mut out = Vec::new();
    let mut rest = text;
    while let Some(slash) = end_tag(rest) {
        let before = &rest[..slash];
        out.extend_from_slice(before.strip_suffix(b"\\").unwrap_or(before));
        out.push(b'/');
        rest = &rest[slash + 1..];
    }
    if out.is_empty() {
        return Cow::Borrowed(text);
    }
    out.extend_from_slice(rest);
    Cow::Owned(out)
}

/// The place of the slash in the first `</script`, which may have backslashes before the slash.
fn end_tag(text: &[u8]) -> Option<usize> {
    // Slashes are frequent in traces, and these two almost never occur.
    if memmem::find(text, b"</").is_none() && memmem::find(text, b"<\\").is_none() {
        return None;
    }
    memchr::memchr_iter(b'/', text).find(|slash| {
        let name = text.get(slash + 1..slash + 7);
        let before = text[..*slash].iter().rev().find(|b| **b != b'\\');
        before == Some(&b'<') && name.is_some_and(|name| name.eq_ignore_ascii_case(b"script"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
