//! The members of a tar archive: POSIX `ustar` and pax, and GNU's long names and large numbers
//! (POSIX.1-2017, `pax`; GNU tar's manual, "Basic Tar Format").

use std::ops::Range;

/// A header, and the unit in which contents are stored.
const BLOCK: usize = 512;
/// The name of the format, and its offset in a header.
const MAGIC: (usize, &[u8]) = (257, b"ustar");
/// The most bytes of a name that a header of its own gives. An archive with a longer one is damaged there.
const MAX_NAME_BYTES: usize = 64 << 10;

/// A file in a tar archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TarMember {
    pub(super) path: String,
    /// Its bytes in the archive.
    pub(super) range: Range<usize>,
    /// How many bytes are missing, because the archive is cut.
    pub(super) missing: u64,
}

/// Whether these are the first bytes of a tar archive.
pub(in crate::formats) fn is_tar(bytes: &[u8]) -> bool {
    bytes.get(MAGIC.0..).is_some_and(|at| at.starts_with(MAGIC.1))
}

/// The regular files of an archive, in its order, at most `limit`; and whether the archive ends as it should.
pub(super) fn members(bytes: &[u8], limit: usize) -> (Vec<TarMember>, bool) {
    let mut members = Vec::new();
    let mut at = 0;
    let mut long_name: Option<String> = None;
    let mut long_size: Option<u64> = None;
    while members.len() < limit {
        let Some(header) = bytes.get(at..at + BLOCK) else { return (members, false) };
        if header.iter().all(|byte| *byte == 0) {
            return (members, true);
        }
        if !is_tar(header) || !is_sum_right(header) {
            return (members, false);
        }
        let Some(size) = long_size.or_else(|| number(&header[124..136])) else { return (members, false) };
        let start = at + BLOCK;
        let size_here = usize::try_from(size).unwrap_or(usize::MAX);
        let end = start.saturating_add(size_here).min(bytes.len()).max(start.min(bytes.len()));
        let content = bytes.get(start..end).unwrap_or(&[]);
        match header[156] {
            b'L' if content.len() > MAX_NAME_BYTES => return (members, false),
            b'L' => long_name = Some(text(content)),
            b'x' => {
                for (key, value) in pax_records(content) {
                    match key {
                        b"path" if value.len() > MAX_NAME_BYTES => return (members, false),
                        b"path" => long_name = Some(text(value)),
                        b"size" => long_size = std::str::from_utf8(value).ok().and_then(|v| v.parse().ok()),
                        _ => {}
                    }
                }
            }
            kind => {
                let path = long_name.take().unwrap_or_else(|| name(header));
                long_size = None;
                if matches!(kind, b'0' | 0 | b'7') {
                    let missing = size.saturating_sub(content.len() as u64);
                    members.push(TarMember { path, range: start.min(end)..end, missing });
                }
            }
        }
        let Some(next) = start.checked_add(size_here).and_then(|end| end.checked_next_multiple_of(BLOCK))
        else {
            return (members, false);
        };
        at = next;
    }
    (members, true)
}

/// Whether a header's sum is that of its bytes, with blanks in place of the sum.
fn is_sum_right(header: &[u8]) -> bool {
    let sum: u64 = header.iter().map(|byte| u64::from(*byte)).sum();
    let own: u64 = header[148..156].iter().map(|byte| u64::from(*byte)).sum();
    number(&header[148..156]) == Some(sum - own + 8 * u64::from(b' '))
}

/// A number in octal digits, or in GNU's form with the high bit set.
fn number(field: &[u8]) -> Option<u64> {
    if field.first().is_some_and(|byte| byte & 0x80 != 0) {
        let high = u64::from(field[0] & 0x7f);
        return field[1..].iter().try_fold(high, |sum, byte| Some(sum.checked_mul(256)? | u64::from(*byte)));
    }
    let digits = field.iter().skip_while(|byte| **byte == b' ').take_while(|byte| byte.is_ascii_digit());
    digits.into_iter().try_fold(0u64, |sum, digit| sum.checked_mul(8)?.checked_add(u64::from(digit - b'0')))
}

fn name(header: &[u8]) -> String {
    let prefix = if &header[257..263] == b"ustar\0" { text(&header[345..500]) } else { String::new() };
    let name = text(&header[..100]);
    if prefix.is_empty() { name } else { format!("{prefix}/{name}") }
}

fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

/// The records `LENGTH KEY=VALUE\n` of a pax header.
fn pax_records(mut bytes: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    std::iter::from_fn(move || {
        let blank = memchr::memchr(b' ', bytes)?;
        let len: usize = std::str::from_utf8(&bytes[..blank]).ok()?.parse().ok()?;
        let record = bytes.get(blank + 1..len)?;
        bytes = &bytes[len..];
        let equals = memchr::memchr(b'=', record)?;
        Some((&record[..equals], record[equals + 1..].strip_suffix(b"\n")?))
    })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A header and a content, filled up to a whole block.
    fn entry(path: &str, kind: u8, content: &[u8]) -> Vec<u8> {
        let mut header = vec![0; BLOCK];
        header[..path.len()].copy_from_slice(path.as_bytes());
        header[124..135].copy_from_slice(format!("{:011o}", content.len()).as_bytes());
        header[148..156].fill(b' ');
        header[156] = kind;
        header[257..263].copy_from_slice(b"ustar\0");
        let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
        header[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
        header.extend_from_slice(content);
        header.resize(header.len().next_multiple_of(BLOCK), 0);
        header
    }

    /// A tar archive with these files.
    pub(in crate::formats) fn tar(files: &[(&str, &[u8])]) -> Vec<u8> {
        let mut out: Vec<u8> = files.iter().flat_map(|(path, content)| entry(path, b'0', content)).collect();
        out.resize(out.len() + 2 * BLOCK, 0);
        out
    }

    #[test]
    fn names_and_contents_of_all_forms_are_found() {
        let long = "d/".repeat(80) + "long.txt";
        let pax = format!("{} path={long}\n", long.len() + " path=\n".len() + 3);
        let bytes = [
            entry("dir/", b'5', b""),
            entry("dir/a.txt", b'0', b"first"),
            entry("x", b'x', pax.as_bytes()),
            entry("cut", b'0', b"second"),
            entry("././@LongLink", b'L', long.as_bytes()),
            entry("cut", b'0', b"third"),
            vec![0; 2 * BLOCK],
        ]
        .concat();
        let (found, is_whole) = members(&bytes, 10);
        let told: Vec<(&str, &[u8])> =
            found.iter().map(|member| (member.path.as_str(), &bytes[member.range.clone()])).collect();
        assert_eq!(told, [("dir/a.txt", &b"first"[..]), (&long, b"second"), (&long, b"third")]);
        assert!(is_whole);
        for cut in 0..bytes.len() - 2 * BLOCK {
            let (found, is_whole) = members(&bytes[..cut], 10);
            assert!(!is_whole, "cut at {cut}");
            assert!(found.iter().all(|member| member.range.end <= cut));
        }
    }

    #[test]
    fn a_name_that_is_too_long_is_damage_and_a_long_header_is_read_whole() {
        let long = "x".repeat(MAX_NAME_BYTES + 1);
        let record = |text: &str| {
            let digits = (text.len() + 7).to_string().len();
            format!("{} {text}\n", text.len() + digits + 2)
        };
        let pax = |records: &[String]| {
            let bytes = [entry("x", b'x', records.concat().as_bytes()), entry("cut", b'0', b"one")].concat();
            members(&[&bytes[..], &[0; 2 * BLOCK]].concat(), 10)
        };
        let gnu = [entry("././@LongLink", b'L', long.as_bytes()), entry("cut", b'0', b"one")].concat();
        assert_eq!(members(&gnu, 10), (Vec::new(), false));
        assert_eq!(pax(&[record(&format!("path={long}"))]), (Vec::new(), false));
        // The name stands behind something larger.
        let (found, is_whole) = pax(&[record(&format!("comment={long}")), record("path=name")]);
        assert_eq!((found[0].path.as_str(), is_whole), ("name", true));
    }

    #[test]
    fn numbers_are_octal_or_binary() {
        assert_eq!(number(b"0000644\0"), Some(0o644));
        assert_eq!(number(b"     12 "), Some(0o12));
        assert_eq!(number(&[0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2]), Some(258));
        assert_eq!(number(&[0xff; 12]), None);
    }
}
