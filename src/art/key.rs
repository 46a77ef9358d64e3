//! The text section: `*version`, keys, `*threads`, `*methods`, `*end`. The summary of a streaming file has
//! the same form.

use std::borrow::Cow;

use memchr::memchr;

/// One method as the list declares it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MethodLine<'a> {
    /// Method id: an address in Dalvik, a small multiple of 4 in ART.
    pub id: u64,
    /// Class as written: `a/b/C` by Dalvik, `a.b.C` by ART.
    pub class: Cow<'a, str>,
    /// Method name.
    pub name: Cow<'a, str>,
    /// JNI signature; empty where the line has 3 columns.
    pub signature: Cow<'a, str>,
    /// Source file; empty where the line has up to 4 columns.
    pub file: Cow<'a, str>,
    /// Source line, where the line has 6 columns. Dalvik writes -1 for unknown and -2 for native.
    pub line: Option<i32>,
}

impl MethodLine<'_> {
    /// The same method with another id.
    pub fn with_id(self, id: u64) -> Self {
        MethodLine { id, ..self }
    }

    /// A copy that owns its text.
    pub fn into_owned(self) -> MethodLine<'static> {
        let own = |text: Cow<'_, str>| Cow::Owned(text.into_owned());
        let MethodLine { id, class, name, signature, file, line } = self;
        MethodLine {
            id,
            class: own(class),
            name: own(name),
            signature: own(signature),
            file: own(file),
            line,
        }
    }
}

/// The text section's content.
#[derive(Debug, Clone, Default)]
pub struct KeySection<'a> {
    /// The version number that follows `*version`.
    pub version: u16,
    /// `key=value` lines in file order.
    pub keys: Vec<(Cow<'a, str>, Cow<'a, str>)>,
    /// Threads in file order: id and name. An id comes twice if a thread ended and another thread got its id.
    pub threads: Vec<(u32, Cow<'a, str>)>,
    /// Methods in file order.
    pub methods: Vec<MethodLine<'a>>,
    /// Length of the section with its `*end` line, bytes.
    pub len: usize,
    /// Whether `*end` was found.
    pub complete: bool,
    /// Lines that end in CR LF, which no runtime writes.
    pub crlf_lines: u64,
    /// Lines that could not be read: the offset from the start of the section, and the reason.
    pub bad_lines: Vec<(usize, &'static str)>,
}

#[derive(Clone, Copy, PartialEq)]
enum TextPart {
    Version,
    Keys,
    Threads,
    Methods,
}

impl<'a> KeySection<'a> {
    /// Reads the section at the start of `bytes`; `None` if `bytes` does not begin with `*version`.
    pub fn parse(bytes: &'a [u8]) -> Option<KeySection<'a>> {
        if !bytes.starts_with(b"*version") {
            return None;
        }
        let mut section = KeySection::default();
        let mut part = TextPart::Version;
        let mut at = 0;
        while at < bytes.len() {
            let rest = &bytes[at..];
            let next = memchr(b'\n', rest).map(|n| n + 1);
            let line = &rest[..next.unwrap_or(rest.len())];
            section.crlf_lines += u64::from(line.ends_with(b"\r\n"));
            let line = line.trim_ascii_end();
            let start = at;
            at += next.unwrap_or(rest.len());
            match line {
                b"*version" => part = TextPart::Version,
                b"*threads" => part = TextPart::Threads,
                b"*methods" => part = TextPart::Methods,
                b"*end" => {
                    section.complete = true;
                    break;
                }
                b"" => {}
                // In a file without `*end` the binary part follows directly.
                _ if line.starts_with(super::MAGIC) => {
                    at = start;
                    break;
                }
                // The last line of a file that was cut may be incomplete, so nothing of it is used.
                _ if next.is_none() => section.bad_lines.push((start, "the line is cut off")),
                _ => section.take_line(&mut part, line, start),
            }
        }
        section.len = at;
        Some(section)
    }

    fn take_line(&mut self, part: &mut TextPart, line: &'a [u8], start: usize) {
        let bad = match *part {
            TextPart::Version => match std::str::from_utf8(line).ok().and_then(|v| v.parse().ok()) {
                Some(version) => {
                    self.version = version;
                    *part = TextPart::Keys;
                    return;
                }
                None => "no version number",
            },
            TextPart::Keys => match split(line, b'=') {
                Some((key, value)) => return self.keys.push((lossy(key), lossy(value))),
                None => "no key=value",
            },
            TextPart::Threads => match parse_thread_line(line) {
                Some(thread) => return self.threads.push(thread),
                None => "no thread id and name",
            },
            TextPart::Methods => match parse_method_line(line) {
                Some(method) => return self.methods.push(method),
                None => "no method id, class and name",
            },
        };
        self.bad_lines.push((start, bad));
    }
}

fn split(line: &[u8], at: u8) -> Option<(&[u8], &[u8])> {
    let n = memchr(at, line)?;
    Some((&line[..n], &line[n + 1..]))
}

fn lossy(bytes: &[u8]) -> Cow<'_, str> {
    // The check alone takes many bytes of ASCII at once; `from_utf8_lossy` takes one after the other.
    std::str::from_utf8(bytes).map_or_else(|_| String::from_utf8_lossy(bytes), Cow::Borrowed)
}

fn parse_thread_line(line: &[u8]) -> Option<(u32, Cow<'_, str>)> {
    let (id, name) = split(line, b'\t')?;
    Some((std::str::from_utf8(id).ok()?.trim().parse().ok()?, lossy(name)))
}

/// Reads one line of the method list: hexadecimal id, class, method, signature, file, line. The last three
/// may be absent.
pub fn parse_method_line(line: &[u8]) -> Option<MethodLine<'_>> {
    let mut rest = Some(line.trim_ascii_end());
    let mut column = || {
        let (column, behind) = match split(rest?, b'\t') {
            Some((column, behind)) => (column, Some(behind)),
            None => (rest?, None),
        };
        rest = behind;
        Some(column)
    };
    let id = std::str::from_utf8(column()?).ok()?;
    let id = u64::from_str_radix(id.strip_prefix("0x").unwrap_or(id), 16).ok()?;
    let class = lossy(column()?);
    let name = lossy(column()?);
    let mut text = || lossy(column().unwrap_or_default());
    let signature = text();
    let file = text();
    let line = text();
    Some(MethodLine { id, class, name, signature, file, line: line.parse().ok() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_may_end_in_crlf_and_have_three_to_six_columns() {
        let text =
            b"*version\r\n3\r\nclock=dual\r\n*threads\r\n1\tm\xc3\xa4in\r\n*methods\r\n0x4\ta.B\tc\r\n\
            0x8\ta/B\td\t()V\tB.java\t-2\r\n*end\r\nSLOW";
        let section = KeySection::parse(text).unwrap();
        assert!(section.complete && section.bad_lines.is_empty());
        assert_eq!(section.keys, [("clock".into(), "dual".into())]);
        assert_eq!(section.threads, [(1, "mäin".into())]);
        assert_eq!(section.methods[0].signature, "");
        assert_eq!((section.methods[1].file.as_ref(), section.methods[1].line), ("B.java", Some(-2)));
        assert_eq!(&text[section.len..], b"SLOW");
    }

    #[test]
    fn a_last_line_that_is_cut_is_not_used() {
        let section = KeySection::parse(b"*version\n3\n*threads\n1\tmain\n12").unwrap();
        assert!(!section.complete);
        assert_eq!(section.threads.len(), 1);
        assert_eq!(section.bad_lines, [(27, "the line is cut off")]);
    }
}
