//! Fields of a CSV line (RFC 4180): a field with a comma, a quote or a line end stands in quotes, and a quote
//! in it is doubled.

use std::borrow::Cow;

/// The first characters of a field that spreadsheets take for a formula (OWASP, "CSV Injection").
const FORMULA_STARTS: &[u8] = b"=+-@\t\r";

/// Appends a text field to a line. Of bytes that are no UTF-8 each becomes `\xNN`: readers of CSV expect
/// UTF-8.
///
/// Spreadsheets run a field that begins as a formula does. Such a field gets a `'` in front, unless it is a
/// number.
pub fn push_csv_field(out: &mut Vec<u8>, field: &[u8]) {
    if std::str::from_utf8(field).is_err() {
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

/// A text with `\xNN` in place of bytes that are no UTF-8.
fn utf8(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
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
    }
}
