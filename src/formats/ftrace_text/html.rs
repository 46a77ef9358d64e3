//! The scripts of a systrace page: `<script class="trace-data">` sections in current pages, a string
//! `linuxPerfData` in pages from before 2013. The page also contains the viewer's code, which mentions both
//! names. A `trace-data` tag inside another script is therefore ignored.

/// Whether `data` is an HTML page of any kind, with a trace or without.
pub(super) fn is_page(data: &[u8]) -> bool {
    let head = data[..data.len().min(1 << 10)].trim_ascii_start();
    let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
    let starts = |tag: &[u8]| head.get(..tag.len()).is_some_and(|h| h.eq_ignore_ascii_case(tag));
    starts(b"<!doctype html") || starts(b"<html")
}

/// The contents of a page's scripts.
pub(super) struct PageScripts<'a> {
    /// The `trace-data` sections.
    pub sections: Vec<&'a [u8]>,
    /// All other scripts: the code of the viewer, and in old pages the script with the trace.
    pub code: Vec<&'a [u8]>,
}

/// Finds all scripts. A script ends at the first `</script`, as it does for a browser: the viewer's code
/// escapes its own mentions of that tag.
pub(super) fn scripts(page: &[u8]) -> PageScripts<'_> {
    let mut found = PageScripts { sections: Vec::new(), code: Vec::new() };
    let mut rest = page;
    while let Some(open) = memchr::memmem::find(rest, b"<script") {
        rest = &rest[open..];
        let Some(close) = memchr::memchr(b'>', rest) else { break };
        let (tag, after) = (&rest[..close], &rest[close + 1..]);
        let end = memchr::memmem::find(after, b"</script").unwrap_or(after.len());
        match memchr::memmem::find(tag, b"trace-data") {
            Some(_) => found.sections.push(&after[..end]),
            None => found.code.push(&after[..end]),
        }
        rest = &after[end..];
    }
    found
}

/// The content of the string in `var linuxPerfData = "…"`, with its escapes.
pub(super) fn linux_perf_data(code: &[u8]) -> Option<&[u8]> {
    const ASSIGNMENT: &[u8] = b"var linuxPerfData = \"";
    let at = memchr::memmem::find(code, ASSIGNMENT)?;
    let text = &code[at + ASSIGNMENT.len()..];
    // A quote behind a backslash does not end the string.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_script_of_its_own_is_a_section() {
        let page = b"<html><script>x = '<script class=\"trace-data\">no'</script>\n\
            <script class=\"trace-data\" type=\"application/text\">yes</script><script>y</script><script class=";
        let found = scripts(page);
        assert_eq!(found.sections, [b"yes"]);
        assert_eq!(found.code.len(), 2);
    }

    #[test]
    fn the_string_ends_at_a_quote_that_is_not_escaped() {
        assert_eq!(linux_perf_data(b"var linuxPerfData = \"a\\\"b\\\\\";z\""), Some(&b"a\\\"b\\\\"[..]));
        assert_eq!(linux_perf_data(b"var linuxPerfData = \"cut"), Some(&b"cut"[..]));
        assert_eq!(linux_perf_data(b"var linuxPerfData = \"cut\\"), None);
        assert_eq!(linux_perf_data(b"var other = \"x\""), None);
    }
}
