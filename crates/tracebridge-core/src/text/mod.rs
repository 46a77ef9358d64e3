//! Text in forms that several rooms read or write: names and patterns of names, CSV fields, dates, sizes, and
//! numbers and short pieces that are put together fast.

pub mod digits;
mod duration;
pub mod pieces;

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

pub use duration::{duration, padded_duration};
pub use tracebridge_markers::internals::two_digits;

/// The bytes before the first NUL, or all bytes.
#[inline]
pub fn until_nul(bytes: &[u8]) -> &[u8] {
    bytes.iter().position(|b| *b == 0).map_or(bytes, |n| &bytes[..n])
}

/// Replaces line ends by blanks, because a line end inside an event would make two lines of it.
pub fn end_no_line(text: &mut [u8]) {
    for byte in text {
        if matches!(byte, b'\n' | b'\r') {
            *byte = b' ';
        }
    }
}

/// Seconds of a day.
const DAY_S: u64 = 86_400;

/// The day of a time in UTC: `2026-11-22`. `seconds` count from 1970.
pub fn utc_date(seconds: u64) -> String {
    // Days since 0000-03-01, by eras of 400 years (Howard Hinnant, chrono-compatible date algorithms).
    let days = seconds / DAY_S + 719_468;
    let era = days / 146_097;
    let day_of_era = days % 146_097;
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

/// A time in UTC: `2026-11-22 13:58:15`. `seconds` count from 1970.
pub fn utc_time(seconds: u64) -> String {
    let day = utc_date(seconds);
    let hour = seconds / 3_600 % 24;
    let minute = seconds / 60 % 60;
    let second = seconds % 60;
    format!("{day} {hour:02}:{minute:02}:{second:02}")
}

/// A number of bytes for people: `9999 bytes`, `12.3 kB`, `1.0 MB`.
pub fn byte_size(bytes: u64) -> String {
    match bytes {
        0..10_000 => format!("{bytes} bytes"),
        10_000..10_000_000 => format!("{:.1} kB", bytes as f64 / 1e3),
        _ => format!("{:.1} MB", bytes as f64 / 1e6),
    }
}

/// The last part of a path of any system. People send traces and pages to each other, and the directories say
/// who they are.
pub fn file_name(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().filter(|name| !name.is_empty()).unwrap_or(path)
}

/// The most of a file of names that is read, bytes.
const MAX_NAMES_BYTES: u64 = 1 << 20;

/// Reads a file of names, which are separated by white space.
///
/// # Errors
/// The system's, or that the file is longer than any list of names.
pub fn read_names(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(MAX_NAMES_BYTES + 1).read_to_string(&mut text)?;
    if text.len() as u64 > MAX_NAMES_BYTES {
        let why = "more than 1 MiB, which no list of names has";
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
    }
    Ok(text)
}

/// Whether `pattern`, for names of methods and slices, occurs in `text`. A `*` in the pattern stands for any
/// text; no other character is special.
pub fn contains_pattern(pattern: &str, text: &str) -> bool {
    let mut rest = text;
    pattern.split('*').filter(|part| !part.is_empty()).all(|part| match rest.find(part) {
        Some(at) => {
            rest = &rest[at + part.len()..];
            true
        }
        None => false,
    })
}

/// Whether `pattern` is the whole of `text`. A `*` in the pattern stands for any text; no other character is
/// special.
pub fn is_whole_pattern(pattern: &str, text: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else { return pattern == text };
    let (middle, last) = rest.rsplit_once('*').unwrap_or(("", rest));
    let inside = text.strip_prefix(first).and_then(|text| text.strip_suffix(last));
    inside.is_some_and(|text| contains_pattern(middle, text))
}

// Fields of a CSV line (RFC 4180): a field with a comma, a quote or a line end stands in quotes, and a quote
// in it is doubled.

/// The first characters of a field that spreadsheets take for a formula (OWASP, "CSV Injection").
const FORMULA_STARTS: &[u8] = b"=+-@\t\r";

/// Appends a text field to a line. Each NUL and each byte of no UTF-8 becomes `\xNN`: readers of CSV expect
/// UTF-8, and end a field at a NUL.
///
/// Spreadsheets run a field that begins as a formula does. Such a field gets a `'` in front, unless it is a
/// number.
pub fn push_csv_field(out: &mut Vec<u8>, field: &[u8]) {
    if std::str::from_utf8(field).is_err() || field.contains(&0) {
        return push_csv_field(out, utf8(field).as_bytes());
    }
    let is_formula = field.first().is_some_and(|first| FORMULA_STARTS.contains(first)) && !is_number(field);
    let guard: &[u8] = if is_formula { b"'" } else { b"" };
    if !field.iter().any(|b| matches!(b, b',' | b'"' | b'\n' | b'\r')) {
        out.extend_from_slice(guard);
        return out.extend_from_slice(field);
    }
    out.push(b'"');
    out.extend_from_slice(guard);
    for byte in field {
        if *byte == b'"' {
            out.push(b'"');
        }
        out.push(*byte);
    }
    out.push(b'"');
}

/// A text with `\xNN` in place of each NUL and of bytes that are no UTF-8.
fn utf8(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(&chunk.valid().replace('\0', "\\x00"));
        for byte in chunk.invalid() {
            text.push_str(&format!("\\x{byte:02x}"));
        }
    }
    text
}

/// Whether the field is a decimal number.
fn is_number(field: &[u8]) -> bool {
    let digits = field.strip_prefix(b"-").or(field.strip_prefix(b"+")).unwrap_or(field);
    digits.iter().any(u8::is_ascii_digit) && digits.iter().all(|b| b.is_ascii_digit() || *b == b'.')
}

/// `field` as a line holds it, for lines that are put together with `write!`.
pub fn csv_field(field: &str) -> Cow<'_, str> {
    let mut quoted = Vec::new();
    push_csv_field(&mut quoted, field.as_bytes());
    if quoted == field.as_bytes() {
        Cow::Borrowed(field)
    } else {
        Cow::Owned(String::from_utf8_lossy(&quoted).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_on_its_day() {
        assert_eq!([0, 86_399, 86_400].map(utc_date), ["1970-01-01", "1970-01-01", "1970-01-02"]);
        assert_eq!(utc_date(951_782_400), "2000-02-29");
        assert_eq!(utc_date(1_795_305_600 - 1), "2026-11-21");
        assert_eq!(utc_date(1_795_305_600), "2026-11-22");
    }

    #[test]
    fn a_size_is_exact_where_it_is_small() {
        assert_eq!(byte_size(9_999), "9999 bytes");
        assert_eq!(byte_size(12_345), "12.3 kB");
        assert_eq!(byte_size(10_000_000), "10.0 MB");
    }

    #[test]
    fn directories_are_left_out() {
        assert_eq!(file_name("/home/me/a.trace"), "a.trace");
        assert_eq!(file_name("C:\\me\\a.trace"), "a.trace");
        assert_eq!(file_name("a.trace"), "a.trace");
        assert_eq!(file_name("-"), "-");
        assert_eq!(file_name("/tmp/"), "/tmp/");
    }

    #[test]
    fn a_pattern_of_a_whole_text_knows_the_star_alone() {
        for (pattern, text, expected) in [
            ("inflate", "inflate", true),
            ("inflate", "inflate 2", false),
            ("inflate*", "inflate 2", true),
            ("*2", "inflate 2", true),
            ("i*a*e", "inflate", true),
            ("i*e*a*e", "inflate", false),
            ("ab*ba", "aba", false),
            ("*", "", true),
            ("a?[b]", "axb", false),
            ("a?[b]*", "a?[b] c", true),
        ] {
            assert_eq!(is_whole_pattern(pattern, text), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn a_pattern_is_found_anywhere_and_only_the_star_is_special() {
        for (pattern, text, expected) in [
            ("onCreate", "android.app.Activity.onCreate", true),
            ("Activity*Create", "android.app.Activity.onCreate", true),
            ("Create*Activity", "android.app.Activity.onCreate", false),
            ("*", "", true),
            ("a?c", "abc", false),
            ("[]", "int[].clone", true),
        ] {
            assert_eq!(contains_pattern(pattern, text), expected, "{pattern} {text}");
        }
    }

    /// The fields of one record, as a reader of RFC 4180 takes them apart.
    fn decode(mut record: &str) -> Vec<String> {
        let mut fields = Vec::new();
        loop {
            let mut field = String::new();
            match record.strip_prefix('"') {
                None => {
                    let end = record.find(',').unwrap_or(record.len());
                    field.push_str(&record[..end]);
                    record = &record[end..];
                }
                Some(mut rest) => loop {
                    let end = rest.find('"').unwrap();
                    field.push_str(&rest[..end]);
                    rest = &rest[end + 1..];
                    record = rest;
                    match rest.strip_prefix('"') {
                        Some(after) => rest = after,
                        None => break,
                    }
                    field.push('"');
                },
            }
            fields.push(field);
            match record.strip_prefix(',') {
                Some(rest) => record = rest,
                None => return fields,
            }
        }
    }

    #[test]
    fn a_text_that_a_spreadsheet_would_run_begins_with_an_apostrophe() {
        for formula in ["=1+1", "+SUM(A1)", "-$$Lambda$1.run", "@x", "\tx", "\r=1", "=a,b", "-1-1"] {
            let record = csv_field(formula).into_owned();
            assert_eq!(decode(&record), [format!("'{formula}")], "{formula:?}");
        }
    }

    #[test]
    fn what_is_decoded_is_what_was_encoded() {
        let fields =
            ["", "plain", "a,b", "say \"x\"", "\"", "two\nlines", "\n", "Map<K,V>.get", "ü", "-5", "+1.5"];
        let record = fields.map(csv_field).join(",");
        assert_eq!(decode(&record), fields);
        let mut line = Vec::new();
        push_csv_field(&mut line, b"\xff,\"");
        assert_eq!(line, b"\"\\xff,\"\"\"");
        line.clear();
        push_csv_field(&mut line, b"a\0b");
        assert_eq!(line, b"a\\x00b");
    }
}
